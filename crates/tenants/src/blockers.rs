//! Access blockers of a set's tenants, as every operation of a client asks for them (SV-MTAB).
//!
//! What was asked for is one look into a table that is made anew when a state document changes, which is seldom. Where no operation on
//! tenants is under way, it is one look at a flag.

use crate::mutants::{Mutant, broken};
use crate::operation::{Access, Kind, Operation, Phase};
use crate::serverless_lock;
use arc_swap::ArcSwap;
use pando_base::panics::poisoned;
use pando_base::{Error, ErrorCode, HashMap, OpTime, Result, TenantId, Timestamp, Uuid, limits};
use pando_bson::{DocBuilder, RawDoc};
use pando_env::sync::Notify;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex, MutexGuard};

/// Blockers of all tenants that have one.
#[derive(Default)]
pub struct AccessBlockers {
    /// Some tenant has one. Changed before the table gets one, and after it has lost the last.
    any: AtomicBool,
    table: ArcSwap<Table>,
    known: Mutex<Known>,
    changed: Notify,
    pub counts: Counts,
    pub splits: Splits,
    pub migrations: Migrations,
}

pando_metrics::group! {
    /// What blockers have done on this member.
    pub struct Counts {
        /// Reads that waited for a tenant's decision, or for what this member has missed.
        pub blocked_reads: Counter = "numBlockedReads", "operations";
        /// Writes that waited for a tenant's decision.
        pub blocked_writes: Counter = "numBlockedWrites", "operations";
        /// Operations that were told that their tenant is elsewhere.
        pub committed_errors: Counter = "numTenantMigrationCommittedErrors", "operations";
        /// Operations that were told that their tenant stays, after they had waited.
        pub aborted_errors: Counter = "numTenantMigrationAbortedErrors", "operations";
    }
}

pando_metrics::group! {
    /// What became of the splits that this member led.
    pub struct Splits {
        /// Splits that committed.
        pub committed: Counter = "totalCommitted", "splits";
        /// Splits that were aborted.
        pub aborted: Counter = "totalAborted", "splits";
    }
}

pando_metrics::group! {
    /// What became of the migrations that this member led, of tenants and of whole sets, from here.
    pub struct Migrations {
        /// Migrations from here that committed.
        pub donated: Counter = "totalMigrationDonationsCommitted", "migrations";
        /// Migrations from here that were aborted.
        pub aborted: Counter = "totalMigrationDonationsAborted", "migrations";
        /// Migrations whose tenants are here now.
        pub received: Counter = "totalSuccessfulMigrationsReceived", "migrations";
        /// Migrations whose tenants did not come here.
        pub failed: Counter = "totalFailedMigrationsReceived", "migrations";
    }
}

#[derive(Default)]
struct Known {
    operations: BTreeMap<Uuid, Operation>,
    /// Whose writes the primary has blocked before the document says so.
    early: BTreeSet<Uuid>,
    /// Which of those that have just begun may go on: their tenants are theirs.
    reserved: BTreeSet<Uuid>,
    committed: Timestamp,
    /// What became of operations whose blockers are gone already: whoever waited may look later. The newest is last.
    ended: VecDeque<(Uuid, Access)>,
    /// How many times a primary of this process has stepped down.
    offices: u64,
    /// Since which table tenants of an operation may do everything here.
    arrived: BTreeMap<Uuid, u64>,
}

impl Known {
    /// Whose decision holds, with or without a blocker.
    fn note_ended(&mut self) {
        for (id, operation) in &self.operations {
            let end = match (operation.access(false, self.committed), operation.phase) {
                (Some(end @ (Access::Moved | Access::Stays | Access::NoReadsBefore(_))), _) => end,
                (None, Phase::Aborted { .. }) => Access::Stays,
                _ => continue,
            };
            if !self.ended.iter().any(|(known, _)| known == id) {
                self.ended.push_back((*id, end));
            }
        }
        while self.ended.len() > limits::TENANT_DECISIONS_KEPT {
            self.ended.pop_front();
        }
    }
    fn ended(&self, id: Uuid) -> Option<Access> {
        let found = self.ended.iter().find(|(known, _)| *known == id);
        found.map(|(_, end)| *end).filter(|_| !broken(Mutant::DecisionForgotten))
    }
    fn may_begin(&self, operation: &Operation) -> Result<()> {
        let counts = |o: &&Operation| {
            o.id != operation.id && (o.phase != Phase::Begun || self.reserved.contains(&o.id))
        };
        let others: Vec<Operation> = self.operations.values().filter(counts).cloned().collect();
        serverless_lock::may_begin(operation, &others)
    }
}

