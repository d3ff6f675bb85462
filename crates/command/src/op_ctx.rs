//! One running operation: who asks, until when, under which concerns, and whether to stop.

use crate::client::{ActiveOp, Client, OpStart};
use crate::fail_point::FailPoint;
use crate::generic_args::GenericArgs;
use crate::instance::Instance;
use crate::spec::Flags;
use crate::versions::Versions;
use pando_audit::originator;
use pando_base::patience::Operation;
use pando_base::{Error, ErrorCode, OpTime, Result, Timestamp};
use pando_bson::RawDoc;
use pando_env::Env;
use pando_env::op_locks::{self, OpLocks};
use std::any::Any;
use std::future::Future;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Poll;
use std::time::Duration;

/// Passed to everything below the pipeline. Generic arguments are reached directly: `ctx.read_concern`.
pub struct OpCtx {
    pub client: Arc<Client>,
    pub op_id: u32,
    pub command: &'static str,
    pub db: String,
    pub args: GenericArgs,
    /// Monotonic time at which the request was taken up.
    pub started: Duration,
    watch: Arc<OpWatch>,
    state: Mutex<OpState>,
    attached: OnceLock<Arc<dyn Any + Send + Sync>>,
    change_stream: AtomicBool,
    /// Where a change stream stood when its batch began, and whether the batch has events.
    stream_from: AtomicU64,
    stream_tells: AtomicBool,
    /// What tenants were permitted when it was asked whether this operation may go.
    tenants_seen: AtomicU64,
    writes: AtomicBool,
    close: AtomicBool,
    /// The collection that a router's versions speak of.
    target: Option<Arc<str>>,
    /// What it holds, and has waited for.
    pub locks: Arc<OpLocks>,
}

/// Whether an operation must stop, for work that cannot borrow it.
pub struct OpWatch {
    client: Arc<Client>,
    op_id: u32,
    /// Monotonic nanoseconds; 0 = none. Atomic because a getMore takes over its cursor's remaining time.
    deadline: AtomicU64,
}

impl OpWatch {
    fn deadline(&self) -> Option<Duration> {
        match self.deadline.load(Relaxed) {
            0 => None,
            at => Some(Duration::from_nanos(at)),
        }
    }
}

impl Operation for OpWatch {
    #[inline]
    fn check(&self) -> Result<()> {
        check_interrupt(&self.client, self.op_id, self.deadline())
    }
    fn now(&self) -> Duration {
        self.client.env.clock.mono()
    }
    fn step_aside(&self, wait: Duration) {
        self.client.env.tasks.step_aside(wait);
    }
    fn pause(&self, d: Duration) {
        self.client.env.tasks.block_for(d);
    }
}

#[inline]
fn check_interrupt(client: &Client, op_id: u32, deadline: Option<Duration>) -> Result<()> {
    if let Some(code) = client.kill_code(op_id) {
        return Err(interrupted(code));
    }
    match deadline {
        Some(at) if is_over(client, at) => Err(time_exceeded()),
        _ => Ok(()),
    }
}

fn is_over(client: &Client, deadline: Duration) -> bool {
    let points = &client.instance.fail_points;
    let fires = |point: &FailPoint| point.check(&*client.env.rng, |_| true).is_some();
    if fires(&points.max_time_never) {
        return false;
    }
    client.env.clock.mono() >= deadline || fires(&points.max_time_always)
}

#[derive(Default)]
struct OpState {
    last_op: Option<OpTime>,
    refusals: Vec<Arc<dyn Any + Send + Sync>>,
    debug: OpDebug,
}

/// What the operation did, for the slow-query line and the profile.
#[derive(Clone, Default, Debug)]
pub struct OpDebug {
    /// `insert`, `query`, `update`, `remove`, `getmore`, `command`; empty = from the command's name.
    pub op: &'static str,
    pub ns: String,
    pub plan_summary: String,
    pub keys_examined: Option<u64>,
    pub docs_examined: Option<u64>,
    pub n_returned: Option<u64>,
    pub n_inserted: Option<u64>,
    pub n_matched: Option<u64>,
    pub n_modified: Option<u64>,
    pub n_deleted: Option<u64>,
    pub n_upserted: Option<u64>,
    pub keys_inserted: Option<u64>,
    pub keys_deleted: Option<u64>,
    pub cursor_id: Option<i64>,
    pub cursor_exhausted: bool,
    pub has_sort_stage: bool,
    pub used_disk: bool,
    /// Why a remembered plan was given up.
    pub replanned: Option<String>,
    /// Time spent waiting for documents that had yet to be written (tailing): not slowness.
    pub awaited: Duration,
    pub yields: u64,
    /// The command a getMore continues (extended JSON).
    pub originating_command: Option<Vec<u8>>,
}

