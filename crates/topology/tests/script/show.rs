//! Actions and states in a few words.

use pando_base::OpTime;
use pando_topology::*;

pub fn at(t: OpTime) -> String {
    if t.is_null() {
        return "nothing".to_owned();
    }
    match t.ts.inc() {
        1 => format!("{}:{}", t.t, t.ts.secs()),
        inc => format!("{}:{}.{inc}", t.t, t.ts.secs()),
    }
}

fn error(e: &pando_base::Error) -> String {
    format!("error {} {}", e.code.0, e.message)
}

pub fn core(c: &Core) -> String {
    format!(
        "{} {:?} term {} vote {}:{} primary {} at {} committed {} source {}{}",
        c.state().text(),
        c.mode(),
        c.term(),
        c.last_vote().term,
        c.last_vote().candidate_index,
        c.primary().map_or("none".to_owned(), |id| format!("n{id}")),
        at(c.positions().written.op),
        at(c.commit_point().op),
        c.sync_source().map_or("none", |h| h.trim_end_matches(":1")),
        if c.suspects_primary() { " suspicious" } else { "" },
    )
}

pub fn action(action: &Action, notes: bool) -> Option<String> {
    Some(match action {
        Action::Draw | Action::TopologyVersion(_) | Action::SendHeartbeat { .. } => return None,
        Action::Log(note) if notes => format!("note {note:?}"),
        Action::Log(_) => return None,
        Action::PersistVote { vote, .. } => {
            format!("write vote for n{} in term {}", vote.candidate_index, vote.term)
        }
        Action::PersistConfig { config, note, .. } => format!("write config {} ({note:?})", config.id()),
        Action::SendVoteRequest { to, request, .. } => format!(
            "ask n{} for a {} in term {} at {}",
            to.id,
            if request.dry_run { "promise" } else { "vote" },
            request.term,
            at(request.last_applied)
        ),
        Action::SendPositions { to, update } => {
            let all: Vec<String> = update
                .optimes
                .iter()
                .map(|o| {
                    format!("n{} {}/{}", o.member_id, at(o.positions.written.op), at(o.positions.durable.op))
                })
                .collect();
            format!("positions to {}: {}", to.trim_end_matches(":1"), all.join(", "))
        }
        Action::SendStepUp { to } => format!("step up, n{}", to.id),
        Action::FetchConfig { from, .. } => format!("fetch config from {}", from.trim_end_matches(":1")),
        Action::CheckQuorum { to, .. } => format!("quorum? n{}", to.id),
        Action::LocateSelf { config, .. } => format!("which of config {} am I?", config.id()),
        Action::HeartbeatReply { result, .. } => match result {
            Ok(r) => format!(
                "heartbeat answered: {} term {} at {} config {}{}{}{}",
                r.state.text(),
                r.term,
                at(r.positions.written.op),
                r.config_id,
                if r.config.is_some() { " attached" } else { "" },
                if r.electable { " electable" } else { "" },
                r.lost_primary.map_or_else(String::new, |l| format!(" lost n{}", l.id)),
            ),
            Err(e) => format!("heartbeat answered: {}", error(e)),
        },
        Action::VoteReply { result, .. } => match result {
            Ok(r) if r.granted => format!("vote answered: yes, term {}", r.term),
            Ok(r) => format!("vote answered: no, term {}: {}", r.term, r.reason),
            Err(e) => format!("vote answered: {}", error(e)),
        },
        Action::PositionsReply { result, .. } => match result {
            Ok(()) => "positions taken".to_owned(),
            Err(e) => format!("positions refused: {}", error(e)),
        },
        other => return action_on_self(other),
    })
}

fn action_on_self(action: &Action) -> Option<String> {
    Some(match action {
        Action::State(c) => {
            format!("{} -> {}{}", c.from.text(), c.to.text(), if c.writable { ", writable" } else { "" })
        }
        Action::Config { config, self_index } => {
            format!("config {} in force, I am {self_index:?} of {}", config.id(), config.members.len())
        }
        Action::Term(t) => format!("term {t}"),
        Action::CommitPoint(p) => format!("committed {}", at(p.op)),
        Action::CatchUp { term } => format!("catch up in term {term}"),
        Action::Drain { term } => format!("drain in term {term}"),
        Action::DrainToLeave { .. } => "drain to leave".to_owned(),
        Action::UpToDate(true) => "tenants may be read".to_owned(),
        Action::UpToDate(false) => "tenants wait".to_owned(),
        Action::JoinedRecipientSet => "left for a set of its own".to_owned(),
        Action::BecomeWritable { term } => format!("write the first entry of term {term}"),
        Action::TakeStateLock { .. } => "take the state lock".to_owned(),
        Action::ReleaseStateLock { .. } => "release the state lock".to_owned(),
        Action::SyncSource { choice: SourceChoice::Use(peer), .. } => format!("sync from n{}", peer.id),
        Action::SyncSource { choice: SourceChoice::CopyAgain(WhyCopyAgain::Parted { before }), .. } => {
            format!("copy again: nobody can tell, parted before {}", at(*before))
        }
        Action::SyncSource { choice: SourceChoice::CopyAgain(WhyCopyAgain::TooStale), .. } => {
            "copy again: too stale for everybody".to_owned()
        }
        Action::SyncSource { choice: SourceChoice::None(why), .. } => format!("sync from nobody: {why}"),
        Action::ChangeSyncSource { reason } => format!("change sync source: {reason}"),
        Action::WaitDone { id, result } => match result {
            Ok(()) => format!("wait {id} over"),
            Err(e) => format!("wait {id} failed: {}", error(e)),
        },
        Action::Reply { result, .. } => match result {
            Ok(r) => format!("answer {r:?}"),
            Err(e) => format!("answer {}", error(e)),
        },
        _ => return None,
    })
}
