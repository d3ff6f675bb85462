//! A client of the server — a connection or an internal task — and what it is doing right now.
//!
//! Each client owns one slot for its current operation. `currentOp` walks the slots, `killOp` sets the
//! slot's kill word; nothing is shared between running operations, so the bookkeeping costs one
//! uncontended lock per operation.

use crate::client_metadata;
use crate::generic_args::SessionId;
use crate::instance::Instance;
use crate::on_behalf_of::OnBehalfOf;
use crate::spec::Flags;
use pando_audit::{Event, Place};
use pando_auth::Login;
use pando_base::{Error, ErrorCode, OpTime, Result, Uuid, limits};
use pando_bson::{DocBuf, RawDoc, Value};
use pando_env::op_locks::OpLocks;
use pando_env::sync::Notify;
use pando_env::tls::Secured;
use pando_env::{Component, Env};
use pando_wire::{Compressor, Compressors};
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

/// A connection, or an internal task when `remote` is `None`.
pub struct Client {
    pub id: i64,
    /// `conn12`, `TTLMonitor`.
    pub desc: String,
    pub remote: Option<String>,
    pub local: Option<String>,
    /// The instance's world, logging under `desc`.
    pub env: Env,
    pub instance: Arc<Instance>,
    metadata: OnceLock<Metadata>,
    first_hello_done: AtomicBool,
    hello_ok: AtomicBool,
    internal: AtomicBool,
    slot: Mutex<Slot>,
    /// `op_id << 32 | error code`; 0 = nothing to kill.
    kill: AtomicU64,
    woken: Notify,
    /// Position after this client's last write (for writes that change nothing but must wait).
    last_op: Mutex<OpTime>,
    compressors: AtomicU8,
    api_told: crate::api_versions::Told,
    login: Mutex<Login>,
    secured: OnceLock<Secured>,
    pub(crate) audited_as: OnceLock<Uuid>,
    /// Of the command that another server has sent and that is carried out.
    on_behalf_of: Mutex<Option<OnBehalfOf>>,
}

/// The client document of the first hello.
pub struct Metadata {
    pub doc: DocBuf,
    pub app_name: Option<String>,
}

/// The current operation of a client; buffers are reused from one operation to the next.
#[derive(Default)]
struct Slot {
    op_id: u32,
    op: ActiveOp,
}

/// A running operation, as `currentOp` shows it.
#[derive(Clone, Default)]
pub struct ActiveOp {
    pub op_id: u32,
    pub command: &'static str,
    /// A write goes on when its client leaves: it may have asked for no reply on purpose.
    pub is_write: bool,
    /// Reads user data: may hold a snapshot.
    pub is_read: bool,
    pub ns: String,
    /// The request's body, cut at [`limits::CURRENT_OP_BODY_BYTES_MAX`] (then empty and `truncated` is set).
    pub body: Vec<u8>,
    pub truncated: bool,
    /// Monotonic.
    pub started: Duration,
    pub started_wall_ms: i64,
    pub lsid: Option<SessionId>,
    /// A statement of a transaction.
    pub in_txn: bool,
    pub plan_summary: String,
    /// Progress of long work (index builds, validate).
    pub msg: String,
    pub progress: Option<(u64, u64)>,
    pub yields: u64,
    pub cursor: Option<DocBuf>,
    /// The open transaction that it is a statement of, which others than its statements end.
    pub transaction: Option<Weak<dyn Any + Send + Sync>>,
    pub locks: Arc<OpLocks>,
}

fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Client {
    pub(crate) fn new(
        id: i64,
        desc: String,
        remote: Option<String>,
        local: Option<String>,
        instance: Arc<Instance>,
    ) -> Client {
        let env = instance.env.named(&desc);
        Client {
            id,
            desc,
            remote,
            local,
            env,
            instance,
            metadata: OnceLock::new(),
            first_hello_done: AtomicBool::new(false),
            hello_ok: AtomicBool::new(false),
            internal: AtomicBool::new(false),
            slot: Mutex::default(),
            kill: AtomicU64::new(0),
            woken: Notify::new(),
            last_op: Mutex::new(OpTime::NULL),
            compressors: AtomicU8::new(0),
            api_told: crate::api_versions::Told::default(),
            login: Mutex::default(),
            secured: OnceLock::new(),
            audited_as: OnceLock::new(),
            on_behalf_of: Mutex::default(),
        }
    }
    /// Who is logged in here, and who is about to be.
    pub fn login(&self) -> MutexGuard<'_, Login> {
        lock(&self.login)
    }
    /// What TLS settled on this connection, and whose the client's certificate is; `None` on a plain one.
    pub fn secured(&self) -> Option<&Secured> {
        self.secured.get()
    }
    pub fn set_secured(&self, secured: Secured) {
        let _ = self.secured.set(secured);
    }
    pub fn is_connection(&self) -> bool {
        self.remote.is_some()
    }
    pub fn app_name(&self) -> Option<&str> {
        self.metadata.get()?.app_name.as_deref()
    }
    /// A request asks for version 1, or for none.
    pub(crate) fn asked_for_api(&self, v1: bool, now: Duration) {
        if self.is_connection() && self.api_told.is_due(v1, now) {
            self.instance.api_versions.note(self.app_name().unwrap_or_default(), v1, now);
        }
    }
    pub fn metadata(&self) -> Option<&RawDoc> {
        self.metadata.get().map(|m| &*m.doc)
    }
    /// Opened by another server of the cluster (`hello.internalClient`).
    pub fn is_internal(&self) -> bool {
        self.internal.load(Relaxed) && (!self.instance.asks_for_logins() || self.is_member())
    }
    /// Has proven to be a member.
    fn is_member(&self) -> bool {
        let login = self.login();
        login.user().is_some_and(|u| u.name.is_system())
    }
    /// Until it is said otherwise, what happens here is a client's of the server that asks.
    pub fn act_for(&self, whom: Option<OnBehalfOf>) {
        *lock(&self.on_behalf_of) = whom;
    }
    /// Whose doing it is what happens here now.
    pub fn asks_for(&self) -> Option<OnBehalfOf> {
        let told = lock(&self.on_behalf_of).clone();
        told.or_else(|| self.as_asking())
    }
    /// Who is logged in, for another server to know.
    pub fn as_asking(&self) -> Option<OnBehalfOf> {
        let login = self.login();
        let user = login.user()?.name.clone();
        let roles = login.last_authority().map(|may| may.roles().iter().cloned().collect());
        Some(OnBehalfOf { user, roles: roles.unwrap_or_default() })
    }
    pub fn set_internal(&self) {
        self.internal.store(true, Relaxed);
    }
    /// The driver said it understands "not primary" wording and `isWritablePrimary`.
    pub fn hello_ok(&self) -> bool {
        self.hello_ok.load(Relaxed)
    }
    pub fn set_hello_ok(&self) {
        self.hello_ok.store(true, Relaxed);
    }
    /// True the first time it is called: only the first hello may carry client metadata or choose compressors.
    pub fn take_first_hello(&self) -> bool {
        !self.first_hello_done.swap(true, Relaxed)
    }
    /// Stores `hello.client` and logs it (id 51800). Later documents are refused (186).
    pub fn set_metadata(&self, told: Value<'_>) -> Result<()> {
        let (doc, app_name) = client_metadata::check(told)?;
        if self.metadata.get().is_some() {
            return Err(Error::new(
                ErrorCode::ClientMetadataCannotBeMutated,
                "The client metadata document may only be sent in the first hello",
            ));
        }
        let json = crate::json::relaxed(doc);
        self.env.log.info(Component::Network, 51800, "client metadata", |a| {
            a.str("remote", self.remote.as_deref().unwrap_or(""))
                .str("client", &self.desc)
                .own_json("doc", &json);
        });
        self.audit(|| Event::client_metadata(&Place::of(self.local.as_deref()), doc));
        let _ = self.metadata.set(Metadata { doc: doc.to_buf(), app_name });
        Ok(())
    }
    /// What the handshake agreed on.
    #[inline]
    pub fn compressors(&self) -> Compressors {
        Compressors::from_bits(self.compressors.load(Relaxed))
    }
    /// `hello.compression`: keeps what both sides know and returns it in the client's order.
    pub fn negotiate_compression<'n>(&self, wanted: impl Iterator<Item = &'n str>) -> Vec<Compressor> {
        let ours = self.instance.compressors();
        let mut agreed = Vec::new();
        for c in wanted.filter_map(Compressor::from_name) {
            if ours.contains(c) && !agreed.contains(&c) {
                agreed.push(c);
            }
        }
        let set = agreed.iter().fold(Compressors::NONE, |set, c| set.with(*c));
        self.compressors.store(set.bits(), Relaxed);
        agreed
    }
    pub fn last_op(&self) -> OpTime {
        *lock(&self.last_op)
    }
    pub fn set_last_op(&self, op_time: OpTime) {
        let mut last = lock(&self.last_op);
        if op_time > *last {
            *last = op_time;
        }
    }

    /// Returns where the operation's locks are noted.
    pub(crate) fn begin_op(&self, op: OpStart<'_>) -> Arc<OpLocks> {
        let mut slot = lock(&self.slot);
        slot.op_id = op.op_id;
        let a = &mut slot.op;
        a.op_id = op.op_id;
        a.command = op.command;
        a.is_write = op.flags.has(Flags::WRITE);
        a.is_read = op.flags.has(Flags::READ);
        a.ns.clear();
        a.ns.push_str(op.db);
        // Known from the first moment: planning may take a while.
        if let (true, Some(Value::String(coll))) =
            (a.is_read || a.is_write, op.body.first().map(|e| e.value()))
        {
            match op.flags.name_in_full(coll) {
                true => a.ns.clear(),
                false => a.ns.push('.'),
            }
            a.ns.push_str(coll);
        }
        a.body.clear();
        a.truncated = op.body.byte_len() > limits::CURRENT_OP_BODY_BYTES_MAX;
        if !a.truncated {
            // Others see what is done, and no password.
            let shown = crate::secrets::shown(op.command, op.flags, op.db, op.body);
            a.body.extend_from_slice(shown.as_bytes());
        }
        a.started = op.started;
        a.started_wall_ms = op.started_wall_ms;
        a.lsid = op.lsid;
        a.in_txn = false;
        a.plan_summary.clear();
        a.msg.clear();
        a.progress = None;
        a.yields = 0;
        a.cursor = None;
        a.transaction = None;
        match Arc::get_mut(&mut a.locks) {
            Some(locks) => locks.reset(),
            None => a.locks = Arc::default(),
        }
        a.locks.clone()
    }
    pub(crate) fn end_op(&self) {
        lock(&self.slot).op_id = 0;
        self.kill.store(0, Relaxed);
    }
    pub(crate) fn update_op(&self, change: impl FnOnce(&mut ActiveOp)) {
        change(&mut lock(&self.slot).op);
    }
    /// The running operation, if any.
    pub fn active_op(&self) -> Option<ActiveOp> {
        let slot = lock(&self.slot);
        (slot.op_id != 0).then(|| slot.op.clone())
    }
    /// Interrupts the running operation with `code` if `which` agrees; true when it was hit.
    pub fn kill_op(&self, code: ErrorCode, which: impl FnOnce(&ActiveOp) -> bool) -> bool {
        {
            let slot = lock(&self.slot);
            if slot.op_id == 0 || !which(&slot.op) {
                return false;
            }
            let word = u64::from(slot.op_id) << 32 | code.0 as u32 as u64;
            // The first reason wins: a killed operation stays killed for it.
            let _ = self.kill.compare_exchange(0, word, Relaxed, Relaxed);
        }
        self.woken.bump();
        true
    }
    #[inline]
    pub(crate) fn kill_code(&self, op_id: u32) -> Option<ErrorCode> {
        let word = self.kill.load(Relaxed);
        (word != 0 && (word >> 32) as u32 == op_id).then_some(ErrorCode(word as u32 as i32))
    }
    pub(crate) fn woken(&self) -> &Notify {
        &self.woken
    }
}

