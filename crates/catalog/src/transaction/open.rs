//! A multi-document transaction: a unit that stays open between statements and is told in the log as one list of
//! operations.
//!
//! Nothing is reserved in the log before the commit, so an open transaction holds back neither readers nor the stable
//! timestamp; its snapshot pins the versions it may still need. All rows carry the timestamp of the last entry: one
//! `applyOps`, or a chain of them, linked by `prevOpTime`, when the operations do not fit into one document.

use crate::Catalog;
use crate::ddl::conflict::{self, Verdict};
use crate::ddl::indexes::{IndexesCreated, all_there, check_kinds, format_of, parse_all};
use crate::schema::collection::Collection;
use crate::schema::durable::{self, Parts};
use crate::schema::options::CollectionOptions;
use crate::schema::snapshot::Named;
use crate::write::collected::Collected;
use crate::write::observer::{Defined, Origin, TxnCommitted, TxnId, TxnWrites};
use crate::write::op::WriteOp;
use crate::write::undecided::Undecided;
use crate::write::unit::WriteUnit;
use crate::write::validation;
use pando_base::{Error, ErrorCode, Namespace, OpTime, Result, Timestamp, limits};
use pando_bson::{ArrayBuilder, DocBuf, DocBuilder, RawDoc, Value};
use pando_index::IndexSpec;
use pando_oplog::entry::Chain;
use pando_storage::{BeginOptions, Dir, IdentKind, OnPrepared, ReadAt, Slots};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

/// What a commit left in the log.
#[derive(Clone, Copy, Debug)]
pub struct Committed {
    /// [`OpTime::NULL`] when the transaction only read.
    pub last: OpTime,
    pub operations: usize,
    pub bytes: usize,
}

impl WriteUnit {
    /// What an open transaction holds in memory, roughly.
    pub fn memory(&self) -> usize {
        let told = self.collected().map_or(0, |c| c.bytes);
        let overhead = self.txn.written_count() * limits::TRANSACTION_WRITE_OVERHEAD_BYTES;
        told + self.txn.written_bytes() + overhead
    }
}

impl Catalog {
    /// Opens a transaction on the state at `at`. Dropping it gives it up.
    pub fn begin_transaction(&self, at: ReadAt, id: TxnId) -> Result<WriteUnit> {
        let entered = self.gate().enter()?;
        let waits = BeginOptions { on_prepared: OnPrepared::Conflict };
        let collected = Collected::new(self.when_given_up(id));
        Ok(WriteUnit::for_transaction(self, self.storage().begin_with(at, waits)?, collected, entered))
    }

    /// Inserts documents within a transaction; what was inserted before an error stays.
    pub fn insert_within(
        &self,
        unit: &mut WriteUnit,
        op: &WriteOp<'_>,
        coll: &Collection,
        doc: &RawDoc,
    ) -> Result<()> {
        if !op.bypass_validation {
            validation::check_insert(self, coll, doc)?;
        }
        unit.insert(op, coll, doc, coll.shared.take_rids(1), &[])
    }

    /// Creates a collection that only the transaction sees until it commits.
    pub fn create_within(
        &self,
        unit: &mut WriteUnit,
        ns: &Namespace,
        mut options: CollectionOptions,
    ) -> Result<Arc<Collection>> {
        let what = match &options {
            o if o.is_view() => Some("view"),
            o if o.time_series.is_some() => Some("time-series collection"),
            _ => None,
        };
        if let Some(what) = what {
            return Err(Error::new(
                ErrorCode::OperationNotSupportedInTransaction,
                format!("Cannot create a {what} in a multi-document transaction."),
            ));
        }
        if let Some(c) = &options.collation {
            options.collation = pando_index::full_collation(c)?;
        }
        crate::schema::names::check_creatable(ns)?;
        self.check_may_come(ns)?;
        self.check_free(ns)?;
        if unit.created(ns).is_some() {
            let text = format!("Collection {ns} already exists.");
            return Err(Error::new(ErrorCode::NamespaceExists, text));
        }
        let coll = self.add_collection(unit, ns, self.new_uuid(), options, None)?;
        let collected = unit.collected_mut()?;
        collected.created.push(coll.clone());
        collected.permits.extend(self.1.clone().map(|permit| (ns.clone(), permit)));
        Ok(coll)
    }

