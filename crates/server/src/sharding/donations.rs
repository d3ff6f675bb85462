//! What this shard gives to others while ranges move away (SH-MIG-5 to SH-MIG-7).
//!
//! ```text
//!   recordRange ─► Donation ◄─ every write of this primary in the range
//!                     ├─► _migrateClone: the records that the range had, read when they are told
//!                     ├─► _transferMods: the documents that were written since, read when they are told
//!                     └─► _getNextSessionMods: what sessions have done there (`sessions/moving`)
//! ```
//! In memory, on a primary: whoever becomes primary gives the migration up. All that is given is numbered, so that an answer that is lost can
//! be asked for again, and goes to one receiver.

use super::statistics::ShardingStatistics;
use crate::sessions::LogicalSessions;
use crate::sessions::moving::{History, Moving, MovingHistory, MovingRange};
use pando_access::observer::{Defined, Deleted, Inserted, OpObserver, Updated};
use pando_access::{Collection, IndexRange, Maintenance, WriteOp, WriteUnit};
use pando_base::panics::poisoned;
use pando_base::{Error, ErrorCode, Result, Uuid, limits};
use pando_bson::compare::cmp_docs;
use pando_bson::{DocBuf, RawDoc};
use pando_query::source::RecordId;
use pando_routing::{KeyRange, ShardKey};
use pando_shard::recorded_range::RecordedRange;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard};

/// All that move away from here just now.
#[derive(Default)]
pub(crate) struct Donations {
    /// Almost always there are none, and every write asks.
    any: AtomicBool,
    all: Mutex<Vec<Arc<Donation>>>,
    counts: Arc<ShardingStatistics>,
}

/// One range, and what its recipient has not been given yet.
pub(crate) struct Donation {
    id: Uuid,
    range: IndexRange,
    recorded: Mutex<RecordedRange>,
    copied: Mutex<Copied>,
    history: Mutex<Option<MovingHistory>>,
    /// Indexes or options are others than those that the recipient has made.
    redefined: AtomicBool,
    counts: Arc<ShardingStatistics>,
}

/// Records that the range had when it was recorded first.
#[derive(Default)]
struct Copied {
    begun: bool,
    left: VecDeque<RecordId>,
    /// Kept until the next turn, since the answer may be lost.
    last: Arc<Vec<DocBuf>>,
    told: u64,
}

/// Changes, as documents are now.
#[derive(Default)]
pub(crate) struct Changed {
    /// Keys of documents that are not in the range any more.
    pub(crate) gone: Vec<DocBuf>,
    pub(crate) written: Vec<DocBuf>,
}

fn not_known(id: Uuid) -> Error {
    Error::new(ErrorCode::NotYetInitialized, format!("nothing is given for a migration {id} here"))
}

impl Donations {
    pub(crate) fn new(counts: Arc<ShardingStatistics>) -> Donations {
        Donations { counts, ..Donations::default() }
    }
    fn all(&self) -> MutexGuard<'_, Vec<Arc<Donation>>> {
        self.all.lock().unwrap_or_else(poisoned)
    }
    /// From now on what is written in the range is kept; what was begun before may be passed over.
    pub(crate) fn record(
        &self,
        id: Uuid,
        key: ShardKey,
        range: IndexRange,
        min: &RawDoc,
        max: &RawDoc,
    ) -> Result<()> {
        let recorded = Mutex::new(RecordedRange::new(key, min, max)?);
        let donation = Arc::new(Donation {
            id,
            range,
            recorded,
            copied: Mutex::default(),
            history: Mutex::default(),
            redefined: AtomicBool::new(false),
            counts: self.counts.clone(),
        });
        let mut all = self.all();
        all.retain(|d| d.id != id);
        all.push(donation);
        self.any.store(true, SeqCst);
        Ok(())
    }
    /// 94 where it is not recorded.
    pub(crate) fn of(&self, id: Uuid) -> Result<Arc<Donation>> {
        self.all().iter().find(|d| d.id == id).cloned().ok_or_else(|| not_known(id))
    }
    pub(crate) fn end(&self, id: Uuid) {
        let mut all = self.all();
        all.retain(|d| d.id != id);
        self.any.store(!all.is_empty(), SeqCst);
    }
    /// This node is primary no more, or its data is another's.
    pub(crate) fn end_all(&self) {
        self.all().clear();
        self.any.store(false, SeqCst);
    }
    fn of_collection(&self, coll: &Collection) -> Vec<Arc<Donation>> {
        match self.any.load(SeqCst) {
            true => self.all().iter().filter(|d| d.range.uuid == coll.uuid).cloned().collect(),
            false => Vec::new(),
        }
    }
}

