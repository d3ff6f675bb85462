//! `serverStatus`: what monitoring tools read.

use super::super::prelude::*;
use crate::config::VERSION;
use pando_logins::status;

/// In the order in which they are shown.
const SECTIONS: [&str; 9] = [
    "asserts",
    "connections",
    "network",
    "opLatencies",
    "opcounters",
    "readConcernCounters",
    "transportSecurity",
    "mem",
    "metrics",
];

pub(in crate::commands) async fn run(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let wanted = |name: &str| req.body.get(name).is_none_or(|v| v.is_truthy());
    let up = ctx.env().clock.mono().saturating_sub(router.instance.started);
    let mut r = Reply::with_capacity(8 << 10);
    let b = &mut r.body;
    b.str("host", &router.config.host_port()).str("version", VERSION).str("process", "mongos");
    b.i64("pid", i64::from(router.config.host.facts().pid)).f64("uptime", up.as_secs() as f64);
    b.i64("uptimeMillis", up.as_millis() as i64).i64("uptimeEstimate", up.as_secs() as i64);
    b.date("localTime", ctx.env().clock.wall_ms());
    for section in SECTIONS.into_iter().filter(|s| wanted(s)) {
        b.doc(section, |d| match section {
            "mem" => {
                let usage = router.config.host.usage();
                d.i32("bits", 64).i64("resident", (usage.resident_bytes >> 20) as i64);
                d.i64("virtual", (usage.virtual_bytes >> 20) as i64).bool("supported", true);
            }
            _ => router.instance.registry.section(section).append_to(d),
        });
    }
    if wanted("security") {
        b.doc("security", |d| {
            router.instance.registry.section("security").append_to(d);
            status::append(&router.logins, d);
        });
    }
    if wanted("sharding") {
        let config = router.times.config();
        b.doc("sharding", |d| {
            d.str("configsvrConnectionString", &router.config.configdb.text());
            d.doc("lastSeenConfigServerOpTime", |d| _ = d.timestamp("ts", config).i64("t", -1));
        });
    }
    if wanted("shardingStatistics") {
        b.doc("shardingStatistics", |d| router.instance.registry.section("shardingStatistics").append_to(d));
    }
    Ok(r)
}
