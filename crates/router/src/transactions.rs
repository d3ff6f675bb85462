//! Transactions as a router knows them: which shards take part, and how they end (T-RTR).
//!
//! ```text
//!   first statement at a shard: startTransaction ─► participant ─► statements … ─► commit: of one, or by the first of several
//! ```
//! A shard that is asked for the first time begins its part; the first of all coordinates the end where several have written.

use crate::lock;
use pando_base::session_id::SessionId;
use pando_base::{Error, ErrorCode, HashMap, Result, Timestamp};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};
use pando_routing::ShardId;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A shard that takes part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Participant {
    pub(crate) shard: ShardId,
    /// With which statement it began.
    since: u32,
    /// What it says of itself; nothing until it has answered.
    pub(crate) read_only: Option<bool>,
}

/// How far a transaction is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    Open,
    Committing,
    Aborted,
}

struct State {
    phase: Phase,
    statement: u32,
    participants: Vec<Participant>,
    /// The first that has written: it can tell another router what became of the transaction.
    recovery: Option<ShardId>,
    /// What all parts read by.
    read_concern: Option<DocBuf>,
    used: Duration,
}

/// One transaction of one session.
pub(crate) struct Transaction {
    pub(crate) number: i64,
    state: Mutex<State>,
}

/// What a statement says to a shard of its transaction.
pub(crate) struct Part {
    pub(crate) starts: bool,
    pub(crate) coordinates: bool,
    pub(crate) read_concern: Option<DocBuf>,
}

/// How several participants commit.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Commit {
    /// Nobody took part.
    Nobody,
    /// Each by itself, in this order: at most one of them, the last, has written.
    Each(Vec<ShardId>),
    /// The first coordinates all.
    Together { coordinator: ShardId, all: Vec<ShardId> },
}

impl Transaction {
    fn new(number: i64, read_concern: Option<DocBuf>, used: Duration) -> Transaction {
        let state = State {
            phase: Phase::Open,
            statement: 1,
            participants: Vec::new(),
            recovery: None,
            read_concern,
            used,
        };
        Transaction { number, state: Mutex::new(state) }
    }
    /// A statement goes to a shard.
    pub(crate) fn join(&self, shard: &ShardId) -> Part {
        let mut s = lock(&self.state);
        if s.participants.iter().any(|p| p.shard == *shard) {
            return Part { starts: false, coordinates: false, read_concern: None };
        }
        let coordinates = s.participants.is_empty();
        let since = s.statement;
        s.participants.push(Participant { shard: shard.clone(), since, read_only: None });
        Part { starts: true, coordinates, read_concern: s.read_concern.clone() }
    }
    /// A shard has answered a statement.
    pub(crate) fn heard(&self, shard: &ShardId, reply: &RawDoc) {
        let Some(read_only) = reply.get("readOnly").and_then(|v| v.as_bool()) else { return };
        let mut s = lock(&self.state);
        if let Some(p) = s.participants.iter_mut().find(|p| p.shard == *shard) {
            p.read_only = Some(read_only && p.read_only != Some(false));
            if !read_only {
                s.recovery.get_or_insert_with(|| shard.clone());
            }
        }
    }
    /// Who can be asked what became of it, once something was written.
    pub(crate) fn recovery_shard(&self) -> Option<ShardId> {
        lock(&self.state).recovery.clone()
    }
    /// Takes the statement back that all participants began with; they have to be told to abort. Nothing where some took part
    /// in earlier ones: what those have read holds.
    pub(crate) fn begin_anew(&self) -> Option<Vec<ShardId>> {
        let mut s = lock(&self.state);
        let first = s.statement;
        match s.participants.iter().all(|p| p.since == first) {
            true => {
                s.recovery = None;
                Some(std::mem::take(&mut s.participants).into_iter().map(|p| p.shard).collect())
            }
            false => None,
        }
    }
    /// From now on it can only be committed.
    pub(crate) fn commit(&self) -> Result<Commit> {
        let mut s = lock(&self.state);
        if s.phase == Phase::Aborted {
            return Err(gone(self.number));
        }
        s.phase = Phase::Committing;
        let (reads, writes): (Vec<_>, Vec<_>) =
            s.participants.iter().cloned().partition(|p| p.read_only == Some(true));
        let names = |list: Vec<Participant>| list.into_iter().map(|p| p.shard);
        Ok(match (s.participants.first(), writes.len()) {
            (None, _) => Commit::Nobody,
            (Some(_), 0 | 1) => Commit::Each(names(reads).chain(names(writes)).collect()),
            (Some(first), _) => Commit::Together {
                coordinator: first.shard.clone(),
                all: s.participants.iter().map(|p| p.shard.clone()).collect(),
            },
        })
    }
    /// Whom to tell that it is over.
    pub(crate) fn abort(&self) -> Vec<ShardId> {
        let mut s = lock(&self.state);
        s.phase = Phase::Aborted;
        s.participants.iter().map(|p| p.shard.clone()).collect()
    }
    pub(crate) fn phase(&self) -> Phase {
        lock(&self.state).phase
    }
}