impl Donation {
    pub(crate) fn id(&self) -> Uuid {
        self.id
    }
    /// Nothing more is given once the collection is defined otherwise: the recipient has made it as it was. While writes are blocked,
    /// nobody defines anything, and one more turn is told then.
    fn as_begun(&self) -> Result<()> {
        if !self.redefined.load(SeqCst) {
            return Ok(());
        }
        let text =
            format!("collection {} was defined anew while a range of it moved; try again", self.range.ns);
        Err(Error::new(ErrorCode::OperationFailed, text))
    }
    fn recorded(&self) -> MutexGuard<'_, RecordedRange> {
        self.recorded.lock().unwrap_or_else(poisoned)
    }
    fn copied(&self) -> MutexGuard<'_, Copied> {
        self.copied.lock().unwrap_or_else(poisoned)
    }
    fn history(&self) -> MutexGuard<'_, Option<MovingHistory>> {
        self.history.lock().unwrap_or_else(poisoned)
    }
    /// What sessions do from now on in the range is told, and what they have done.
    pub(crate) async fn begin_history(&self, sessions: &LogicalSessions, keys: KeyRange) -> Result<()> {
        let key = self.recorded().key().clone();
        let range = MovingRange { uuid: self.range.uuid, key, keys };
        let begun = MovingHistory::begin(sessions, Moving::Range(range)).await?;
        *self.history() = Some(begun);
        Ok(())
    }
    /// What they did since the last turn.
    pub(crate) fn histories(
        &self,
        sessions: &LogicalSessions,
        receiver: i64,
        number: u64,
    ) -> Result<History> {
        self.recorded().give_to(receiver)?;
        self.history().as_mut().ok_or_else(|| not_known(self.id))?.tell(sessions, number)
    }
    /// Notes which records the range has now: everybody who writes from now on is recorded.
    pub(crate) fn begin_copy(&self, maintenance: &Maintenance) -> Result<()> {
        let records = maintenance.records_in_range(&self.range, limits::MIGRATION_DOCUMENTS_MAX)?;
        if records.len() > limits::MIGRATION_DOCUMENTS_MAX {
            let text = format!("the range holds more than {} documents", limits::MIGRATION_DOCUMENTS_MAX);
            return Err(Error::new(ErrorCode::ChunkTooBig, text));
        }
        *self.copied() = Copied { begun: true, left: records.into(), last: Arc::default(), told: 0 };
        Ok(())
    }
    /// The documents of one turn; none when all were told.
    pub(crate) fn copy(
        &self,
        maintenance: &Maintenance,
        receiver: i64,
        number: u64,
    ) -> Result<Arc<Vec<DocBuf>>> {
        self.as_begun()?;
        self.recorded().give_to(receiver)?;
        let mut copied = self.copied();
        if !copied.begun {
            return Err(not_known(self.id));
        }
        let bytes = limits::MIGRATION_REPLY_BYTES_MAX;
        let Copied { left, last, told, .. } = &mut *copied;
        let (ns, uuid) = (&self.range.ns, self.range.uuid);
        if number == *told + 1 {
            // Records that are gone by now make no empty turn, which would be the last.
            loop {
                let most = left.len().min(limits::MIGRATION_HELPING_DOCUMENTS_MAX);
                let turn = &left.make_contiguous()[..most];
                let (docs, taken) = maintenance.documents_of(ns, uuid, turn, bytes)?;
                left.drain(..taken);
                if !docs.is_empty() || left.is_empty() {
                    self.counts.docs_given.add(docs.len() as u64);
                    self.counts.bytes_given.add(docs.iter().map(|d| d.byte_len() as u64).sum());
                    (*told, *last) = (number, Arc::new(docs));
                    break;
                }
            }
        } else if number != *told || number == 0 {
            return Err(Error::bad_value(format!("documents {number} were asked for behind {told}")));
        }
        Ok(last.clone())
    }
    /// What was written since the last turn.
    pub(crate) fn changed(&self, maintenance: &Maintenance, receiver: i64, number: u64) -> Result<Changed> {
        self.as_begun()?;
        let mut recorded = self.recorded();
        let helping = recorded.help(receiver, number)?.clone();
        let keys: Vec<DocBuf> = helping.gone.iter().chain(&helping.written).cloned().collect();
        let docs = maintenance.documents_by_id(&self.range.ns, self.range.uuid, &keys)?;
        let (mut changed, mut bytes, mut written) = (Changed::default(), 0, 0);
        let key = recorded.key().clone();
        for (i, (known, doc)) in keys.into_iter().zip(docs).enumerate() {
            let is_written = i >= helping.gone.len();
            // Commits may be noted in another order than they were made in: what counts is what is there now.
            let there = doc.filter(|doc| {
                doc.elem("_id").is_some_and(|id| cmp_docs(&key.document_key(doc, id), &known).is_eq())
            });
            bytes += there.as_ref().map_or(known.byte_len(), |doc| doc.byte_len());
            if is_written && written > 0 && bytes > limits::MIGRATION_REPLY_BYTES_MAX {
                recorded.told_only(written);
                break;
            }
            written += usize::from(is_written);
            match there {
                Some(doc) => changed.written.push(doc),
                None => changed.gone.push(known),
            }
        }
        Ok(changed)
    }
}

