//! What a member keeps of itself when it takes over another's files (R-IS-9): its vote, its configuration, its rollback
//! number, what it promised to hold, and that it came from a backup. Everything else in `local` is the source's, and harmless.

use super::Replication;
use pando_base::{Error, Namespace, OpTime, Result};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value, doc};
use pando_storage::staging;

const COLLECTIONS: [&str; 3] = ["system.replset", "replset.election", "system.rollback.id"];

fn ns(name: &str) -> Namespace {
    Namespace::unchecked("local", name)
}

impl Replication {
    pub(crate) fn local_identity(&self) -> Result<DocBuf> {
        let mut b = DocBuilder::new();
        for name in COLLECTIONS {
            match self.internal.first(&ns(name))? {
                Some(doc) => b.raw_doc(name, &doc),
                // The source's would be taken for ours.
                None if name == "replset.election" => {
                    b.raw_doc(name, &doc! { "term": 0i64, "candidateIndex": -1i64 }.to_raw())
                }
                None => b.raw_doc(
                    name,
                    &doc! { "_id": "rollbackId", "rollbackId": self.progress.rbid() }.to_raw(),
                ),
            };
        }
        let promised = self.maintenance.promised()?;
        b.doc("promised", |d| {
            d.timestamp("ts", promised.ts).i64("t", promised.t);
        });
        b.bool("restored", self.maintenance.is_restored()?);
        Ok(b.finish())
    }

    /// At the start after a copy.
    pub(crate) async fn take_back_identity(&self) -> Result<()> {
        let Some(bytes) = staging::take_kept(&*self.env.disk)? else { return Ok(()) };
        let damaged = || Error::internal("what this node kept of itself is damaged");
        let own = RawDoc::validate(&bytes).map_err(|_| damaged())?;
        for name in COLLECTIONS {
            let Some(Value::Document(doc)) = own.get(name) else { return Err(damaged()) };
            self.internal.replace_only(&ns(name), doc).await?;
        }
        let promised =
            match (own.get_path("promised.ts"), own.get_path("promised.t").and_then(|v| v.as_i64())) {
                (Some(Value::Timestamp(ts)), Some(t)) => OpTime::new(ts, t),
                _ => OpTime::NULL,
            };
        // Kept by an earlier version: it knew of no backups.
        let restored = own.get("restored").is_some_and(|v| v.is_truthy());
        self.maintenance.take_over_copy(promised, restored)?;
        self.sync_local().await?;
        staging::forget_kept(&*self.env.disk)
    }
}
