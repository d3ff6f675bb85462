//! One open transaction.

use super::memory::Share;
use super::metrics::Metrics;
use pando_base::{Error, ErrorCode, Namespace, Result, Timestamp};
use pando_catalog::{Catalog, Collection, Named, View, WriteGuard, WriteUnit};
use pando_command::{Client, Instance, OpCtx, Param, ReadConcern, SessionId};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

pub struct OpenTxn {
    pub lsid: SessionId,
    pub number: i64,
    pub read_concern: ReadConcern,
    /// Zero unless it reads at one time by its read concern.
    pub read_timestamp: Timestamp,
    /// Monotonic, and wall time.
    pub started: Duration,
    pub started_wall_ms: i64,
    pub lifetime: Duration,
    body: Mutex<Body>,
    times: Mutex<Times>,
    /// Whose the last statement was.
    client: Mutex<Option<Arc<Client>>>,
    metrics: Arc<Metrics>,
    instance: Arc<Instance>,
}

/// Fields are dropped in their order: first the unit, then the locks that protect it.
#[derive(Default)]
struct Body {
    /// `None` once it is over.
    unit: Option<WriteUnit>,
    held: BTreeMap<String, Held>,
    memory: Option<Share>,
}

enum Held {
    /// With the version that the transaction sees.
    Collection(WriteGuard, Arc<Collection>),
    View(Arc<View>),
}

/// How long statements ran.
#[derive(Default)]
struct Times {
    active: Duration,
    since: Option<Duration>,
}

impl OpenTxn {
    pub(crate) fn begin(
        ctx: &OpCtx,
        lsid: SessionId,
        number: i64,
        unit: WriteUnit,
        read_timestamp: Timestamp,
        metrics: Arc<Metrics>,
        cache_bytes: usize,
    ) -> OpenTxn {
        metrics.started();
        let part = ctx.instance().params.double(Param::transactionTooLargeForCacheThreshold);
        let memory = Share::new(metrics.memory.clone(), (cache_bytes as f64 * part) as usize);
        let secs = ctx.instance().params.int(Param::transactionLifetimeLimitSeconds).max(1) as u64;
        OpenTxn {
            lsid,
            number,
            read_concern: ctx.read_concern,
            read_timestamp,
            started: ctx.env().clock.mono(),
            started_wall_ms: ctx.env().clock.wall_ms(),
            lifetime: Duration::from_secs(secs),
            body: Mutex::new(Body { unit: Some(unit), held: BTreeMap::new(), memory: Some(memory) }),
            times: Mutex::default(),
            client: Mutex::default(),
            metrics,
            instance: ctx.instance().clone(),
        }
    }
    fn body(&self) -> MutexGuard<'_, Body> {
        self.body.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Works on the unit; 251 when the transaction has ended meanwhile.
    pub fn with<T>(&self, work: impl FnOnce(&mut WriteUnit) -> Result<T>) -> Result<T> {
        let mut body = self.body();
        let Body { unit: Some(unit), memory, .. } = &mut *body else { return Err(self.aborted()) };
        let done = work(unit)?;
        if let Some(memory) = memory {
            memory.set(unit.memory())?;
        }
        Ok(done)
    }
    pub fn aborted(&self) -> Error {
        Error::new(
            ErrorCode::NoSuchTransaction,
            format!("Transaction with {{ txnNumber: {} }} has been aborted.", self.number),
        )
    }
    /// Takes the unit for its commit; the locks stay until the transaction goes.
    pub fn take_unit(&self) -> Result<WriteUnit> {
        let unit = self.body().unit.take().ok_or_else(|| self.aborted())?;
        Ok(unit)
    }
    /// Takes the unit and the locks, which stay with it whatever becomes of this node's role.
    pub fn take_to_prepare(&self) -> Result<(WriteUnit, Vec<WriteGuard>)> {
        let mut body = self.body();
        let unit = body.unit.take().ok_or_else(|| self.aborted())?;
        let held = std::mem::take(&mut body.held).into_values();
        let guards = held.filter_map(|held| match held {
            Held::Collection(guard, _) => Some(guard),
            Held::View(_) => None,
        });
        Ok((unit, guards.collect()))
    }
    /// Lets everything go, once.
    pub fn abort(&self) {
        let over = std::mem::take(&mut *self.body());
        if over.unit.is_some() {
            self.metrics.aborted();
        }
    }
    /// After the unit was taken and has failed or committed.
    pub fn ended(&self, committed: bool) {
        if committed {
            self.metrics.committed()
        } else {
            self.metrics.aborted()
        }
        drop(std::mem::take(&mut *self.body()));
    }

