//! What sessions have done, as documents: for the disk, so that a start need not read it from the log again, and for
//! members that copy this one.
//!
//! A session that an operation uses at that moment is kept as it was before, and what is kept counts only up to the
//! entry before which that was all: later ones are read from the log.

use super::{Done, Image, Kind, Record, Retryable, Slot, Statements};
use crate::transaction::{DurableState, State};
use pando_base::session_id::{Child, NO_USER_DIGEST};
use pando_base::{OpTime, SessionId, limits};
use pando_bson::{ArrayBuilder, Bson, DocBuf, DocBuilder, RawDoc, Value};
use pando_oplog::entry::ImageKind;
use std::sync::Arc;
use std::time::Duration;

/// What a session has done, as of some moment; cheap to take.
#[derive(Clone, Debug)]
pub(super) struct Settled {
    number: i64,
    outcome: Option<DurableState>,
    last_op: OpTime,
    incomplete: bool,
    done: Arc<Statements>,
}

/// Tells whether a session has changed since it was kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mark {
    number: i64,
    outcome: Option<DurableState>,
    last_op: OpTime,
    incomplete: bool,
}

/// The table as of some moment.
pub struct SessionsSnapshot {
    /// All entries up to this one are accounted for.
    pub upto: OpTime,
    sessions: Vec<(SessionId, Settled)>,
}

impl SessionsSnapshot {
    /// The newest entry that it tells anything of; sessions may have gone on while they were looked at.
    pub fn newest(&self) -> OpTime {
        self.sessions.iter().map(|(_, s)| s.last_op).max().unwrap_or(self.upto).max(self.upto)
    }
    /// Every session with something in the log.
    pub fn marks(&self) -> impl Iterator<Item = (SessionId, Mark)> {
        self.sessions.iter().map(|(id, s)| (*id, s.mark()))
    }
    /// Sessions whose newest number is of retryable writes: the number, where the newest entry of its chain is, and whether more was
    /// carried out than is known.
    pub fn retryable_writes(&self) -> impl Iterator<Item = (SessionId, i64, OpTime, bool)> {
        let of_writes = self.sessions.iter().filter(|(_, s)| s.outcome.is_none());
        of_writes.map(|(id, s)| (*id, s.number, s.last_op, s.incomplete))
    }
    /// Sessions whose newest number is of a transaction that has committed: the number, and where its last entry is.
    pub fn committed(&self) -> impl Iterator<Item = (SessionId, i64, OpTime)> {
        let committed = self.sessions.iter().filter(|(_, s)| s.outcome == Some(DurableState::Committed));
        committed.map(|(id, s)| (*id, s.number, s.last_op))
    }
    /// As documents, made one by one. `image_bytes` counts documents that only retried findAndModify commands need; those
    /// beyond the bound are left out.
    pub fn documents<'a>(
        &'a self,
        wanted: impl Fn(&SessionId) -> bool + 'a,
        image_bytes: &'a mut usize,
    ) -> impl Iterator<Item = (SessionId, DocBuf)> + 'a {
        let sessions = self.sessions.iter().filter(move |(id, _)| wanted(id));
        sessions.map(|(id, s)| (*id, s.document(*id, image_bytes)))
    }
}

impl Record {
    pub(super) fn settled(&self) -> Settled {
        let outcome = match self.machine.state() {
            State::None | State::RetryableWrite => None,
            State::InProgress | State::CommittingUnprepared => Some(DurableState::Partial),
            State::Prepared | State::CommittingPrepared => Some(DurableState::Prepared),
            State::Committed => Some(DurableState::Committed),
            State::AbortedUnprepared | State::AbortedPrepared => Some(DurableState::Aborted),
        };
        Settled {
            number: self.machine.number(),
            outcome,
            last_op: self.last_op,
            incomplete: self.incomplete,
            done: self.done.clone(),
        }
    }
    /// Up to which entry this is known to be all; `None` = up to now.
    fn certain_upto(&self) -> Option<OpTime> {
        let deciding =
            matches!(self.machine.state(), State::CommittingUnprepared | State::CommittingPrepared);
        deciding.then_some(self.since)
    }
}

