//! What sessions have done, as documents: for the disk, so that a start need not read it from the log again, and for
//! members that copy this one.
//!
//! A session that an operation uses at that moment cannot be looked at; the caller comes again for it.

use super::{Done, Image, Kind, Retryable, Slot};
use crate::transaction::{Outcome, State};
use pando_base::{OpTime, limits};
use pando_bson::{ArrayBuilder, Bson, DocBuf, DocBuilder, RawDoc, Value};
use pando_oplog::entry::ImageKind;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// What was collected so far.
#[derive(Default)]
pub struct Collected {
    pub sessions: Vec<DocBuf>,
    /// The newest entry that any of them knows.
    pub newest: OpTime,
    pub bytes: usize,
    /// Of documents that only retried findAndModify commands need; those beyond the bound are left out.
    pub image_bytes: usize,
    /// In use when they were looked at; `None` before the first look.
    missing: Option<BTreeSet<[u8; 16]>>,
}

impl Retryable {
    /// Collects the sessions that are at rest; false when it must be called again for others.
    pub fn collect(&self, into: &mut Collected) -> bool {
        let wanted = into.missing.take();
        let mut missing = BTreeSet::new();
        for (id, slot) in self.lock().iter() {
            if wanted.as_ref().is_some_and(|w| !w.contains(id)) {
                continue;
            }
            let Slot::Idle(record) = slot else {
                missing.insert(*id);
                continue;
            };
            // Nothing of it is in the log: nothing to keep.
            if record.last_op.is_null() {
                continue;
            }
            let outcome = match record.machine.state() {
                State::None | State::RetryableWrite => None,
                State::InProgress => Some(Outcome::Partial),
                State::Prepared => Some(Outcome::Prepared),
                State::Committed => Some(Outcome::Committed),
                State::AbortedUnprepared | State::AbortedPrepared => Some(Outcome::Aborted),
                // About to be one or the other.
                State::CommittingUnprepared | State::CommittingPrepared => {
                    missing.insert(*id);
                    continue;
                }
            };
            let mut image_bytes = into.image_bytes;
            let done = record.done.iter();
            let number = record.machine.number();
            let doc = session(*id, number, outcome, record.last_op, done, &mut image_bytes);
            into.newest = into.newest.max(record.last_op);
            into.bytes += doc.byte_len() - (image_bytes - into.image_bytes);
            into.image_bytes = image_bytes;
            into.sessions.push(doc);
        }
        let all = missing.is_empty();
        into.missing = Some(missing);
        all
    }

    /// Takes a document of [`Retryable::collect`] back, after all entries of the log that came after it.
    pub fn restore_kept(&self, doc: &RawDoc, now: Duration) -> Option<()> {
        let Value::Binary { bytes, .. } = doc.get("session")? else { return None };
        let id: [u8; 16] = bytes.try_into().ok()?;
        let number = doc.get("txnNumber")?.as_i64()?;
        if let Some(outcome) = doc.get("outcome") {
            self.learn(id, number, outcome_of(outcome.as_str()?)?, op_time(doc)?, now);
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
        all.sort_by_key(|(_, done)| std::cmp::Reverse(done.op_time));
        for (stmt, done) in all {
            self.restore(id, number, &[stmt], &done, now);
        }
        Some(())
    }
}

fn session<'a>(
    id: [u8; 16],
    number: i64,
    outcome: Option<Outcome>,
    last: OpTime,
    done: impl Iterator<Item = (&'a i32, &'a Done)>,
    image_bytes: &mut usize,
) -> DocBuf {
    let mut b = DocBuilder::new();
    b.uuid("session", &id).i64("txnNumber", number);
    b.timestamp("ts", last.ts).i64("t", last.t);
    if let Some(outcome) = outcome {
        b.str("outcome", text_of(outcome));
    }
    b.array("done", |a| {
        for (stmt, d) in done {
            a.doc(|b| {
                let kind = match d.kind {
                    Kind::Insert => "i",
                    Kind::Update => "u",
                    Kind::Delete => "d",
                };
                b.i32("s", *stmt).str("k", kind);
                b.timestamp("ts", d.op_time.ts).i64("t", d.op_time.t);
                if let Some(id) = &d.inserted_id {
                    b.bson("id", id);
                }
                if let Some(image) = &d.image {
                    b.str("needs", image.kind.as_str());
                    append_image(b, image.doc.as_deref().map(|d| &**d), image_bytes);
                }
            });
        }
    });
    b.finish()
}

fn append_image(b: &mut DocBuilder, image: Option<&RawDoc>, bytes: &mut usize) {
    let Some(image) = image.filter(|i| *bytes + i.byte_len() <= limits::KEPT_IMAGES_BYTES_MAX) else {
        return;
    };
    *bytes += image.byte_len();
    b.raw_doc("image", image);
}

