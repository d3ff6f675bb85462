//! Who uses a cluster, through its routers, and what was promised to them.
//!
//! Some are those of a set ([`crate::set::users`]): to them a router is a primary. What they write to is sharded, or not, from
//! the beginning ([`super::shape`]).

pub(super) mod definitions;
pub(super) mod documents;
pub(super) mod metadata;
pub(super) mod moves;
pub(super) mod pages;
pub(super) mod stream;
pub(super) mod writers;

use super::{FIRST_CLIENT, Run};
use crate::ProcessId;
use crate::client::Client;
use crate::executor::lock;
use crate::set::users::acknowledged::{self, Acknowledged};
use crate::set::users::appends::{self, Appends};
use crate::set::users::bank::{self, Bank};
use crate::set::users::caller::Place;
use crate::set::users::late::{self, Late};
use crate::set::users::lists::{self, Lists};
use crate::set::users::register::{self, History};
use definitions::Spaces;
use documents::Model;
use metadata::Seen;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use stream::Stream;

/// What is known to them, and was promised to them.
#[derive(Clone, Default)]
pub(super) struct Users {
    acknowledged: Arc<Mutex<Acknowledged>>,
    registers: Arc<Mutex<History>>,
    lists: Arc<Mutex<Lists>>,
    bank: Arc<Mutex<Bank>>,
    appends: Arc<Mutex<Appends>>,
    late: Arc<Mutex<Late>>,
    pub(super) documents: Arc<Mutex<Model>>,
    pub(super) spaces: Arc<Mutex<Spaces>>,
    metadata: Arc<Mutex<Seen>>,
    moves: Arc<Mutex<moves::Counts>>,
    pub(super) stream: Arc<Mutex<Stream>>,
}

/// How much of everything there was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    pub acknowledged: usize,
    /// Reads and writes of registers, judged to be linearizable.
    pub register_commands: usize,
    pub majority_reads: usize,
    pub transfers: usize,
    pub transactions: usize,
    /// Retryable statements sent again minutes after they were acknowledged.
    pub repeated: usize,
    /// Of documents in sharded and unsharded collections.
    pub documents: documents::Counts,
    pub definitions: definitions::Counts,
    pub moves: moves::Counts,
    /// Moments at which the metadata was looked at.
    pub looks: usize,
    /// Shown by the change stream, and how often it was begun.
    pub events: usize,
    pub streams: usize,
}

impl Run {
    /// Users of every kind, each on a machine of its own.
    pub(super) fn invite(&self, people: ProcessId, stop: &Arc<AtomicBool>) {
        let (sim, users) = (&self.world.sim, &self.users);
        lock(&users.documents).moves = self.options.moves;
        for user in 0..self.options.users {
            let mut addrs = self.router_addrs();
            // Each prefers another router as long as that answers.
            let first = user as usize % addrs.len();
            addrs.rotate_left(first);
            let place = Place {
                env: self.env_of(people, FIRST_CLIENT + user as u16),
                addrs,
                user,
                pause_ms: self.options.pause_ms,
                stop: stop.clone(),
                routed: true,
            };
            let p = place.clone();
            let pace = (user, p.pause_ms * 2);
            sim.spawn(
                people,
                "acked",
                acknowledged::write(p.env, p.addrs, pace, users.acknowledged.clone(), p.stop),
            );
            sim.spawn(people, "register", register::run(place.clone(), users.registers.clone()));
            sim.spawn(people, "lists", lists::run(place.clone(), users.lists.clone()));
            sim.spawn(people, "bank", bank::run(place.clone(), users.bank.clone()));
            sim.spawn(people, "appends", appends::run(place.clone(), users.appends.clone()));
            sim.spawn(people, "late", late::run(place.clone(), users.late.clone()));
            sim.spawn(people, "documents", documents::run(place.clone(), users.documents.clone()));
            sim.spawn(people, "scans", documents::scan(place.clone(), users.documents.clone()));
            sim.spawn(people, "definitions", definitions::run(place.clone(), users.spaces.clone()));
            // Many of them come between the steps of a definition.
            let quick = Place { pause_ms: place.pause_ms.div_ceil(4), ..place.clone() };
            sim.spawn(people, "writers", writers::run(quick, users.spaces.clone()));
            if user == 0 && self.options.moves {
                sim.spawn(
                    people,
                    "moves",
                    moves::run(place.clone(), users.spaces.clone(), users.moves.clone()),
                );
            }
            if user == 0 {
                sim.spawn(people, "stream", stream::run(place.clone(), users.stream.clone()));
                let config = Place { addrs: self.sets[0].addrs(), routed: false, ..place };
                sim.spawn(people, "metadata", metadata::run(config, users.metadata.clone()));
            }
        }
    }
}

impl Users {
    /// Whether somebody shall break now, since a definition is under way.
    pub(super) fn is_hit(&self, now: Duration) -> bool {
        lock(&self.spaces).is_hit(now)
    }
    /// What they found wrong by now.
    pub(super) fn problems(&self) -> Vec<String> {
        let mut all = lock(&self.documents).problems.clone();
        all.extend(lock(&self.spaces).problems.iter().cloned());
        all.extend(lock(&self.metadata).problems.iter().cloned());
        all.extend(lock(&self.stream).problems.iter().cloned());
        all
    }
    /// What is wrong with what the users of a set have written, seen through a router.
    pub(super) async fn check(&self, c: &mut Client) -> Vec<String> {
        let mut problems = acknowledged::check(c, &self.acknowledged).await;
        problems.extend(lists::check(c, &self.lists).await);
        problems.extend(bank::check(c, &self.bank).await);
        problems.extend(late::check(c, &self.late).await);
        problems.extend(appends::check(c, &self.appends).await);
        problems
    }
    /// Acknowledged insertions that the change stream has not shown.
    pub(super) fn unseen(&self) -> Vec<i64> {
        let (model, stream) = (lock(&self.documents), lock(&self.stream));
        let inserted = model.docs.iter().filter(|(_, d)| d.inserted).map(|(id, _)| *id);
        inserted.filter(|id| !stream.has_shown_insertion(*id)).collect()
    }
    /// What needs no asking.
    pub(super) fn judge(&self) -> Vec<String> {
        lock(&self.registers).problems()
    }
    pub(super) fn sums(&self) -> Sums {
        let (events, streams) = {
            let stream = lock(&self.stream);
            (stream.events(), stream.broken + 1)
        };
        Sums {
            acknowledged: lock(&self.acknowledged).len(),
            register_commands: lock(&self.registers).commands(),
            majority_reads: lock(&self.lists).reads,
            transfers: lock(&self.bank).transfers(),
            transactions: lock(&self.appends).committed(),
            repeated: lock(&self.late).repeated,
            documents: lock(&self.documents).counts.clone(),
            definitions: lock(&self.spaces).counts.clone(),
            moves: lock(&self.moves).clone(),
            looks: lock(&self.metadata).looks,
            events,
            streams,
        }
    }
}
