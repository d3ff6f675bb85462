//! What is known of migrations: what was asked for, what commands said, and what was put in their way.

use super::super::Home;
use super::newcomers::Newcomers;
use super::nobodys::Nobodys;
use std::collections::BTreeMap;
use std::time::Duration;

/// How a command said that a migration ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Said {
    Committed,
    /// Why.
    Aborted(i64),
    /// It was not begun, with this code.
    Refused(i64),
}

/// One migration.
#[derive(Clone, Debug)]
pub(super) struct Migration {
    pub(super) id: u8,
    pub(super) tenants: Vec<usize>,
    /// All that the set has.
    pub(super) merges: bool,
    pub(super) from: Home,
    pub(super) begun: Duration,
    pub(super) said: Option<Said>,
    /// Why it was aborted, by its document.
    pub(super) why: String,
    /// Somebody has called for its end.
    pub(super) called_off: bool,
    /// Something of the tenant was put where it goes before it began.
    pub(super) in_its_way: bool,
    pub(super) forgotten: bool,
    /// When nothing was left of it but its tenant.
    pub(super) over: Option<Duration>,
}

/// Something of a tenant at the set that does not have it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Plant {
    /// It may be there, or come still.
    Unsure,
    /// Acknowledged there: the document with that number stays.
    There(Home, i64),
}

#[derive(Default)]
pub(super) struct Knowledge {
    pub(super) migrations: Vec<Migration>,
    /// By tenant.
    pub(super) plants: BTreeMap<usize, Plant>,
    /// Nothing is put in anybody's way any more.
    pub(super) calm: bool,
    pub(super) plants_kept: usize,
    pub(super) definitions: usize,
    pub(super) newcomers: Newcomers,
    pub(super) nobodys: Nobodys,
    /// Writes that a set refused which did not have their tenant.
    pub(super) turned_away: usize,
}

impl Knowledge {
    pub(super) fn migration(&mut self, id: u8) -> Option<&mut Migration> {
        self.migrations.iter_mut().find(|m| m.id == id)
    }
    pub(super) fn undecided(&self) -> usize {
        self.migrations.iter().filter(|m| m.said.is_none()).count()
    }
    pub(super) fn under_way(&self) -> impl Iterator<Item = &Migration> {
        self.migrations.iter().filter(|m| m.over.is_none())
    }
    pub(super) fn is_moving(&self, tenant: usize) -> bool {
        self.under_way().any(|m| m.tenants.contains(&tenant))
    }
    /// Of migrations of one tenant, or of merges.
    pub(super) fn count(&self, merges: bool, is: impl Fn(&Said) -> bool) -> usize {
        let of_kind = self.migrations.iter().filter(|m| m.merges == merges);
        of_kind.filter(|m| m.said.as_ref().is_some_and(&is)).count()
    }
    /// Whether another one, in the other direction or of the same tenant, was there since this one was asked for; or any, beside a merge.
    pub(super) fn may_be_refused(&self, id: u8) -> bool {
        let Some(own) = self.migrations.iter().find(|m| m.id == id) else { return true };
        let there = |m: &Migration| m.over.is_none_or(|over| over >= own.begun);
        let shared = |m: &Migration| m.tenants.iter().any(|t| own.tenants.contains(t));
        let clashes = |m: &Migration| m.from != own.from || m.merges || own.merges || shared(m);
        self.migrations.iter().any(|m| m.id != id && there(m) && clashes(m))
    }
}
