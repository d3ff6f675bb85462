//! The `hello`s of a monitor, each host's on a connection of its own.

use crate::monitors::Inner;
use pando_base::limits;
use pando_bson::{DocBuf, DocBuilder};
use pando_env::Env;
use pando_monitor::{Event, Hello, TopologyVersion};
use pando_rpc::{CallResult, Connection, Options};
use std::sync::{Arc, Weak};
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

/// The monitor as its probes know it: they do not keep it alive, so it ends with whoever asks it.
#[derive(Clone)]
pub(crate) struct Asker {
    set: Weak<Inner>,
    env: Env,
    options: Options,
    host: String,
}

impl Asker {
    pub(crate) fn new(set: &Arc<Inner>, host: String) -> Asker {
        Asker { set: Arc::downgrade(set), env: set.env.clone(), options: set.options.clone(), host }
    }
    fn feed(&self, event: Event) {
        if let Some(set) = self.set.upgrade() {
            Inner::feed(&set, event);
        }
    }
    async fn connect(&self) -> CallResult<Connection> {
        let idle = self.set.upgrade().and_then(|set| set.take_idle(&self.host));
        match idle {
            Some(idle) => Ok(idle),
            None => Connection::connect(&self.env, &self.host, &self.options).await,
        }
    }
    fn put_idle(&self, connection: Connection) {
        if let Some(set) = self.set.upgrade() {
            set.put_idle(connection);
        }
    }
    fn heard(&self, attempt: u64, hello: Hello, round_trip: Option<Duration>) {
        let goes_on = round_trip.is_none();
        let round_trip_us = round_trip.map(|d| d.as_micros() as i64);
        self.feed(Event::Heard { host: self.host.clone(), attempt, hello, round_trip_us, goes_on });
    }

    /// Asks once, or listens until the monitor wants no more or the replies end.
    pub(crate) async fn probe(self, attempt: u64, known: Option<TopologyVersion>) {
        let done = match known {
            None => self.ask(attempt).await,
            Some(version) => self.listen(attempt, version).await,
        };
        if done.is_err() {
            self.feed(Event::Silent { host: self.host.clone(), attempt });
        }
    }

    async fn ask(&self, attempt: u64) -> CallResult<()> {
        let mut connection = self.connect().await?;
        let asked = self.env.clock.mono();
        let reply = Hello::parse(connection.call(&hello(None), self.options.connect_limit).await?);
        let took = self.env.clock.mono() - asked;
        // Before the monitor hears, since it asks again at once, on this connection.
        self.put_idle(connection);
        self.heard(attempt, reply, Some(took));
        Ok(())
    }

    async fn listen(&self, attempt: u64, known: TopologyVersion) -> CallResult<()> {
        let connection = self.connect().await?;
        let limit = Duration::from_millis(AWAIT_MS as u64) + self.options.connect_limit;
        let mut known = known;
        let mut replies = connection.stream(&hello(Some(known)), limit).await?;
        let wanted = || self.set.upgrade().is_some_and(|set| set.wants(&self.host, attempt));
        while wanted() {
            let reply = Hello::parse(replies.next(limit).await?);
            known = reply.topology_version.unwrap_or(known);
            self.heard(attempt, reply, None);
            if !replies.is_open() {
                replies.again(&hello(Some(known)), limit).await?;
            }
        }
        Ok(())
    }

    /// How far away a host is whose answers wait.
    pub(crate) async fn ping(self) {
        let Ok(mut connection) = self.connect().await else { return };
        let asked = self.env.clock.mono();
        if connection.call(&hello(None), self.options.connect_limit).await.is_ok() {
            let round_trip_us = (self.env.clock.mono() - asked).as_micros() as i64;
            self.put_idle(connection);
            self.feed(Event::Pinged { host: self.host.clone(), round_trip_us });
        }
    }
}
