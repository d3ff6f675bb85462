//! What must hold after every step. A violation is a bug, and a node with one must not go on.

use crate::core::Core;
use crate::office::LeaderMode;

impl Core {
    pub(crate) fn check(&self) {
        assert!(self.last_vote.term <= self.term.max(0), "a vote was given in a term not yet reached");
        if self.is_leader() {
            // One that a forced configuration leaves out steps down, and is a leader until the state lock is held.
            let has_a_place = self.self_index.is_some() || self.mode == LeaderMode::SteppingDown;
            assert!(self.config.is_some() && has_a_place, "a leader without a place in the set");
            assert!(self.candidacy.is_none(), "a leader that stands for election");
            assert_eq!(self.last_vote.term, self.term, "a leader that did not vote for itself in its term");
        }
        if self.mode == LeaderMode::WritablePrimary {
            let first = self.first_of_term;
            assert!(
                first.is_some_and(|f| f.t == self.term),
                "a writable primary without an entry of its term"
            );
        }
        assert_eq!(
            self.step_down.is_some(),
            matches!(self.mode, LeaderMode::AttemptingStepDown | LeaderMode::SteppingDown),
            "step-down state and mode disagree"
        );
        assert!(self.catch_up.is_none() || self.is_leader(), "a follower that catches up as if elected");
        assert!(
            self.pending_term.is_none() || self.mode == LeaderMode::SteppingDown,
            "a term waits for nothing"
        );
        if let Some(term) = self.pending_term {
            assert!(term > self.term, "an old term waits");
        }
        assert!(self.held_votes.is_empty() || self.pending_term.is_some(), "votes wait for nothing");
        assert!(self.waiters.is_empty() || self.is_leader(), "write concerns wait on a follower");
        for (_, id) in &self.config_waiters {
            assert!(self.is_leader(), "a reconfiguration waits on a follower");
            assert_eq!(*id, self.config_id(), "a reconfiguration waits that is not in force any more");
        }
    }
}
