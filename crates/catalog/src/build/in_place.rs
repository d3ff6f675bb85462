//! Unfinished indexes, and indexes that are built in one go while nobody else writes.

use crate::Catalog;
use crate::build::state::Build;
use crate::ddl::indexes::format_of;
use crate::schema::collection::{Collection, Index, KeyFormat};
use crate::schema::durable;
use crate::schema::snapshot::Named;
use crate::write::index_entries;
use crate::write::record_id::{self, Record};
use pando_base::{OpTime, Result, Timestamp, Uuid};
use pando_bson::RawDoc;
use pando_bson::keystring::KeyBuilder;
use pando_index::{IndexSpec, KeySet};
use pando_storage::{Dir, IdentKind};
use std::ops::Bound;
use std::sync::Arc;

impl Catalog {
    pub(crate) fn unfinished_index(&self, spec: IndexSpec, uuid: Uuid) -> Result<Index> {
        let format = format_of(&spec);
        self.unfinished_index_as(spec, uuid, format)
    }
    pub(crate) fn unfinished_index_as(
        &self,
        spec: IndexSpec,
        uuid: Uuid,
        format: KeyFormat,
    ) -> Result<Index> {
        let ident = self.storage().create_ident(IdentKind::Index)?;
        let side = self.storage().create_ident(IdentKind::Records)?;
        let mut index = durable::new_index(spec, ident, format, Timestamp::MAX, self.now_ms())?;
        index.building = Some(Arc::new(Build::new(uuid, side, self.env().clock.mono())));
        Ok(index)
    }

    /// Builds indexes at once, nobody else writing: for unreplicated collections (`at` is `None`) and replays.
    pub(crate) fn build_in_place(
        &self,
        coll: &Arc<Collection>,
        specs: &[IndexSpec],
        at: Option<Timestamp>,
    ) -> Result<OpTime> {
        let mut unit = match at {
            Some(ts) => self.begin_applied(ts)?,
            None => self.begin_write(coll)?,
        };
        let mut current = coll.clone();
        for spec in specs {
            current = self.with_new_index(&unit, &current, spec.clone())?;
        }
        let new: Vec<Arc<Index>> =
            current.indexes.iter().filter(|i| specs.iter().any(|s| s.name == i.spec.name)).cloned().collect();
        let mut cursor = unit.txn.scan(coll.records, Bound::Unbounded, Bound::Unbounded, Dir::Forward)?;
        let (mut builder, mut keys) = (KeyBuilder::default(), KeySet::default());
        while let Some((key, doc)) = cursor.next()? {
            let record = Record::of(&record_id::from_storage_key(coll.is_clustered(), &key)?);
            for index in &new {
                index.keys.keys(RawDoc::trusted(&doc), &mut builder, &mut keys)?;
                index_entries::note_arrays(&mut unit, &current, index, &keys);
                for k in keys.iter() {
                    index_entries::apply(&mut unit, &current, index, &record, index_entries::Change::Add, k)?;
                }
            }
        }
        unit.take_unwritten_marks();
        let (txn, marks) = unit.txn_and_marks();
        durable::put_row(txn, &current, marks.iter())?;
        let last = unit.commit()?;
        self.publish(|s| s.put(Named::Collection(current)));
        Ok(last)
    }
}
