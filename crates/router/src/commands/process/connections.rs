//! `connPoolStats` and `connPoolSync`: connections to shards and config servers.

use super::super::prelude::*;
use pando_fleet::SetMonitor;
use pando_monitor::hello::MemberKind;
use pando_rpc::HostConnections;

/// What is told of a host; of all of them together with `total` in front.
fn figures(n: HostConnections) -> [(&'static str, i64); 4] {
    let HostConnections { in_use, available, connecting, created, .. } = n;
    let (in_use, available, connecting) = (in_use as i64, available as i64, connecting as i64);
    [("InUse", in_use), ("Available", available), ("Created", created as i64), ("Refreshing", connecting)]
}

pub(in crate::commands) async fn stats(router: &Router, _: &OpCtx, _: Request<'_>) -> Result<Reply> {
    let all = router.fleet.pool.connections();
    let mut total = HostConnections::default();
    all.iter().for_each(|(_, n)| total += *n);
    let mut r = Reply::new();
    for (name, n) in figures(total) {
        r.body.i64(&format!("total{name}"), n);
    }
    r.body.doc("hosts", |d| {
        for (host, now) in &all {
            d.doc(&**host, |d| {
                for (name, n) in figures(*now) {
                    let (first, rest) = name.split_at(1);
                    d.i64(&format!("{}{rest}", first.to_lowercase()), n);
                }
            });
        }
    });
    let shards = router.catalog.registry.shards();
    r.body.doc("replicaSets", |d| {
        append_set(d, &router.catalog.config.set);
        shards.iter().for_each(|s| append_set(d, &s.monitor));
    });
    Ok(r)
}

/// A set as its monitor sees it.
fn append_set(d: &mut DocBuilder, monitor: &SetMonitor) {
    let set = monitor.look();
    d.doc(&*set.name, |d| {
        d.array("hosts", |a| {
            for (host, m) in &set.members {
                a.doc(|d| {
                    d.str("addr", host).bool("ok", m.kind != MemberKind::Unknown);
                    d.bool("ismaster", m.kind == MemberKind::Primary);
                    d.bool("hidden", m.kind == MemberKind::Other);
                    d.bool("secondary", m.kind == MemberKind::Secondary);
                    d.i64("pingTimeMillis", m.round_trip_us.unwrap_or(0) / 1000);
                    d.doc("tags", |t| m.tags.iter().for_each(|(name, v)| _ = t.str(&**name, v)));
                });
            }
        });
    });
}

pub(in crate::commands) async fn sync(router: &Router, _: &OpCtx, _: Request<'_>) -> Result<Reply> {
    router.fleet.pool.forget_all();
    Ok(Reply::new())
}
