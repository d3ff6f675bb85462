//! Opening: rows of the catalog as the tables have them, then the log from the checkpoint on (R-START-2..4).
//!
//! After a crash in the middle of a checkpoint the tables may be ahead of the timestamp that replay starts from,
//! and older versions of their rows may be gone. So replay never looks back in time: each entry asks whether the
//! row it is about carries its timestamp or a later one already, and if so leaves it alone. Tables are written
//! indexes first, records (and catalog rows) last; a record that is there has its index entries.

use crate::Catalog;
use crate::apply::entry::Applying;
use crate::catalog::OpenOptions;
use crate::import::told::{IMPORT_MISSING, totals_of};
use crate::schema::collection::{Collection, Index};
use crate::schema::durable::{self, Parts, Row, Unfinished};
use crate::schema::sizes::Totals;
use crate::schema::snapshot::Named;
use crate::schema::views::ViewReloader;
use crate::write::observer::LogWriter;
use crate::write::record_id;
use pando_base::redaction::WithCode;
use pando_base::{Error, ErrorCode, OpTime, Result, Timestamp, Uuid};
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use pando_env::Env;
use pando_env::log::Component;
use pando_oplog::entry::{EntryView, OpType};
use pando_query::source::RecordId;
use pando_storage::{Dir, Ident, ReadAt, Storage, Txn, discard_foreign, has_foreign};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// Key of the row that says as of when the stored sizes hold.
const SIZES_AS_OF: &[u8] = b"sizes";

fn size_key(uuid: Uuid) -> Vec<u8> {
    [b"size/".as_slice(), &uuid.0].concat()
}

/// Stored totals of a collection.
#[derive(Clone, Copy, Debug, Default)]
struct StoredSize {
    totals: Totals,
    as_of: Timestamp,
}

impl Catalog {
    /// Opens the catalog of a data directory and replays the log. Nothing else may write meanwhile.
    pub fn open(env: Env, storage: Storage, options: OpenOptions) -> Result<Catalog> {
        let exposes = options.replset;
        let catalog =
            Catalog::new(env, storage, options, Arc::new([Arc::new(LogWriter), Arc::new(ViewReloader)]));
        catalog.load_makes_indexes()?;
        if catalog.is_copy_unfinished()? {
            catalog.discard_copy()?;
            catalog.0.copying.store(true, std::sync::atomic::Ordering::Release);
        }
        match catalog.recover() {
            Err(e) if e.code == IMPORT_MISSING && exposes => catalog.give_up_after(&e)?,
            done => done?,
        }
        if has_foreign(&*catalog.env().disk) {
            // Tables that were being taken in from there have no name.
            catalog.drop_unnamed_rows()?;
            discard_foreign(&*catalog.env().disk)?;
        }
        if exposes {
            catalog.restore_oplog()?;
        }
        Ok(catalog)
    }

    fn recover(&self) -> Result<()> {
        if self.resume_fetched()? { Ok(()) } else { self.replay_log() }
    }
    /// What the log speaks of is not here, and only another member has it: this node copies the set's data.
    fn give_up_after(&self, why: &Error) -> Result<()> {
        let text = "A collection that was taken in is not here; this member's data is given up";
        self.env().log.warn(Component::Recovery, 9100188, text, |a| {
            a.data("error", &WithCode(why));
        });
        let last = self.storage().log().read(Bound::Unbounded, true).next()?;
        let promised = last.map(|(_, entry)| EntryView::parse(RawDoc::trusted(&entry)).map(|e| e.op_time()));
        self.give_up_data(promised.transpose()?.unwrap_or(OpTime::NULL))
    }

    /// From where the tables stand to the end of the log.
    pub(crate) fn replay_log(&self) -> Result<()> {
        let storage = self.storage();
        storage.start_replay();
        let applied = self.load_rows(storage.recovery_ts()).and_then(|()| self.replay(storage.recovery_ts()));
        storage.end_replay();
        let applied = applied?;
        // Without an entry to apply only indexes of older versions are made anew.
        self.finish_rebuilds(storage.log().last().max(storage.recovery_ts()))?;
        if applied > 0 {
            self.drop_unnamed_rows()?;
        }
        Ok(())
    }

