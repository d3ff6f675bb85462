//! What the primary shard of the database, and each owner, have to do for `collMod` (SYS-254). The order of things is
//! `pando_workflows::coll_mod`'s.

use super::Ddl;
use crate::commands;
use pando_base::{Error, Namespace, Result, Timestamp};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};
use pando_metadata_cache::Route;

impl Ddl<'_> {
    /// Who owns a part, and the number of this definition. Asking the config servers first, this node has heard of every time that they
    /// have: the number is above those of all earlier definitions of the name.
    pub(super) async fn look_at_coll_mod(&self, ns: &Namespace) -> Result<DocBuf> {
        if !matches!(ns.db(), "admin" | "config" | "local") {
            self.check_has_not_moved(ns.db()).await?;
        }
        let mut b = DocBuilder::new();
        b.elems_of(&self.look_at_owners(ns).await?);
        b.timestamp("timestamp", self.server.replication.note("a collection is modified", ns.as_str())?);
        Ok(b.finish())
    }
    /// Who owns a part, and by which version each is told. A range that is just given away is one that this shard has lost by then: its
    /// recipient may have copied the collection before it was changed here.
    pub(super) async fn look_at_owners(&self, ns: &Namespace) -> Result<DocBuf> {
        self.sharding.metadata.section_ended(ns).await;
        let is_owner = self.is_authority(ns).await?;
        let table = self.sharding.metadata.known(ns).table().cloned();
        let mut b = DocBuilder::new();
        b.bool("isOwner", is_owner).array("owners", |list| {
            let Some(table) = &table else { return };
            for part in table.chunks.parts().iter().filter(|p| p.chunks > 0 && p.shard != *self.own_id()) {
                list.doc(|d| {
                    d.str("shard", part.shard.as_str());
                    d.doc("version", |v| Route::part(table, &part.shard).append(v));
                });
            }
        });
        Ok(b.finish())
    }
    /// The change of this shard's part. Where it owns nothing of a sharded collection, what is here comes into line when a range does.
    pub(super) async fn coll_mod_here(&self, ns: &Namespace, step: &RawDoc) -> Result<DocBuf> {
        let request = step.get("request").and_then(|v| v.as_doc().map(RawDoc::to_buf));
        let request = request.ok_or_else(|| Error::internal(format!("a step without a request: {step}")))?;
        let at = match step.get("timestamp") {
            Some(Value::Timestamp(at)) => Some(at),
            _ => None,
        };
        let counts = self.is_authority(ns).await?;
        let is_alone = self.sharding.metadata.known(ns).table().is_none();
        let _part = self.take_part(ns, at, !is_alone).await?;
        let mut b = DocBuilder::new();
        b.str("collMod", ns.coll()).elems_of(&request);
        let done = self.change(ns, &b.finish()).await;
        let mut b = DocBuilder::new();
        if counts {
            b.raw_doc("reply", &done?);
        }
        if is_alone {
            b.bool("isAlone", true);
        }
        Ok(b.finish())
    }
    /// The same of a shard that is told by the version of its part. A range that is given away meanwhile goes to a shard that may have copied
    /// the collection as it was: whoever coordinates it is sent to look anew.
    ///
    /// # Errors
    /// 225 when a newer definition has been here.
    pub(crate) async fn coll_mod_part(
        &self,
        ns: &Namespace,
        body: &RawDoc,
        at: Option<Timestamp>,
    ) -> Result<DocBuf> {
        if self.server.access.check_still_placed(self.ctx, ns).is_err() {
            // It may be this shard that knows too little.
            self.sharding.learn(self.ctx).await;
            self.server.access.check_still_placed(self.ctx, ns)?;
        }
        let _part = self.take_part(ns, at, true).await?;
        let told = self.change(ns, body).await?;
        self.server.access.check_still_placed(self.ctx, ns)?;
        Ok(told)
    }
    async fn change(&self, ns: &Namespace, body: &RawDoc) -> Result<DocBuf> {
        let request = Ddl::request("collMod", ns.db(), body);
        commands::coll_mod::change(self.server, self.ctx, &request).await
    }
}
