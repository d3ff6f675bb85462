//! What lies between machines: cuts in one direction or both, delay, lost packets.

use crate::executor::Core;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A machine: processes on it share a disk, a clock and a place in the network.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Machine(pub u16);

impl Machine {
    /// Where processes run that have no machine of their own.
    pub const OUTSIDE: Machine = Machine(u16::MAX);
}

/// Milliseconds that a lost packet is late: it is sent again.
const LATE_MS: (u64, u64) = (200, 1200);

/// How a machine turns new connections away though its process lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// As if nobody listened.
    Refused,
    /// It takes them and closes them at once, as a server does that has too many.
    Closed,
}

/// Nothing in it: everybody reaches everybody at once.
#[derive(Default)]
pub struct Links {
    cut: BTreeSet<(Machine, Machine)>,
    refusing: BTreeMap<Machine, Refusal>,
    /// Without power: nobody reaches it and it reaches nobody.
    dark: BTreeSet<Machine>,
    /// Most milliseconds that packets from or to a machine take longer.
    slow_ms: BTreeMap<Machine, u64>,
    /// Of a million packets, so many are lost on the way.
    loss_ppm: u64,
}

impl Links {
    /// Nothing that `from` sends reaches `to` any more.
    pub fn cut(&mut self, from: Machine, to: Machine) {
        self.cut.insert((from, to));
    }
    pub fn set_dark(&mut self, machine: Machine, dark: bool) {
        if dark {
            self.dark.insert(machine);
        } else {
            self.dark.remove(&machine);
        }
    }
    /// New connections to a machine are turned away.
    pub fn set_refusing(&mut self, machine: Machine, how: Refusal) {
        self.refusing.insert(machine, how);
    }
    pub(crate) fn refusal(&self, machine: Machine) -> Option<Refusal> {
        self.refusing.get(&machine).copied()
    }
    pub fn set_slow(&mut self, machine: Machine, ms: u64) {
        self.slow_ms.insert(machine, ms);
    }
    pub fn set_loss(&mut self, ppm: u64) {
        self.loss_ppm = ppm;
    }
    /// Everything but the lack of power.
    pub fn heal(&mut self) {
        let dark = std::mem::take(&mut self.dark);
        *self = Links { dark, ..Links::default() };
    }
    pub fn is_cut(&self, from: Machine, to: Machine) -> bool {
        !(self.cut.is_empty() && self.dark.is_empty())
            && (self.cut.contains(&(from, to)) || self.dark.contains(&from) || self.dark.contains(&to))
    }
    pub(crate) fn extra(&self, core: &Core, from: Machine, to: Machine) -> Duration {
        let slow = [from, to].iter().filter_map(|m| self.slow_ms.get(m)).max().copied().unwrap_or(0);
        let mut ms = if slow > 0 { core.rng.below(slow) } else { 0 };
        if self.loss_ppm > 0 && core.rng.below(1_000_000) < self.loss_ppm {
            ms += LATE_MS.0 + core.rng.below(LATE_MS.1 - LATE_MS.0);
        }
        Duration::from_millis(ms)
    }
}