/// 251: nobody has begun it here.
pub(crate) fn unknown(number: i64) -> Error {
    let text = format!("cannot continue txnId -1 for session with txnId {number}");
    Error::new(ErrorCode::NoSuchTransaction, text)
}

pub(crate) fn gone(number: i64) -> Error {
    let text = format!("Transaction {number} has been aborted.");
    Error::new(ErrorCode::NoSuchTransaction, text)
}

/// Of all sessions, the newest one each.
#[derive(Default)]
pub(crate) struct Transactions(Mutex<HashMap<SessionId, Arc<Transaction>>>);

impl Transactions {
    /// A first statement.
    pub(crate) fn begin(
        &self,
        lsid: SessionId,
        number: i64,
        read_concern: Option<DocBuf>,
        now: Duration,
    ) -> Result<Arc<Transaction>> {
        let mut all = lock(&self.0);
        match all.get(&lsid) {
            Some(known) if known.number > number => return Err(too_old(number, known.number)),
            Some(known) if known.number == number && known.phase() != Phase::Aborted => {
                let text = format!("txnNumber {number} for session has already started");
                return Err(Error::new(ErrorCode::ConflictingOperationInProgress, text));
            }
            _ => {}
        }
        let new = Arc::new(Transaction::new(number, read_concern, now));
        all.insert(lsid, new.clone());
        Ok(new)
    }
    /// A later statement, or the end.
    pub(crate) fn go_on(&self, lsid: &SessionId, number: i64, now: Duration) -> Result<Arc<Transaction>> {
        let known = lock(&self.0).get(lsid).cloned();
        match known {
            Some(known) if known.number == number => {
                let mut s = lock(&known.state);
                s.statement += 1;
                s.used = now;
                drop(s);
                Ok(known)
            }
            Some(known) if known.number > number => Err(too_old(number, known.number)),
            _ => Err(unknown(number)),
        }
    }
    /// Those that nobody has used for so long are forgotten.
    pub(crate) fn reap(&self, now: Duration, idle: Duration) {
        lock(&self.0).retain(|_, t| now.saturating_sub(lock(&t.state).used) < idle);
    }
}

fn too_old(number: i64, known: i64) -> Error {
    let text =
        format!("Cannot start transaction {number} because a newer transaction {known} has already started.");
    Error::new(ErrorCode::TransactionTooOld, text)
}