#[derive(Default)]
struct Table {
    tenants: HashMap<TenantId, Blocker>,
    /// Of all that are not named: the set is being merged.
    others: Option<Blocker>,
}

impl Table {
    fn get(&self, tenant: &str) -> Option<&Blocker> {
        self.tenants.get(tenant).or(self.others.as_ref())
    }
    /// One that was aborted may stand beside the one that has the tenant: what permits less counts.
    fn add(&mut self, tenant: TenantId, blocker: Blocker) {
        match self.tenants.get_mut(tenant.as_str()) {
            Some(kept) if !broken(Mutant::LastDocumentCounts) => *kept = kept.with(blocker),
            _ => _ = self.tenants.insert(tenant, blocker),
        }
    }
}

/// What one tenant may do, and because of whom.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Blocker {
    operation: Uuid,
    access: Access,
    /// There is nothing to be read as of a time before that one, whatever else becomes of the tenant.
    before: Timestamp,
    /// The log here begins behind that time, as far as the tenant is concerned.
    log_from: Timestamp,
    /// The log here ends at that time, and goes on elsewhere from it.
    log_upto: Option<Timestamp>,
    /// Of a tenant that has come: since which table it may do everything.
    since: u64,
}

impl Blocker {
    fn new(operation: &Operation, access: Access) -> Blocker {
        let log_from = match operation.phase {
            Phase::Owns { block, .. } => block,
            _ => Timestamp(0),
        };
        let before = match access {
            Access::NoReadsBefore(before) => before,
            _ => Timestamp(0),
        };
        // A set that has split off has the whole log.
        let log_upto = match operation.phase {
            Phase::Committed { block, .. } if operation.kind == Kind::Donor => Some(block),
            _ => None,
        };
        Blocker { operation: operation.id, access, before, log_from, log_upto, since: 0 }
    }
    fn with(self, other: Blocker) -> Blocker {
        let counts = if other.access.outweighs(self.access) { other } else { self };
        let (before, log_from) = (self.before.max(other.before), self.log_from.max(other.log_from));
        Blocker { before, log_from, ..counts }
    }
}

/// What a read is told.
#[derive(Debug)]
pub enum Reading {
    Goes,
    /// Until there is a decision.
    Waits,
    Refused(Error),
}

/// What became of an operation that somebody waited for.
#[derive(Debug)]
pub enum Decision {
    Committed(Error),
    Aborted(Error),
    /// The tenant has come here, and may do everything.
    Arrived,
    /// Its document is gone, or this member is no primary any more.
    Gone(Error),
}

impl Decision {
    pub fn into_error(self) -> Error {
        match self {
            Decision::Arrived => not_yet("write"),
            Decision::Committed(e) | Decision::Aborted(e) | Decision::Gone(e) => e,
        }
    }
}

fn conflict(tenant: &str, what: &str) -> Error {
    let mut extra = DocBuilder::new();
    extra.str("tenantId", tenant);
    let text = format!("{what} must block until this tenant migration commits or aborts");
    Error::new(ErrorCode::TenantMigrationConflict, text).with_extra(extra.finish().into_bytes())
}
/// 239 for reads, as in 6.0; 20.
fn not_yet(what: &str) -> Error {
    let code = if what == "read" { ErrorCode::SnapshotTooOld } else { ErrorCode::IllegalOperation };
    Error::new(code, format!("Tenant {what} is not allowed before migration completes"))
}
/// The tenant whose decision an error is about.
pub fn tenant_of(e: &Error) -> Option<String> {
    let told = e.code == ErrorCode::TenantMigrationConflict && !e.extra.is_empty();
    RawDoc::trusted(told.then_some(&e.extra)?).get("tenantId")?.as_str().map(str::to_owned)
}

