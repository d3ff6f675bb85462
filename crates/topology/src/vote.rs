//! Being asked for a vote (R-ELEC-7..9). One vote per term, ever: it is on disk before the candidate hears of it.

use crate::action::{Action, Actions, Note};
use crate::core::{Core, Pending};
pub use crate::election_record::VoteRecord;
use crate::event::Token;
use crate::message::{LastVote, VoteReply, VoteRequest};
use crate::mutants::{Mutant, broken};
use pando_base::mutants::{Mutant as Planted, broken as planted};
use pando_base::{Error, ErrorCode};

impl Core {
    pub(crate) fn on_vote_requested(&mut self, token: Token, request: VoteRequest, out: &mut Actions) {
        if self.config.is_none() {
            let text = "no replset config has been received";
            out.push(Action::VoteReply {
                token,
                result: Err(Error::new(ErrorCode::NotYetInitialized, text)),
            });
            return;
        }
        if self.self_index.is_none() {
            let text = "our replica set configuration is invalid or does not include us";
            let e = Error::new(ErrorCode::InvalidReplicaSetConfig, text);
            out.push(Action::VoteReply { token, result: Err(e) });
            return;
        }
        // Whoever has left for a set of its own may still ask one that has not: its terms are none of this set's.
        if request.set_name == self.set_name || broken(Mutant::TakeFromOtherSet) {
            self.see_term(request.term, out);
        }
        // A primary answers once it is none any more.
        if self.pending_term.is_some() {
            self.held_votes.push((token, request));
            return;
        }
        self.answer_vote(token, &request, out);
    }

    pub(crate) fn answer_held_votes(&mut self, out: &mut Actions) {
        for (token, request) in std::mem::take(&mut self.held_votes) {
            self.answer_vote(token, &request, out);
        }
    }

    fn answer_vote(&mut self, token: Token, request: &VoteRequest, out: &mut Actions) {
        let refusal = self.refuse_vote(request);
        let reply = VoteReply {
            term: self.term,
            granted: refusal.is_none(),
            reason: refusal.clone().unwrap_or_default(),
        };
        let note = Note::Voted {
            term: request.term,
            candidate: request.candidate_index as i64,
            granted: reply.granted,
            dry_run: request.dry_run,
            why: reply.reason.clone(),
        };
        self.note(note, out);
        if reply.granted {
            self.yield_fast_election();
            self.end_gathering();
        }
        if !request.dry_run {
            self.record_vote(request, &reply);
        }
        if !reply.granted || request.dry_run || broken(Mutant::VoteBeforeDurable) {
            if reply.granted && !request.dry_run {
                // Only a mutant comes here: remembered, not yet written.
                self.last_vote =
                    LastVote { term: request.term, candidate_index: request.candidate_index as i64 };
            }
            out.push(Action::VoteReply { token, result: Ok(reply) });
            return;
        }
        self.last_vote = LastVote { term: request.term, candidate_index: request.candidate_index as i64 };
        if let Some(lost) = request.lost_primary {
            self.saw_fast_election(lost);
        }
        // Granting a vote is as good as seeing a primary (R-ELEC-2).
        self.schedule_election();
        let id = self.persist(Pending::Vote { token, reply });
        out.push(Action::PersistVote { id, vote: self.last_vote });
    }

    fn record_vote(&mut self, request: &VoteRequest, reply: &VoteReply) {
        let candidate = self.config.as_ref().and_then(|c| c.members.get(request.candidate_index));
        self.participant = Some(VoteRecord {
            granted: reply.granted,
            term: request.term,
            date: self.now,
            candidate: candidate.map_or(-1, |m| m.id),
            reason: reply.reason.clone(),
            last_applied: self.me.applied.op,
            newest_in_set: self.newest_known(),
            new_term: None,
        });
    }

    /// The first entry of the term that was voted on has arrived.
    pub(crate) fn see_first_entry(&mut self) {
        let (now, applied) = (self.now, self.me.applied);
        if let Some(v) = self.participant.as_mut().filter(|v| v.new_term.is_none() && v.term == applied.op.t)
        {
            v.new_term = Some((applied.wall, now));
        }
    }

    /// The reasons against, in MongoDB's order.
    fn refuse_vote(&self, request: &VoteRequest) -> Option<String> {
        let mine = self.config_id();
        if request.config.is_older_than(mine) && !broken(Mutant::VoteForOldConfig) {
            return Some(format!(
                "candidate's config with {{version: {}, term: {}}} is older than mine with {{version: {}, term: {}}}",
                request.config.version, request.config.term, mine.version, mine.term
            ));
        }
        if request.term < self.term && !broken(Mutant::VoteForOldTerm) {
            return Some(format!("candidate's term ({}) is lower than mine ({})", request.term, self.term));
        }
        if request.set_name != self.set_name {
            return Some(format!(
                "candidate's set name ({}) differs from mine ({})",
                request.set_name, self.set_name
            ));
        }
        let held = if planted(Planted::VoteComparesApplied) { self.me.applied } else { self.me.written };
        let mine = held.op.max(self.promised);
        if request.last_applied < mine && !broken(Mutant::VoteForStaleData) {
            return Some(format!(
                "candidate's data is staler than mine. candidate's last applied OpTime: {}, my last applied OpTime: {}",
                text(request.last_applied),
                text(mine)
            ));
        }
        if !request.dry_run && self.last_vote.term >= request.term && !broken(Mutant::VoteTwice) {
            let voted = usize::try_from(self.last_vote.candidate_index).ok();
            let host =
                voted.and_then(|i| self.config.as_ref()?.members.get(i)).map_or("", |m| m.host.as_str());
            return Some(format!(
                "already voted for another candidate ({host}) this term ({})",
                self.last_vote.term
            ));
        }
        if request.dry_run
            && let Some(why) = request.lost_primary.and_then(|lost| self.refuse_fast_vote(lost))
        {
            return Some(why);
        }
        self.arbiter_refuses(request)
    }

    /// An arbiter that sees two members which do not see each other would make them take turns.
    fn arbiter_refuses(&self, request: &VoteRequest) -> Option<String> {
        if !self.is_arbiter()
            || request.config != self.config_id()
            || broken(Mutant::ArbiterVotesAgainstPrimary)
        {
            return None;
        }
        let candidate = self.config.as_ref()?.members.get(request.candidate_index)?;
        let primary = self.config_member(self.primary?)?;
        if primary.id == candidate.id || primary.priority < candidate.priority {
            return None;
        }
        Some(format!("can see a healthy primary ({}) of equal or greater priority", primary.host))
    }

    pub(crate) fn on_vote_durable(&mut self, token: Token, reply: VoteReply, ok: bool, out: &mut Actions) {
        let result = if ok {
            Ok(reply)
        } else {
            Err(Error::new(ErrorCode::InternalError, "the vote could not be written to disk"))
        };
        out.push(Action::VoteReply { token, result });
    }
}

fn text(t: pando_base::OpTime) -> String {
    format!("{{ ts: {}, t: {} }}", t.ts, t.t)
}
