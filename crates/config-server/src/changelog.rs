//! What happened to the cluster, for those who look into it later: `config.changelog`, and `config.actionlog` for what the balancer
//! does. Written as well as possible: that an entry could not be written fails nothing (SH-CAT-8).

use crate::manager::CatalogManager;
use crate::metadata::ns;
use pando_access::CollectionOptions;
use pando_access::options::Capped;
use pando_base::{Error, Millis};
use pando_bson::{DocBuilder, RawDoc};
use pando_env::Component;
use pando_routing::changelog::{Happened, Teller, entry};

pub(crate) fn capped(bytes: i64) -> CollectionOptions {
    CollectionOptions { capped: Some(Capped { size: bytes, max: None }), ..CollectionOptions::default() }
}

fn small(n: usize) -> i32 {
    i32::try_from(n).unwrap_or(i32::MAX)
}

impl CatalogManager {
    pub(crate) async fn log_change(&self, client: &str, what: &str, ns: &str, details: &RawDoc) {
        self.log_into("changelog", client, Happened { what, ns, details }).await;
    }
    pub(crate) async fn log_action(&self, client: &str, what: &str) {
        let details = RawDoc::empty();
        self.log_into("actionlog", client, Happened { what, ns: "", details }).await;
    }
    /// A round of the balancer in which something was to move, or which failed: how long it took, and how many of how many ranges have moved, or
    /// why it failed.
    pub async fn log_round(&self, ms: Millis, moved: std::result::Result<(usize, usize), &Error>) {
        let mut d = DocBuilder::new();
        d.i64("executionTimeMillis", ms).bool("errorOccurred", moved.is_err());
        match moved {
            Ok((moved, of)) => _ = d.i32("candidateChunks", small(of)).i32("chunksMoved", small(moved)),
            Err(e) => _ = d.str("errmsg", &e.to_string()),
        }
        let details = d.finish();
        self.log_into("actionlog", "", Happened { what: "balancer.round", ns: "", details: &details }).await;
    }
    async fn log_into(&self, log: &str, client: &str, happened: Happened<'_>) {
        let host = self.node.host_port();
        let teller = Teller { host: &host, shard: "config", client };
        let doc = entry(&happened, &teller, self.env.clock.wall_ms(), self.new_object_id());
        let bytes = if log == "changelog" {
            pando_base::limits::CHANGELOG_BYTES
        } else {
            pando_base::limits::ACTIONLOG_BYTES
        };
        if let Err(e) = self.internal.append(&ns(log), &doc, || capped(bytes)).await {
            let text = "What happened to the cluster was not noted";
            self.env.log.warn(Component::Sharding, 9100090, text, |a| {
                a.data("error", &e);
            });
        }
    }
}