impl AccessBlockers {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(poisoned)
    }
    /// Makes the table anew from what is known.
    fn publish(&self, known: &mut Known) {
        known.note_ended();
        known.arrived.retain(|id, _| known.operations.contains_key(id));
        let mut table = Table::default();
        for (id, operation) in &known.operations {
            let early = known.early.contains(id) && !broken(Mutant::EarlyNotShown);
            let Some(access) = operation.access(early, known.committed) else { continue };
            let mut blocker = Blocker::new(operation, access);
            if matches!(access, Access::NoReadsBefore(_)) {
                let now = self.changed.version() + 1;
                blocker.since = *known.arrived.entry(*id).or_insert(now);
            }
            for tenant in operation.tenants.iter().filter_map(|t| TenantId::parse(t).ok()) {
                table.add(tenant, blocker);
            }
            // Nobody would copy what comes into being now.
            let others = operation.access(true, known.committed).filter(|_| operation.all);
            if let Some(access) = others.filter(|_| !broken(Mutant::NewTenantsPass)) {
                let blocker = Blocker::new(operation, access);
                table.others = Some(table.others.map_or(blocker, |kept| kept.with(blocker)));
            }
        }
        let any = !table.tenants.is_empty() || table.others.is_some();
        if any {
            self.any.store(true, SeqCst);
        }
        self.table.store(Arc::new(table));
        if !any {
            self.any.store(false, SeqCst);
        }
        self.changed.bump();
    }
    fn change(&self, change: impl FnOnce(&mut Known)) {
        let mut known = self.known();
        change(&mut known);
        self.publish(&mut known);
    }

    /// A state document has come, or has become another; `here`: by this primary's own doing.
    pub fn follow(&self, operation: Operation, here: bool) {
        self.change(|known| {
            let before = known.operations.get(&operation.id);
            let news = before.is_none_or(|before| !before.is_decided());
            if here && news {
                self.count(&operation);
            }
            if broken(Mutant::EarlyForgotten) {
                known.early.remove(&operation.id);
            }
            known.operations.insert(operation.id, operation);
        });
    }
    fn count(&self, operation: &Operation) {
        let is_split = operation.kind == Kind::ShardSplit;
        match operation.phase {
            Phase::Committed { .. } if is_split => self.splits.committed.inc(),
            Phase::Aborted { .. } if is_split => self.splits.aborted.inc(),
            Phase::Committed { .. } => self.migrations.donated.inc(),
            Phase::Aborted { .. } => self.migrations.aborted.inc(),
            Phase::Owns { .. } => self.migrations.received.inc(),
            Phase::Receiving { aborted: true } => self.migrations.failed.inc(),
            _ => {}
        }
    }
    /// It is gone.
    pub fn remove(&self, id: &Uuid) {
        self.change(|known| {
            known.operations.remove(id);
            known.early.remove(id);
            known.reserved.remove(id);
        });
    }
    /// What the documents say is all there is (SV-MTAB-10): at the start, behind an initial sync and a rollback.
    pub fn rebuild(&self, operations: Vec<Operation>) {
        self.change(|known| {
            known.operations = operations.into_iter().map(|o| (o.id, o)).collect();
            known.early.retain(|id| known.operations.contains_key(id));
        });
    }
    /// The documents of some kinds are gone, with their collection.
    pub fn retain(&self, stays: impl Fn(Kind) -> bool) {
        self.change(|known| {
            known.operations.retain(|_, operation| stays(operation.kind));
            known.early.retain(|id| known.operations.contains_key(id));
        });
    }
    /// The primary blocks writes, before it takes the slot that becomes `blockTimestamp`.
    pub fn block_writes(&self, id: &Uuid) {
        self.change(|known| _ = known.early.insert(*id));
    }
    /// An operation that has just begun takes its tenants, unless another one has them or one of another kind is under way (SV-LOCK,
    /// SV-CMD-4). Of two that begin at the same time it is the one that comes here first.
    ///
    /// # Errors
    /// 385, 117.
    pub fn reserve(&self, operation: &Operation) -> Result<()> {
        let mut known = self.known();
        known.may_begin(operation)?;
        known.reserved.insert(operation.id);
        Ok(())
    }
    /// The same question, without taking anything.
    ///
    /// # Errors
    /// 385, 117.
    pub fn may_begin(&self, operation: &Operation) -> Result<()> {
        self.known().may_begin(operation)
    }
    /// This node is primary no more: from now on only documents count, and whoever waits to write waits in vain.
    pub fn step_down(&self) {
        self.change(|known| {
            known.offices += 1;
            if !broken(Mutant::EarlyOutlivesOffice) {
                known.early.clear();
            }
            known.reserved.clear();
        });
    }
    /// A majority has everything up to there.
    pub fn commit_point(&self, at: OpTime) {
        let mut known = self.known();
        let before = std::mem::replace(&mut known.committed, at.ts);
        let decides = |o: &Operation| o.access(true, before) != o.access(true, at.ts);
        if known.operations.values().any(decides) {
            self.publish(&mut known);
        }
    }

    /// The tenant of a database, and its blocker.
    fn blocker<'d>(&self, db: &'d str) -> Option<(&'d str, Blocker)> {
        if !self.any.load(SeqCst) {
            return None;
        }
        let tenant = TenantId::of(db)?;
        let table = self.table.load();
        if broken(Mutant::PrefixIsEnough) {
            let found = table.tenants.iter().find(|(known, _)| tenant.starts_with(known.as_str()));
            return found.map(|(_, blocker)| (tenant, *blocker));
        }
        table.get(tenant).map(|blocker| (tenant, *blocker))
    }
    /// Whether some tenant has a blocker: everything else is asked only then.
    pub fn any(&self) -> bool {
        self.any.load(SeqCst)
    }

    /// Of a write that has its slot (SV-MTAB-2).
    ///
    /// # Errors
    /// 320 where the decision has to be waited for, without the slot; 321.
    pub fn check_write(&self, db: &str) -> Result<()> {
        let Some((tenant, blocker)) = self.blocker(db) else { return Ok(()) };
        match blocker.access {
            Access::NoBuilds | Access::Stays | Access::NoReadsBefore(_) => Ok(()),
            Access::Refused | Access::Arrives if broken(Mutant::AnybodyCopies) => Ok(()),
            // Whoever comes to write something waits before its command begins: nothing is to be carried out in part.
            Access::Refused | Access::Arrives => Err(not_yet("write")),
            Access::NoWrites | Access::NoWritesNoReads(_) | Access::Leaves => {
                self.counts.blocked_writes.inc();
                Err(conflict(tenant, "Write"))
            }
            Access::Moved => Err(self.moved()),
        }
    }
    /// Of an index build that begins (SV-MTAB-5).
    ///
    /// # Errors
    /// As of a write.
    pub fn check_build(&self, db: &str) -> Result<()> {
        match self.blocker(db) {
            Some((tenant, Blocker { access: Access::NoBuilds, .. })) => Err(conflict(tenant, "Index build")),
            _ => self.check_write(db),
        }
    }
    /// Of a read behind its read concern (SV-MTAB-3), which asks for `at` or later, if for anything.
    pub fn read(&self, db: &str, at: Option<Timestamp>) -> Reading {
        match self.blocker(db).map(|(_, blocker)| blocker.access) {
            Some(Access::NoWritesNoReads(block)) if at.is_some_and(|at| at >= block) => {
                self.counts.blocked_reads.inc();
                Reading::Waits
            }
            Some(Access::Leaves | Access::Arrives) => {
                self.counts.blocked_reads.inc();
                Reading::Waits
            }
            Some(Access::Refused) => Reading::Refused(not_yet("read")),
            Some(Access::Moved) => Reading::Refused(self.moved()),
            _ => Reading::Goes,
        }
    }
    /// Of a read of data as they were at `at`: a recipient has no history of what came to it (SV-OUT-1).
    ///
    /// # Errors
    /// 239.
    pub fn check_history(&self, db: &str, at: Timestamp) -> Result<()> {
        match self.blocker(db) {
            Some((_, Blocker { before, .. })) if at < before && !broken(Mutant::OldReadsPass) => {
                Err(not_yet("read"))
            }
            _ => Ok(()),
        }
    }
    /// Of a change stream that begins at `from`: whether the log here has everything behind that.
    pub fn has_log_from(&self, db: &str, from: Timestamp) -> bool {
        self.blocker(db).is_none_or(|(_, blocker)| from >= blocker.log_from) || broken(Mutant::OldStreamsPass)
    }
    /// Which table of blockers this is.
    pub fn version(&self) -> u64 {
        self.changed.version()
    }
    /// Whether a tenant has come here since that table, or comes still: what there was of it meanwhile is nothing, or a part of it.
    pub fn has_come_since(&self, db: &str, version: u64) -> bool {
        self.blocker(db).is_some_and(|(_, blocker)| match blocker.access {
            Access::Refused | Access::Arrives => true,
            Access::NoReadsBefore(_) => version < blocker.since && !broken(Mutant::HalfCopiesShown),
            _ => false,
        })
    }
    /// Where the tenant is elsewhere: the time up to which its log is here only.
    pub fn log_ends_at(&self, db: &str) -> Option<Timestamp> {
        let (_, blocker) = self.blocker(db)?;
        blocker.log_upto.filter(|_| blocker.access == Access::Moved)
    }
    /// Of a tenant that moves to another set: where its log here ends, if it is not aborted.
    pub fn stream_end(&self, db: &str) -> Option<Timestamp> {
        let (_, blocker) = self.blocker(db)?;
        match blocker.access {
            Access::NoWritesNoReads(block) => Some(block),
            Access::Leaves | Access::Moved => blocker.log_upto,
            _ => None,
        }
    }
    /// Whether the tenant of a database is elsewhere.
    pub fn is_moved(&self, db: &str) -> bool {
        self.blocker(db).is_some_and(|(_, blocker)| blocker.access == Access::Moved)
    }
    /// Where its tenant is now.
    pub fn moved(&self) -> Error {
        self.counts.committed_errors.inc();
        let text = "Write or read must be re-routed to the new owner of this tenant";
        Error::new(ErrorCode::TenantMigrationCommitted, text)
    }

    /// Returns when the operation is decided that a tenant's write or read waits for.
    pub async fn decided(&self, tenant: &str, writes: bool) -> Decision {
        let office = self.known().offices;
        let mut waits_for = None;
        loop {
            let seen = self.changed.version();
            let now = self.table.load().get(tenant).copied();
            waits_for = waits_for.or(now.map(|blocker| blocker.operation));
            if let Some(decision) = self.look(now, waits_for, writes.then_some(office)) {
                return decision;
            }
            self.changed.changed(seen).await;
        }
    }
    fn look(&self, now: Option<Blocker>, waits_for: Option<Uuid>, office: Option<u64>) -> Option<Decision> {
        let gone = |code, text: &'static str| Some(Decision::Gone(Error::new(code, text)));
        if office.is_some_and(|office| office != self.known().offices) {
            let text = "the primary has stepped down while a write waited for a tenant";
            return gone(ErrorCode::InterruptedDueToReplStateChange, text);
        }
        let access = match (now, waits_for) {
            (Some(Blocker { operation, access, .. }), Some(id)) if operation == id => Some(access),
            (_, Some(id)) => self.known().ended(id),
            _ => None,
        };
        match access {
            Some(Access::Moved) => Some(Decision::Committed(self.moved())),
            Some(Access::Stays) => Some(Decision::Aborted(self.aborted())),
            Some(Access::NoReadsBefore(_)) => Some(Decision::Arrived),
            Some(Access::Refused) => Some(Decision::Gone(not_yet("read"))),
            Some(_) if broken(Mutant::NobodyWaits) => Some(Decision::Aborted(self.aborted())),
            Some(_) => None,
            None => gone(ErrorCode::Interrupted, "the operation that a tenant waited for is gone"),
        }
    }
    fn aborted(&self) -> Error {
        self.counts.aborted_errors.inc();
        Error::new(ErrorCode::TenantMigrationAborted, "Tenant migration aborted")
    }

    /// For `currentOp` and tests: each operation with its tenants, and what they may do now.
    pub fn all(&self) -> Vec<(Operation, Option<Access>)> {
        let known = self.known();
        let access = |o: &Operation| o.access(known.early.contains(&o.id), known.committed);
        known.operations.values().map(|o| (o.clone(), access(o))).collect()
    }
}