impl Deref for OpCtx {
    type Target = GenericArgs;
    fn deref(&self) -> &GenericArgs {
        &self.args
    }
}

impl OpCtx {
    /// For a request; the deadline comes from `maxTimeMS`.
    pub(crate) fn new(
        client: Arc<Client>,
        (command, flags): (&'static str, Flags),
        db: &str,
        args: GenericArgs,
        body: &RawDoc,
        started: Duration,
    ) -> OpCtx {
        let op_id = client.instance.clients.next_op_id();
        let locks = client.begin_op(OpStart {
            op_id,
            command,
            flags,
            db,
            body,
            started,
            started_wall_ms: client.env.clock.wall_ms(),
            lsid: args.lsid,
        });
        // A member says so for somebody who may.
        let bypasses = args.may_bypass_write_blocking == Some(true);
        if bypasses && (client.is_internal() || !client.instance.asks_for_logins()) {
            locks.pass_write_block();
        }
        let limit = args.max_time_ms.filter(|ms| *ms > 0 && !flags.has(Flags::OWN_MAX_TIME));
        let deadline = limit.map(|ms| started + Duration::from_millis(ms as u64));
        let deadline = AtomicU64::new(deadline.map_or(0, nanos));
        let target = args.shard_version.and_then(|_| Versions::target_of(body));
        OpCtx {
            watch: Arc::new(OpWatch { client: client.clone(), op_id, deadline }),
            client,
            op_id,
            command,
            db: db.to_owned(),
            args,
            started,
            state: Mutex::default(),
            attached: OnceLock::new(),
            change_stream: AtomicBool::new(false),
            stream_from: AtomicU64::new(0),
            stream_tells: AtomicBool::new(false),
            tenants_seen: AtomicU64::new(0),
            writes: AtomicBool::new(flags.has(Flags::WRITE)),
            close: AtomicBool::new(false),
            target,
            locks,
        }
    }
    /// For work the server starts itself (TTL, index builds, recovery). `client` comes from
    /// [`Instance::internal_client`]; one operation per client at a time.
    pub fn internal(client: Arc<Client>, command: &'static str, db: &str) -> OpCtx {
        let started = client.env.clock.mono();
        OpCtx::new(client, (command, Flags::NONE), db, GenericArgs::default(), RawDoc::empty(), started)
    }

    #[inline]
    pub fn env(&self) -> &Env {
        &self.client.env
    }
    #[inline]
    pub fn instance(&self) -> &Arc<Instance> {
        &self.client.instance
    }
    /// Monotonic end of the operation's time, if limited.
    #[inline]
    pub fn deadline(&self) -> Option<Duration> {
        self.watch.deadline()
    }
    /// Sets or shortens the deadline (getMore takes over its cursor's remaining time).
    pub fn limit_to(&self, deadline: Duration) {
        let at = self.deadline().map_or(deadline, |d| d.min(deadline));
        self.watch.deadline.store(nanos(at), Relaxed);
    }
    /// Time since the request was taken up.
    pub fn elapsed(&self) -> Duration {
        self.client.env.clock.mono().saturating_sub(self.started)
    }
    /// The digest of who asks, where clients log in: whose sessions and cursors it may use.
    pub fn owner(&self) -> Option<[u8; 32]> {
        if !self.client.instance.asks_for_logins() {
            return None;
        }
        Some(self.client.login().owner())
    }
    /// The command has read its own arguments: what is wrong with its concerns or time limit is told now.
    pub fn arguments_read(&self) -> Result<()> {
        self.args.late.clone().map_or(Ok(()), Err)
    }
    /// Err 50 past the deadline, 11601 after killOp, 11600 at shutdown, 11602 at a step-down.
    /// Cheap: call it every few hundred rows or before every wait.
    #[inline]
    pub fn check_interrupt(&self) -> Result<()> {
        self.watch.check()
    }
    /// What outlives this borrow: whether the operation must stop.
    pub fn watch(&self) -> Arc<OpWatch> {
        self.watch.clone()
    }
    /// Lets other tasks run; then checks for interruption.
    pub async fn yield_now(&self) -> Result<()> {
        self.client.env.tasks.yield_now().await;
        self.check_interrupt()
    }
    /// `work`, whose locks are this operation's, and whose doings are its client's.
    pub async fn run<F: Future>(&self, work: std::pin::Pin<&mut F>) -> F::Output {
        let mut work = work;
        std::future::poll_fn(|cx| {
            let _works_for = op_locks::enter(&self.locks);
            let _asks = self.instance().audit().map(|_| originator::enter(self.client.clone()));
            work.as_mut().poll(cx)
        })
        .await
    }
    /// Waits for `fut`, but no longer than the deadline or a kill.
    pub async fn interruptible<F: Future + Send>(&self, fut: F) -> Result<F::Output> {
        let mut fut = std::pin::pin!(fut);
        let limit = self.deadline().filter(|_| !self.client.instance.fail_points.max_time_never.is_active());
        let mut timer = limit.map(|at| {
            let now = self.client.env.clock.mono();
            self.client.env.clock.sleep(at.saturating_sub(now))
        });
        let woken = self.client.woken();
        let mut wake = woken.changed(woken.version());
        std::future::poll_fn(|cx| {
            if let Poll::Ready(v) = fut.as_mut().poll(cx) {
                return Poll::Ready(Ok(v));
            }
            if let Some(code) = self.client.kill_code(self.op_id) {
                return Poll::Ready(Err(interrupted(code)));
            }
            while std::pin::Pin::new(&mut wake).poll(cx).is_ready() {
                if let Some(code) = self.client.kill_code(self.op_id) {
                    return Poll::Ready(Err(interrupted(code)));
                }
                wake = woken.changed(woken.version());
            }
            if timer.as_mut().is_some_and(|t| t.as_mut().poll(cx).is_ready()) {
                return Poll::Ready(Err(time_exceeded()));
            }
            Poll::Pending
        })
        .await
    }
    /// Sleeps, but no longer than the deadline or a kill.
    pub async fn sleep(&self, d: Duration) -> Result<()> {
        self.interruptible(self.client.env.clock.sleep(d)).await
    }

    /// Hangs something of the role's on the operation (its transaction). Once.
    pub fn attach<T: Send + Sync + 'static>(&self, what: Arc<T>) {
        let _ = self.attached.set(what);
    }
    #[inline]
    pub fn attached<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.attached.get()?.downcast_ref()
    }

    pub(crate) fn target(&self) -> Option<&Arc<str>> {
        self.target.as_ref()
    }
    /// A collection was refused: what the role does about it before the sender is told.
    pub fn note_refusal<T: Send + Sync + 'static>(&self, what: T) {
        self.state().refusals.push(Arc::new(what));
    }
    /// What was noted, to be done once.
    pub fn take_refusals<T: Send + Sync + 'static>(&self) -> Vec<Arc<T>> {
        let noted = std::mem::take(&mut self.state().refusals);
        noted.into_iter().filter_map(|what| what.downcast().ok()).collect()
    }
    pub(crate) fn was_refused(&self) -> bool {
        !self.state().refusals.is_empty()
    }

    fn state(&self) -> MutexGuard<'_, OpState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Position of this operation's last write in the oplog.
    pub fn last_op(&self) -> Option<OpTime> {
        self.state().last_op
    }
    /// Records a write's position; also the client's, so that later no-op writes wait for it.
    pub fn set_last_op(&self, op_time: OpTime) {
        self.state().last_op = Some(op_time);
        self.client.set_last_op(op_time);
    }
    /// Notes where in the log a change left its last entry; null: it left none.
    pub fn wrote(&self, last: OpTime) {
        if !last.is_null() {
            self.set_last_op(last);
        }
    }
    /// Adds to the figures of the slow-query line.
    pub fn debug(&self, change: impl FnOnce(&mut OpDebug)) {
        change(&mut self.state().debug);
    }
    pub fn debug_snapshot(&self) -> OpDebug {
        self.state().debug.clone()
    }
    /// Changes what `currentOp` shows (namespace, plan, progress).
    pub fn show(&self, change: impl FnOnce(&mut ActiveOp)) {
        self.client.update_op(change);
    }
    /// Marks an aggregate or getMore of a change stream: its errors carry `ResumableChangeStreamError`.
    pub fn set_change_stream(&self) {
        self.change_stream.store(true, Relaxed);
    }
    /// Called by a command that writes only sometimes: the reply then waits for the write concern.
    pub fn will_write(&self) {
        self.writes.store(true, Relaxed);
        // A step-down ends it.
        self.show(|op| op.is_write = true);
    }
    pub(crate) fn writes(&self) -> bool {
        self.writes.load(Relaxed)
    }
    /// The connection closes instead of replying (fail points).
    pub fn close_connection(&self) {
        self.close.store(true, Relaxed);
    }
    pub(crate) fn must_close(&self) -> bool {
        self.close.load(Relaxed)
    }
    /// Call just before a write that belongs to a session commits: the fail point
    /// `onPrimaryTransactionalWrite` closes the connection over it, or fails it with
    /// `failBeforeCommitExceptionCode`.
    pub fn before_commit(&self, in_session: bool) -> Result<()> {
        let fp = &self.client.instance.fail_points.on_transactional_write;
        if !in_session || !fp.is_active() {
            return Ok(());
        }
        let Some(data) = fp.check(&*self.client.env.rng, |_| true) else { return Ok(()) };
        if data.get("closeConnection").is_none_or(|v| v.is_truthy()) {
            self.close_connection();
        }
        match data.get("failBeforeCommitExceptionCode").and_then(|v| v.as_i64()) {
            Some(code) => Err(Error::location(
                code as i32,
                "Failing write due to failpoint 'onPrimaryTransactionalWrite'. The write must not be reflected.",
            )),
            None => Ok(()),
        }
    }
    /// The version of what tenants may do, as this operation has found it.
    pub fn note_tenants(&self, version: u64) {
        self.tenants_seen.store(version, Relaxed);
    }
    pub fn tenants_seen(&self) -> u64 {
        self.tenants_seen.load(Relaxed)
    }
    /// A batch of a change stream begins behind `at`, or goes on; `tells`: there are events in it.
    pub fn note_stream(&self, at: Timestamp, tells: bool) {
        let _ = self.stream_from.compare_exchange(0, at.0, Relaxed, Relaxed);
        self.stream_tells.fetch_or(tells, Relaxed);
    }
    /// Whoever reads this stream has everything up to `at`, and is told of nothing now: to be told to go on elsewhere loses nothing.
    pub fn stream_has_all(&self, at: Timestamp) -> bool {
        self.stream_from.load(Relaxed) >= at.0 && !self.stream_tells.load(Relaxed)
    }
    pub fn is_change_stream(&self) -> bool {
        self.change_stream.load(Relaxed)
    }
}

impl Drop for OpCtx {
    fn drop(&mut self) {
        self.client.end_op();
    }
}

/// Never 0, which means "none".
fn nanos(d: Duration) -> u64 {
    u64::try_from(d.as_nanos()).unwrap_or(u64::MAX).max(1)
}

/// The error behind a kill word.
fn interrupted(code: ErrorCode) -> Error {
    let text = match code {
        ErrorCode::InterruptedAtShutdown => "interrupted at shutdown",
        ErrorCode::InterruptedDueToReplStateChange => "operation was interrupted",
        ErrorCode::MaxTimeMSExpired => "operation exceeded time limit",
        ErrorCode::ClientMarkedKilled => "client has been killed",
        ErrorCode::CursorKilled => "cursor killed",
        ErrorCode::ClientDisconnect => "operation was interrupted because a client disconnected",
        _ => "operation was interrupted",
    };
    Error::new(code, text)
}

#[cold]
fn time_exceeded() -> Error {
    Error::new(ErrorCode::MaxTimeMSExpired, "operation exceeded time limit")
}
