//! `$out`: the results become a collection.

use super::{Rows, insert_rows, while_running};
use crate::write::Writes;
use pando_access::{Collection, CollectionOptions, Missing, Named, WriteOp, is_a_view};
use pando_base::{Error, ErrorCode, Namespace, Result};
use pando_bson::{DocBuf, RawDoc};
use pando_command::OpCtx;
use std::sync::Arc;

/// An `$out` being carried out.
pub(super) struct Out<'a> {
    pub(super) writes: &'a Writes,
    pub(super) ctx: &'a OpCtx,
    pub(super) into: &'a Namespace,
    pub(super) bypass_validation: bool,
}

impl Out<'_> {
    /// Fills another collection and puts it in the place of the target.
    pub(super) async fn run(&self, rows: &mut Rows<'_>) -> Result<()> {
        let (access, ctx) = (&self.writes.reads.access, self.ctx);
        let old = self.original().map_err(while_running)?;
        let tmp = format!("tmp.agg_out.{}", access.maintenance().new_uuid());
        let tmp = Namespace::unchecked(self.into.db(), &tmp);
        let options = match &old {
            Some(c) => CollectionOptions { temp: true, ..c.options.clone() },
            None => CollectionOptions { temp: true, ..CollectionOptions::default() },
        };
        let created = access.create_collection(ctx, &tmp, options).await.map_err(while_running)?;
        ctx.wrote(created);
        let done = self.fill_and_rename(&tmp, old.as_deref(), rows).await;
        if done.is_err() {
            // The temporary collection would go at the next start anyway: its own failure is not the command's.
            let _ = access.drop_temporary(ctx, &tmp).await;
        }
        done
    }

    /// The collection that is about to be replaced.
    fn original(&self) -> Result<Option<Arc<Collection>>> {
        let into = self.into;
        match self.writes.reads.access.definitions().named(into) {
            None => Ok(None),
            Some(Named::View(view)) => Err(is_a_view(view)),
            Some(Named::Collection(c)) if c.is_capped() => Err(Error::location(
                17152,
                format!("namespace '{into}' is capped so it can't be used for $out"),
            )),
            Some(Named::Collection(c)) => Ok(Some(c.clone())),
        }
    }

    async fn fill_and_rename(
        &self,
        tmp: &Namespace,
        old: Option<&Collection>,
        rows: &mut Rows<'_>,
    ) -> Result<()> {
        let (access, ctx, into) = (&self.writes.reads.access, self.ctx, self.into);
        let specs: Vec<DocBuf> = old.map(index_specs).unwrap_or_default();
        if !specs.is_empty() {
            let specs: Vec<&RawDoc> = specs.iter().map(|d| &**d).collect();
            access.create_own_indexes(ctx, tmp, &specs).await.map_err(while_running)?;
        }
        let op = WriteOp { bypass_validation: self.bypass_validation, ..WriteOp::default() };
        loop {
            let batch = rows.next_batch().await?;
            if batch.is_empty() {
                break;
            }
            let Some(coll) = access.write(ctx, tmp, Missing::Nothing).await.map_err(while_running)? else {
                // Somebody dropped it, or its database. What was in it is lost, so that nothing can come of the rest.
                return Err(while_running(Error::new(
                    ErrorCode::NamespaceNotFound,
                    format!("Source collection {tmp} does not exist"),
                )));
            };
            insert_rows(self.writes, ctx, &op, &coll, &batch).await.map_err(while_running)?;
        }
        let now = self.original().map_err(while_running)?;
        let same = |a: &Collection, b: &Collection| {
            a.uuid == b.uuid && a.options == b.options && index_specs(a) == index_specs(b)
        };
        if !old.zip(now.as_deref()).map_or(old.is_none() && now.is_none(), |(a, b)| same(a, b)) {
            return Err(while_running(Error::new(
                ErrorCode::CommandFailed,
                format!(
                    "collection options or indexes of target collection {into} changed during processing"
                ),
            )));
        }
        let last = access.rename_collection(ctx, tmp, into, true).await;
        ctx.wrote(last.map_err(while_running)?);
        Ok(())
    }
}

fn index_specs(c: &Collection) -> Vec<DocBuf> {
    c.ready_indexes().iter().filter(|i| !i.spec.is_id_index()).map(|i| i.spec.doc.clone()).collect()
}