pub(crate) struct OpStart<'a> {
    pub(crate) op_id: u32,
    pub(crate) command: &'static str,
    pub(crate) flags: Flags,
    pub(crate) db: &'a str,
    pub(crate) body: &'a RawDoc,
    pub(crate) started: Duration,
    pub(crate) started_wall_ms: i64,
    pub(crate) lsid: Option<SessionId>,
}

/// All clients, for `currentOp`, `killOp`, `killSessions` and shutdown.
#[derive(Default)]
pub struct Clients {
    map: Mutex<BTreeMap<i64, Arc<Client>>>,
    next_id: AtomicU64,
    next_op: AtomicU32,
}

impl Clients {
    pub(crate) fn next_op_id(&self) -> u32 {
        loop {
            // Stays positive as a 32-bit integer; 0 means "idle".
            let id = self.next_op.fetch_add(1, Relaxed).wrapping_add(1) & 0x7FFF_FFFF;
            if id != 0 {
                return id;
            }
        }
    }
    pub(crate) fn next_id(&self) -> i64 {
        self.next_id.fetch_add(1, Relaxed) as i64 + 1
    }
    pub(crate) fn add(&self, client: Arc<Client>) {
        lock(&self.map).insert(client.id, client);
    }
    pub fn remove(&self, id: i64) {
        lock(&self.map).remove(&id);
    }
    pub fn all(&self) -> Vec<Arc<Client>> {
        lock(&self.map).values().cloned().collect()
    }
    /// Interrupts every running operation that `which` selects; returns how many.
    pub fn kill_where(&self, code: ErrorCode, which: impl Fn(&Client, &ActiveOp) -> bool) -> usize {
        self.all().iter().filter(|c| c.kill_op(code, |op| which(c, op))).count()
    }
    /// `killOp`: true when such an operation was running.
    pub fn kill_op(&self, op_id: u32) -> bool {
        self.kill_where(ErrorCode::Interrupted, |_, op| op.op_id == op_id) > 0
    }
}
