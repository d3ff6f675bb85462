//! `config.mongos`: every router tells the config servers that it is there, which is how tools know of routers.

use crate::Router;
use crate::config::VERSION;
use pando_base::limits;
use pando_base::redaction::WithCode;
use pando_bson::{DocBuf, DocBuilder};
use pando_env::{Component, Env};
use pando_rpc::Retry;
use std::sync::Arc;
use std::time::Duration;

impl Router {
    /// Reports at once, and then again and again.
    pub(crate) fn begin_reports(self: &Arc<Self>, env: &Env) {
        let router = Arc::downgrade(self);
        let (clock, log) = (env.clock.clone(), env.log.clone());
        let created = clock.wall_ms();
        env.spawn("router uptime", async move {
            loop {
                let Some(router) = router.upgrade().filter(|r| !r.is_ending()) else { return };
                let report = router.report(created);
                if let Err(f) = router.catalog.config.command(&report, Retry::Idempotent).await {
                    let text = "Error while attempting to write this node's uptime to config.mongos";
                    log.info(Component::Sharding, 22875, text, |a| {
                        a.data("error", &WithCode(&f.error));
                    });
                }
                drop(router);
                clock.sleep(Duration::from_millis(limits::ROUTER_REPORT_MS)).await;
            }
        });
    }

    fn report(&self, created: i64) -> DocBuf {
        let clock = &self.instance.env.clock;
        let up = clock.mono().saturating_sub(self.instance.started).as_secs() as i64;
        let name = self.config.host_port();
        let mut b = DocBuilder::new();
        b.str("update", "mongos");
        b.array("updates", |a| {
            a.doc(|d| {
                d.doc("q", |q| _ = q.str("_id", &name));
                d.doc("u", |u| {
                    u.doc("$set", |s| {
                        s.str("_id", &name).array("advisoryHostFQDNs", |_| {});
                        s.date("created", created).str("mongoVersion", VERSION);
                        // Routers have had no balancer for long: whoever reads this expects one that waits.
                        s.date("ping", clock.wall_ms()).i64("up", up).bool("waiting", true);
                    });
                });
                d.bool("upsert", true);
            });
        });
        b.doc("writeConcern", |d| {
            d.str("w", "majority").i64("wtimeout", limits::CONFIG_READ_MS as i64);
        });
        b.str("$db", "config");
        b.finish()
    }
}