    /// The tables stand at `at`.
    pub(crate) fn load_rows(&self, at: Timestamp) -> Result<()> {
        let txn = self.storage().begin(ReadAt::Applied)?;
        let sizes = load_sizes(&txn)?;
        let now = self.now_ms();
        let mut all = Vec::new();
        let mut cursor = txn.scan(Ident::CATALOG, Bound::Unbounded, Bound::Unbounded, Dir::Forward)?;
        while let Some((_, row)) = cursor.next()? {
            let Row { mut parts, unfinished, outdated } = durable::decode(RawDoc::trusted(&row), now)?;
            // After a rollback: unreplicated collections are as they were.
            if self.lookup_uuid(parts.uuid).is_some() {
                continue;
            }
            for u in unfinished {
                parts.indexes.push(Arc::new(self.dormant_index(parts.uuid, u, at)?));
            }
            for o in outdated {
                parts.indexes.push(Arc::new(self.outdated_index(&parts, o, at)?));
            }
            parts.shared.saw_rid(last_rid(&txn, &parts)?);
            if let Some(stored) = sizes.get(&parts.uuid) {
                parts.shared.sizes.set(stored.totals);
            }
            all.push(parts.assemble()?);
        }
        let databases: Vec<String> = {
            self.publish(|s| all.into_iter().for_each(|c| s.put(Named::Collection(c))));
            self.snapshot().databases()
        };
        databases.iter().try_for_each(|db| self.reload_views(db, ReadAt::Applied))
    }

    /// An index whose build the last process did not finish: rows start afresh, writers need not bother until the
    /// build is taken up again, or the replay ends that makes it.
    pub(crate) fn dormant_index(&self, of: Uuid, u: Unfinished, at: Timestamp) -> Result<Index> {
        self.storage().drop_ident(u.ident, at);
        self.storage().drop_ident(u.side, at);
        let Some(format) = u.committed else { return self.unfinished_index(u.spec, u.build) };
        self.0.rebuilds.add(of, u.build, &u.spec.name);
        self.unfinished_index_as(u.spec, u.build, format).map(Index::into_committed)
    }

    /// Applies the log from `recovery` on, where the tables stand. Returns how many entries were applied.
    pub(crate) fn replay(&self, recovery: Timestamp) -> Result<u64> {
        let txn = self.storage().begin(ReadAt::Applied)?;
        let sizes_as_of = stored_sizes_as_of(&txn)?;
        let sizes = load_sizes(&txn)?;
        drop(txn);
        let first = self.storage().log().first();
        let gap = sizes_as_of < recovery && !first.is_zero() && first > Timestamp(sizes_as_of.0 + 1);
        let from = if gap { recovery } else { sizes_as_of.min(recovery) };
        // The size of a dropped collection is forgotten at once; the drop itself may have been undone, or lost.
        let without_size: Vec<Arc<Collection>> = self
            .snapshot()
            .all_collections()
            .filter(|c| c.replicated && c.is_stored() && !sizes.contains_key(&c.uuid))
            .cloned()
            .collect();
        let mut cursor = self.storage().log().read(Bound::Excluded(from), false);
        let mut applied = 0u64;
        let uneven = self.is_before_min_valid();
        let why = if uneven { Applying::InitialSync } else { Applying::Replay };
        while let Some((ts, entry)) = cursor.next()? {
            let view = EntryView::parse(RawDoc::trusted(&entry))?;
            if ts <= recovery {
                self.recount_all(&view, &sizes)?;
            } else {
                self.apply_entry(&view, why)?;
                applied += 1;
                if self.storage().wants_checkpoint() {
                    self.make_room(ts)?;
                }
            }
        }
        if applied > 0 {
            self.env().log.info(
                Component::Recovery,
                21536,
                "Completed oplog application for recovery",
                |a| {
                    a.u64("numOpsApplied", applied);
                    a.show("startPoint", recovery);
                },
            );
        }
        // After a checkpoint past the stable timestamp the stored sizes know of what is undone.
        if gap || uneven || sizes_as_of > recovery {
            self.count_everything()?;
        } else {
            for was in without_size {
                self.lookup_uuid(was.uuid).map_or(Ok(Totals::default()), |c| self.count_by_scan(&c))?;
            }
        }
        Ok(applied)
    }

