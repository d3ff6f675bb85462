//! What everybody has been told: which set has which tenant, and what was found to be wrong.

use super::Home;
use pando_base::Timestamp;
use std::collections::BTreeMap;
use std::time::Duration;

/// A command that nobody waits for any more is carried out within this time, or never.
const GHOSTS: Duration = Duration::from_secs(15);

/// Where a tenant is, and how many times it has moved by then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct View {
    pub(super) home: Home,
    pub(super) moves: u32,
}

impl View {
    /// Behind one more move.
    pub(super) fn next(self) -> View {
        View { home: self.home.other(), moves: self.moves + 1 }
    }
}

/// A tenant on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moving {
    pub(super) from: Home,
    /// When somebody was told that it has moved, until that may be forgotten.
    pub(super) committed: Option<Duration>,
}

pub(super) struct Tenant {
    announced: View,
    /// A time of the set that has it now, behind its move: by the number of moves.
    pub(super) since: Option<(u32, Timestamp)>,
    pub(super) moving: Option<Moving>,
    /// Commands that have not been answered: when they were sent, and where to.
    asked: BTreeMap<u64, (Duration, Home)>,
    /// Until then something may be carried out that nobody waits for.
    ghosts: [Duration; 2],
}

pub(super) struct Board {
    pub(super) tenants: Vec<Tenant>,
    /// Both sets have one history: the second one was a part of the first, and times of the one are times of the other.
    pub(super) one_history: bool,
    last_command: u64,
    pub(super) problems: Vec<String>,
    /// What users were told, and how often.
    pub(super) moved: usize,
    pub(super) stayed: usize,
}

impl Board {
    pub(super) fn new(homes: impl Iterator<Item = Home>, one_history: bool) -> Board {
        let tenant = |home| Tenant {
            announced: View { home, moves: 0 },
            since: None,
            moving: None,
            asked: BTreeMap::new(),
            ghosts: [Duration::ZERO; 2],
        };
        let tenants = homes.map(tenant).collect();
        Board { tenants, one_history, last_command: 0, problems: Vec::new(), moved: 0, stayed: 0 }
    }
    pub(super) fn announced(&self, tenant: usize) -> View {
        self.tenants[tenant].announced
    }
    /// Everybody goes there from now on.
    pub(super) fn announce(&mut self, tenant: usize) {
        let known = &mut self.tenants[tenant];
        known.announced = known.announced.next();
    }
    /// A time of the set that has a tenant, once somebody knows one.
    pub(super) fn since(&self, tenant: usize, view: View) -> Option<Timestamp> {
        self.tenants[tenant].since.filter(|(moves, _)| *moves == view.moves).map(|(_, at)| at)
    }
    pub(super) fn note_since(&mut self, tenant: usize, view: View, at: Timestamp) {
        let known = &mut self.tenants[tenant].since;
        if known.is_none_or(|(moves, _)| moves < view.moves) {
            *known = Some((view.moves, at));
        }
    }

    /// Whether somebody had been told by then that a tenant has left that set.
    pub(super) fn has_left(&self, tenant: usize, home: Home, by: Duration) -> bool {
        let moving = self.tenants[tenant].moving.filter(|m| m.from == home);
        moving.and_then(|m| m.committed).is_some_and(|at| at <= by)
    }

    /// Whether a tenant may be on its way from that set: who lags may say so of a way that ended long ago.
    pub(super) fn may_leave(&self, tenant: usize, home: Home) -> bool {
        self.one_history || self.tenants[tenant].moving.is_some_and(|m| m.from == home)
    }

    /// A command goes out. Its number.
    pub(super) fn ask(&mut self, tenant: usize, home: Home, now: Duration) -> u64 {
        self.last_command += 1;
        self.tenants[tenant].asked.insert(self.last_command, (now, home));
        self.last_command
    }
    /// It was answered, or nobody waits for it any more.
    pub(super) fn end(&mut self, tenant: usize, number: u64, answered: bool, now: Duration) {
        let known = &mut self.tenants[tenant];
        let Some((_, home)) = known.asked.remove(&number) else { return };
        if !answered {
            known.ghosts[home as usize] = now + GHOSTS;
        }
    }
    /// Nothing that was sent to that set before `since` may be carried out there any more.
    pub(super) fn is_quiet(&self, tenant: usize, home: Home, since: Duration, now: Duration) -> bool {
        let known = &self.tenants[tenant];
        let old = |(sent, to): &(Duration, Home)| *to == home && *sent <= since;
        known.ghosts[home as usize] <= now && !known.asked.values().any(old)
    }
}
