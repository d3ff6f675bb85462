//! The monitor of a set, event by event.

#![allow(clippy::unwrap_used)]

use pando_base::ErrorCode;
use pando_bson::{DocBuf, DocBuilder, ObjectId};
use pando_monitor::core::Token;
use pando_monitor::select::Criteria;
use pando_monitor::{Action, CallError, Core, Event, Hello, MemberKind, Mode, ReadPreference, Set, What};
use std::collections::{BTreeMap, BTreeSet};

fn reply(fill: impl FnOnce(&mut DocBuilder)) -> DocBuf {
    let mut d = DocBuilder::new();
    d.i32("ok", 1).i32("minWireVersion", 0).i32("maxWireVersion", 21);
    fill(&mut d);
    d.finish()
}

/// Of member `who` of three; `election` is the primary's.
fn hello(who: &str, primary: bool, election: u8, counter: i64) -> Hello {
    Hello::parse(&reply(|d| {
        d.str("setName", "rs").str("me", who).bool("isWritablePrimary", primary).bool("secondary", !primary);
        d.array("hosts", |a| ["a:1", "b:1", "c:1"].iter().for_each(|h| _ = a.str(h)));
        if primary {
            d.object_id("electionId", ObjectId([election; 12])).i32("setVersion", 1);
        }
        d.doc("topologyVersion", |t| {
            t.object_id("processId", ObjectId([who.as_bytes()[0]; 12])).i64("counter", counter);
        });
    }))
}

struct Rig {
    core: Core,
    now: i64,
    running: BTreeMap<String, u64>,
    done: BTreeMap<Token, Result<String, ErrorCode>>,
    messages: Vec<String>,
    told: Vec<Action>,
}

impl Rig {
    fn new(seeds: &[&str]) -> Rig {
        let core = Core::new(Set::new("rs", seeds.iter().copied()));
        let mut r = Rig {
            core,
            now: 0,
            running: BTreeMap::new(),
            done: BTreeMap::new(),
            messages: vec![],
            told: vec![],
        };
        r.step(Event::Start);
        r
    }
    fn step(&mut self, event: Event) {
        let mut out = Vec::new();
        self.core.step(self.now, event, &mut out);
        let mut asked = BTreeSet::new();
        for action in out {
            match action {
                Action::Probe { host, attempt, .. } => {
                    assert!(asked.insert(host.clone()), "two probes of {host} at once");
                    self.running.insert(host, attempt);
                }
                Action::Ping { .. } => {}
                Action::Selected { token, host } => assert!(self.done.insert(token, Ok(host)).is_none()),
                Action::NotFound { token, code, message } => {
                    assert!(self.done.insert(token, Err(code)).is_none());
                    self.messages.push(message);
                }
                other => self.told.push(other),
            }
        }
    }
    fn hear(&mut self, host: &str, hello: Hello, goes_on: bool) {
        let attempt = self.running[host];
        let round_trip_us = (!goes_on).then_some(500);
        self.step(Event::Heard { host: host.to_owned(), attempt, hello, round_trip_us, goes_on });
    }
    fn silent(&mut self, host: &str) {
        let attempt = self.running[host];
        self.step(Event::Silent { host: host.to_owned(), attempt });
    }
    fn select(&mut self, token: Token, mode: Mode, within: i64) {
        let criteria = Criteria::of(ReadPreference::of(mode));
        self.step(Event::Select { token, criteria, deadline: self.now + within, draw: token });
    }
    fn wait(&mut self, ms: i64) {
        self.now += ms;
        self.step(Event::Tick);
    }
    /// All three are known and stream.
    fn settled() -> Rig {
        let mut r = Rig::new(&["a:1"]);
        r.hear("a:1", hello("a:1", true, 1, 1), false);
        r.hear("b:1", hello("b:1", false, 0, 1), false);
        r.hear("c:1", hello("c:1", false, 0, 1), false);
        for host in ["a:1", "b:1", "c:1"] {
            r.hear(host, hello(host, host == "a:1", 1, 1), true);
        }
        r
    }
}

#[test]
fn one_seed_leads_to_all_members() {
    let mut r = Rig::new(&["b:1"]);
    r.select(1, Mode::Primary, 1000);
    assert!(r.done.is_empty());
    r.hear("b:1", hello("b:1", false, 0, 1), false);
    assert_eq!(r.running.len(), 3, "the others are asked at once");
    assert!(r.done.is_empty());
    r.hear("a:1", hello("a:1", true, 1, 1), false);
    assert_eq!(r.done[&1], Ok("a:1".to_owned()));
    r.select(2, Mode::Secondary, 1000);
    assert_eq!(r.done[&2], Ok("b:1".to_owned()));
    let strings: Vec<_> = r.told.iter().filter(|a| matches!(a, Action::MembersChanged { .. })).collect();
    assert_eq!(strings, [&Action::MembersChanged { connection_string: "rs/a:1,b:1,c:1".to_owned() }]);
}

#[test]
fn nobody_waits_longer_than_agreed() {
    let mut r = Rig::new(&["a:1", "b:1"]);
    r.select(1, Mode::Nearest, 300);
    r.wait(299);
    assert!(r.done.is_empty());
    r.wait(1);
    assert_eq!(r.done[&1], Err(ErrorCode::FailedToSatisfyReadPreference));
    assert_eq!(r.messages, ["Could not find host matching read preference { mode: \"nearest\" } for set rs"]);
}