    /// In the middle of a replay, after the entry at `ts`: rows go to the tables.
    fn make_room(&self, ts: Timestamp) -> Result<()> {
        if !self.storage().is_consistent_at(ts) {
            return Ok(());
        }
        // The tables must not say that an index is unfinished whose end lies behind them in the log.
        self.storage().end_replay();
        let done = self.finish_rebuilds(ts).and_then(|()| self.storage().checkpoint_replayed(ts));
        self.storage().start_replay();
        done.map(drop)
    }

    /// The same for every operation of a transaction, as of its last entry.
    fn recount_all(&self, e: &EntryView<'_>, stored: &BTreeMap<Uuid, StoredSize>) -> Result<()> {
        let decides = e.op == OpType::Command && e.o.first().is_some_and(|c| c.name() == "commitTransaction");
        let own = match e.inner() {
            Some(own) => Some(own),
            None if decides => None,
            None => {
                self.recount(e, stored);
                return Ok(());
            }
        };
        if e.o.get("partialTxn").is_some() || e.o.get("prepare").is_some() {
            return Ok(());
        }
        for part in self.earlier_parts(e.doc)? {
            let part = EntryView { ts: e.ts, ..EntryView::parse(RawDoc::trusted(&part))? };
            part.inner().into_iter().flatten().try_for_each(|op| op.map(|op| self.recount(&op, stored)))?;
        }
        own.into_iter().flatten().try_for_each(|op| op.map(|op| self.recount(&op, stored)))
    }
    /// Corrects totals for an entry between the stored sizes and the checkpoint.
    fn recount(&self, e: &EntryView<'_>, stored: &BTreeMap<Uuid, StoredSize>) {
        let Some(coll) = e.ui.and_then(|uuid| self.lookup_uuid(uuid)) else { return };
        if stored.get(&coll.uuid).is_some_and(|s| s.as_of >= e.ts) {
            return;
        }
        if e.op == OpType::Command && e.command().is_some_and(|c| c.name() == "importCollection") {
            // Nothing was counted before; what is stored was another collection's.
            coll.shared.sizes.set(totals_of(e));
            return;
        }
        coll.shared.sizes.changed(e.ts, size_effect(e), || self.storage().counted());
    }

    /// Counts by scanning, when the log no longer reaches back to the stored sizes.
    pub(crate) fn count_everything(&self) -> Result<()> {
        let colls: Vec<Arc<Collection>> = self.snapshot().all_collections().cloned().collect();
        for c in colls {
            self.count_by_scan(&c)?;
        }
        Ok(())
    }
    /// Counts a collection anew. Nobody else may be writing.
    pub fn recount_all_of(&self, ns: &pando_base::Namespace) -> Result<()> {
        self.lookup(ns).map_or(Ok(()), |c| self.count_by_scan(&c).map(drop))
    }
    pub(crate) fn count_by_scan(&self, c: &Collection) -> Result<Totals> {
        let txn = self.storage().begin(ReadAt::Applied)?;
        let mut cursor = txn.scan(c.records, Bound::Unbounded, Bound::Unbounded, Dir::Forward)?;
        let mut totals = Totals::default();
        while let Some((_, doc)) = cursor.next()? {
            totals.count += 1;
            totals.bytes += doc.len() as i64;
        }
        c.shared.sizes.set(totals);
        Ok(totals)
    }