impl Settled {
    fn mark(&self) -> Mark {
        Mark {
            number: self.number,
            outcome: self.outcome,
            last_op: self.last_op,
            incomplete: self.incomplete,
        }
    }
}

impl Retryable {
    /// What is known now. All entries up to `upto` have been carried out, or noted, here.
    pub fn collect(&self, upto: OpTime) -> SessionsSnapshot {
        let mut table = self.lock();
        table.known = table.known.max(upto);
        let mut kept = SessionsSnapshot { upto, sessions: Vec::with_capacity(table.slots.len()) };
        for (id, slot) in &table.slots {
            let (settled, certain) = match slot {
                Slot::Idle(record) => (record.settled(), record.certain_upto()),
                Slot::Lent { before, since, .. } => (before.clone(), Some(*since)),
            };
            kept.upto = certain.map_or(kept.upto, |certain| kept.upto.min(certain));
            // Nothing of it is in the log: nothing to keep.
            if !settled.last_op.is_null() {
                kept.sessions.push((*id, settled));
            }
        }
        kept
    }
    /// All entries up to `upto` have been carried out, or noted, here: sessions that are lent from now on know theirs.
    pub fn note_known(&self, upto: OpTime) {
        let mut table = self.lock();
        table.known = table.known.max(upto);
    }

    /// Takes a document of [`Kept`] back, after all entries of the log that came after `upto`: what it says of those may
    /// have been rolled back since.
    pub fn restore_record(&self, doc: &RawDoc, upto: OpTime, now: Duration) -> Option<()> {
        let Value::Binary { bytes, .. } = doc.get("session")? else { return None };
        let uid = match doc.get("uid") {
            Some(Value::Binary { bytes, .. }) => bytes.try_into().ok()?,
            _ => NO_USER_DIGEST,
        };
        let child = match doc.get("txnUUID") {
            Some(Value::Binary { bytes, .. }) => {
                let txn_number = doc.get("parentTxnNumber").and_then(|v| v.as_i64());
                Some(Child { uuid: bytes.try_into().ok()?, txn_number })
            }
            _ => None,
        };
        let id = SessionId { id: bytes.try_into().ok()?, uid, child };
        let number = doc.get("txnNumber")?.as_i64()?;
        if let Some(outcome) = doc.get("outcome") {
            let (outcome, at) = (outcome_of(outcome.as_str()?)?, op_time(doc)?);
            if at <= upto {
                self.learn(id, number, outcome, at, now);
            }
            return Some(());
        }
        let mut all = Vec::new();
        for e in doc.get("done")?.as_array()?.iter() {
            let d = e.value().as_doc()?;
            let kind = match d.get("k")?.as_str()? {
                "i" => Kind::Insert,
                "u" => Kind::Update,
                _ => Kind::Delete,
            };
            let inserted_id = d.get("id").map(Bson::from);
            let image = d.get("needs").and_then(|v| ImageKind::parse(v.as_str()?)).map(|kind| {
                let doc = d.get("image").and_then(|v| v.as_doc());
                Image { kind, doc: doc.map(|doc| Arc::new(doc.to_buf())) }
            });
            all.push((d.get("s")?.as_i64()? as i32, Done { kind, inserted_id, image, op_time: op_time(d)? }));
        }
        all.retain(|(_, done)| done.op_time <= upto);
        let given_up = doc.get("incomplete").is_some_and(|v| v.is_truthy());
        self.restore_all(id, number, all, given_up.then_some(op_time(doc)?), now);
        Some(())
    }
    /// `given_up`: not all statements are known; the newest was at this entry.
    fn restore_all(
        &self,
        id: SessionId,
        number: i64,
        all: Vec<(i32, Done)>,
        given_up: Option<OpTime>,
        now: Duration,
    ) {
        let newest = all.iter().map(|(_, done)| done.op_time).max().max(given_up);
        let Some(newest) = newest else { return };
        self.lock().change(id, Record::written(number, now), |record| {
            if record.machine.number() != number || record.machine.state().is_transaction() {
                return;
            }
            record.last_op = record.last_op.max(newest);
            // What was kept accounts for all that is older than what was read.
            record.before = OpTime::NULL;
            record.incomplete |= given_up.is_some();
            for (stmt, done) in &all {
                record.add_older(*stmt, done);
            }
        });
    }
}

