//! What must hold at every moment, whatever breaks: one rule, one file.
//!
//! The rules look at all members from outside ([`super::look`]); what they remember of the past is their own. What clients
//! were promised is checked by the users themselves ([`super::users`]).

mod changes_wait_for_commits;
mod claims_are_in_the_log;
mod commit_point_is_on_a_majority;
mod commit_point_never_moves_back;
mod committed_entries_stay;
mod configs_only_get_newer;
mod invariant;
mod leaders_hold_what_is_committed;
mod leaders_only_append;
mod logs_match;
mod one_leader_a_term;
mod one_vote_a_term;
mod op_times_grow;
mod own_commit_point_bounds_rollback;
mod primaries_commit_their_own_term;
mod promises_are_kept;
mod synced_entries_survive;
mod terms_never_go_back;
mod timestamps_are_in_order;
mod votes_are_kept;

pub(crate) use invariant::{Invariant, Problems};

use super::users::concerns::Promises;
use std::sync::{Arc, Mutex};

pub(crate) fn all(promises: &Arc<Mutex<Promises>>) -> Vec<Box<dyn Invariant>> {
    vec![
        Box::new(one_leader_a_term::Rule::default()),
        Box::new(one_vote_a_term::Rule::default()),
        Box::new(terms_never_go_back::Rule::default()),
        Box::new(logs_match::Rule::default()),
        Box::new(op_times_grow::Rule),
        Box::new(leaders_only_append::Rule),
        Box::new(leaders_hold_what_is_committed::Rule::default()),
        Box::<committed_entries_stay::Rule>::default(),
        Box::new(own_commit_point_bounds_rollback::Rule),
        Box::new(commit_point_never_moves_back::Rule),
        Box::new(commit_point_is_on_a_majority::Rule::default()),
        Box::new(changes_wait_for_commits::Rule::default()),
        Box::new(claims_are_in_the_log::Rule),
        Box::new(primaries_commit_their_own_term::Rule),
        Box::new(synced_entries_survive::Rule::default()),
        Box::new(timestamps_are_in_order::Rule::default()),
        Box::new(configs_only_get_newer::Rule::default()),
        Box::new(votes_are_kept::Rule::default()),
        Box::new(promises_are_kept::Rule::new(promises.clone())),
    ]
}
