//! Connections per host, few and bounded, for calls that come now and then.
//!
//! ```text
//!   call ─► idle connection │ room for a new one │ queue, first come first served ─► refused
//!                  ▲                                  │ its turn
//!                  └──── lease dropped ◄──── call ◄───┘
//! ```
//! A connection is taken for one or more calls and goes back when its lease is dropped, unless it broke. What
//! has been idle for long is closed at the next take: the peer may have forgotten it. A call that waits keeps its own
//! time limit, and leaves the queue with it.

mod host;

use crate::connection::{Connection, Options, Sequence};
use crate::failure::{CallResult, Effect, Failure, Kind};
use crate::gossip::{Gossip, Gossips};
use crate::retry::{Retry, may_retry};
pub use host::{Bounds, HostConnections};
use host::{Host, Idle, Place};
use pando_base::codes::class;
use pando_base::limits;
use pando_bson::{DocBuf, RawDoc};
use pando_env::Env;
use pando_env::sync::Notify;
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

type Hosts = BTreeMap<String, Host>;

struct Inner {
    env: Env,
    options: Options,
    bounds: Bounds,
    gossips: Gossips,
    hosts: Mutex<Hosts>,
}

/// Cheap to clone.
#[derive(Clone)]
pub struct Pool(Arc<Inner>);

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds { open: limits::RPC_OPEN_PER_HOST_MAX, waiting: limits::RPC_WAITING_PER_HOST_MAX }
    }
}

impl Pool {
    pub fn new(env: Env, options: Options) -> Pool {
        Pool::with(env, options, Bounds::default(), Vec::new())
    }
    /// With other bounds, and with times that its calls hand on.
    pub fn with(env: Env, options: Options, bounds: Bounds, gossips: Vec<Arc<dyn Gossip>>) -> Pool {
        let gossips = Gossips::new(gossips);
        Pool(Arc::new(Inner { env, options, bounds, gossips, hosts: Mutex::default() }))
    }
    fn lock(&self) -> MutexGuard<'_, Hosts> {
        self.0.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Looks at or changes a host; then whoever is first in its queue looks whether something is free.
    fn at<T>(&self, addr: &str, change: impl FnOnce(&mut Host) -> T) -> T {
        let (out, next) = {
            let mut hosts = self.lock();
            let host = host_at(&mut hosts, addr);
            (change(host), host.next_turn())
        };
        next.iter().for_each(Notify::bump);
        out
    }
    /// Host by host.
    pub fn connections(&self) -> Vec<(String, HostConnections)> {
        self.lock().iter().map(|(addr, host)| (addr.clone(), host.shown())).collect()
    }