impl Settled {
    fn document(&self, id: SessionId, image_bytes: &mut usize) -> DocBuf {
        let mut b = DocBuilder::new();
        b.uuid("session", &id.id).i64("txnNumber", self.number);
        if id.uid != NO_USER_DIGEST {
            b.binary("uid", 0, &id.uid);
        }
        if let Some(child) = &id.child {
            b.uuid("txnUUID", &child.uuid);
            if let Some(number) = child.txn_number {
                b.i64("parentTxnNumber", number);
            }
        }
        b.timestamp("ts", self.last_op.ts).i64("t", self.last_op.t);
        if let Some(outcome) = self.outcome {
            b.str("outcome", text_of(outcome));
        }
        if self.incomplete {
            b.bool("incomplete", true);
        }
        b.array("done", |a| {
            for (stmt, d) in self.done.iter() {
                a.doc(|b| statement(b, *stmt, d, image_bytes));
            }
        });
        b.finish()
    }
}

fn statement(b: &mut DocBuilder, stmt: i32, d: &Done, image_bytes: &mut usize) {
    let kind = match d.kind {
        Kind::Insert => "i",
        Kind::Update => "u",
        Kind::Delete => "d",
    };
    b.i32("s", stmt).str("k", kind);
    b.timestamp("ts", d.op_time.ts).i64("t", d.op_time.t);
    if let Some(id) = &d.inserted_id {
        b.bson("id", id);
    }
    if let Some(image) = &d.image {
        b.str("needs", image.kind.as_str());
        append_image(b, image.doc.as_deref().map(|d| &**d), image_bytes);
    }
}

fn append_image(b: &mut DocBuilder, image: Option<&RawDoc>, bytes: &mut usize) {
    let Some(image) = image.filter(|i| *bytes + i.byte_len() <= limits::SESSION_RECORD_IMAGES_BYTES_MAX)
    else {
        return;
    };
    *bytes += image.byte_len();
    b.raw_doc("image", image);
}

/// A document of [`Kept`] with the images that its reader cannot find in a log of its own.
pub fn with_images(
    doc: &RawDoc,
    bytes: &mut usize,
    mut image_of: impl FnMut(OpTime) -> Option<DocBuf>,
) -> Option<DocBuf> {
    let lacks = |d: &RawDoc| d.elem("needs").is_some() && d.elem("image").is_none();
    let done = doc.get("done")?.as_array()?;
    if !done.iter().filter_map(|e| e.value().as_doc()).any(lacks) {
        return None;
    }
    let mut b = DocBuilder::with_capacity(doc.byte_len() + 256);
    for e in doc.iter().filter(|e| e.name_bytes() != b"done") {
        b.elem(e);
    }
    b.array("done", |a: &mut ArrayBuilder| {
        for d in done.iter().filter_map(|e| e.value().as_doc()) {
            let found = lacks(d).then(|| image_of(op_time(d)?)).flatten();
            a.doc(|b| {
                b.elems_of(d);
                append_image(b, found.as_deref(), bytes);
            });
        }
    });
    Some(b.finish())
}

fn op_time(doc: &RawDoc) -> Option<OpTime> {
    match (doc.get("ts")?, doc.get("t")?.as_i64()?) {
        (Value::Timestamp(ts), term) => Some(OpTime::new(ts, term)),
        _ => None,
    }
}

const OUTCOMES: [(&str, DurableState); 4] = [
    ("partial", DurableState::Partial),
    ("prepared", DurableState::Prepared),
    ("committed", DurableState::Committed),
    ("aborted", DurableState::Aborted),
];