    /// Takes a checkpoint and stores the sizes as of it. Returns the timestamp the tables now stand at.
    pub fn checkpoint(&self) -> Result<Timestamp> {
        let _one = self.lock_checkpoint();
        let _under_way = self.storage().begin_checkpoint();
        let at = self.storage().checkpoint()?;
        let of = |c: &Arc<Collection>| Some((c.uuid, c.shared.sizes.to_store(at)?));
        let sizes: Vec<(Uuid, Totals)> =
            self.snapshot().all_collections().filter(|c| c.is_stored()).filter_map(of).collect();
        loop {
            match self.store_sizes(at, &sizes) {
                // A collection was dropped meanwhile, and its row deleted.
                Err(e) if e.code == ErrorCode::WriteConflict => {}
                done => break done?,
            }
        }
        self.storage().sync_local()?;
        Ok(at)
    }
    fn store_sizes(&self, at: Timestamp, sizes: &[(Uuid, Totals)]) -> Result<()> {
        let mut unit = self.storage().begin_local()?;
        for (uuid, totals) in sizes.iter().filter(|(uuid, _)| self.lookup_uuid(*uuid).is_some()) {
            unit.put(Ident::META, &size_key(*uuid), encode_size(*totals, at).as_bytes())?;
        }
        let mut b = DocBuilder::new();
        b.timestamp("asOf", at);
        unit.put(Ident::META, SIZES_AS_OF, b.finish().as_bytes())?;
        unit.commit().map(drop)
    }
    pub(crate) fn forget_sizes(&self, uuid: Uuid) {
        let done = self.storage().begin_local().and_then(|mut unit| {
            unit.delete(Ident::META, &size_key(uuid))?;
            unit.commit()
        });
        // The row of a dropped collection is only ballast.
        if let Err(e) = done {
            self.env().log.warn(
                Component::Storage,
                22430,
                "Could not forget a dropped collection's size",
                |a| {
                    a.data("error", &WithCode(&e));
                },
            );
        }
    }
}

/// What an `i` or `d` entry does to the totals. A deleted document's size is not in the log.
pub(crate) fn size_effect(e: &EntryView<'_>) -> Totals {
    match e.op {
        OpType::Insert => Totals { count: 1, bytes: e.o.byte_len() as i64 },
        OpType::Delete => Totals { count: -1, bytes: 0 },
        _ => Totals::default(),
    }
}

pub(crate) fn last_rid(txn: &Txn, parts: &Parts) -> Result<i64> {
    if parts.options.clustered.is_some() {
        return Ok(0);
    }
    let mut cursor = txn.scan(parts.records, Bound::Unbounded, Bound::Unbounded, Dir::Backward)?;
    match cursor.next()? {
        Some((key, _)) => match record_id::from_storage_key(false, &key)? {
            RecordId::Long(n) => Ok(n),
            RecordId::Key(_) => Err(Error::internal("damaged record key")),
        },
        None => Ok(0),
    }
}

fn encode_size(t: Totals, as_of: Timestamp) -> DocBuf {
    let mut b = DocBuilder::new();
    b.i64("count", t.count);
    b.i64("bytes", t.bytes);
    b.timestamp("asOf", as_of);
    b.finish()
}

fn load_sizes(txn: &Txn) -> Result<BTreeMap<Uuid, StoredSize>> {
    let mut out = BTreeMap::new();
    let mut cursor =
        txn.scan(Ident::META, Bound::Included(b"size/"), Bound::Excluded(b"size0"), Dir::Forward)?;
    while let Some((key, row)) = cursor.next()? {
        let Some(uuid) = key.get(5..).and_then(Uuid::from_slice) else { continue };
        let row = RawDoc::trusted(&row);
        let number = |name| row.get(name).and_then(|v| v.as_i64()).unwrap_or(0);
        let totals = Totals { count: number("count"), bytes: number("bytes") };
        out.insert(uuid, StoredSize { totals, as_of: as_of(row) });
    }
    Ok(out)
}

fn as_of(row: &RawDoc) -> Timestamp {
    match row.get("asOf") {
        Some(pando_bson::Value::Timestamp(ts)) => ts,
        _ => Timestamp::ZERO,
    }
}

fn stored_sizes_as_of(txn: &Txn) -> Result<Timestamp> {
    Ok(txn.get(Ident::META, SIZES_AS_OF)?.map_or(Timestamp::ZERO, |row| as_of(RawDoc::trusted(&row))))
}
