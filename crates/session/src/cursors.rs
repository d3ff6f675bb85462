//! Open cursors: the rest of a result, parked until the next `getMore`.
//!
//! A cursor is either parked here or pinned by one running operation; [`Pinned`] brings it back when it is
//! dropped. What it holds (an executor) is the server's business: the registry is generic over it.
//! Idle cursors go after ten minutes unless they asked not to; a session's cursors go with the session. There is a bound on how
//! many are open, and on what they hold in memory between their batches: who is over it is refused a new one.

use crate::cursor_stats::CursorStats;
use crate::lsid_text;
use pando_auth::Authority;
use pando_base::panics::poisoned;
use pando_base::{Error, ErrorCode, Millis, Namespace, Result, limits};
use pando_bson::DocBuf;
use pando_command::generic_args::SessionId;
use pando_env::Rng;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// What is known about a cursor apart from its content.
#[derive(Clone, Debug)]
pub struct CursorInfo {
    pub ns: Namespace,
    pub lsid: Option<SessionId>,
    /// Digest of who opened it, where clients log in.
    pub owner: Option<[u8; 32]>,
    /// The transaction in which it was opened.
    pub txn_number: Option<i64>,
    /// Never reaped for idleness.
    pub no_timeout: bool,
    pub tailable: bool,
    pub await_data: bool,
    /// The find or aggregate that opened it, for `currentOp` and slow `getMore` lines.
    pub command: Arc<DocBuf>,
    /// What was allowed when it was opened; `None` where nobody asks, and for members.
    pub asked: Option<Asked>,
    pub plan_summary: String,
    pub created_ms: Millis,
    /// Monotonic.
    pub created: Duration,
    pub last_use: Duration,
    pub batches: u64,
    pub docs: u64,
    /// What is left of the opening command's `maxTimeMS`, used up by getMores.
    pub time_left: Option<Duration>,
    /// Bytes in memory, as of the last batch.
    pub held_bytes: u64,
    /// Of a member that follows: no bound applies.
    pub of_member: bool,
}

/// The opening command, whole, and what its user might do then: a cursor goes on while the command would still be allowed.
#[derive(Clone, Debug)]
pub struct Asked {
    pub command: &'static str,
    pub db: String,
    pub body: Arc<DocBuf>,
    pub allowed: Arc<Authority>,
}

/// How many cursors there may be, and what they may hold.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub open: usize,
    pub held_bytes: u64,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds { open: limits::CURSORS_OPEN_MAX, held_bytes: limits::CURSORS_HELD_BYTES_MAX }
    }
}

struct Entry<T> {
    info: CursorInfo,
    slot: Slot<T>,
}

enum Slot<T> {
    Idle(T),
    /// In use by this operation; `doomed` = do not park it again.
    Pinned {
        op_id: u32,
        doomed: bool,
    },
}

/// How `killCursors` found a cursor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Killed {
    Gone,
    /// In use by this operation, which must be interrupted; the cursor dies when it comes back.
    InUse(u32),
    NotFound,
}

struct Table<T> {
    open: BTreeMap<i64, Entry<T>>,
    /// Of members that follow.
    of_members: usize,
    stats: CursorStats,
}

impl<T> Table<T> {
    /// Takes a cursor out of the table.
    fn remove(&mut self, id: i64) -> Option<Entry<T>> {
        let entry = self.open.remove(&id)?;
        self.of_members -= usize::from(entry.info.of_member);
        self.stats.held_bytes -= entry.info.held_bytes;
        Some(entry)
    }
    fn count_end(&mut self, info: &CursorInfo, now: Duration) {
        self.stats.count_end(now.saturating_sub(info.created));
    }
}

/// All cursors of a server.
pub struct Cursors<T>(Mutex<Table<T>>, Bounds);

impl<T> Default for Cursors<T> {
    fn default() -> Self {
        Cursors::bounded(Bounds::default())
    }
}

impl<T> Cursors<T> {
    pub fn bounded(bounds: Bounds) -> Self {
        let table = Table { open: BTreeMap::new(), of_members: 0, stats: CursorStats::default() };
        Cursors(Mutex::new(table), bounds)
    }
}