    /// `createIndexes` within a transaction: only a collection that the same transaction has made, and has not written to
    /// yet, gets new ones.
    pub fn create_indexes_within(
        &self,
        unit: &mut WriteUnit,
        ns: &Namespace,
        existing: Option<&Arc<Collection>>,
        raw: &[&RawDoc],
    ) -> Result<IndexesCreated> {
        if raw.is_empty() {
            return Err(Error::bad_value("Must specify at least one index to create"));
        }
        let refuse = |what: &str| {
            let text = format!(
                "Cannot create new indexes on {what} collection {ns} in a multi-document transaction."
            );
            Err(Error::new(ErrorCode::OperationNotSupportedInTransaction, text))
        };
        crate::schema::names::check_writable(ns)?;
        let made = unit.created(ns).cloned();
        let wanted = parse_all(raw, made.as_ref().or(existing).map(|c| &**c))?;
        if let Some(there) = made.as_ref().or(existing)
            && let Some(unchanged) = all_there(&wanted, there)?
        {
            return Ok(unchanged);
        }
        conflict::among(&wanted.specs, false)?;
        check_kinds(&wanted.specs)?;
        let coll = match (made, existing) {
            (Some(made), _) if !self.is_empty_within(unit, &made)? => return refuse("non-empty"),
            (Some(made), _) => made,
            (None, Some(_)) => return refuse("existing"),
            (None, None) => self.create_within(unit, ns, CollectionOptions::default())?,
        };
        let before = coll.index_count();
        let mut new = Vec::new();
        for spec in wanted.specs {
            if conflict::with_collection(&spec, &coll)? == Verdict::New {
                new.push(spec);
            }
        }
        let note = (new.len() < raw.len()).then_some("index already exists");
        let after = before + new.len();
        self.add_indexes_within(unit, coll, new)?;
        Ok(IndexesCreated { before, after, created_collection: true, note, last: OpTime::NULL })
    }

    fn is_empty_within(&self, unit: &WriteUnit, coll: &Collection) -> Result<bool> {
        let mut c = unit.txn().scan(coll.records, Bound::Unbounded, Bound::Unbounded, Dir::Forward)?;
        Ok(c.next()?.is_none())
    }

    fn add_indexes_within(
        &self,
        unit: &mut WriteUnit,
        mut current: Arc<Collection>,
        specs: Vec<IndexSpec>,
    ) -> Result<()> {
        conflict::check_count(&current.ns, current.indexes.len(), &specs.iter().collect::<Vec<_>>())?;
        for spec in specs {
            unit.stamp();
            let ident = self.storage().create_ident(IdentKind::Index)?;
            let format = format_of(&spec);
            let index = durable::new_index(spec.clone(), ident, format, Timestamp::ZERO, self.now_ms())?;
            let mut parts = Parts::of(&current);
            parts.indexes.push(Arc::new(index));
            current = parts.assemble()?;
            durable::put_row(&mut unit.txn, &current, [].iter())?;
            unit.observe(&Defined::IndexCreated { coll: &current, spec: &spec })?;
        }
        let created = &mut unit.collected_mut()?.created;
        created.retain(|c| c.uuid != current.uuid);
        created.push(current);
        Ok(())
    }

    /// Commits. A collection that it made may have come into being elsewhere meanwhile, or may not come into being here any more: then it
    /// conflicts.
    pub async fn commit_transaction(
        &self,
        mut unit: WriteUnit,
        lsid: &RawDoc,
        id: TxnId,
        patience: Duration,
    ) -> Result<Committed> {
        let collected = unit.collected_mut()?;
        let created = std::mem::take(&mut collected.created);
        let permits = std::mem::take(&mut collected.permits);
        let mut databases: Vec<&str> = created.iter().map(|c| c.ns.db()).collect();
        databases.sort_unstable();
        databases.dedup();
        let mut locks = Vec::new();
        for db in databases {
            match self.env().timeout(patience, self.lock_database(db)).await {
                Some(lock) => locks.push(lock),
                None => return Err(Error::write_conflict()),
            }
        }
        for coll in &created {
            self.check_not_dropping(&coll.ns)?;
            self.check_free(&coll.ns).map_err(|_| Error::write_conflict())?;
        }
        for (ns, permit) in &permits {
            permit.check(ns).map_err(|_| Error::write_conflict())?;
        }
        let (done, created, collected) = unit.commit_collected(created, lsid, id.1)?;
        if !created.is_empty() {
            self.publish(|s| created.into_iter().for_each(|c| s.put(Named::Collection(c))));
        }
        drop(locks);
        let ops = collected.ended();
        if done.operations > 0 {
            self.tell_txn(|observers| {
                let (origin, at, writes) = (Origin::Command, done.last, &TxnWrites::of(&ops));
                let committed = TxnCommitted { id: &id, origin, prepare: None, commit: at.ts, at, writes };
                observers.iter().for_each(|o| o.committed(&committed));
            });
        }
        Ok(done)
    }
}

impl WriteUnit {
    /// The collection of that name that this transaction has made.
    pub fn created(&self, ns: &Namespace) -> Option<&Arc<Collection>> {
        self.collected()?.created.iter().find(|c| c.ns == *ns)
    }
    /// Operations so far and their bytes in the log.
    pub fn operations(&self) -> (usize, usize) {
        self.collected().map_or((0, 0), |c| (c.ops.len(), c.bytes))
    }

