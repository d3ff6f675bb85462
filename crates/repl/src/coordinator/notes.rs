//! The protocol's events as log lines.

use pando_env::{Component, Log};
use pando_topology::{Note, StateChange};

pub(crate) fn state(log: &Log, change: &StateChange) {
    if change.from != change.to {
        log.info(Component::Repl, 21358, "Replica set state transition", |a| {
            a.str("newState", change.to.text()).str("oldState", change.from.text());
        });
    }
    if change.writable {
        let text = "Transition to primary complete; database writes are now permitted";
        log.info(Component::Repl, 21331, text, |_| {});
    }
}

pub(crate) fn log(log: &Log, note: &Note) {
    let election = Component::Election;
    match note {
        Note::ElectionStarted { reason, term, dry_run: true } => {
            log.info(election, 21439, "Conducting a dry run election to see if we could be elected", |a| {
                a.i64("currentTerm", *term).str("reason", reason.text());
            });
        }
        Note::ElectionStarted { reason, term, .. } => {
            log.info(election, 21438, "Starting an election", |a| {
                a.i64("newTerm", *term).str("reason", reason.text());
            });
        }
        Note::ElectionLost { term, why } => log.info(election, 21440, "Election lost", |a| {
            a.i64("term", *term).str("reason", why);
        }),
        Note::ElectionWon { term, votes } => {
            log.info(election, 21450, "Election succeeded, assuming primary role", |a| {
                a.i64("term", *term).i64("votes", *votes as i64);
            });
        }
        Note::Voted { term, candidate, granted, dry_run, why } => {
            log.info(election, 5972100, "Responding to vote request", |a| {
                a.i64("term", *term)
                    .i64("candidate", *candidate)
                    .bool("voteGranted", *granted)
                    .bool("dryRun", *dry_run)
                    .str("reason", why);
            });
        }
        Note::SteppingDown { why } => log.info(Component::Repl, 21343, "Stepping down from primary", |a| {
            a.str("reason", why);
        }),
        Note::CaughtUp { to, complete } => {
            log.info(Component::Repl, 21364, "Caught up to the latest optime known via heartbeats", |a| {
                a.show("targetOpTime", to).bool("complete", *complete);
            });
        }
        Note::Takeover { reason, at } => log.info(election, 4615649, "Scheduling a takeover", |a| {
            a.str("reason", reason.text()).i64("when", *at);
        }),
        Note::ManyElections { .. }
        | Note::TermNotBelieved { .. }
        | Note::ConfigRefused { .. }
        | Note::NotElectable { .. } => log_unusual(log, note),
        Note::SplitHeard { .. }
        | Note::SplitForgotten { .. }
        | Note::SetLeft { .. }
        | Note::SplitRefused { .. } => log_split(log, note),
        Note::MemberDown { .. }
        | Note::MemberUp { .. }
        | Note::PrimarySuspected { .. }
        | Note::PrimaryGone { .. }
        | Note::PrimaryAnswers { .. } => log_member(log, note),
    }
}

/// What keeps this member or its set from what they should do.
fn log_unusual(log: &Log, note: &Note) {
    let election = Component::Election;
    match note {
        Note::ManyElections { offices } => {
            let text = "This set has elected a primary again and again within ten minutes; look for what ends its primaries";
            log.warn(election, 9100006, text, |a| {
                a.i64("elections", *offices as i64);
            });
        }
        Note::TermNotBelieved { term, own } => {
            let text = "Another member named a term that cannot be; its message is not taken";
            log.warn(Component::Repl, 9100004, text, |a| {
                a.i64("term", *term).i64("ownTerm", *own);
            });
        }
        Note::ConfigRefused { id, why } => {
            let text =
                "Another member has a newer configuration that is not valid here; the present one stays";
            log.warn(Component::Repl, 9100005, text, |a| {
                a.show("newer", id).str("error", why);
            });
        }
        Note::NotElectable { why } => {
            log.info(election, 4615661, "Not starting an election, since we are not electable", |a| {
                a.str("reason", why);
            });
        }
        _ => {}
    }
}

/// What a configuration that splits the set means for this member.
fn log_split(log: &Log, note: &Note) {
    match note {
        Note::SplitHeard { id, set_name } => {
            let text = "A configuration has this member leave for a set of its own; it waits for a majority of the others to have it";
            log.info(Component::Repl, 9100084, text, |a| {
                a.show("config", id).str("recipientSetName", set_name);
            });
        }
        Note::SplitForgotten { id } => {
            let text =
                "A newer configuration takes the place of the one by which this member would have left";
            log.info(Component::Repl, 9100085, text, |a| {
                a.show("config", id);
            });
        }
        Note::SetLeft { set_name } => {
            let text =
                "This member has left its set for one of its own; nothing of the old set is taken any more";
            log.info(Component::Repl, 9100086, text, |a| {
                a.str("setName", set_name);
            });
        }
        Note::SplitRefused { set_name } => {
            let text = "A configuration has this member leave for another set, but it runs with --replSet and not with --serverless; \
                        it is in no set now";
            log.warn(Component::Repl, 9100087, text, |a| {
                a.str("recipientSetName", set_name);
            });
        }
        _ => {}
    }
}

/// What this member sees of others.
fn log_member(log: &Log, note: &Note) {
    let election = Component::Election;
    match note {
        Note::MemberDown { id, why } => {
            log.info(Component::Repl, 21216, "Member is now in state DOWN", |a| {
                a.i64("memberId", *id).str("heartbeatMessage", why);
            });
        }
        Note::MemberUp { id, state } => log.info(Component::Repl, 21215, "Member is in new state", |a| {
            a.i64("memberId", *id).str("newState", state.text());
        }),
        Note::PrimarySuspected { id } => {
            log.info(election, 9100001, "The connection to the primary broke; asking it once more", |a| {
                a.i64("memberId", *id);
            });
        }
        Note::PrimaryGone { id, claims } => {
            log.info(election, 9100002, "A majority finds the primary refusing connections", |a| {
                a.i64("memberId", *id).i64("members", *claims as i64);
            });
        }
        Note::PrimaryAnswers { id } => {
            log.info(election, 9100003, "The primary answers; it is not suspected any more", |a| {
                a.i64("memberId", *id);
            });
        }
        _ => {}
    }
}
