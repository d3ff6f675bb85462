//! What is believed of another member's terms.
//!
//! A term only grows, and whoever hears of a higher one takes it over, for good. So one message with the largest number
//! there is would end elections for ever: no election could go beyond it. Each place where another member's term comes
//! in is listed here, and goes through one rule ([`pando_base::is_credible_term`]): a message that names a term far
//! above the own is not heard, a question with one is refused.

use crate::action::{Action, Actions, Note};
use crate::core::Core;
use crate::event::Event;
use crate::member::{Position, Positions};
use crate::message::{Failure, HeartbeatReply, VoteReply};
use crate::mutants::{Mutant, broken};
use pando_base::{Error, Term};

fn of_position(p: &Position) -> Term {
    p.op.t
}
fn of_positions(p: &Positions) -> Term {
    p.written.op.t.max(p.applied.op.t).max(p.durable.op.t)
}

fn of_reply(r: &HeartbeatReply) -> Term {
    let attached = r.config.as_ref().and_then(|c| c.as_ref().ok()).map_or(-1, |c| c.term);
    let lost = r.lost_primary.map_or(-1, |l| l.term);
    let named = r.term.max(r.config_id.term).max(attached).max(lost);
    named.max(of_positions(&r.positions)).max(of_position(&r.committed))
}

impl Core {
    fn credible(&self, term: Term) -> bool {
        pando_base::is_credible_term(term, self.term) || broken(Mutant::AnyTermBelieved)
    }

    fn not_believed(&self, term: Term, out: &mut Actions) -> String {
        self.note(Note::TermNotBelieved { term, own: self.term }, out);
        format!("the term {term} is too far above this member's ({})", self.term)
    }

    /// The event as it may be taken; `None` where it has been answered, or is not taken at all.
    pub(crate) fn screen(&self, event: Event, out: &mut Actions) -> Option<Event> {
        let term = match &event {
            Event::Heartbeat { request, .. } => {
                let lost = request.lost_primary.map_or(-1, |l| l.term);
                request.term.max(request.config.term).max(lost)
            }
            Event::HeartbeatReplied { result: Ok(r), .. }
            | Event::ConfigFetched { result: Ok(r), .. }
            | Event::QuorumReplied { result: Ok(r), .. } => of_reply(r),
            Event::VoteRequested { request: r, .. } => r.term.max(r.config.term).max(r.last_applied.t),
            Event::VoteReplied { result: Ok(r), .. } => r.term,
            Event::PositionsReceived { update, .. } => {
                let m = &update.metadata;
                let named = m.term.max(m.config.term).max(of_position(&m.committed));
                update.optimes.iter().map(|o| of_positions(&o.positions)).fold(named, Term::max)
            }
            Event::Fetched { repl, oplog, last_fetched, .. } => {
                let named = repl.term.max(repl.config.term).max(of_position(&repl.committed));
                named.max(of_position(&oplog.committed)).max(oplog.applied.t).max(last_fetched.t)
            }
            _ => return Some(event),
        };
        if self.credible(term) {
            return Some(event);
        }
        let text = self.not_believed(term, out);
        self.without(event, text, out)
    }

    /// What is left of an event whose term is not believed: an answer that failed, or a refusal.
    fn without(&self, event: Event, text: String, out: &mut Actions) -> Option<Event> {
        let failed = || Failure::Other(text.clone());
        match event {
            Event::Heartbeat { token, .. } => {
                out.push(Action::HeartbeatReply { token, result: Err(Error::bad_value(text)) });
                None
            }
            Event::VoteRequested { token, .. } => {
                let reply = VoteReply { term: self.term, granted: false, reason: text };
                out.push(Action::VoteReply { token, result: Ok(reply) });
                None
            }
            Event::PositionsReceived { token, .. } => {
                out.push(Action::PositionsReply { token, result: Err(Error::bad_value(text)) });
                None
            }
            Event::HeartbeatReplied { from, seq, .. } => {
                Some(Event::HeartbeatReplied { from, seq, result: Err(failed()) })
            }
            Event::ConfigFetched { from, .. } => Some(Event::ConfigFetched { from, result: Err(failed()) }),
            Event::QuorumReplied { id, from, .. } => {
                Some(Event::QuorumReplied { id, from, result: Err(failed()) })
            }
            Event::VoteReplied { from, election, .. } => {
                Some(Event::VoteReplied { from, election, result: Err(failed()) })
            }
            _ => None,
        }
    }

    /// A period from now; however long, it ends before time does.
    pub(crate) fn after(&self, ms: pando_base::Millis) -> pando_base::Millis {
        self.now.saturating_add(ms)
    }
}
