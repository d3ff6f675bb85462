//! What a pool knows of one host: its connections, and who waits for one.

use crate::connection::Connection;
use pando_env::sync::Notify;
use std::collections::VecDeque;
use std::time::Duration;

/// How many there may be for each host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// Connections, idle ones and those being made included.
    pub open: usize,
    /// Calls that wait for one.
    pub waiting: usize,
}

/// Connections to one host, as statistics show them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct HostConnections {
    pub in_use: usize,
    /// Idle ones.
    pub available: usize,
    /// Being made.
    pub connecting: usize,
    /// Calls that wait for a connection.
    pub waiting: usize,
    /// Since the start.
    pub created: u64,
    /// Calls that were not let into the queue, or left it in vain, since the start.
    pub refused: u64,
}

impl std::ops::AddAssign for HostConnections {
    fn add_assign(&mut self, n: HostConnections) {
        self.in_use += n.in_use;
        self.available += n.available;
        self.connecting += n.connecting;
        self.waiting += n.waiting;
        self.created += n.created;
        self.refused += n.refused;
    }
}

pub(super) struct Idle {
    pub(super) connection: Box<Connection>,
    pub(super) since: Duration,
}

/// A place in the queue.
struct Waiter {
    id: u64,
    turn: Notify,
}

#[derive(Default)]
pub(super) struct Host {
    idle: Vec<Idle>,
    in_use: usize,
    connecting: usize,
    /// First come, first served.
    queue: VecDeque<Waiter>,
    next_id: u64,
    created: u64,
    refused: u64,
}

/// What a call gets that asks for a connection.
pub(super) enum Place {
    Idle(Box<Connection>),
    /// It may make one.
    Room,
    /// It waits for its turn; the first is to be told when something is free.
    Queued(u64, Notify),
    /// The queue is full: so many are in it.
    Full(usize),
}

impl Host {
    pub(super) fn shown(&self) -> HostConnections {
        HostConnections {
            in_use: self.in_use,
            available: self.idle.len(),
            connecting: self.connecting,
            waiting: self.queue.len(),
            created: self.created,
            refused: self.refused,
        }
    }
    /// Nobody would miss it but the statistics.
    pub(super) fn is_quiet(&self) -> bool {
        self.open() == 0 && self.queue.is_empty()
    }
    fn open(&self) -> usize {
        self.in_use + self.connecting + self.idle.len()
    }

    /// For a newcomer, or for the waiter `id` again. A call that wants a new connection (`fresh`) takes the room of an idle one
    /// where there is no other; what has to be closed goes to `closing`.
    pub(super) fn place(
        &mut self,
        bounds: Bounds,
        id: Option<u64>,
        fresh: bool,
        closing: &mut Vec<Idle>,
    ) -> Place {
        let first = self.queue.front().is_none_or(|w| Some(w.id) == id);
        if first {
            if !fresh && let Some(idle) = self.idle.pop() {
                self.leave(id);
                self.in_use += 1;
                return Place::Idle(idle.connection);
            }
            if self.open() >= bounds.open && !self.idle.is_empty() {
                closing.push(self.idle.remove(0));
            }
            if self.open() < bounds.open {
                self.leave(id);
                self.connecting += 1;
                return Place::Room;
            }
        }
        if let Some(waiter) = self.queue.iter().find(|w| Some(w.id) == id) {
            return Place::Queued(waiter.id, waiter.turn.clone());
        }
        if self.queue.len() >= bounds.waiting {
            self.refused += 1;
            return Place::Full(self.queue.len());
        }
        self.next_id += 1;
        let waiter = Waiter { id: self.next_id, turn: Notify::new() };
        let place = Place::Queued(waiter.id, waiter.turn.clone());
        self.queue.push_back(waiter);
        place
    }
    /// The waiter has what it waited for, or waits no more.
    pub(super) fn leave(&mut self, id: Option<u64>) {
        self.queue.retain(|w| Some(w.id) != id);
    }
    pub(super) fn gave_up(&mut self) {
        self.refused += 1;
    }
    /// Whom to tell that something may be free.
    pub(super) fn next_turn(&self) -> Option<Notify> {
        self.queue.front().map(|w| w.turn.clone())
    }
    /// The connection that there was room for stands, or will not.
    pub(super) fn connected(&mut self, stands: bool) {
        self.connecting = self.connecting.saturating_sub(1);
        if stands {
            self.created += 1;
            self.in_use += 1;
        }
    }
    /// A connection in use is free or broken.
    pub(super) fn given_back(&mut self, idle: Option<Idle>) {
        self.in_use = self.in_use.saturating_sub(1);
        self.idle.extend(idle);
    }
    pub(super) fn keeps_more_than(&self, n: usize) -> bool {
        self.idle.len() > n
    }
    pub(super) fn take_idle(&mut self) -> Vec<Idle> {
        std::mem::take(&mut self.idle)
    }
    /// Those that have been idle since before `oldest`.
    pub(super) fn take_expired(&mut self, oldest: Duration) -> Vec<Idle> {
        let (kept, gone) = std::mem::take(&mut self.idle).into_iter().partition(|i| i.since >= oldest);
        self.idle = kept;
        gone
    }
}
