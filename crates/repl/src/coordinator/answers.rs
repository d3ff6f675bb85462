//! Who waits for what the core will say.

use crate::coordinator::Coordinator;
use pando_base::panics::poisoned;
use pando_base::{Error, Result};
use pando_env::sync::Notify;
use pando_topology::message::{HeartbeatReply, VoteReply};
use pando_topology::{CommandReply, Event, SourceChoice};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// An answer of the core.
#[derive(Clone, Debug)]
pub enum Said {
    Heartbeat(Result<HeartbeatReply>),
    Vote(Result<VoteReply>),
    Positions(Result<()>),
    Command(Result<CommandReply>),
    Source(SourceChoice),
    Waited(Result<()>),
}

impl Said {
    /// The answer to a write concern.
    pub fn waited(self) -> Result<()> {
        match self {
            Said::Waited(r) | Said::Positions(r) => r,
            Said::Command(Err(e)) => Err(e),
            _ => Err(Error::internal("an answer of another kind")),
        }
    }
}

#[derive(Default)]
pub(crate) struct Slot {
    said: Mutex<Option<Said>>,
    given: Notify,
}

impl Slot {
    pub(crate) fn take(&self) -> Option<Said> {
        self.said.lock().unwrap_or_else(poisoned).take()
    }
    fn give(&self, said: Said) {
        *self.said.lock().unwrap_or_else(poisoned) = Some(said);
        self.given.bump();
    }
}

#[derive(Default)]
pub(crate) struct Answers {
    next: u64,
    open: BTreeMap<u64, Arc<Slot>>,
}

impl Answers {
    pub(crate) fn open(&mut self) -> (u64, Arc<Slot>) {
        self.next += 1;
        let slot: Arc<Slot> = Arc::default();
        self.open.insert(self.next, slot.clone());
        (self.next, slot)
    }
    /// Nobody may be waiting any more.
    pub(crate) fn give(&mut self, token: u64, said: Said) {
        if let Some(slot) = self.open.remove(&token) {
            slot.give(said);
        }
    }
    pub(crate) fn fail_all(&mut self, e: &Error) {
        for slot in std::mem::take(&mut self.open).into_values() {
            slot.give(Said::Command(Err(e.clone())));
        }
    }
    fn close(&mut self, token: u64) -> bool {
        self.open.remove(&token).is_some()
    }
}

/// Somebody waiting; gives up when dropped.
pub(crate) struct Waiting<'a> {
    pub(crate) coordinator: &'a Coordinator,
    pub(crate) token: u64,
    pub(crate) slot: Arc<Slot>,
}

impl Waiting<'_> {
    pub(crate) async fn answer(self) -> Said {
        loop {
            let seen = self.slot.given.version();
            if let Some(said) = self.slot.take() {
                return said;
            }
            self.slot.given.changed(seen).await;
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut inner = self.coordinator.lock();
        if inner.answers.close(self.token) {
            // It may have been a waiting write concern.
            self.coordinator.step(&mut inner, Event::CancelAwait { id: self.token });
        }
    }
}