impl<T: Send> Cursors<T> {
    fn lock(&self) -> MutexGuard<'_, Table<T>> {
        self.0.lock().unwrap_or_else(poisoned)
    }

    /// Parks a new cursor and returns its id: positive, unused, hard to guess. 365 with too many, 146 when they hold too much.
    pub fn park(&self, rng: &dyn Rng, info: CursorInfo, body: T) -> Result<i64> {
        // tour: find 8/9
        let mut table = self.lock();
        if !info.of_member {
            let Bounds { open, held_bytes } = self.1;
            let refused = if table.open.len() - table.of_members >= open {
                let text = format!("Too many open cursors: {open}. Close some, or read them to their ends");
                Some(Error::new(ErrorCode::TemporarilyUnavailable, text))
            } else if table.stats.held_bytes.saturating_add(info.held_bytes) > held_bytes
                && info.held_bytes > 0
            {
                let text = format!(
                    "Open cursors would hold {} bytes in memory, more than the limit of {held_bytes} bytes",
                    table.stats.held_bytes.saturating_add(info.held_bytes)
                );
                Some(Error::new(ErrorCode::ExceededMemoryLimit, text))
            } else {
                None
            };
            if let Some(e) = refused {
                table.stats.refused += 1;
                drop(table);
                return Err(e);
            }
        }
        let id = loop {
            let id = (rng.next_u64() >> 1) as i64;
            if id != 0 && !table.open.contains_key(&id) {
                break id;
            }
        };
        table.stats.opened += 1;
        table.stats.held_bytes += info.held_bytes;
        table.of_members += usize::from(info.of_member);
        table.open.insert(id, Entry { info, slot: Slot::Idle(body) });
        Ok(id)
    }
    /// Counts a result that fitted into one batch and never became a cursor.
    pub fn count_unparked(&self) {
        let mut table = self.lock();
        table.stats.opened += 1;
        table.stats.lifespans[0] += 1;
    }

    /// Takes a cursor out for one operation. Checks owner, namespace and session:
    /// 43, 143, 13, 50736, 50737, 50738.
    pub fn pin<'a>(
        &'a self,
        id: i64,
        ns: &Namespace,
        lsid: Option<&SessionId>,
        txn_number: Option<i64>,
        op_id: u32,
    ) -> Result<Pinned<'a, T>> {
        let mut table = self.lock();
        let entry = table.open.get_mut(&id).ok_or_else(|| not_found(id))?;
        check_session(id, entry.info.lsid.as_ref(), lsid)?;
        check_transaction(id, entry.info.txn_number, txn_number)?;
        if entry.info.ns != *ns {
            return Err(Error::new(
                ErrorCode::Unauthorized,
                format!(
                    "Requested getMore on namespace '{ns}', but cursor belongs to a different namespace {}",
                    entry.info.ns
                ),
            ));
        }
        match std::mem::replace(&mut entry.slot, Slot::Pinned { op_id, doomed: false }) {
            Slot::Idle(body) => {
                let info = entry.info.clone();
                Ok(Pinned { cursors: self, id, body: Some(body), info })
            }
            in_use @ Slot::Pinned { .. } => {
                entry.slot = in_use;
                Err(Error::new(ErrorCode::CursorInUse, format!("cursor id {id} is already in use")))
            }
        }
    }

    /// Where it reads and whose it is, if there is one.
    pub fn whose(&self, id: i64) -> Option<(Namespace, Option<[u8; 32]>)> {
        self.lock().open.get(&id).map(|e| (e.info.ns.clone(), e.info.owner))
    }

    /// `killCursors`. The caller checks privileges and interrupts the operation of `InUse`.
    pub fn kill(&self, id: i64, now: Duration) -> Killed {
        let mut table = self.lock();
        let Some(entry) = table.open.get_mut(&id) else { return Killed::NotFound };
        if let Slot::Pinned { op_id, doomed } = &mut entry.slot {
            *doomed = true;
            return Killed::InUse(*op_id);
        }
        let removed = table.remove(id);
        if let Some(e) = &removed {
            table.count_end(&e.info, now);
        }
        drop(table);
        // Bodies may be large; they are dropped outside the lock.
        drop(removed);
        Killed::Gone
    }

    /// Kills all cursors that `which` selects; returns how many, and the operations to interrupt.
    pub fn kill_where(&self, now: Duration, which: impl Fn(&CursorInfo) -> bool) -> (usize, Vec<u32>) {
        let ids: Vec<i64> =
            self.lock().open.iter().filter(|(_, e)| which(&e.info)).map(|(id, _)| *id).collect();
        let mut busy = Vec::new();
        let mut killed = 0;
        for id in ids {
            match self.kill(id, now) {
                Killed::Gone => killed += 1,
                Killed::InUse(op) => {
                    killed += 1;
                    busy.push(op);
                }
                Killed::NotFound => {}
            }
        }
        (killed, busy)
    }

    /// Drops cursors idle for longer than `idle_max`; returns their ids.
    pub fn reap(&self, now: Duration, idle_max: Duration) -> Vec<i64> {
        let mut table = self.lock();
        let old: Vec<i64> = table
            .open
            .iter()
            .filter(|(_, e)| {
                matches!(e.slot, Slot::Idle(_))
                    && !e.info.no_timeout
                    && now.saturating_sub(e.info.last_use) >= idle_max
            })
            .map(|(id, _)| *id)
            .collect();
        let mut dropped = Vec::with_capacity(old.len());
        for id in &old {
            if let Some(e) = table.remove(*id) {
                table.stats.timed_out += 1;
                table.count_end(&e.info, now);
                dropped.push(e);
            }
        }
        drop(table);
        drop(dropped);
        old
    }

    pub fn stats(&self) -> CursorStats {
        let table = self.lock();
        let mut stats = table.stats;
        for e in table.open.values() {
            stats.open += 1;
            stats.pinned += u64::from(matches!(e.slot, Slot::Pinned { .. }));
            stats.no_timeout += u64::from(e.info.no_timeout);
        }
        stats
    }
    /// Idle cursors, for `$currentOp` with `idleCursors`.
    pub fn idle(&self) -> Vec<(i64, CursorInfo)> {
        let table = self.lock();
        let idle = table.open.iter().filter(|(_, e)| matches!(e.slot, Slot::Idle(_)));
        idle.map(|(id, e)| (*id, e.info.clone())).collect()
    }
}

