//! A few idle connections per host, for calls that come now and then.
//!
//! A connection is taken for one or more calls and goes back when its lease is dropped, unless it broke. What
//! has been idle for long is closed at the next take: the peer may have forgotten it.

use crate::connection::{Connection, Options};
use crate::failure::{Failure, Outcome};
use pando_base::limits;
use pando_bson::{DocBuf, RawDoc};
use pando_env::Env;
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

struct Idle {
    connection: Connection,
    since: Duration,
}

#[derive(Default)]
struct Host {
    idle: Vec<Idle>,
    in_use: usize,
    created: u64,
}

/// Connections to one host, as statistics show them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct HostConnections {
    pub in_use: usize,
    /// Idle ones.
    pub available: usize,
    /// Since the start.
    pub created: u64,
}

type Hosts = BTreeMap<String, Host>;

/// Cheap to clone.
#[derive(Clone)]
pub struct Pool {
    env: Env,
    options: Options,
    hosts: Arc<Mutex<Hosts>>,
}

fn lock(hosts: &Mutex<Hosts>) -> MutexGuard<'_, Hosts> {
    hosts.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pool {
    pub fn new(env: Env, options: Options) -> Pool {
        Pool { env, options, hosts: Arc::default() }
    }
    /// A connection to `addr`: an idle one, or a new one.
    pub async fn take(&self, addr: &str) -> Outcome<Lease> {
        let connection = match self.take_idle(addr) {
            Some(c) => c,
            None => {
                let connection = Connection::connect(&self.env, addr, &self.options).await?;
                let mut hosts = lock(&self.hosts);
                let host = hosts.entry(addr.to_owned()).or_default();
                host.created += 1;
                host.in_use += 1;
                connection
            }
        };
        Ok(Lease { connection: Some(connection), pool: self.clone() })
    }
    /// Host by host.
    pub fn connections(&self) -> Vec<(String, HostConnections)> {
        let shown =
            |h: &Host| HostConnections { in_use: h.in_use, available: h.idle.len(), created: h.created };
        lock(&self.hosts).iter().map(|(addr, host)| (addr.clone(), shown(host))).collect()
    }
    fn take_idle(&self, addr: &str) -> Option<Connection> {
        let oldest = self.env.clock.mono().saturating_sub(Duration::from_millis(limits::RPC_IDLE_MS));
        let mut hosts = lock(&self.hosts);
        let host = hosts.get_mut(addr)?;
        host.idle.retain(|i| i.since >= oldest);
        let connection = host.idle.pop()?.connection;
        host.in_use += 1;
        Some(connection)
    }
    /// One call on a connection of the pool. An idle connection that turns out to be dead is replaced once: it
    /// says nothing about the peer.
    pub async fn call(&self, addr: &str, body: &RawDoc, limit: Duration) -> Outcome<DocBuf> {
        if let Some(connection) = self.take_idle(addr) {
            let mut lease = Lease { connection: Some(connection), pool: self.clone() };
            match lease.call(body, limit).await {
                Ok(reply) => return Ok(reply.to_buf()),
                Err(f) if f.kind != crate::Kind::Reset => return Err(f),
                Err(_) => self.forget(addr),
            }
        }
        match self.call_anew(addr, body, limit).await {
            Err(f) if f.kind == crate::Kind::Reset => Err(self.look_again(addr, f).await),
            done => done,
        }
    }
    async fn call_anew(&self, addr: &str, body: &RawDoc, limit: Duration) -> Outcome<DocBuf> {
        let mut lease = self.take(addr).await?;
        lease.call(body, limit).await.map(RawDoc::to_buf)
    }
    /// A connection that was accepted and then closed may be a process's last, or one too many. Whether anybody listens
    /// there tells which.
    async fn look_again(&self, addr: &str, closed: Failure) -> Failure {
        let limit = Duration::from_millis(limits::FAILOVER_PROBE_MS_MAX as u64);
        match self.env.timeout(limit, self.env.net.connect(addr.to_owned())).await {
            Some(Err(e)) if e.kind() == std::io::ErrorKind::ConnectionRefused => Failure::io(addr, &e),
            _ => closed,
        }
    }
    /// Closes the idle connections to a host.
    pub fn forget(&self, addr: &str) {
        let gone = lock(&self.hosts).get_mut(addr).map(|host| std::mem::take(&mut host.idle));
        drop(gone);
    }
    /// Closes all idle connections.
    pub fn forget_all(&self) {
        let gone: Vec<_> =
            lock(&self.hosts).values_mut().map(|host| std::mem::take(&mut host.idle)).collect();
        drop(gone);
    }
    fn put_back(&self, connection: Connection) {
        let since = self.env.clock.mono();
        let mut hosts = lock(&self.hosts);
        let host = hosts.entry(connection.addr().to_owned()).or_default();
        host.in_use = host.in_use.saturating_sub(1);
        if connection.is_usable() && host.idle.len() < limits::RPC_IDLE_PER_HOST_MAX {
            host.idle.push(Idle { connection, since });
        }
    }
}

/// A connection on loan.
pub struct Lease {
    connection: Option<Connection>,
    pool: Pool,
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
