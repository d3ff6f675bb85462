//! What must never happen, watched from outside (spec of invariants: election safety, no committed entry lost, one
//! vote per term, monotonic terms and commit points, acknowledged means on a majority's disks).

use super::node::Node;
use pando_base::{OpTime, Term};
use pando_topology::message::{VoteReply, VoteRequest};
use pando_topology::{LeaderMode, MemberState};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
pub struct Checker {
    /// Who led in each term.
    pub leaders: BTreeMap<Term, usize>,
    /// Of each set.
    committed: BTreeMap<String, BTreeSet<(Term, u64)>>,
    votes: BTreeMap<(usize, Term), usize>,
    asked: BTreeMap<(usize, u64), (bool, Term, usize)>,
    terms: BTreeMap<(usize, u64), Term>,
    commit_points: BTreeMap<(usize, u64, String), OpTime>,
    pub acknowledged: Vec<OpTime>,
    pub roll_backs: u64,
}

fn key(t: OpTime) -> (Term, u64) {
    (t.t, t.ts.0)
}

impl Checker {
    /// By the set that a node is in now: what one that left it commits is its own.
    fn committed_in(&self, n: &Node) -> BTreeSet<(Term, u64)> {
        let set = n.core.as_ref().map_or("", |c| c.set_name());
        self.committed.get(set).cloned().unwrap_or_default()
    }
    pub fn observe(&mut self, nodes: &[Node], i: usize) {
        let n = &nodes[i];
        let Some(core) = &n.core else { return };
        let id = (i, n.life);
        let before = self.terms.insert(id, core.term());
        assert!(before.is_none_or(|t| t <= core.term()), "n{i}: its term went back");
        if core.state() == MemberState::Primary && core.mode() != LeaderMode::SteppingDown {
            let first = *self.leaders.entry(core.term()).or_insert(i);
            assert_eq!(first, i, "two leaders in term {}", core.term());
        }
    }
    pub fn on_vote_asked(&mut self, i: usize, token: u64, request: &VoteRequest) {
        self.asked.insert((i, token), (request.dry_run, request.term, request.candidate_index));
    }
    pub fn on_vote_told(&mut self, nodes: &[Node], i: usize, token: u64, reply: &VoteReply) {
        let Some((dry_run, term, candidate)) = self.asked.remove(&(i, token)) else { return };
        if dry_run || !reply.granted {
            return;
        }
        let first = *self.votes.entry((i, term)).or_insert(candidate);
        assert_eq!(first, candidate, "n{i} voted twice in term {term}");
        assert!(nodes[i].disk_vote.term >= term, "n{i} told a vote that its disk does not know");
    }
    /// A new primary has every committed entry.
    pub fn on_first_entry(&mut self, nodes: &[Node], i: usize, term: Term) {
        let log: BTreeSet<(Term, u64)> = nodes[i].log.iter().map(|e| key(e.at)).collect();
        for c in &self.committed_in(&nodes[i]) {
            assert!(
                c.0 >= term || log.contains(c),
                "n{i}, primary of term {term}, lacks the committed entry {c:?}"
            );
        }
    }
    pub fn on_commit_point(&mut self, nodes: &[Node], i: usize, at: OpTime) {
        let n = &nodes[i];
        let Some(core) = &n.core else { return };
        let set = core.set_name().to_owned();
        let before = self.commit_points.insert((i, n.life, set.clone()), at);
        assert!(before.is_none_or(|b| b <= at), "n{i}: its commit point went back");
        // One that still catches up learns from others.
        if !core.is_leader() || core.first_of_term().is_none() {
            return;
        }
        assert_eq!(at.t, core.term(), "n{i} committed through an entry of another term");
        // What a primary says is committed is on the disks of a majority, whoever crashes now.
        let config = core.config().expect("a configuration");
        let held = config
            .members
            .iter()
            .filter(|m| m.is_voter())
            .filter(|m| {
                let d = &nodes[super::index_of(&m.host)];
                d.log[..d.durable.min(d.log.len())].iter().any(|e| e.at == at)
            })
            .count();
        assert!(held >= config.write_majority(), "n{i} committed {at:?}, which {held} disks hold");
        for e in n.log.iter().filter(|e| e.at <= at) {
            self.committed.entry(set.clone()).or_default().insert(key(e.at));
        }
    }
    pub fn on_acknowledged(&mut self, nodes: &[Node], i: usize, wait: u64) {
        if let Some(at) = nodes[i].waits.get(&wait) {
            assert!(
                self.committed_in(&nodes[i]).contains(&key(*at)),
                "n{i} acknowledged {at:?} before it was committed"
            );
            self.acknowledged.push(*at);
        }
    }
    pub fn on_roll_back(&mut self, nodes: &[Node], i: usize, keep: usize) {
        self.roll_backs += 1;
        for e in &nodes[i].log[keep..] {
            assert!(
                !self.committed_in(&nodes[i]).contains(&key(e.at)),
                "n{i} rolls back the committed entry {:?}",
                e.at
            );
        }
    }
    /// At the end, with everyone back and quiet.
    pub fn final_state(&self, nodes: &[Node], data: &[usize]) {
        for i in data {
            let log: Vec<OpTime> = nodes[*i].log.iter().map(|e| e.at).collect();
            assert!(
                log.windows(2).all(|w| w[0].ts < w[1].ts && w[0].t <= w[1].t),
                "n{i}: its log is not in order"
            );
            for at in &self.acknowledged {
                assert!(log.contains(at), "n{i} lost the acknowledged write {at:?}");
            }
        }
    }
}
