//! Indexes that the log says are ready, made at the end of a replay.
//!
//! During a replay rows may be ahead of the entry that is being applied, so two documents may seem to have one
//! unique key; and a whole index in one unit of work may be more than memory holds. So replaying the end of a build
//! only notes what is wanted. Once all rows are those of one timestamp, one scan feeds the indexes of a collection,
//! which are sorted and loaded as in a build.

use crate::Catalog;
use crate::build::target::{Target, made_ready};
use crate::schema::collection::{Collection, Index};
use crate::schema::durable::{self, Outdated, Parts};
use crate::schema::snapshot::Named;
use crate::write::record_id::{self, Record};
use pando_base::{Error, Result, Timestamp, limits};
use pando_bson::RawDoc;
use pando_bson::keystring::KeyBuilder;
use pando_env::log::Component;
use pando_index::{IndexSpec, KeySet};
use pando_storage::{Dir, ReadAt};
use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

impl Catalog {
    /// Notes that these indexes of `coll` are ready as of an entry at `ts`; until the replay ends they are kept as
    /// unfinished ones.
    pub(crate) fn rebuild_later(
        &self,
        coll: &Arc<Collection>,
        specs: &[IndexSpec],
        ts: Timestamp,
    ) -> Result<()> {
        let mut parts = Parts::of(coll);
        let mut gone = Vec::new();
        for spec in specs {
            let format = self.format_for(spec);
            // Over data of different ages two documents may have one key.
            gone.extend(parts.indexes.extract_if(.., |i| i.spec.name == spec.name && i.format != format));
            if !parts.indexes.iter().any(|i| i.spec.name == spec.name) {
                let index = self.unfinished_index_as(spec.clone(), self.new_uuid(), format)?;
                parts.indexes.push(Arc::new(index));
            }
            let kept = parts.indexes.iter_mut().find(|i| i.spec.name == spec.name);
            let Some(index) = kept else { continue };
            let Some(build) = &index.building else { continue };
            self.0.rebuilds.add(coll.uuid, build.uuid, &spec.name);
            // Its row says so, for who begins behind this entry before the index is made.
            *index = Arc::new(Index::clone(index).into_committed());
        }
        self.apply_parts(ts, parts)?;
        gone.iter().for_each(|i| self.drop_index_rows(i, ts));
        Ok(())
    }

    /// A ready index whose keys an older version made in another way: its rows go, and it is kept as an unfinished one
    /// until the replay ends and makes it anew. After a crash meanwhile its row still says that it is outdated.
    pub(crate) fn outdated_index(&self, of: &Parts, old: Outdated, at: Timestamp) -> Result<Index> {
        self.env().log.info(
            Component::Index,
            20_621,
            "Making an index anew, whose keys an older version made in another way",
            |a| {
                a.show("namespace", &of.ns);
                a.show("index", &old.spec.name);
            },
        );
        self.storage().drop_ident(old.ident, at);
        let build = self.new_uuid();
        self.0.rebuilds.add(of.uuid, build, &old.spec.name);
        self.unfinished_index_as(old.spec, build, old.format)
    }

    /// Makes the noted indexes; every row is as of `at`.
    pub(crate) fn finish_rebuilds(&self, at: Timestamp) -> Result<()> {
        for (uuid, noted) in self.0.rebuilds.take() {
            // Gone again by a later entry.
            let Some(coll) = self.lookup_uuid(uuid) else { continue };
            let is_noted = |i: &&Arc<Index>| {
                let build = i.building.as_ref().map(|b| b.uuid);
                build.is_some_and(|build| noted.contains(&(build, i.spec.name.clone())))
            };
            let wanted: Vec<Arc<Index>> = coll.building_indexes().iter().filter(is_noted).cloned().collect();
            if !wanted.is_empty() {
                // Rows of unreplicated collections carry no timestamp.
                let at = if coll.replicated { at } else { Timestamp::ZERO };
                self.rebuild(&coll, &wanted, at)?;
            }
        }
        Ok(())
    }

    fn rebuild(&self, coll: &Arc<Collection>, wanted: &[Arc<Index>], at: Timestamp) -> Result<()> {
        let memory = limits::INDEX_BUILD_MEMORY_BYTES / wanted.len();
        let mut targets = Vec::new();
        for index in wanted {
            let build = index.building.clone().ok_or_else(|| Error::internal("no build to redo"))?;
            targets.push(Target::new(self.env().disk.clone(), index.clone(), build, memory));
        }
        let txn = self.storage().begin(ReadAt::Applied)?;
        let mut cursor = txn.scan(coll.records, Bound::Unbounded, Bound::Unbounded, Dir::Forward)?;
        let (mut builder, mut keys) = (KeyBuilder::default(), KeySet::default());
        while let Some((key, doc)) = cursor.next()? {
            let record = Record::of(&record_id::from_storage_key(coll.is_clustered(), &key)?);
            for t in &mut targets {
                t.add(&record, RawDoc::trusted(&doc), &mut builder, &mut keys)?;
            }
        }
        drop(cursor);
        for t in &mut targets {
            let Some(mut load) = t.load(self.storage(), at)? else { continue };
            while load.some(coll, t)? {}
            load.finish()?;
        }
        let mut unit = if coll.replicated { self.begin_applied(at)? } else { self.begin_unit(false)? };
        for t in &mut targets {
            t.settle_doubts(coll, &mut unit.txn)?;
        }
        let (current, marks) = made_ready(coll, &targets, at)?;
        durable::put_row(&mut unit.txn, &current, marks.iter())?;
        marks.into_iter().for_each(|m| unit.note_marks(m));
        unit.commit()?;
        self.publish(|s| s.put(Named::Collection(current)));
        targets.iter().for_each(|t| self.storage().drop_ident(t.build.side, at));
        Ok(())
    }

    /// Every ident that a collection or an index names.
    pub(crate) fn named_idents(&self) -> BTreeSet<pando_storage::Ident> {
        let snapshot = self.snapshot();
        let mut named = BTreeSet::new();
        for c in snapshot.all_collections() {
            named.insert(c.records);
            for i in &c.indexes {
                named.insert(i.ident);
                named.extend(i.building.as_ref().map(|b| b.side));
            }
        }
        named
    }
}
