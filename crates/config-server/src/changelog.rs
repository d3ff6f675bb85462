//! What happened to the cluster, for those who look into it later: `config.changelog`, and `config.actionlog` for what the balancer
//! does. Written as well as possible: that an entry could not be written fails nothing (SH-CAT-8).

use crate::manager::CatalogManager;
use crate::metadata::ns;
use pando_access::CollectionOptions;
use pando_access::options::Capped;
use pando_bson::RawDoc;
use pando_env::Component;
use pando_routing::changelog::{Happened, Teller, entry};

pub(crate) fn capped(bytes: i64) -> CollectionOptions {
    CollectionOptions { capped: Some(Capped { size: bytes, max: None }), ..CollectionOptions::default() }
}

impl CatalogManager {
    pub(crate) async fn log_change(&self, client: &str, what: &str, ns: &str, details: &RawDoc) {
        self.log_into("changelog", client, Happened { what, ns, details }).await;
    }
    pub(crate) async fn log_action(&self, client: &str, what: &str) {
        let details = RawDoc::empty();
        self.log_into("actionlog", client, Happened { what, ns: "", details }).await;
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