    /// A connection to `addr`: an idle one, or a new one. `limit` is how long to wait while all are in use.
    pub async fn take(&self, addr: &str, limit: Duration) -> CallResult<Lease> {
        self.lease(addr, limit, false).await
    }
    /// A new connection, for a call that cannot be repeated: an idle one may turn out to be dead.
    pub async fn take_new(&self, addr: &str, limit: Duration) -> CallResult<Lease> {
        self.lease(addr, limit, true).await
    }
    /// The same at less cost: an idle one is looked at first, and taken where its peer has not closed it. Whether the peer dies
    /// meanwhile nobody can know.
    async fn take_alive(&self, addr: &str, limit: Duration) -> CallResult<Lease> {
        loop {
            let mut lease = self.take(addr, limit).await?;
            if !lease.was_idle || !lease.is_closed_by_peer().await {
                return Ok(lease);
            }
        }
    }
    async fn lease(&self, addr: &str, limit: Duration, fresh: bool) -> CallResult<Lease> {
        let env = &self.0.env;
        let asked = env.clock.mono();
        let deadline = asked + limit;
        let mut queued: Option<Queued<'_>> = None;
        loop {
            // Before the look: what is given back after it must not be missed.
            let seen = queued.as_ref().map(|q| q.turn.version());
            match self.place(addr, queued.as_ref().map(|q| q.id), fresh) {
                Place::Idle(connection) => {
                    let waited = env.clock.mono().saturating_sub(asked);
                    return Ok(Lease::of(self, connection, true, waited));
                }
                Place::Room => {
                    let waited = env.clock.mono().saturating_sub(asked);
                    // There may be room for the next one, too.
                    drop(queued);
                    let connection = self.connect(addr).await?;
                    return Ok(Lease::of(self, connection, false, waited));
                }
                Place::Full(waiting) => return Err(Failure::queue_full(addr, waiting)),
                Place::Queued(id, turn) => match (queued.as_ref(), seen) {
                    (Some(q), Some(seen)) => {
                        let left = deadline.saturating_sub(env.clock.mono());
                        if env.timeout(left, q.turn.changed(seen)).await.is_none() {
                            self.at(addr, Host::gave_up);
                            return Err(Failure::no_connection(addr));
                        }
                    }
                    _ => queued = Some(Queued { pool: self, addr, id, turn }),
                },
            }
        }
    }
    fn place(&self, addr: &str, id: Option<u64>, fresh: bool) -> Place {
        let oldest = self.0.env.clock.mono().saturating_sub(Duration::from_millis(limits::RPC_IDLE_MS));
        let mut closing = Vec::new();
        let place = {
            let mut hosts = self.lock();
            let host = host_at(&mut hosts, addr);
            closing.extend(host.take_expired(oldest));
            host.place(self.0.bounds, id, fresh, &mut closing)
        };
        // Sockets are not closed under the lock.
        drop(closing);
        place
    }
    /// In the room that there is for it.
    async fn connect(&self, addr: &str) -> CallResult<Box<Connection>> {
        let mut room = Room { pool: self, addr, stands: false };
        let mut connection = Box::new(Connection::connect(&self.0.env, addr, &self.0.options).await?);
        connection.gossip(&self.0.gossips);
        room.stands = true;
        drop(room);
        Ok(connection)
    }