fn text_of(outcome: DurableState) -> &'static str {
    OUTCOMES.iter().find(|(_, o)| *o == outcome).map_or("", |(text, _)| text)
}
fn outcome_of(text: &str) -> Option<DurableState> {
    OUTCOMES.iter().find(|(t, _)| *t == text).map(|(_, o)| *o)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::retryable::{Begin, Loan};
    use pando_base::{ErrorCode, Timestamp};
    use pando_command::generic_args::SessionId;

    fn done(secs: u32) -> Done {
        let op_time = OpTime::new(Timestamp::new(secs, 1), 3);
        Done { kind: Kind::Update, inserted_id: Some(Bson::Int32(secs as i32)), image: None, op_time }
    }
    fn lent(t: &Arc<Retryable>, id: u8, number: i64) -> Loan {
        match t.begin(&SessionId::of([id; 16]), number, Duration::ZERO) {
            Ok(Begin::Yours(loan)) => loan,
            _ => panic!("session {id} in use"),
        }
    }
    fn knows(loan: &Loan, stmt: i32) -> bool {
        loan.done(stmt).expect("all is known").is_some()
    }
    fn at(secs: u32) -> OpTime {
        done(secs).op_time
    }
    fn documents(kept: &SessionsSnapshot) -> Vec<DocBuf> {
        kept.documents(|_| true, &mut 0).map(|(_, doc)| doc).collect()
    }

    #[test]
    fn what_was_kept_comes_back_and_entries_that_came_later_win() {
        let t = Arc::new(Retryable::default());
        for (stmt, secs) in [(0, 5), (1, 6)] {
            lent(&t, 1, 4).note(stmt, done(secs));
        }
        lent(&t, 2, 9).note(0, done(7));
        t.learn(SessionId::of([3; 16]), 2, DurableState::Committed, at(8), Duration::ZERO);
        let kept = t.collect(at(8));
        assert_eq!((documents(&kept).len(), kept.upto), (3, at(8)));

        let again = Arc::new(Retryable::default());
        again.restore(SessionId::of([2; 16]), 10, &[5], &done(9), OpTime::NULL, Duration::ZERO);
        for doc in documents(&kept) {
            again.restore_record(&doc, kept.upto, Duration::ZERO).expect("a session");
        }
        again.end_restore();
        let one = lent(&again, 1, 4);
        assert_eq!(one.last_op(), at(6));
        assert_eq!(one.done(0).unwrap().and_then(|d| d.inserted_id.clone()), Some(Bson::Int32(5)));
        let two = lent(&again, 2, 10);
        assert!(!knows(&two, 0) && knows(&two, 5));
        let three = again.states().into_iter().find(|(id, ..)| *id == SessionId::of([3; 16]));
        assert_eq!(three, Some((SessionId::of([3; 16]), 2, State::Committed, at(8))));
    }

    #[test]
    fn a_child_session_is_another_than_its_parent_also_when_it_comes_back() {
        let child = |txn_number| SessionId {
            child: Some(Child { uuid: [7; 16], txn_number }),
            ..SessionId::of([1; 16])
        };
        let all = [SessionId::of([1; 16]), child(None), child(Some(4))];
        let begin = |t: &Arc<Retryable>, id: &SessionId| match t.begin(id, 4, Duration::ZERO) {
            Ok(Begin::Yours(loan)) => loan,
            _ => panic!("{id:?} in use"),
        };
        let t = Arc::new(Retryable::default());
        for (stmt, id) in all.iter().enumerate() {
            begin(&t, id).note(stmt as i32, done(5 + stmt as u32));
        }
        let again = Arc::new(Retryable::default());
        let kept = t.collect(at(8));
        for doc in documents(&kept) {
            again.restore_record(&doc, kept.upto, Duration::ZERO).expect("a session");
        }
        again.end_restore();
        for (stmt, id) in all.iter().enumerate() {
            let loan = begin(&again, id);
            let known: Vec<i32> = (0..3).filter(|s| knows(&loan, *s)).collect();
            assert_eq!(known, [stmt as i32], "{id:?}");
        }
    }

    /// An entry above the point may have been rolled back, and then the log does not tell it.
    #[test]
    fn what_is_kept_of_entries_above_its_point_is_not_believed() {
        let t = Arc::new(Retryable::default());
        lent(&t, 1, 4).note(0, done(5));
        lent(&t, 1, 4).note(1, done(9));
        lent(&t, 2, 1).note(0, done(9));
        let kept = t.collect(at(9));
        let again = Arc::new(Retryable::default());
        for doc in documents(&kept) {
            again.restore_record(&doc, at(7), Duration::ZERO).expect("a session");
        }
        let one = lent(&again, 1, 4);
        assert!(knows(&one, 0) && !knows(&one, 1));
        assert!(!knows(&lent(&again, 2, 1), 0));
    }

    #[test]
    fn images_are_kept_within_a_bound_and_what_lies_beyond_is_known_to_be_lost() {
        let t = Arc::new(Retryable::default());
        let image = Some(Image::in_log(ImageKind::Post));
        for session in 1..5 {
            lent(&t, session, 1).note(0, Done { image: image.clone(), ..done(u32::from(session)) });
        }
        let kept = t.collect(at(9));
        let mut large = DocBuilder::new();
        large.binary("b", 0, &vec![7; limits::SESSION_RECORD_IMAGES_BYTES_MAX / 3]);
        let large = large.finish();
        let again = Arc::new(Retryable::default());
        let mut image_bytes = 0;
        for doc in &documents(&kept) {
            let more =
                with_images(doc, &mut image_bytes, |_| Some(large.clone())).expect("an image is missing");
            assert!(with_images(&more, &mut 0, |_| None).is_none_or(|d| d.byte_len() < 1000));
            again.restore_record(&more, at(9), Duration::ZERO).expect("a session");
        }
        // They stay with the table when it is kept by its new owner.
        let mut image_bytes = 0;
        let bytes: usize =
            again.collect(at(9)).documents(|_| true, &mut image_bytes).map(|(_, d)| d.byte_len()).sum();
        assert!(bytes - image_bytes < 10_000 && image_bytes == 2 * large.byte_len());
        let known = (1..5).filter(|id| {
            let loan = lent(&again, *id, 1);
            let image = loan.done(0).unwrap().and_then(|d| d.image.clone()).expect("a findAndModify");
            assert_eq!(image.kind, ImageKind::Post);
            image.doc.is_some_and(|doc| *doc == large)
        });
        assert_eq!(known.count(), 2);
    }

    #[test]
    fn a_session_in_use_is_kept_as_it_was_and_lowers_the_point() {
        let t = Arc::new(Retryable::default());
        lent(&t, 1, 4).note(0, done(5));
        lent(&t, 2, 1).note(0, done(6));
        t.note_known(at(6));
        let mut held = lent(&t, 2, 1);
        held.note(1, done(8));
        let mut new = lent(&t, 3, 1);
        new.note(0, done(9));
        let kept = t.collect(at(9));
        assert_eq!(kept.upto, at(6), "what the sessions in use do is in the log");
        let again = Arc::new(Retryable::default());
        for doc in documents(&kept) {
            again.restore_record(&doc, kept.upto, Duration::ZERO).expect("a session");
        }
        let two = lent(&again, 2, 1);
        assert!(knows(&two, 0) && !knows(&two, 1));
        assert_eq!(documents(&kept).len(), 2, "nothing was known of the third");
        drop((held, new));
        assert_eq!(t.collect(at(9)).upto, at(9));
    }

    #[test]
    fn that_statements_were_given_up_outlives_the_process() {
        let t = Arc::new(Retryable::default());
        lent(&t, 1, 4).note(0, done(5));
        t.bound(0);
        let kept = t.collect(at(5));
        let again = Arc::new(Retryable::default());
        for doc in documents(&kept) {
            again.restore_record(&doc, kept.upto, Duration::ZERO).expect("a session");
        }
        let refused = lent(&again, 1, 4).done(0).unwrap_err();
        assert_eq!(refused.code, ErrorCode::IncompleteTransactionHistory);
    }
}
