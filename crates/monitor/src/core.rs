//! The monitor of one set: probes, and those who wait for a host.
//!
//! # The shell's duties
//!
//! 1. Call [`Core::step`] from one place at a time and carry out the actions in their order; arrange for [`Event::Tick`] at
//!    [`Core::next_deadline`].
//! 2. [`Action::Probe`]: send `hello`. With a topology version it is one that is answered when something changes
//!    (`maxAwaitTimeMS`, replies without end): tell each reply as [`Event::Heard`] with `goes_on`, and the end or a failure as
//!    [`Event::Silent`]. A later probe of a host replaces one that is under way: close that.
//! 3. [`Action::Ping`]: a `hello` on a connection of its own, told as [`Event::Pinged`], since answers that wait tell no distance.
//! 4. Tell of every call that failed, whoever made it ([`Event::Failed`]).

use crate::feedback::CallError;
use crate::hello::{Hello, MemberKind, TopologyVersion};
use crate::select::{Criteria, HEARTBEAT_MS};
use crate::set::{Member, Set};
use pando_base::{ErrorCode, Millis, limits};
use std::collections::BTreeMap;

/// Whoever waits for a host; chosen by the shell.
pub type Token = u64;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Event {
    /// The shell is ready.
    Start,
    /// An answer to a probe, and how long it took where it did not wait.
    Heard {
        host: String,
        attempt: u64,
        hello: Hello,
        round_trip_us: Option<i64>,
        goes_on: bool,
    },
    /// A probe failed, or its replies ended.
    Silent {
        host: String,
        attempt: u64,
    },
    Pinged {
        host: String,
        round_trip_us: i64,
    },
    /// A call of somebody else failed.
    Failed {
        host: String,
        error: CallError,
    },
    /// Somebody needs a host before `deadline`; `draw` is chance.
    Select {
        token: Token,
        criteria: Criteria,
        deadline: Millis,
        draw: u64,
    },
    Cancel {
        token: Token,
    },
    /// Somebody else names these as members: they are asked, unless a primary has said who is one.
    Seeds {
        hosts: Vec<String>,
    },
    Tick,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Action {
    Probe {
        host: String,
        attempt: u64,
        known: Option<TopologyVersion>,
    },
    Ping {
        host: String,
    },
    Selected {
        token: Token,
        host: String,
    },
    NotFound {
        token: Token,
        code: ErrorCode,
        message: String,
    },
    /// What was connected before this generation is good for nothing.
    DropConnections {
        host: String,
        generation: u64,
    },
    /// Other hosts are members now: whoever keeps the connection string writes it down.
    MembersChanged {
        connection_string: String,
    },
    PrimaryChanged {
        host: Option<String>,
    },
}

/// What the monitor does about a host.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Probe {
    /// The one under way.
    running: Option<u64>,
    /// Its answers come by themselves when something changes.
    streams: bool,
    /// Next time to ask, or to measure the distance.
    next: Millis,
    asked: Millis,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Waiter {
    criteria: Criteria,
    deadline: Millis,
    draw: u64,
}

/// Plain data; the shell's lock is around it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Core {
    set: Set,
    probes: BTreeMap<String, Probe>,
    waiting: BTreeMap<Token, Waiter>,
    attempts: u64,
    started: bool,
    told: (String, Option<String>),
}

