//! The chosen sync source against an independent reading of the rules, over random sets (R-SYNC-3..7).

use pando_base::{OpTime, Timestamp};
use pando_topology::message::HeartbeatReply;
use pando_topology::*;
use std::sync::Arc;

struct Rng(u64);
impl Rng {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// What the rules look at, of one other member.
#[derive(Debug, Clone)]
struct Other {
    id: i64,
    up: bool,
    state: MemberState,
    secs: u32,
    ping: i64,
    denied: bool,
}

fn config(rng: &mut Rng) -> ReplSetConfig {
    let mut c = ReplSetConfig::single("rs", "n0:1");
    let n = 2 + rng.below(5) as i64;
    c.members = (0..n).map(|i| Member::new(i, &format!("n{i}:1"))).collect();
    c.settings.chaining_allowed = rng.chance(85);
    for m in &mut c.members {
        if rng.chance(15) {
            (m.hidden, m.priority) = (true, 0.0);
        }
        if rng.chance(15) {
            (m.votes, m.priority) = (0, 0.0);
        }
        if rng.chance(15) {
            (m.secondary_delay_secs, m.priority) = (1 + rng.below(20) as i64, 0.0);
        }
        if rng.chance(10) {
            (m.build_indexes, m.priority) = (false, 0.0);
        }
    }
    c
}

fn others(rng: &mut Rng, c: &ReplSetConfig) -> Vec<Other> {
    let primary = if rng.chance(80) { 1 + rng.below(c.members.len() as u64 - 1) as i64 } else { -1 };
    (1..c.members.len() as i64)
        .map(|id| {
            let state = match rng.below(10) {
                _ if id == primary => MemberState::Primary,
                0 => MemberState::Recovering,
                1 => MemberState::Startup2,
                2 => MemberState::Rollback,
                _ => MemberState::Secondary,
            };
            Other {
                id,
                up: id == primary || rng.chance(85),
                state,
                secs: 95 + rng.below(60) as u32,
                ping: rng.below(20) as i64,
                denied: rng.chance(15),
            }
        })
        .collect()
}

/// The rules, read once more.
fn reference(c: &ReplSetConfig, others: &[Other], mine: u32) -> Option<i64> {
    let me = &c.members[0];
    let primary = others.iter().find(|o| o.state == MemberState::Primary);
    let may_follow_primary = primary.filter(|p| !p.denied && p.secs >= mine).map(|p| p.id);
    if !c.settings.chaining_allowed {
        return may_follow_primary;
    }
    let always = |o: &&Other| {
        let m = &c.members[o.id as usize];
        o.up && matches!(o.state, MemberState::Primary | MemberState::Secondary)
            && (m.build_indexes || !me.build_indexes)
            && o.secs > mine
            && !o.denied
    };
    let preferred = |o: &&Other| {
        let m = &c.members[o.id as usize];
        let fresh = primary.is_none_or(|p| o.secs + 30 >= p.secs);
        (m.votes == 1 || me.votes == 0)
            && !m.hidden
            && fresh
            && m.secondary_delay_secs <= me.secondary_delay_secs
    };
    let nearest = |list: Vec<&Other>| {
        let best = list.iter().map(|o| o.ping).min()?;
        let near_primary = list.iter().find(|o| o.state == MemberState::Primary && o.ping - best <= 5);
        near_primary.or_else(|| list.iter().find(|o| o.ping == best)).map(|o| o.id)
    };
    let first = others.iter().filter(always).filter(preferred).collect();
    let second = others.iter().filter(always).collect();
    nearest(first).or_else(|| nearest(second)).or(may_follow_primary)
}

fn choose(c: &Arc<ReplSetConfig>, others: &[Other], mine: u32) -> Option<i64> {
    let at = |secs| Position::new(OpTime::new(Timestamp::new(secs, 1), 1), i64::from(secs) * 1000);
    let mut core = Core::new(Boot {
        set_name: Some("rs".to_owned()),
        config: Some((c.clone(), Some(0))),
        last_vote: message::LastVote::NONE,
        positions: Positions::at(at(mine)),
        params: Params::default(),
        state: MemberState::Secondary,
        promised: pando_base::OpTime::NULL,
    });
    let mut now = 1000;
    let mut out = Actions::new();
    let mut tell = |now: i64, event: Event| {
        out.clear();
        core.step(now, event, &mut out);
        out.clone()
    };
    tell(now, Event::Tick);
    for _ in 0..2 {
        for o in others {
            let asked = tell(now, Event::Fire(Timer::Heartbeat(o.id)));
            let seq = asked.iter().find_map(|a| match a {
                Action::SendHeartbeat { seq, .. } => Some(*seq),
                _ => None,
            });
            now += o.ping;
            let reply = HeartbeatReply {
                set_name: "rs".to_owned(),
                state: o.state,
                config_id: c.id(),
                config: None,
                positions: Positions::at(at(o.secs)),
                term: 1,
                primary_id: -1,
                sync_source: String::new(),
                election_time: Timestamp::ZERO,
                electable: true,
                lost_primary: None,
                committed: Position::NULL,
            };
            let from = o.id;
            tell(now, Event::HeartbeatReplied { from, seq: seq.expect("a heartbeat"), result: Ok(reply) });
        }
    }
    for o in others {
        if o.denied {
            tell(
                now,
                Event::SyncSourceDenied { host: format!("n{}:1", o.id).as_str().into(), for_ms: 60_000 },
            );
        }
        if !o.up {
            // Down since.
            for _ in 0..3 {
                let asked = tell(now, Event::Fire(Timer::Heartbeat(o.id)));
                let seq = asked.iter().find_map(|a| match a {
                    Action::SendHeartbeat { to, seq, .. } if to.id == o.id => Some(*seq),
                    _ => None,
                });
                let result =
                    Err(message::Failure::Answer(pando_base::ErrorCode::Unauthorized, String::new()));
                tell(now, Event::HeartbeatReplied { from: o.id, seq: seq.expect("a heartbeat"), result });
            }
        }
    }
    let event = Event::SyncSourceNeeded { token: 1, last_fetched: at(mine).op, initial_sync: false };
    tell(now, event).into_iter().find_map(|a| match a {
        Action::SyncSource { choice: SourceChoice::Use(peer), .. } => Some(peer.id),
        _ => None,
    })
}

#[test]
fn the_choice_equals_an_independent_reading_of_the_rules() {
    let mut rng = Rng(0x5EED_1234_5678_9ABC);
    let (mut some, mut none) = (0, 0);
    for round in 0..20_000 {
        let c = config(&mut rng);
        if c.voters() < 2 {
            // The only voter leads and copies from nobody.
            continue;
        }
        let others = others(&mut rng, &c);
        let mine = 90 + rng.below(50) as u32;
        let wanted = reference(&c, &others, mine);
        let c = Arc::new(c);
        let got = choose(&c, &others, mine);
        assert_eq!(got, wanted, "round {round}: {others:?} at {mine}\n{}", c.to_doc());
        if got.is_some() { some += 1 } else { none += 1 }
    }
    assert!(some > 1000 && none > 1000, "{some} chose, {none} did not");
}