/// 43.
pub fn not_found(id: i64) -> Error {
    Error::new(ErrorCode::CursorNotFound, format!("cursor id {id} not found"))
}

fn check_session(id: i64, owner: Option<&SessionId>, caller: Option<&SessionId>) -> Result<()> {
    match (owner, caller) {
        (None, None) => Ok(()),
        (Some(a), Some(b)) if a == b => Ok(()),
        (None, Some(b)) => Err(Error::location(
            50736,
            format!(
                "Cannot run getMore on cursor {id}, which was not created in a session, in session {}",
                lsid_text(b)
            ),
        )),
        (Some(a), None) => Err(Error::location(
            50737,
            format!(
                "Cannot run getMore on cursor {id}, which was created in session {}, without an lsid",
                lsid_text(a)
            ),
        )),
        (Some(a), Some(b)) => Err(Error::location(
            50738,
            format!(
                "Cannot run getMore on cursor {id}, which was created in session {}, in session {}",
                lsid_text(a),
                lsid_text(b)
            ),
        )),
    }
}

fn check_transaction(id: i64, owner: Option<i64>, caller: Option<i64>) -> Result<()> {
    let (code, why) = match (owner, caller) {
        (a, b) if a == b => return Ok(()),
        (None, Some(b)) => (50739, format!("was not created in a transaction, in transaction {b}")),
        (Some(a), None) => (50740, format!("was created in transaction {a}, without a txnNumber")),
        (Some(a), Some(b)) => (50741, format!("was created in transaction {a}, in transaction {b}")),
        (None, None) => return Ok(()),
    };
    Err(Error::location(code, format!("Cannot run getMore on cursor {id}, which {why}")))
}