impl Core {
    pub fn new(set: Set) -> Core {
        let told = (set.connection_string(), None);
        Core { set, probes: BTreeMap::new(), waiting: BTreeMap::new(), attempts: 0, started: false, told }
    }
    pub fn set(&self) -> &Set {
        &self.set
    }
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }
    /// Whether the answers to this probe are waited for.
    pub fn is_asking(&self, host: &str, attempt: u64) -> bool {
        self.probes.get(host).is_some_and(|p| p.running == Some(attempt))
    }
    /// What was connected to a host before this is good for nothing.
    pub fn generation(&self, host: &str) -> u64 {
        self.set.members.get(host).map_or(0, |m| m.generation)
    }
    /// Whom [`Event::Select`] would find at once, and its generation: whoever need not wait changes nothing.
    pub fn selected(&self, criteria: &Criteria, draw: u64) -> Option<(String, u64)> {
        self.set.select(criteria, draw).map(|host| (host.to_owned(), self.generation(host)))
    }
    /// When [`Event::Tick`] is due.
    pub fn next_deadline(&self) -> Option<Millis> {
        let asks = self.probes.values().filter(|p| p.running.is_none() || p.streams).map(|p| p.next);
        asks.chain(self.waiting.values().map(|w| w.deadline)).min()
    }

    pub fn step(&mut self, now: Millis, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Start => self.started = true,
            Event::Heard { host, attempt, hello, round_trip_us, goes_on } => {
                self.heard(now, &host, attempt, &hello, round_trip_us, goes_on);
            }
            Event::Silent { host, attempt } => self.silent(now, &host, attempt),
            Event::Pinged { host, round_trip_us } => {
                if let Some(m) = self.set.members.get_mut(&host).filter(|m| m.kind != MemberKind::Unknown) {
                    m.add_round_trip(round_trip_us);
                }
            }
            Event::Failed { host, error } => self.failed(now, &host, &error, out),
            Event::Select { token, criteria, deadline, draw } => {
                if self.waiting.len() >= limits::MONITOR_WAITERS_MAX {
                    let message = format!(
                        "{} operations wait for a member of set {}",
                        self.waiting.len(),
                        self.set.name
                    );
                    return out.push(Action::NotFound {
                        token,
                        code: ErrorCode::ExceededMemoryLimit,
                        message,
                    });
                }
                self.waiting.insert(token, Waiter { criteria, deadline, draw });
            }
            Event::Cancel { token } => _ = self.waiting.remove(&token),
            Event::Seeds { hosts } if self.set.primary().is_none() => {
                for host in hosts.into_iter().take(limits::MONITOR_HOSTS_MAX) {
                    self.set.members.entry(host.to_lowercase()).or_insert_with(Member::unknown);
                }
            }
            Event::Seeds { .. } | Event::Tick => {}
        }
        self.answer(now, out);
        self.tell(out);
        if self.started {
            self.probe(now, out);
        }
    }

    /// Whether [`Event::Seeds`] with these hosts would change nothing.
    pub fn knows(&self, hosts: &[String]) -> bool {
        self.set.primary().is_some()
            || hosts.iter().all(|host| self.set.members.contains_key(&host.to_lowercase()))
    }

    fn heard(
        &mut self,
        now: Millis,
        host: &str,
        attempt: u64,
        hello: &Hello,
        us: Option<i64>,
        goes_on: bool,
    ) {
        let Some(p) = self.probes.get_mut(host).filter(|p| p.running == Some(attempt)) else { return };
        p.streams = goes_on;
        if !goes_on {
            p.running = None;
            // Whoever can tell of changes by itself is asked to, at once.
            p.next = if hello.topology_version.is_some() { now } else { now + HEARTBEAT_MS };
        }
        self.set.heard(host, hello, now);
        if let (Some(us), Some(m)) = (us, self.set.members.get_mut(host)) {
            m.add_round_trip(us);
        }
    }

    fn silent(&mut self, now: Millis, host: &str, attempt: u64) {
        let Some(p) = self.probes.get_mut(host).filter(|p| p.running == Some(attempt)) else { return };
        let streamed = p.streams;
        *p = Probe { running: None, streams: false, next: now + limits::MONITOR_RETRY_MS, ..*p };
        if streamed {
            // Once more by a plain question before it is given up, as its stream may have ended in peace.
            p.next = now;
            if let Some(m) = self.set.members.get_mut(host) {
                m.topology_version = None;
            }
            return;
        }
        if let Some(m) = self.set.members.get_mut(host) {
            let generation = m.generation + u64::from(m.kind != MemberKind::Unknown);
            m.forget();
            m.generation = generation;
        }
    }

    fn failed(&mut self, now: Millis, host: &str, error: &CallError, out: &mut Vec<Action>) {
        let effect = self.set.failed(host, error);
        if effect.drop_connections {
            let generation = self.set.members.get(host).map_or(0, |m| m.generation);
            out.push(Action::DropConnections { host: host.to_owned(), generation });
        }
        if effect.ask {
            // All of them: another one may lead now.
            for (name, p) in &mut self.probes {
                if name == host || !p.streams {
                    p.next = now;
                }
                if name == host {
                    (p.running, p.streams) = (None, false);
                }
            }
        }
    }

    fn answer(&mut self, now: Millis, out: &mut Vec<Action>) {
        let set = &self.set;
        self.waiting.retain(|token, w| {
            if let Some(host) = set.select(&w.criteria, w.draw) {
                out.push(Action::Selected { token: *token, host: host.to_owned() });
                return false;
            }
            if w.deadline <= now {
                let message = format!(
                    "Could not find host matching read preference {} for set {}",
                    w.criteria.preference, set.name
                );
                out.push(Action::NotFound {
                    token: *token,
                    code: ErrorCode::FailedToSatisfyReadPreference,
                    message,
                });
                return false;
            }
            true
        });
    }

    fn tell(&mut self, out: &mut Vec<Action>) {
        let primary = self.set.primary().map(|(host, _)| host.to_owned());
        if primary != self.told.1 {
            self.told.1.clone_from(&primary);
            out.push(Action::PrimaryChanged { host: primary });
        }
        let connection_string = self.set.connection_string();
        // Members that are only hoped for are nothing to write down.
        if connection_string != self.told.0 && self.set.primary().is_some() {
            self.told.0.clone_from(&connection_string);
            out.push(Action::MembersChanged { connection_string });
        }
    }

    fn probe(&mut self, now: Millis, out: &mut Vec<Action>) {
        let set = &self.set;
        self.probes.retain(|host, _| set.members.contains_key(host));
        let somebody_waits = !self.waiting.is_empty();
        for (host, member) in &set.members {
            let p = self.probes.entry(host.clone()).or_insert(Probe {
                running: None,
                streams: false,
                next: now,
                asked: 0,
            });
            if somebody_waits && p.running.is_none() {
                p.next = p.next.min(p.asked + limits::MONITOR_RETRY_MS);
            }
            if p.next > now {
                continue;
            }
            if p.streams {
                p.next = now + HEARTBEAT_MS;
                out.push(Action::Ping { host: host.clone() });
            } else if p.running.is_none() {
                self.attempts += 1;
                *p = Probe {
                    running: Some(self.attempts),
                    streams: false,
                    next: now + HEARTBEAT_MS,
                    asked: now,
                };
                out.push(Action::Probe { host: host.clone(), attempt: self.attempts, known: known(member) });
            }
        }
    }
}

fn known(m: &Member) -> Option<TopologyVersion> {
    m.topology_version.filter(|_| m.kind != MemberKind::Unknown)
}