/// What all parts read by: of one moment, where a snapshot is asked for and nobody says which. It is not before what the client has
/// seen, of which this router need not have heard.
pub(crate) fn read_concern_of(given: Option<&RawDoc>, now: Timestamp) -> Option<DocBuf> {
    let given = given?;
    let time = |name: &str| match given.get(name) {
        Some(Value::Timestamp(at)) => Some(at),
        _ => None,
    };
    let at = time("afterClusterTime").map_or(now, |seen| seen.max(now));
    let snapshot = given.get("level").is_some_and(|v| v.as_str() == Some("snapshot"));
    if !snapshot || given.get("atClusterTime").is_some() || at.is_zero() {
        return Some(given.to_buf());
    }
    let mut b = DocBuilder::new();
    given.iter().filter(|e| e.name() != "afterClusterTime").for_each(|e| _ = b.elem(e));
    b.timestamp("atClusterTime", at);
    Some(b.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_metadata_cache::testing::doc;

    const NOW: Duration = Duration::ZERO;
    fn shard(name: &str) -> ShardId {
        ShardId::new(name)
    }
    fn answered(t: &Transaction, name: &str, read_only: bool) {
        t.join(&shard(name));
        t.heard(&shard(name), &doc(&format!(r#"{{"readOnly": {read_only}}}"#)));
    }

    #[test]
    fn a_snapshot_is_not_before_what_the_client_has_seen() {
        let given = doc(r#"{"level": "snapshot", "afterClusterTime": {"$timestamp": {"t": 9, "i": 3}}}"#);
        let at = |now: Timestamp| {
            let reads = read_concern_of(Some(&given), now).unwrap();
            assert!(reads.get("afterClusterTime").is_none());
            match reads.get("atClusterTime") {
                Some(Value::Timestamp(at)) => at,
                other => panic!("{other:?}"),
            }
        };
        let seen = Timestamp::new(9, 3);
        assert_eq!(at(Timestamp::new(8, 7)), seen);
        assert_eq!(at(Timestamp::ZERO), seen);
        assert_eq!(at(Timestamp::new(12, 1)), Timestamp::new(12, 1));
    }

    #[test]
    fn each_shard_begins_once_and_the_first_coordinates() {
        let t = Transaction::new(1, None, NOW);
        let of = |name: &str| {
            let part = t.join(&shard(name));
            (part.starts, part.coordinates)
        };
        assert_eq!([of("a"), of("b"), of("a")], [(true, true), (true, false), (false, false)]);
    }

    #[test]
    fn one_writer_commits_last_and_several_together() {
        let t = Transaction::new(1, None, NOW);
        assert_eq!(t.commit().unwrap(), Commit::Nobody);
        answered(&t, "a", false);
        answered(&t, "b", true);
        assert_eq!(t.commit().unwrap(), Commit::Each(vec![shard("b"), shard("a")]));
        answered(&t, "b", false);
        let all = vec![shard("a"), shard("b")];
        assert_eq!(t.commit().unwrap(), Commit::Together { coordinator: shard("a"), all });
        t.abort();
        assert_eq!(t.commit().unwrap_err().code, ErrorCode::NoSuchTransaction);
    }

    #[test]
    fn the_first_shard_that_has_written_can_tell_of_it() {
        let t = Transaction::new(1, None, NOW);
        answered(&t, "a", true);
        assert_eq!(t.recovery_shard(), None);
        answered(&t, "b", false);
        answered(&t, "a", false);
        assert_eq!(t.recovery_shard(), Some(shard("b")));
    }

    #[test]
    fn a_statement_can_be_taken_back_while_it_is_the_first() {
        let all = Transactions::default();
        let lsid = SessionId::of([1; 16]);
        let t = all.begin(lsid, 5, None, NOW).unwrap();
        t.join(&shard("a"));
        assert_eq!(t.begin_anew(), Some(vec![shard("a")]));
        t.join(&shard("b"));
        let t = all.go_on(&lsid, 5, NOW).unwrap();
        assert_eq!(t.begin_anew(), None);
        assert_eq!(all.go_on(&lsid, 4, NOW).map(|_| ()).unwrap_err().code, ErrorCode::TransactionTooOld);
        assert_eq!(all.go_on(&lsid, 6, NOW).map(|_| ()).unwrap_err().code, ErrorCode::NoSuchTransaction);
        assert!(all.begin(lsid, 5, None, NOW).is_err() && all.begin(lsid, 6, None, NOW).is_ok());
    }
}
