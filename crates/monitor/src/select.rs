//! Who of a set's members may answer a call, and who of these is near enough (SH-REG-4).

use crate::hello::MemberKind;
use crate::read_preference::{Mode, ReadPreference, TagSet};
use crate::set::{Member, Set};
use pando_base::{Millis, Timestamp, limits};

/// What a call asks for.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Criteria {
    pub preference: ReadPreference,
    /// Hosts that failed just now: taken only where nobody else will do.
    pub avoid: Vec<String>,
    /// What it reads must have been written: a member known to be there already is preferred.
    pub min_cluster_time: Option<Timestamp>,
}

impl Criteria {
    pub fn of(preference: ReadPreference) -> Criteria {
        Criteria { preference, ..Criteria::default() }
    }
}

/// How often members are asked, which bounds how well staleness is known.
pub const HEARTBEAT_MS: Millis = limits::MONITOR_HEARTBEAT_MS;

impl Set {
    /// Members that may answer, in the order of their names; `heartbeat_ms` is how often they are asked.
    pub fn suitable(&self, c: &Criteria, heartbeat_ms: Millis) -> Vec<&str> {
        let fresh: Vec<&String> = self.members.keys().filter(|host| !c.avoid.contains(host)).collect();
        let out = self.suitable_of(&fresh, c, heartbeat_ms);
        if !out.is_empty() || c.avoid.is_empty() {
            return out;
        }
        let all: Vec<&String> = self.members.keys().collect();
        self.suitable_of(&all, c, heartbeat_ms)
    }

    fn suitable_of<'a>(&'a self, hosts: &[&'a String], c: &Criteria, heartbeat_ms: Millis) -> Vec<&'a str> {
        let p = &c.preference;
        let of = |kind: MemberKind| -> Vec<&'a str> {
            let members = hosts.iter().filter(|h| self.members.get(**h).is_some_and(|m| m.kind == kind));
            members.map(|h| h.as_str()).collect()
        };
        let near = |hosts: Vec<&'a str>| self.tagged(self.recent(hosts, p, heartbeat_ms), &p.tag_sets);
        let primary = of(MemberKind::Primary);
        let secondaries = || near(of(MemberKind::Secondary));
        match p.mode {
            Mode::Primary => primary,
            Mode::PrimaryPreferred if !primary.is_empty() => primary,
            Mode::PrimaryPreferred | Mode::Secondary => secondaries(),
            Mode::SecondaryPreferred => {
                let found = secondaries();
                if found.is_empty() { primary } else { found }
            }
            Mode::Nearest => {
                let mut all = [primary, of(MemberKind::Secondary)].concat();
                all.sort_unstable();
                near(all)
            }
        }
    }

    /// Those that are not too far behind, as far as two answers at different times tell.
    fn recent<'a>(&'a self, hosts: Vec<&'a str>, p: &ReadPreference, heartbeat_ms: Millis) -> Vec<&'a str> {
        let Some(most) = p.max_staleness_ms else { return hosts };
        let staleness = |m: &Member| -> Option<Millis> {
            let wrote = m.last_write_ms?;
            match self.primary() {
                Some((_, p)) => {
                    let primary_wrote = p.last_write_ms?;
                    Some((m.heard - wrote) - (p.heard - primary_wrote) + heartbeat_ms)
                }
                None => {
                    let secondaries = self.members.values().filter(|m| m.kind == MemberKind::Secondary);
                    let newest = secondaries.filter_map(|m| m.last_write_ms).max()?;
                    Some(newest - wrote + heartbeat_ms)
                }
            }
        };
        let recent = |host: &&str| {
            self.members
                .get(*host)
                .is_some_and(|m| m.kind == MemberKind::Primary || staleness(m).is_some_and(|s| s <= most))
        };
        hosts.into_iter().filter(recent).collect()
    }

    /// Those with the first tag set that anybody has.
    fn tagged<'a>(&'a self, hosts: Vec<&'a str>, sets: &[TagSet]) -> Vec<&'a str> {
        if sets.is_empty() {
            return hosts;
        }
        let has = |host: &str, set: &TagSet| {
            let member = self.members.get(host);
            member.is_some_and(|m| set.iter().all(|(k, v)| m.tags.get(k) == Some(v)))
        };
        let found = sets.iter().map(|set| hosts.iter().copied().filter(|h| has(h, set)).collect::<Vec<_>>());
        found.into_iter().find(|found| !found.is_empty()).unwrap_or_default()
    }

    /// Of these, the ones that are at most `window_us` farther away than the nearest.
    pub fn in_window<'a>(&self, hosts: &[&'a str], window_us: i64) -> Vec<&'a str> {
        let distance = |host: &str| self.members.get(host).and_then(|m| m.round_trip_us);
        let Some(least) = hosts.iter().filter_map(|h| distance(h)).min() else { return hosts.to_vec() };
        let near = |h: &&&str| distance(h).is_some_and(|d| d <= least.saturating_add(window_us));
        hosts.iter().filter(near).copied().collect()
    }

    /// One of those that may answer and are near; `draw` is chance.
    pub fn select(&self, c: &Criteria, draw: u64) -> Option<&str> {
        // Nothing else counts where one member may answer.
        if c.preference.mode == Mode::Primary {
            let mut primaries = self.members.iter().filter(|(_, m)| m.kind == MemberKind::Primary);
            let first = primaries.next()?.0;
            if primaries.next().is_none() {
                return Some(first);
            }
        }
        let suitable = self.suitable(c, HEARTBEAT_MS);
        let near = self.in_window(&suitable, limits::MONITOR_LATENCY_WINDOW_US);
        let there = |h: &&&str| {
            let wrote = self.members.get(**h).and_then(|m| m.last_write);
            c.min_cluster_time.is_none_or(|t| wrote.is_some_and(|w| w >= t))
        };
        let up_to_date: Vec<&str> = near.iter().filter(there).copied().collect();
        let of = if up_to_date.is_empty() { near } else { up_to_date };
        let n = of.len() as u64;
        (n > 0).then(|| of[(draw % n) as usize])
    }
}