    /// One call on a connection of the pool. An idle connection that turns out to be dead says nothing about the peer: what
    /// may be sent again is, once; what may not goes on a new connection, or on one whose peer is still there.
    pub async fn call(&self, addr: &str, body: &RawDoc, retry: Retry, limit: Duration) -> CallResult<DocBuf> {
        self.call_with(addr, body, &[], retry, limit).await
    }
    /// The same with documents beside the body.
    pub async fn call_with(
        &self,
        addr: &str,
        body: &RawDoc,
        sequences: &[Sequence<'_>],
        retry: Retry,
        limit: Duration,
    ) -> CallResult<DocBuf> {
        let again = |f: &Failure| f.kind == Kind::Reset && may_retry(f.effect(), retry, 1);
        let repeatable = may_retry(Effect::Unknown, retry, 1);
        let (was_idle, mut done) = self.attempt(addr, body, sequences, limit, repeatable).await;
        if was_idle && done.as_ref().is_err_and(again) {
            self.forget(addr);
            (_, done) = self.attempt(addr, body, sequences, limit, repeatable).await;
        }
        if done.as_ref().is_err_and(|f| f.code().is(class::SHUTDOWN)) {
            // Whoever is there next knows nothing of these.
            self.forget(addr);
        }
        match done {
            Err(f) if f.kind == Kind::Reset => Err(self.look_again(addr, f).await),
            done => done,
        }
    }
    /// And whether it was made on a connection that had been idle.
    async fn attempt(
        &self,
        addr: &str,
        body: &RawDoc,
        sequences: &[Sequence<'_>],
        limit: Duration,
        repeatable: bool,
    ) -> (bool, CallResult<DocBuf>) {
        let taken = match repeatable {
            true => self.take(addr, limit).await,
            false => self.take_alive(addr, limit).await,
        };
        let mut lease = match taken {
            Ok(lease) => lease,
            Err(f) => return (false, Err(f)),
        };
        // Connecting has a limit of its own.
        let left = limit.saturating_sub(lease.waited);
        let done = lease.call_with(body, sequences, left).await.map(RawDoc::to_buf);
        (lease.was_idle, done)
    }
    /// A connection that was accepted and then closed may be a process's last, or one too many. Whether anybody listens
    /// there tells which.
    async fn look_again(&self, addr: &str, closed: Failure) -> Failure {
        let env = &self.0.env;
        let limit = Duration::from_millis(limits::FAILOVER_PROBE_MS_MAX as u64);
        match env.timeout(limit, env.net.connect(addr.to_owned())).await {
            Some(Err(e)) if e.kind() == std::io::ErrorKind::ConnectionRefused => {
                Failure::gone_behind(addr, &e)
            }
            _ => closed,
        }
    }

    /// Closes the idle connections to a host.
    pub fn forget(&self, addr: &str) {
        if self.lock().contains_key(addr) {
            drop(self.at(addr, Host::take_idle));
        }
    }
    /// Closes all idle connections.
    pub fn forget_all(&self) {
        let all: Vec<String> = self.lock().keys().cloned().collect();
        all.iter().for_each(|addr| self.forget(addr));
    }
    fn put_back(&self, connection: Box<Connection>) {
        let since = self.0.env.clock.mono();
        let addr = connection.addr().to_owned();
        let mut connection = Some(connection);
        self.at(&addr, |host| {
            let keeps = !host.keeps_more_than(limits::RPC_IDLE_PER_HOST_MAX - 1);
            let idle = connection.take_if(|c| keeps && c.is_usable());
            host.given_back(idle.map(|connection| Idle { connection, since }));
        });
    }
}

/// What is known of a host; where too many are known, those without a connection make room for it.
fn host_at<'h>(hosts: &'h mut Hosts, addr: &str) -> &'h mut Host {
    if hosts.len() >= limits::RPC_HOSTS_MAX && !hosts.contains_key(addr) {
        hosts.retain(|_, host| !host.is_quiet());
    }
    hosts.entry(addr.to_owned()).or_default()
}

/// A call's place in the queue, until it is dropped.
struct Queued<'a> {
    pool: &'a Pool,
    addr: &'a str,
    id: u64,
    turn: Notify,
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.pool.at(self.addr, |host| host.leave(Some(self.id)));
    }
}

/// The room for a connection that is being made.
struct Room<'a> {
    pool: &'a Pool,
    addr: &'a str,
    stands: bool,
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        self.pool.at(self.addr, |host| host.connected(self.stands));
    }
}

/// A connection on loan.
pub struct Lease {
    connection: Option<Box<Connection>>,
    pool: Pool,
    was_idle: bool,
    /// In the queue.
    waited: Duration,
}

impl Lease {
    fn of(pool: &Pool, connection: Box<Connection>, was_idle: bool, waited: Duration) -> Lease {
        Lease { connection: Some(connection), pool: pool.clone(), was_idle, waited }
    }
}

impl Deref for Lease {
    type Target = Connection;
    fn deref(&self) -> &Connection {
        self.connection.as_ref().expect("a lease holds its connection until it is dropped")
    }
}
impl DerefMut for Lease {
    fn deref_mut(&mut self) -> &mut Connection {
        self.connection.as_mut().expect("a lease holds its connection until it is dropped")
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.pool.put_back(connection);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_a_thousand_shards_of_seven_members_are_remembered_although_they_are_quiet() {
        let mut hosts = Hosts::new();
        (0..7000).for_each(|port| _ = host_at(&mut hosts, &format!("h:{port}")));
        assert_eq!(hosts.len(), 7000);
        (0..limits::RPC_HOSTS_MAX).for_each(|port| _ = host_at(&mut hosts, &format!("i:{port}")));
        assert!(hosts.len() <= limits::RPC_HOSTS_MAX, "beyond the bound the quiet ones go");
    }
}