/// Cursors as those see them who end some and need not know what they hold.
pub trait KillCursors: Send + Sync {
    /// Kills all that `which` selects; returns how many.
    fn kill(&self, now: Duration, which: &dyn Fn(&CursorInfo) -> bool) -> usize;
}

impl<T: Send> KillCursors for Cursors<T> {
    fn kill(&self, now: Duration, which: &dyn Fn(&CursorInfo) -> bool) -> usize {
        self.kill_where(now, which).0
    }
}

/// A cursor in use. Dropping it ends the cursor; [`Pinned::park`] keeps it for the next getMore.
pub struct Pinned<'a, T: Send> {
    cursors: &'a Cursors<T>,
    pub id: i64,
    body: Option<T>,
    pub info: CursorInfo,
}

impl<T: Send> Pinned<'_, T> {
    pub fn body(&mut self) -> &mut T {
        self.body.as_mut().expect("a pinned cursor holds its body until it is parked or dropped")
    }
    /// Puts the cursor back; false when it was killed meanwhile (then it is gone).
    pub fn park(mut self, now: Duration) -> bool {
        let body = self.body.take();
        let mut table = self.cursors.lock();
        if self.info.batches == 2 {
            table.stats.more_than_one_batch += 1;
        }
        let Table { open, stats, .. } = &mut *table;
        let Some(entry) = open.get_mut(&self.id) else { return false };
        let doomed = matches!(entry.slot, Slot::Pinned { doomed: true, .. });
        match body {
            Some(body) if !doomed => {
                self.info.last_use = now;
                stats.held_bytes = stats.held_bytes - entry.info.held_bytes + self.info.held_bytes;
                entry.info = self.info.clone();
                entry.slot = Slot::Idle(body);
                true
            }
            body => {
                table.remove(self.id);
                table.count_end(&self.info, now);
                drop(table);
                drop(body);
                false
            }
        }
    }
    /// Ends the cursor, counting its life up to `now`.
    pub fn end(mut self, now: Duration) {
        self.info.last_use = now;
    }
}