/// Tells donations of what is written once that can be seen. What migrations and deletions of ranges write themselves is not owned here.
pub(crate) struct DonationObserver(Arc<Donations>);

impl DonationObserver {
    pub(crate) fn of(donations: &Arc<Donations>) -> Arc<DonationObserver> {
        Arc::new(DonationObserver(donations.clone()))
    }
    fn each(
        &self,
        unit: &mut WriteUnit,
        op: &WriteOp<'_>,
        coll: &Collection,
        docs: &[&RawDoc],
        note: fn(&mut RecordedRange, &[DocBuf]),
    ) {
        if op.from_migrate {
            return;
        }
        for donation in self.0.of_collection(coll) {
            let docs: Vec<DocBuf> = docs.iter().map(|doc| doc.to_buf()).collect();
            unit.after_commit(move |_| note(&mut donation.recorded(), &docs));
        }
    }
}

impl OpObserver for DonationObserver {
    fn inserted(&self, unit: &mut WriteUnit, op: &WriteOp<'_>, e: &Inserted<'_>) -> Result<()> {
        self.each(unit, op, e.coll, &[e.doc], |range, docs| range.inserted(&docs[0]));
        Ok(())
    }
    fn updated(&self, unit: &mut WriteUnit, op: &WriteOp<'_>, e: &Updated<'_>) -> Result<()> {
        self.each(unit, op, e.coll, &[e.old, e.new], |range, docs| range.updated(&docs[0], &docs[1]));
        Ok(())
    }
    fn deleted(&self, unit: &mut WriteUnit, op: &WriteOp<'_>, e: &Deleted<'_>) -> Result<()> {
        self.each(unit, op, e.coll, &[e.old], |range, docs| range.deleted(&docs[0]));
        Ok(())
    }
    fn defined(&self, unit: &mut WriteUnit, event: &Defined<'_>) -> Result<()> {
        let coll = match event {
            Defined::Renamed { from, .. } => from,
            Defined::Created { coll }
            | Defined::Dropped { coll }
            | Defined::Modified { coll, .. }
            | Defined::IndexCreated { coll, .. }
            | Defined::BuildStarted { coll, .. }
            | Defined::BuildCommitted { coll, .. }
            | Defined::BuildAborted { coll, .. }
            | Defined::IndexDropped { coll, .. }
            | Defined::Imported { coll, .. } => coll,
            Defined::DatabaseDropped { .. } => return Ok(()),
        };
        for donation in self.0.of_collection(coll) {
            unit.after_commit(move |_| donation.redefined.store(true, SeqCst));
        }
        Ok(())
    }
}
