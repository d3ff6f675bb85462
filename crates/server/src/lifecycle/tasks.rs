//! Background work: one small loop each, all ended by [`crate::Server::shutdown`].
//!
//! | task | when | what |
//! |---|---|---|
//! | log flusher | every `journalCommitInterval` ms, or when someone waits | write and sync the log |
//! | checkpoint | every `syncdelay` s, or when memory is full | flush tables up to the stable timestamp |
//! | storage step | when there is something to compact | one bounded step of flushing or compaction |
//! | timestamps | every second | move stable and oldest |
//! | flow control | every second, on a primary | how fast it may write |
//! | cursor reaper | every `clientCursorMonitorFrequencySecs` | drop idle cursors |
//! | session refresh | every `logicalSessionRefreshMillis` | record sessions in use, end those that are over |
//! | cluster time keys | every five minutes, on a primary | make the next key in time |
//! | transaction lifetimes | every half `transactionLifetimeLimitSeconds` | end transactions open for too long |
//! | TTL | every `ttlMonitorSleepSecs` | delete expired documents |
//! | profiler | when there are entries | write them to `system.profile` |
//! | index builds | when one begins or is ready, a vote comes, the set changes | votes, and leave to commit |
//! | shards' members | every half minute, on the primary of config servers | name them in `config.shards` |
//! | noop writer | every `periodicNoopIntervalSecs` when idle | an entry, so that time moves on |

use crate::Server;
use pando_command::Param;
use pando_env::Component;
use std::sync::Arc;
use std::time::Duration;

pub(crate) fn spawn_all(server: &Arc<Server>) {
    let env = server.instance.env.clone();
    let s = || server.clone();
    env.spawn("log flusher", crate::replication::log_flusher::run(server.replication.clone()));
    env.spawn(
        "checkpoint",
        crate::upkeep::checkpoints::run(server.upkeep.checkpoints.clone(), server.upkeep.backups.clone()),
    );
    env.spawn(
        "storage step",
        crate::upkeep::storage_step::run(server.storage.clone(), env.clone(), server.lifecycle.clone()),
    );
    env.spawn("timestamps", move_timestamps(s()));
    env.spawn("flow control", crate::upkeep::flow_control::run(server.upkeep.admission.flow_control.clone()));
    env.spawn("cursor reaper", reap_cursors(s()));
    env.spawn(
        "session refresh",
        crate::sessions::refresh::run(server.sessions.clone(), server.lifecycle.clone()),
    );
    env.spawn("cluster time keys", crate::replication::cluster_time_keys::run(server.replication.clone()));
    env.spawn(
        "transaction lifetimes",
        crate::transaction::expire(server.crud.transactions.clone(), server.lifecycle.clone()),
    );
    env.spawn("ttl", crate::upkeep::ttl::run(server.upkeep.ttl.clone()));
    env.spawn("index builds", crate::upkeep::index_builds::run(server.upkeep.index_builds.clone()));
    env.spawn("noop writer", crate::replication::noop_writer::run(server.replication.clone()));
    if let Some(tenants) = &server.tenants {
        let expiring =
            crate::tenants::exports::expire(tenants.clone(), env.clone(), server.lifecycle.clone());
        env.spawn("tenant exports", expiring);
    }
    if let Some(config_server) = &server.config_server {
        let following = crate::config_server::follow_members(config_server.clone(), server.lifecycle.clone());
        env.spawn("shards' members", following);
        let rounds = crate::config_server::balancer::run(config_server.clone(), server.lifecycle.clone());
        env.spawn("balancer", rounds);
        let merging = crate::config_server::auto_merger::run(config_server.clone(), server.lifecycle.clone());
        env.spawn("auto-merger", merging);
    }
    // Config servers make the keys.
    if let Some(sharding) = server.sharding.as_ref().filter(|_| server.config_server.is_none()) {
        let following = crate::sharding::time_keys::follow(
            sharding.clone(),
            server.replication.clone(),
            server.lifecycle.clone(),
        );
        env.spawn("keys of the cluster", following);
    }
    env.spawn("profiler", crate::settings::profiling::run(server.settings.clone(), server.lifecycle.clone()));
}

async fn move_timestamps(server: Arc<Server>) {
    while server.lifecycle.pause(Duration::from_secs(1)).await {
        server.replication.advance_stable();
        if let Err(e) = server.sessions.note_known() {
            server.instance.env.log.warn(
                Component::Repl,
                9100033,
                "The newest log entry could not be read",
                |a| {
                    a.data("error", &e);
                },
            );
        }
        if let Err(e) = server.replication.end_restored().await {
            server.instance.env.log.warn(
                Component::Repl,
                9100034,
                "A restored member cannot vote yet",
                |a| {
                    a.data("error", &e);
                },
            );
        }
    }
}

async fn reap_cursors(server: Arc<Server>) {
    loop {
        let every = server.instance.params.int(Param::clientCursorMonitorFrequencySecs).max(1);
        if !server.lifecycle.pause(Duration::from_secs(every as u64)).await {
            return;
        }
        let idle_max = server.instance.params.int(Param::cursorTimeoutMillis).max(0);
        let gone = server
            .crud
            .cursors
            .open
            .reap(server.instance.env.clock.mono(), Duration::from_millis(idle_max as u64));
        for id in gone {
            server.instance.env.log.info(Component::Query, 20528, "Cursor timed out", |a| {
                a.i64("cursorId", id);
            });
        }
    }
}