impl<T: Send> Drop for Pinned<'_, T> {
    fn drop(&mut self) {
        if self.body.is_some() {
            let mut table = self.cursors.lock();
            if table.remove(self.id).is_some() {
                let info = &self.info;
                table.count_end(info, info.last_use);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    struct Counting(AtomicU64);
    impl Rng for Counting {
        fn next_u64(&self) -> u64 {
            self.0.fetch_add(2, Ordering::Relaxed)
        }
    }
    fn rng() -> Counting {
        Counting(AtomicU64::new(0))
    }
    fn ns(s: &str) -> Namespace {
        Namespace::parse(s).expect("a good name")
    }
    fn info(lsid: Option<SessionId>) -> CursorInfo {
        CursorInfo {
            ns: ns("db.c"),
            owner: None,
            lsid,
            txn_number: None,
            no_timeout: false,
            tailable: false,
            await_data: false,
            command: Arc::new(DocBuf::new()),
            asked: None,
            plan_summary: String::new(),
            created_ms: 0,
            created: Duration::ZERO,
            last_use: Duration::ZERO,
            batches: 1,
            docs: 0,
            time_left: None,
            held_bytes: 0,
            of_member: false,
        }
    }
    fn holding(held_bytes: u64) -> CursorInfo {
        CursorInfo { held_bytes, ..info(None) }
    }
    const S: fn(u64) -> Duration = Duration::from_secs;

    #[test]
    fn a_pinned_cursor_is_in_use_until_it_is_parked() {
        let cursors = Cursors::default();
        let id = cursors.park(&rng(), info(None), 7).unwrap();
        let mut pin = cursors.pin(id, &ns("db.c"), None, None, 1).unwrap();
        *pin.body() += 1;
        assert_eq!(cursors.pin(id, &ns("db.c"), None, None, 2).err().unwrap().code, ErrorCode::CursorInUse);
        assert!(pin.park(S(1)));
        assert_eq!(*cursors.pin(id, &ns("db.c"), None, None, 3).unwrap().body(), 8);
        assert_eq!(
            cursors.pin(id, &ns("db.c"), None, None, 4).err().unwrap().code,
            ErrorCode::CursorNotFound
        );
    }

    #[test]
    fn killing_a_pinned_cursor_ends_it_when_it_comes_back() {
        let cursors = Cursors::default();
        let id = cursors.park(&rng(), info(None), 7).unwrap();
        let pin = cursors.pin(id, &ns("db.c"), None, None, 9).unwrap();
        assert_eq!(cursors.kill(id, S(0)), Killed::InUse(9));
        assert!(!pin.park(S(1)));
        assert_eq!(cursors.kill(id, S(0)), Killed::NotFound);
        assert_eq!(cursors.stats().open, 0);
    }

    #[test]
    fn cursors_belong_to_a_namespace_and_a_session() {
        let cursors = Cursors::default();
        let (a, b) = (SessionId::of([1; 16]), SessionId::of([2; 16]));
        let free = cursors.park(&rng(), info(None), ()).unwrap();
        let owned = cursors.park(&rng(), info(Some(a)), ()).unwrap();
        let code =
            |id, n: &str, s: Option<&SessionId>| cursors.pin(id, &ns(n), s, None, 1).err().map(|e| e.code.0);
        assert_eq!(code(free, "db.d", None), Some(13));
        assert_eq!(code(free, "db.c", Some(&a)), Some(50736));
        assert_eq!(code(owned, "db.c", None), Some(50737));
        assert_eq!(code(owned, "db.c", Some(&b)), Some(50738));
        assert_eq!(code(owned, "db.c", Some(&a)), None);
    }

    #[test]
    fn idle_cursors_are_reaped_unless_they_asked_not_to() {
        let cursors = Cursors::default();
        let old = cursors.park(&rng(), info(None), ()).unwrap();
        let kept = cursors.park(&rng(), CursorInfo { no_timeout: true, ..info(None) }, ()).unwrap();
        let used = cursors.park(&rng(), CursorInfo { last_use: S(500), ..info(None) }, ()).unwrap();
        assert_eq!(cursors.reap(S(600), S(600)), vec![old]);
        assert_eq!(cursors.stats().timed_out, 1);
        assert!(cursors.pin(kept, &ns("db.c"), None, None, 1).is_ok());
        assert!(cursors.pin(used, &ns("db.c"), None, None, 1).is_ok());
    }

    #[test]
    fn there_are_only_so_many_cursors_and_they_hold_only_so_much() {
        let cursors = Cursors::bounded(Bounds { open: 3, held_bytes: 100 });
        let code = |info| cursors.park(&rng(), info, ()).err().map(|e| e.code.0);
        let first = cursors.park(&rng(), holding(60), ()).unwrap();
        assert_eq!(code(holding(41)), Some(146));
        assert_eq!(code(holding(40)), None);
        assert_eq!(code(info(None)), None, "it holds nothing");
        assert_eq!(code(info(None)), Some(365));
        // Members go on.
        assert_eq!(code(CursorInfo { of_member: true, ..holding(5) }), None);
        assert_eq!((cursors.stats().held_bytes, cursors.stats().refused), (105, 2));
        // What it holds now, after another batch.
        let mut pin = cursors.pin(first, &ns("db.c"), None, None, 1).unwrap();
        pin.info.held_bytes = 10;
        assert!(pin.park(S(1)));
        assert_eq!(cursors.stats().held_bytes, 55);
        assert_eq!(cursors.kill(first, S(2)), Killed::Gone);
        assert_eq!((code(holding(1)), cursors.stats().held_bytes), (None, 46));
        assert_eq!(cursors.kill_where(S(3), |_| true).0, 4);
        assert_eq!((cursors.stats().held_bytes, cursors.lock().of_members), (0, 0));
    }

    #[test]
    fn a_session_takes_its_cursors_along() {
        let cursors = Cursors::default();
        let a = SessionId::of([1; 16]);
        cursors.park(&rng(), info(Some(a)), ()).unwrap();
        cursors.park(&rng(), info(None), ()).unwrap();
        assert_eq!(cursors.kill_where(S(0), |i| i.lsid == Some(a)), (1, vec![]));
        assert_eq!(cursors.stats().open, 1);
    }
}