    fn times(&self) -> MutexGuard<'_, Times> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }
    pub fn client(&self) -> Option<Arc<Client>> {
        self.client.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
    pub fn statement_begins(self: &Arc<Self>, ctx: &OpCtx) {
        self.times().since = Some(ctx.env().clock.mono());
        *self.client.lock().unwrap_or_else(PoisonError::into_inner) = Some(ctx.client.clone());
        let open: Weak<OpenTxn> = Arc::downgrade(self);
        ctx.show(|op| op.transaction = Some(open));
        self.metrics.activated();
    }
    pub fn statement_ends(&self, now: Duration) {
        let mut times = self.times();
        if let Some(since) = times.since.take() {
            times.active += now.saturating_sub(since);
            self.metrics.deactivated();
        }
    }
    /// Time since the start, and how much of it statements ran.
    pub fn spent(&self, now: Duration) -> (Duration, Duration) {
        let times = self.times();
        let running = times.since.map_or(Duration::ZERO, |since| now.saturating_sub(since));
        (now.saturating_sub(self.started), times.active + running)
    }

    /// What a name means in this transaction: what it made, what it has met, or what exists.
    pub(crate) fn named(&self, catalog: &Catalog, ns: &Namespace) -> Option<Named> {
        let body = self.body();
        if let Some(made) = body.unit.as_ref().and_then(|u| u.created(ns)) {
            return Some(Named::Collection(made.clone()));
        }
        match body.held.get(ns.as_str()) {
            Some(Held::Collection(_, seen)) => Some(Named::Collection(seen.clone())),
            Some(Held::View(view)) => Some(Named::View(view.clone())),
            None => catalog.snapshot().get(ns).cloned(),
        }
    }
    /// The collection in this transaction; 166 for a view.
    pub(crate) fn collection(&self, catalog: &Catalog, ns: &Namespace) -> Result<Option<Arc<Collection>>> {
        match self.named(catalog, ns) {
            Some(Named::Collection(c)) => Ok(Some(c)),
            Some(Named::View(_)) => Err(Error::new(
                ErrorCode::CommandNotSupportedOnView,
                format!("Namespace {ns} is a view, not a collection"),
            )),
            None => Ok(None),
        }
    }

    /// Locks what a name stands for until the transaction ends, so that its definition stands still. A definition change
    /// under way is waited for only briefly: it may itself wait for this transaction.
    pub(crate) async fn meet(&self, catalog: &Catalog, ctx: &OpCtx, ns: &Namespace) -> Result<()> {
        let mut ns = ns.clone();
        loop {
            {
                let body = self.body();
                let made = body.unit.as_ref().is_some_and(|u| u.created(&ns).is_some());
                if made || body.held.contains_key(ns.as_str()) {
                    return Ok(());
                }
            }
            let snapshot = catalog.snapshot();
            if let Some(Named::View(view)) = snapshot.get(&ns) {
                self.body().held.insert(ns.as_str().to_owned(), Held::View(view.clone()));
                let below = snapshot.resolve_view(&ns)?;
                let Some(below) = below else { return Ok(()) };
                ns = below.ns;
                continue;
            }
            let Some(guard) = self.lock(catalog, ctx, &ns).await? else { return Ok(()) };
            let seen = self.seen(guard.collection())?;
            let mut body = self.body();
            if body.unit.is_some() {
                body.held.insert(ns.as_str().to_owned(), Held::Collection(guard.leave_task(), seen));
            }
            return Ok(());
        }
    }
    /// The same at once: a collection, made, met, or to be locked now.
    pub(crate) fn meet_now(&self, catalog: &Catalog, ns: &Namespace) -> Result<Option<Arc<Collection>>> {
        {
            let body = self.body();
            if let Some(made) = body.unit.as_ref().and_then(|u| u.created(ns)) {
                return Ok(Some(made.clone()));
            }
            match body.held.get(ns.as_str()) {
                Some(Held::Collection(_, seen)) => return Ok(Some(seen.clone())),
                Some(Held::View(_)) => return Ok(None),
                None => {}
            }
        }
        let Some(guard) = catalog.try_write_lock(ns)? else { return Ok(None) };
        let seen = self.seen(guard.collection())?;
        self.body().held.insert(ns.as_str().to_owned(), Held::Collection(guard, seen.clone()));
        Ok(Some(seen))
    }
    async fn lock(&self, catalog: &Catalog, ctx: &OpCtx, ns: &Namespace) -> Result<Option<WriteGuard>> {
        let ms = ctx.instance().params.int(Param::maxTransactionLockRequestTimeoutMillis);
        let locked = catalog.write_lock(ns);
        let Ok(ms) = u64::try_from(ms) else { return ctx.interruptible(locked).await? };
        let limited = ctx.env().timeout(Duration::from_millis(ms), locked);
        ctx.interruptible(limited).await?.unwrap_or_else(|| {
            Err(Error::new(
                ErrorCode::LockTimeout,
                format!("Unable to acquire IX lock on '{ns}' within {ms}ms."),
            ))
        })
    }
    /// The collection without indexes that were completed later than what the transaction sees; 246 when it is younger itself.
    fn seen(&self, coll: &Arc<Collection>) -> Result<Arc<Collection>> {
        let read = self.with(|u| Ok(u.txn().read_ts()))?;
        let newest = coll.since;
        if newest <= read {
            return Ok(coll.as_seen_at(read));
        }
        Err(Error::new(
            ErrorCode::SnapshotUnavailable,
            format!(
                "Unable to read from a snapshot due to pending collection catalog changes; please retry the \
                 operation. Snapshot timestamp is {read}. Collection minimum is {newest}"
            ),
        ))
    }
}

impl Drop for OpenTxn {
    /// It is over in whatever way; a prepared one is kept until it is decided.
    fn drop(&mut self) {
        self.abort();
        let open = self.instance.env.clock.mono().saturating_sub(self.started);
        self.instance.metrics.latencies.transactions.took(open);
    }
}
