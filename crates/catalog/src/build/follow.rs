//! What the log says of index builds, on a member that follows it.
//!
//! Where entries are applied as they come, a build begins with its first entry and runs beside all that follow; its last one
//! finds it all but done. In a replay, in an initial sync and after a rollback that fetched documents the data is not of one
//! time: then nothing is scanned, the entries only say which indexes are unfinished or ready, and what is unfinished at the
//! end is taken up by [`Catalog::resume_builds`].

use crate::Catalog;
use crate::apply::entry::{Applying, specs_of};
use crate::build::run::finish;
use crate::build::target::Target;
use crate::schema::collection::Index;
use crate::schema::durable::Parts;
use crate::schema::snapshot::Named;
use pando_base::redaction::WithCode;
use pando_base::{Error, Result, Uuid};
use pando_bson::Value;
use pando_env::log::Component;
use pando_index::IndexSpec;
use pando_oplog::EntryView;
use std::sync::Arc;

fn build_of(e: &EntryView<'_>) -> Option<Uuid> {
    match e.o.get("indexBuildUUID") {
        Some(Value::Binary { bytes, .. }) => Uuid::from_slice(bytes),
        _ => None,
    }
}

impl Catalog {
    /// Before an entry that stands alone is applied: builds that it ends have their part, or have stopped.
    pub async fn settle_builds(&self, e: &EntryView<'_>) {
        let Some(first) = e.command() else { return };
        match (first.name(), build_of(e)) {
            ("commitIndexBuild", Some(build)) => self.claim_build(build).await,
            ("abortIndexBuild", Some(build)) => self.end_build(build, "the primary aborted the build").await,
            ("drop", _) => {
                if let Some(uuid) = e.ui {
                    self.end_builds_on(uuid, "collection dropped").await;
                }
            }
            ("renameCollection", _) => {
                if let Some(Value::Binary { bytes, .. }) = e.o.get("dropTarget")
                    && let Some(uuid) = Uuid::from_slice(bytes)
                {
                    self.end_builds_on(uuid, "collection dropped by a rename").await;
                }
            }
            _ => {}
        }
    }

    /// Registers a build, and begins it where the data is of one time.
    pub(crate) fn apply_start_build(&self, e: &EntryView<'_>, why: Applying) -> Result<()> {
        let Some(coll) = e.ui.and_then(|u| self.lookup_uuid(u)) else { return Ok(()) };
        if !self.makes_indexes() {
            return Ok(());
        }
        let uuid = build_of(e).ok_or_else(|| Error::internal("an index build entry without UUID"))?;
        let mut parts = Parts::of(&coll);
        let mut new = Vec::new();
        for spec in specs_of(e)? {
            if coll.index(&spec.name).is_none() {
                parts.indexes.push(Arc::new(self.unfinished_index(spec.clone(), uuid)?));
                new.push(spec);
            }
        }
        self.apply_parts(e.ts, parts)?;
        if why == Applying::Steady
            && !new.is_empty()
            && let Some(coll) = self.lookup_uuid(coll.uuid)
        {
            self.spawn_build(self.register(&coll, new, uuid)?);
        }
        Ok(())
    }

    /// Makes the indexes of a build ready: those that were built here, or else what the collection holds at that point.
    pub(crate) fn apply_commit_build(&self, e: &EntryView<'_>) -> Result<()> {
        let specs = specs_of(e)?;
        let Some(build) = build_of(e) else { return self.apply_new_indexes(e, &specs) };
        let done = match self.claimed_build(build) {
            Some(Ok(targets)) => self.commit_built(e, build, &specs, targets),
            Some(Err(cause)) => {
                self.env().log.warn(
                    Component::Index,
                    9100050,
                    "An index is made anew where its build is committed: it could not be built beside other writes",
                    |a| {
                        a.show("buildUUID", build);
                        a.data("error", &WithCode(&cause));
                    },
                );
                self.apply_new_indexes(e, &specs)
            }
            None => self.apply_new_indexes(e, &specs),
        };
        self.end_claimed(build, done.clone().map(|()| e.op_time()));
        done
    }

    fn commit_built(
        &self,
        e: &EntryView<'_>,
        build: Uuid,
        specs: &[IndexSpec],
        mut targets: Vec<Target>,
    ) -> Result<()> {
        let Some(coll) = e.ui.and_then(|u| self.lookup_uuid(u)) else { return Ok(()) };
        let here = |i: &Arc<Index>, t: &Target| Arc::ptr_eq(&i.state, &t.index.state);
        let all_here = specs.iter().all(|s| {
            let there = coll.index(&s.name);
            there.is_some_and(|i| i.is_ready() || targets.iter().any(|t| here(i, t)))
        });
        if !all_here {
            return self.apply_new_indexes(e, specs);
        }
        self.drain_rest(&coll, &mut targets, e.ts)?;
        let mut unit = self.begin_applied(e.ts)?;
        let current = finish(&mut unit, &coll, &targets)?;
        unit.commit()?;
        self.publish(|s| s.put(Named::Collection(current)));
        self.note_built(build, &targets, e.ts);
        Ok(())
    }
}
