//! The cache of routing tables, as a machine without I/O (SH-CACHE-1, SH-CACHE-3, SH-CACHE-4).
//!
//! [`Cache::step`] takes one [`Event`] and appends [`Action`]s. A table is given out as long as nobody has said that it is old;
//! then those who ask wait for one refresh together. A refresh serves those alone who knew of nothing newer when it began:
//! whoever was told of a move in the middle of it waits for another one.
//!
//! ```text
//!   Get ─────► fresh? ── yes ──► Give
//!                └ no ──► wait ──► Fetch{since} ──► Fetched ──► Give to all that it serves; others: Fetch again
//!   Stale{ticket} ─► the table with this ticket is old (a newer one is not)
//! ```
//!
//! `T` is a table or the knowledge that a collection is not sharded; the machine asks of it only whether it is older.

use crate::mutants::{Mutant, broken};
use pando_base::{ErrorCode, limits};
use std::borrow::Borrow;
use std::collections::BTreeMap;

/// Who asked; chosen by the shell.
pub type Token = u64;

/// Which table somebody has: counted for each name, from 1.
pub type Ticket = u64;

/// What is kept of a collection or a database.
pub trait Cached: Clone {
    /// What a shard says it wants, when it sends somebody away.
    type Version: Clone + Eq + std::hash::Hash + std::fmt::Debug;
    /// Whether `self` is certainly older than `other`.
    fn is_older_than(&self, other: &Self) -> bool;
    /// Whether this is what is wanted, or newer: then it is the shard that must refresh.
    fn covers(&self, wanted: &Self::Version) -> bool;
}

/// What happened. `N` names what is cached.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Event<N, T: Cached> {
    /// Somebody needs it.
    Get { token: Token, name: N },
    /// Somebody was sent away with what was given with `ticket`; the shard wants something else, or does not know what it wants.
    /// Nothing happens until somebody asks.
    Stale { name: N, ticket: Ticket, wanted: Option<T::Version> },
    /// Whoever asked waits no more.
    Cancel { token: Token, name: N },
    /// What came of [`Action::Fetch`].
    Fetched { name: N, attempt: u64, result: Result<T, Failure> },
    /// What is known may be old: whoever asks from now on waits until the config servers have said what has changed.
    Renew { name: N },
    /// Nothing is known of it any more: all of it is read again.
    Forget { name: N },
}

/// Why a refresh came to nothing.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Failure {
    /// What was read does not fit together, or not with what was known: everything must be read.
    Torn,
    /// The config servers did not answer.
    Error(ErrorCode, String),
}

/// What to do.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Action<N, T> {
    Give {
        token: Token,
        ticket: Ticket,
        table: T,
    },
    Fail {
        token: Token,
        code: ErrorCode,
        message: String,
    },
    /// Read it from the config servers: what has changed since `since`, or everything.
    Fetch {
        name: N,
        attempt: u64,
        since: Option<T>,
    },
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Running {
    attempt: u64,
    /// It began when so much had been told.
    serves: u64,
    tries: u32,
    /// Everything is read, as what was known does not fit; also by the tries that follow.
    anew: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Entry<T> {
    table: Option<T>,
    /// Of the table.
    ticket: Ticket,
    /// How often somebody said that the table is old.
    told: u64,
    /// How much of that the table takes into account.
    heeded: u64,
    running: Option<Running>,
    /// Each with what had been told when it asked.
    waiting: Vec<(Token, u64)>,
    used: u64,
}

/// Of one node; clone it to look ahead.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Cache<N: Ord, T> {
    entries: BTreeMap<N, Entry<T>>,
    attempts: u64,
    clock: u64,
    capacity: usize,
}

impl<N: Ord + Clone, T: Cached> Default for Cache<N, T> {
    fn default() -> Cache<N, T> {
        Cache::new(limits::ROUTING_TABLES_MAX)
    }
}

impl<N: Ord + Clone, T: Cached> Cache<N, T> {
    /// Keeps so many tables.
    pub fn new(capacity: usize) -> Cache<N, T> {
        Cache { entries: BTreeMap::new(), attempts: 0, clock: 0, capacity }
    }
    pub fn len(&self) -> usize {
        self.entries.len()
    }
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
    /// What is kept, old or not, without asking anybody.
    pub fn peek(&self, name: &N) -> Option<&T> {
        self.entries.get(name)?.table.as_ref()
    }
    /// The table of a name, where nobody has said that it is old: nothing else changes when somebody asks for it.
    pub fn fresh<Q: Ord + ?Sized>(&mut self, name: &Q) -> Option<(Ticket, T)>
    where
        N: Borrow<Q>,
    {
        let e = self.entries.get_mut(name)?;
        let table = e.table.as_ref().filter(|_| e.is_fresh() || broken(Mutant::StaleIsGiven))?;
        self.clock += 1;
        e.used = self.clock;
        Some((e.ticket, table.clone()))
    }
    /// How many wait.
    pub fn waiting(&self) -> usize {
        self.entries.values().map(|e| e.waiting.len()).sum()
    }

