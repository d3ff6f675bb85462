//! `connPoolStats`, `connPoolSync` and `dropConnections`: outgoing connections to other members.
//!
//! There are three pools: of the coordinator (heartbeats, votes, positions), of the data path (fetching, copying) and for
//! commands to other nodes.

use super::prelude::*;
use pando_bson::shape::Shape;
use pando_command::request::{missing, wrong_type};
use pando_rpc::{HostConnections, Pool};
use std::collections::BTreeMap;

fn pools(server: &Server) -> Vec<(&'static str, Pool)> {
    let replication = &server.replication;
    let coordinator = replication.coordinator.get().map(|c| ("replication", c.pool().clone()));
    let others = [("dataPath", replication.data_pool.clone()), ("commands", replication.peers.clone())];
    coordinator.into_iter().chain(others).collect()
}

/// Names of the figures: of all pools, of one, of a host.
const TOTAL: [&str; 6] =
    ["totalInUse", "totalAvailable", "totalCreated", "totalRefreshing", "totalRejected", "totalWaiting"];
const OF_POOL: [&str; 6] =
    ["poolInUse", "poolAvailable", "poolCreated", "poolRefreshing", "poolRejected", "poolWaiting"];
const OF_HOST: [&str; 6] = ["inUse", "available", "created", "refreshing", "rejected", "waiting"];

fn append(d: &mut DocBuilder, names: [&str; 6], n: HostConnections) {
    let HostConnections { in_use, available, connecting, waiting, created, refused } = n;
    let figures =
        [in_use as i64, available as i64, created as i64, connecting as i64, refused as i64, waiting as i64];
    for (name, n) in names.into_iter().zip(figures) {
        d.i64(name, n);
    }
}

pub(super) async fn stats(server: &Server, _: &OpCtx, _: Request<'_>) -> Result<Reply> {
    let of_pool = |pool: &Pool| {
        let hosts = pool.connections();
        let mut sum = HostConnections::default();
        hosts.iter().for_each(|(_, n)| sum += *n);
        (sum, hosts)
    };
    let pools: Vec<_> = pools(server).into_iter().map(|(name, pool)| (name, of_pool(&pool))).collect();
    let (mut total, mut by_host) = (HostConnections::default(), BTreeMap::<&str, HostConnections>::new());
    for (_, (sum, hosts)) in &pools {
        total += *sum;
        hosts.iter().for_each(|(host, n)| *by_host.entry(host).or_default() += *n);
    }
    let mut r = Reply::new();
    append(&mut r.body, TOTAL, total);
    r.body.doc("pools", |d| {
        for (name, (sum, hosts)) in &pools {
            d.doc(name, |p| {
                append(p, OF_POOL, *sum);
                for (host, n) in hosts {
                    p.doc(host, |h| append(h, OF_HOST, *n));
                }
            });
        }
    });
    r.body.doc("hosts", |d| {
        for (host, n) in &by_host {
            d.doc(host, |h| append(h, OF_HOST, *n));
        }
    });
    Ok(r)
}

/// Closes all idle connections.
pub(super) async fn sync(server: &Server, _: &OpCtx, _: Request<'_>) -> Result<Reply> {
    pools(server).iter().for_each(|(_, pool)| pool.forget_all());
    Ok(Reply::new())
}

/// Closes the idle connections to the hosts that are named. One in use ends with its call.
pub(super) async fn drop_some(server: &Server, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    const OWNER: &str = "dropConnections";
    let mut hosts = None;
    for arg in req.args(OWNER) {
        match arg.name() {
            "hostAndPort" => {
                let Value::Array(list) = arg.value() else {
                    arg.check(&Shape::List(&Shape::Any))?;
                    return Err(wrong_type(OWNER, "hostAndPort", &arg.value(), &["array"]));
                };
                hosts = Some(list);
            }
            _ => return Err(arg.unknown()),
        }
    }
    let hosts = hosts.ok_or_else(|| missing(OWNER, "hostAndPort"))?;
    let mut named = Vec::new();
    for (i, host) in hosts.iter().enumerate() {
        if matches!(host.value(), Value::Null | Value::Undefined) {
            continue;
        }
        let Some(text) = host.value().as_str() else {
            return Err(wrong_type(OWNER, &format!("hostAndPort.{i}"), &host.value(), &["string"]));
        };
        super::host_and_port::check(text)?;
        named.push(if text.contains(':') { text.to_owned() } else { format!("{text}:27017") });
    }
    for host in &named {
        pools(server).iter().for_each(|(_, pool)| pool.forget(host));
    }
    Ok(Reply::new())
}