    fn commit_collected(
        mut self,
        created: Vec<Arc<Collection>>,
        lsid: &RawDoc,
        number: i64,
    ) -> Result<(Committed, Vec<Arc<Collection>>, Collected)> {
        let collected = std::mem::take(self.collected_mut()?);
        let (operations, bytes) = (collected.ops.len(), collected.bytes);
        if operations == 0 {
            let last = self.commit()?;
            return Ok((Committed { last, operations, bytes }, Vec::new(), collected));
        }
        let groups = groups_of(&collected.ops)?;
        let slots = self.catalog.storage().log().reserve(groups.len());
        self.ask_whether_it_may_commit(&collected)?;
        let at = slots.last_ts();
        let mut published = Vec::with_capacity(created.len());
        for coll in created {
            // Only now it is known since when it exists.
            let coll = Parts { since: at, ..Parts::of(&coll) }.assemble()?;
            let (txn, marks) = self.txn_and_marks();
            durable::put_row(txn, &coll, marks.iter().filter(|m| m.collection == coll.uuid))?;
            published.push(coll);
        }
        self.log_groups(slots, groups, lsid, number, false);
        let last = self.commit_at(at)?;
        Ok((Committed { last, operations, bytes }, published, collected))
    }
}

impl WriteUnit {
    /// Leaves the entries of a transaction. Each names the one before.
    fn log_groups(
        &mut self,
        slots: Slots,
        groups: Vec<&[DocBuf]>,
        lsid: &RawDoc,
        number: i64,
        prepare: bool,
    ) {
        let mut prev = OpTime::NULL;
        let n = groups.len();
        let operations = groups.iter().map(|ops| ops.len()).sum();
        for (i, (slot, ops)) in slots.zip(groups).enumerate() {
            let chain = Chain { lsid, txn_number: number, prev };
            prev = OpTime::new(slot.ts(), self.term());
            let partial = i + 1 < n;
            let kind = Part { partial, prepare: prepare && !partial };
            let o = apply_ops(ops, kind, (!partial && n > 1).then_some(operations));
            self.log_chain(slot, &chain, &o);
        }
    }
    /// Behind its slots: whoever forbids it from now on is behind them, too.
    fn ask_whether_it_may_commit(&self, collected: &Collected) -> Result<()> {
        self.observers().iter().try_for_each(|o| o.committing(&collected.ops))
    }
    pub(crate) fn made_collections(&self) -> bool {
        self.collected().is_some_and(|c| !c.created.is_empty())
    }
    /// Leaves the entries, and the writes undecided.
    pub(crate) fn prepare_collected(
        mut self,
        lsid: &RawDoc,
        number: i64,
    ) -> Result<(Undecided, OpTime, TxnWrites)> {
        let collected = std::mem::take(self.collected_mut()?);
        let groups = groups_of(&collected.ops)?;
        let slots = self.catalog.storage().log().reserve(groups.len());
        self.ask_whether_it_may_commit(&collected)?;
        self.log_groups(slots, groups, lsid, number, true);
        let (unit, last) = self.prepare()?;
        Ok((unit, last, TxnWrites::of(&collected.ended())))
    }
}

/// What an `applyOps` entry says beside its operations.
struct Part {
    partial: bool,
    prepare: bool,
}

/// Splits the operations so that each group fits into one entry.
fn groups_of(ops: &[DocBuf]) -> Result<Vec<&[DocBuf]>> {
    let mut groups = Vec::new();
    let (mut from, mut bytes) = (0, 0);
    for (i, op) in ops.iter().enumerate() {
        // The document before comes on top, as outside of transactions.
        let image = op.get("pre").and_then(|v| v.as_doc()).map_or(0, RawDoc::byte_len);
        if op.byte_len() - image > limits::BSON_INTERNAL_BYTES_MAX {
            let text = "An operation of the transaction is too large for an oplog entry";
            return Err(Error::new(ErrorCode::TransactionTooLarge, text));
        }
        bytes += op.byte_len() + limits::BSON_ARRAY_ELEMENT_BYTES_MAX;
        if i > from && bytes > limits::BSON_USER_BYTES_MAX {
            groups.push(&ops[from..i]);
            (from, bytes) = (i, op.byte_len());
        }
    }
    groups.push(&ops[from..]);
    Ok(groups)
}

fn apply_ops(ops: &[DocBuf], part: Part, count: Option<usize>) -> DocBuf {
    let bytes: usize = ops.iter().map(|op| op.byte_len() + limits::BSON_ARRAY_ELEMENT_BYTES_MAX).sum();
    let mut b = DocBuilder::with_capacity(bytes + 64);
    b.array("applyOps", |a: &mut ArrayBuilder| {
        for op in ops {
            a.raw_doc(op);
        }
    });
    if part.partial {
        b.bool("partialTxn", true);
    }
    if part.prepare {
        b.bool("prepare", true);
    }
    if let Some(n) = count {
        b.value("count", Value::Int64(n as i64));
    }
    b.finish()
}