/// A document of [`Retryable::collect`] with the images that its reader cannot find in a log of its own.
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

const OUTCOMES: [(&str, Outcome); 4] = [
    ("partial", Outcome::Partial),
    ("prepared", Outcome::Prepared),
    ("committed", Outcome::Committed),
    ("aborted", Outcome::Aborted),
];

fn text_of(outcome: Outcome) -> &'static str {
    OUTCOMES.iter().find(|(_, o)| *o == outcome).map_or("", |(text, _)| text)
}
fn outcome_of(text: &str) -> Option<Outcome> {
    OUTCOMES.iter().find(|(t, _)| *t == text).map(|(_, o)| *o)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::retryable::Begin;
    use pando_base::Timestamp;
    use pando_command::generic_args::Lsid;
    use std::sync::Arc;

    fn done(secs: u32) -> Done {
        let op_time = OpTime::new(Timestamp::new(secs, 1), 3);
        Done { kind: Kind::Update, inserted_id: Some(Bson::Int32(secs as i32)), image: None, op_time }
    }
    fn lent(t: &Arc<Retryable>, id: u8, number: i64) -> crate::retryable::Loan {
        match t.begin(&Lsid { id: [id; 16], uid: None }, number, Duration::ZERO) {
            Ok(Begin::Yours(loan)) => loan,
            _ => panic!("session {id} in use"),
        }
    }

    #[test]
    fn what_was_kept_comes_back_and_entries_that_came_later_win() {
        let t = Arc::new(Retryable::default());
        for (stmt, secs) in [(0, 5), (1, 6)] {
            lent(&t, 1, 4).note(stmt, done(secs));
        }
        lent(&t, 2, 9).note(0, done(7));
        t.learn([3; 16], 2, Outcome::Committed, done(8).op_time, Duration::ZERO);
        let mut kept = Collected::default();
        assert!(t.collect(&mut kept));
        assert_eq!((kept.sessions.len(), kept.newest), (3, done(8).op_time));

        let again = Arc::new(Retryable::default());
        again.restore([2; 16], 10, &[5], &done(9), Duration::ZERO);
        for doc in &kept.sessions {
            again.restore_kept(doc, Duration::ZERO).expect("a session");
        }
        let one = lent(&again, 1, 4);
        assert_eq!(one.last_op(), done(6).op_time);
        assert_eq!(one.done(0).and_then(|d| d.inserted_id.clone()), Some(Bson::Int32(5)));
        let two = lent(&again, 2, 10);
        assert!(two.done(0).is_none() && two.done(5).is_some());
        let three = again.states().into_iter().find(|(id, ..)| *id == [3; 16]);
        assert_eq!(three, Some(([3; 16], 2, State::Committed, done(8).op_time)));
    }

    #[test]
    fn images_are_kept_within_a_bound_and_what_lies_beyond_is_known_to_be_lost() {
        let t = Arc::new(Retryable::default());
        let image = Some(Image::in_log(ImageKind::Post));
        for session in 1..5 {
            lent(&t, session, 1).note(0, Done { image: image.clone(), ..done(u32::from(session)) });
        }
        let mut kept = Collected::default();
        assert!(t.collect(&mut kept));
        let mut large = DocBuilder::new();
        large.binary("b", 0, &vec![7; limits::KEPT_IMAGES_BYTES_MAX / 3]);
        let large = large.finish();
        let again = Arc::new(Retryable::default());
        for doc in &kept.sessions {
            let more = with_images(doc, &mut kept.image_bytes, |_| Some(large.clone()))
                .expect("an image is missing");
            assert!(with_images(&more, &mut 0, |_| None).is_none_or(|d| d.byte_len() < 1000));
            again.restore_kept(&more, Duration::ZERO).expect("a session");
        }
        // They stay with the table when it is kept by its new owner.
        let mut once_more = Collected::default();
        assert!(again.collect(&mut once_more));
        assert!(once_more.bytes < 10_000 && once_more.image_bytes == 2 * large.byte_len());
        let known = (1..5).filter(|id| {
            let loan = lent(&again, *id, 1);
            let image = loan.done(0).and_then(|d| d.image.clone()).expect("a findAndModify");
            assert_eq!(image.kind, ImageKind::Post);
            image.doc.is_some_and(|doc| *doc == large)
        });
        assert_eq!(known.count(), 2);
    }

    #[test]
    fn a_session_in_use_is_asked_for_again() {
        let t = Arc::new(Retryable::default());
        lent(&t, 1, 4).note(0, done(5));
        let mut held = lent(&t, 2, 1);
        let mut kept = Collected::default();
        assert!(!t.collect(&mut kept) && !t.collect(&mut kept));
        held.note(0, done(6));
        drop(held);
        assert!(t.collect(&mut kept));
        assert_eq!((kept.sessions.len(), kept.newest), (2, done(6).op_time));
    }
}
