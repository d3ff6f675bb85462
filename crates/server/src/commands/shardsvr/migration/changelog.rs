//! What shards tell `config.changelog` of a migration (SH-CAT-8): its beginning, and how it has ended on either side. As well as possible: that
//! nobody could be told fails nothing, and nobody waits for it.

use super::Ddl;
use crate::object_id::new_object_id;
use crate::sharding::Cluster;
use pando_base::{Error, ErrorCode};
use pando_bson::{DocBuf, DocBuilder};
use pando_env::{Component, Env};
use pando_routing::changelog::{Happened, Teller, entry};
use pando_workflows::migration::Migration;
use std::sync::Arc;

/// One migration, and who tells of it.
pub(super) struct Changelog {
    env: Env,
    cluster: Arc<Cluster>,
    host: String,
    client: String,
    migration: Migration,
}

impl Changelog {
    pub(super) fn of(ddl: &Ddl<'_>, migration: Migration) -> Changelog {
        Changelog {
            env: ddl.ctx.env().clone(),
            cluster: ddl.cluster.clone(),
            host: ddl.server.config.host_port(),
            client: ddl.ctx.client.remote.clone().unwrap_or_default(),
            migration,
        }
    }
    pub(super) async fn begun(&self) {
        self.tell("moveChunk.start", &self.details().finish()).await;
    }
    /// `moveChunk.from` of a donor, `moveChunk.to` of a recipient. A primary that is none any more leaves it to the next one, which does not know
    /// who has asked, and tells nothing.
    pub(super) async fn ended(&self, what: &str, failure: Option<&Error>) {
        if failure.is_some_and(|e| e.code == ErrorCode::InterruptedDueToReplStateChange) {
            return;
        }
        let mut details = self.details();
        match failure {
            None => _ = details.str("note", "success"),
            Some(e) => _ = details.str("note", "aborted").str("errmsg", &e.to_string()),
        }
        self.tell(what, &details.finish()).await;
    }
    fn details(&self) -> DocBuilder {
        let m = &self.migration;
        let mut b = DocBuilder::new();
        b.raw_doc("min", &m.min).raw_doc("max", &m.max).str("from", &m.donor).str("to", &m.recipient);
        b
    }
    async fn tell(&self, what: &str, details: &DocBuf) {
        let happened = Happened { what, ns: self.migration.ns.as_str(), details };
        let shard = self.cluster.identity.shard.as_str();
        let teller = Teller { host: &self.host, shard, client: &self.client };
        let entry = entry(&happened, &teller, self.env.clock.wall_ms(), new_object_id(&self.env));
        let mut b = DocBuilder::new();
        b.str("insert", "changelog").array("documents", |list| _ = list.raw_doc(&entry));
        b.doc("writeConcern", |d| _ = d.str("w", "majority")).str("$db", "config");
        let told = self.cluster.on_config(&b.finish()).await;
        let refused = |reply: DocBuf| match reply.get("writeErrors") {
            Some(why) => Err(Error::new(ErrorCode::OperationFailed, why.to_string())),
            None => Ok(()),
        };
        if let Err(e) = told.and_then(refused) {
            let text = "What happened to a range was not noted";
            self.env.log.warn(Component::Sharding, 9100094, text, |a| {
                a.data("error", &e);
            });
        }
    }
}