#[test]
fn who_says_that_it_leads_no_more_is_not_asked_again() {
    let mut r = Rig::settled();
    let before = r.running["a:1"];
    let what = What::Code(ErrorCode::NotWritablePrimary);
    let error = CallError { what, generation: 0, was_connected: true, topology_version: None };
    r.step(Event::Failed { host: "a:1".to_owned(), error });
    assert!(r.running["a:1"] > before, "it is asked at once");
    r.select(1, Mode::Primary, 1000);
    assert!(r.done.is_empty());
    // The new primary's own stream tells.
    r.hear("b:1", hello("b:1", true, 2, 2), true);
    assert_eq!(r.done[&1], Ok("b:1".to_owned()));
    // The old one, late, is not believed.
    r.hear("a:1", hello("a:1", true, 1, 9), false);
    assert_eq!(r.core.set().primary().map(|(h, _)| h), Some("b:1"));
    assert_eq!(r.core.set().members["a:1"].kind, MemberKind::Unknown);
}

#[test]
fn a_stream_that_ends_is_asked_once_more_before_it_is_given_up() {
    let mut r = Rig::settled();
    let before = r.running["a:1"];
    r.silent("a:1");
    assert!(r.running["a:1"] > before);
    assert!(r.core.set().primary().is_some());
    r.silent("a:1");
    assert!(r.core.set().primary().is_none());
    r.select(1, Mode::PrimaryPreferred, 1000);
    assert!(matches!(r.done[&1].as_deref(), Ok("b:1" | "c:1")));
    // Again after a pause while somebody waits, not at once.
    let before = r.running["a:1"];
    r.select(2, Mode::Primary, 10_000);
    assert_eq!(r.running["a:1"], before);
    r.wait(100);
    assert!(r.running["a:1"] > before);
}

#[test]
fn an_answer_to_an_earlier_probe_says_nothing() {
    let mut r = Rig::settled();
    let old = r.running["a:1"];
    r.silent("a:1");
    let late = Event::Heard {
        host: "a:1".to_owned(),
        attempt: old,
        hello: Hello::parse(&reply(|d| _ = d.str("setName", "other"))),
        round_trip_us: None,
        goes_on: false,
    };
    r.step(late);
    assert!(r.core.set().members.contains_key("a:1"));
}

#[test]
fn a_liar_makes_no_crowd_and_a_stranger_is_left() {
    let mut r = Rig::new(&["a:1", "b:1"]);
    let many = Hello::parse(&reply(|d| {
        d.str("setName", "rs").bool("secondary", true);
        d.array("hosts", |a| (0..100_000).for_each(|i| _ = a.str(&format!("h{i}:1"))));
    }));
    r.hear("a:1", many, false);
    assert!(r.core.set().members.len() <= 202);
    r.hear(
        "b:1",
        Hello::parse(&reply(|d| _ = d.str("setName", "stranger").bool("isWritablePrimary", true))),
        false,
    );
    assert!(!r.core.set().members.contains_key("b:1"));
}

#[test]
fn whatever_happens_each_one_who_waits_hears_once() {
    for seed in 1..300u64 {
        let mut x = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut roll = move |n: u64| {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            (x >> 11) % n
        };
        let mut r = Rig::new(&["a:1"]);
        let mut token = 0;
        for step in 0..200 {
            let hosts: Vec<String> = r.running.keys().cloned().collect();
            let host = hosts[roll(hosts.len() as u64) as usize].clone();
            match roll(8) {
                0 => r.silent(&host),
                1..=3 => {
                    let h = hello(&host, roll(3) == 0, roll(5) as u8, step);
                    r.hear(&host, h, roll(2) == 0);
                }
                4 => {
                    let what = [What::Network, What::Timeout, What::Code(ErrorCode::NotWritablePrimary)]
                        [roll(3) as usize];
                    let error = CallError {
                        what,
                        generation: roll(3),
                        was_connected: roll(2) == 0,
                        topology_version: None,
                    };
                    r.step(Event::Failed { host, error });
                }
                5 => {
                    token += 1;
                    r.select(
                        token,
                        [Mode::Primary, Mode::Secondary, Mode::Nearest][roll(3) as usize],
                        roll(500) as i64,
                    );
                }
                _ => r.wait(roll(300) as i64),
            }
            let primaries = r.core.set().members.values().filter(|m| m.kind == MemberKind::Primary).count();
            assert!(primaries <= 1, "{primaries} primaries");
        }
        r.wait(1000);
        assert_eq!(r.done.len() as u64, token);
        assert_eq!(r.core.waiting(), 0);
    }
}

#[test]
fn hosts_that_are_known_change_nothing() {
    let mut r = Rig::new(&["a:1"]);
    let named = |hosts: &[&str]| hosts.iter().map(|h| h.to_string()).collect::<Vec<String>>();
    assert!(r.core.knows(&named(&["A:1"])) && !r.core.knows(&named(&["a:1", "b:1"])));
    r.step(Event::Seeds { hosts: named(&["b:1"]) });
    assert!(r.core.knows(&named(&["a:1", "b:1"])));
}
