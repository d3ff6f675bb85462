//! The `hello`s of a monitor, each host's on a connection of its own.

use crate::monitors::Inner;
use pando_base::limits;
use pando_bson::{DocBuf, DocBuilder};
use pando_monitor::{Event, Hello, TopologyVersion};
use pando_rpc::{CallResult, Connection};
use std::sync::Arc;
use std::time::Duration;

const AWAIT_MS: i64 = limits::MONITOR_HEARTBEAT_MS;

fn hello(known: Option<TopologyVersion>) -> DocBuf {
    let mut d = DocBuilder::new();
    d.i32("hello", 1);
    if let Some(version) = known {
        d.doc("topologyVersion", |t| {
            t.object_id("processId", version.process).i64("counter", version.counter);
        });
        d.i64("maxAwaitTimeMS", AWAIT_MS);
    }
    d.str("$db", "admin");
    d.finish()
}

async fn connect(set: &Inner, host: &str) -> CallResult<Connection> {
    match set.take_idle(host) {
        Some(idle) => Ok(idle),
        None => Connection::connect(&set.env, host, &set.options).await,
    }
}

/// Asks once, or listens until the monitor wants no more or the replies end.
pub(crate) async fn probe(set: Arc<Inner>, host: String, attempt: u64, known: Option<TopologyVersion>) {
    let done = match known {
        None => ask(&set, &host, attempt).await,
        Some(version) => listen(&set, &host, attempt, version).await,
    };
    if done.is_err() {
        Inner::feed(&set, Event::Silent { host, attempt });
    }
}

fn heard(set: &Arc<Inner>, host: &str, attempt: u64, hello: Hello, round_trip: Option<Duration>) {
    let goes_on = round_trip.is_none();
    let round_trip_us = round_trip.map(|d| d.as_micros() as i64);
    Inner::feed(set, Event::Heard { host: host.to_owned(), attempt, hello, round_trip_us, goes_on });
}

async fn ask(set: &Arc<Inner>, host: &str, attempt: u64) -> CallResult<()> {
    let mut connection = connect(set, host).await?;
    let asked = set.env.clock.mono();
    let reply = Hello::parse(connection.call(&hello(None), set.options.connect_limit).await?);
    let took = set.env.clock.mono() - asked;
    // Before the monitor hears, since it asks again at once, on this connection.
    set.put_idle(connection);
    heard(set, host, attempt, reply, Some(took));
    Ok(())
}

async fn listen(set: &Arc<Inner>, host: &str, attempt: u64, known: TopologyVersion) -> CallResult<()> {
    let connection = connect(set, host).await?;
    let limit = Duration::from_millis(AWAIT_MS as u64) + set.options.connect_limit;
    let mut known = known;
    let mut replies = connection.stream(&hello(Some(known)), limit).await?;
    while set.wants(host, attempt) {
        let reply = Hello::parse(replies.next(limit).await?);
        known = reply.topology_version.unwrap_or(known);
        heard(set, host, attempt, reply, None);
        if !replies.is_open() {
            replies.again(&hello(Some(known)), limit).await?;
        }
    }
    Ok(())
}

/// How far away a host is whose answers wait.
pub(crate) async fn ping(set: Arc<Inner>, host: String) {
    let Ok(mut connection) = connect(&set, &host).await else { return };
    let asked = set.env.clock.mono();
    if connection.call(&hello(None), set.options.connect_limit).await.is_ok() {
        let round_trip_us = (set.env.clock.mono() - asked).as_micros() as i64;
        set.put_idle(connection);
        Inner::feed(&set, Event::Pinged { host, round_trip_us });
    }
}