    pub fn step(&mut self, event: Event<N, T>, out: &mut Vec<Action<N, T>>) {
        match event {
            Event::Get { token, name } => self.get(token, name, out),
            Event::Stale { name, ticket, wanted } => {
                if let Some(e) = self.entries.get_mut(&name) {
                    e.told += u64::from(e.is_news(ticket, wanted.as_ref()));
                }
            }
            Event::Cancel { token, name } => {
                if let Some(e) = self.entries.get_mut(&name) {
                    e.waiting.retain(|(t, _)| *t != token);
                }
            }
            Event::Renew { name } => {
                if let Some(e) = self.entries.get_mut(&name) {
                    e.told += u64::from(!broken(Mutant::RenewalIsNotWaitedFor));
                }
            }
            Event::Forget { name } => {
                if let Some(e) = self.entries.get_mut(&name) {
                    (e.table, e.told) = (None, e.told + 1);
                }
            }
            Event::Fetched { name, attempt, result } => self.fetched(name, attempt, result, out),
        }
    }

    fn get(&mut self, token: Token, name: N, out: &mut Vec<Action<N, T>>) {
        if let Some((ticket, table)) = self.fresh(&name) {
            return out.push(Action::Give { token, ticket, table });
        }
        self.clock += 1;
        self.make_room(&name);
        let e = self.entries.entry(name.clone()).or_insert_with(Entry::nothing);
        e.used = self.clock;
        if e.waiting.len() >= limits::REFRESH_WAITERS_MAX {
            let message = format!("{} operations wait for the routing table already", e.waiting.len());
            return out.push(Action::Fail { token, code: ErrorCode::ExceededMemoryLimit, message });
        }
        e.waiting.push((token, e.told));
        if e.running.is_none() {
            self.attempts += 1;
            e.fetch(name, self.attempts, 1, false, out);
        }
    }

    fn fetched(&mut self, name: N, attempt: u64, result: Result<T, Failure>, out: &mut Vec<Action<N, T>>) {
        let Some(e) = self.entries.get_mut(&name) else { return };
        let late = e.running.as_ref().is_none_or(|r| r.attempt != attempt);
        if late && !broken(Mutant::LateAnswerIsTaken) {
            return;
        }
        let Some(running) = e.running.take() else { return };
        let (code, message) = match result {
            Ok(table) if e.table.as_ref().is_some_and(|known| table.is_older_than(known)) => {
                (ErrorCode::ConflictingOperationInProgress, "an older routing table was read".to_owned())
            }
            Ok(table) => {
                (e.table, e.ticket, e.heeded) = (Some(table), e.ticket + 1, running.serves);
                self.attempts += u64::from(e.give(name, running.serves, self.attempts + 1, out));
                return;
            }
            Err(Failure::Torn) => {
                (ErrorCode::ConflictingOperationInProgress, "chunks were read while they changed".to_owned())
            }
            Err(Failure::Error(code, message)) => (code, message),
        };
        if running.tries < limits::REFRESH_TRIES_MAX {
            self.attempts += 1;
            let anew = running.anew || code == ErrorCode::ConflictingOperationInProgress;
            return e.fetch(name, self.attempts, running.tries + 1, anew, out);
        }
        if !broken(Mutant::FailureAnswersNobody) {
            for (token, _) in e.waiting.drain(..) {
                out.push(Action::Fail { token, code, message: message.clone() });
            }
        }
    }

    /// Drops the tables that were used longest ago, if there are too many.
    fn make_room(&mut self, name: &N) {
        if self.entries.len() < self.capacity || self.entries.contains_key(name) {
            return;
        }
        let idle = self.entries.iter().filter(|(_, e)| e.running.is_none() && e.waiting.is_empty());
        let mut by_use: Vec<(u64, N)> = idle.map(|(n, e)| (e.used, n.clone())).collect();
        by_use.sort_by_key(|(used, _)| *used);
        // A part of them at once, so that this is rare.
        for (_, n) in by_use.into_iter().take(self.capacity / 16 + 1) {
            self.entries.remove(&n);
        }
    }
}

impl<T: Cached> Entry<T> {
    fn nothing() -> Entry<T> {
        Entry { table: None, ticket: 0, told: 0, heeded: 0, running: None, waiting: Vec::new(), used: 0 }
    }
    /// Whether the table is old by what somebody was told.
    fn is_news(&self, ticket: Ticket, wanted: Option<&T::Version>) -> bool {
        match (&self.table, wanted) {
            (Some(table), Some(wanted)) => !table.covers(wanted),
            // Said of a table that has been replaced.
            (_, None) => self.ticket == ticket,
            (None, Some(_)) => true,
        }
    }
    fn is_fresh(&self) -> bool {
        self.table.is_some() && self.heeded == self.told
    }

    fn fetch<N>(&mut self, name: N, attempt: u64, tries: u32, anew: bool, out: &mut Vec<Action<N, T>>) {
        let since = self.table.clone().filter(|_| !anew || broken(Mutant::TornIsNotReadAnew));
        self.running = Some(Running { attempt, serves: self.told, tries, anew });
        out.push(Action::Fetch { name, attempt, since });
    }

    /// Gives the new table to those whom it serves, and begins anew for the others; whether it did.
    fn give<N>(&mut self, name: N, serves: u64, attempt: u64, out: &mut Vec<Action<N, T>>) -> bool {
        let Some(table) = self.table.clone() else { return false };
        let served = |known: u64| known <= serves || broken(Mutant::JoinAnyRefresh);
        let (now, later): (Vec<_>, Vec<_>) = self.waiting.drain(..).partition(|(_, known)| served(*known));
        for (token, _) in now {
            out.push(Action::Give { token, ticket: self.ticket, table: table.clone() });
        }
        self.waiting = later;
        if self.waiting.is_empty() {
            return false;
        }
        // They learnt of something newer while this was being read.
        self.fetch(name, attempt, 1, false, out);
        true
    }
}
