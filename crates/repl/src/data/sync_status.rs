//! What an initial sync has done so far: for `replSetGetStatus` (`initialSyncStatus`), and for whoever decides whether
//! a failing source gets more time.

use pando_base::panics::poisoned;
use pando_base::{Millis, Timestamp};
use pando_bson::DocBuilder;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// Shared between the sync, which writes, and the command that shows it.
#[derive(Clone, Default)]
pub struct SyncStatus(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    method: &'static str,
    attempts_max: u32,
    start: Millis,
    failed: Vec<Failed>,
    now: Attempt,
}

struct Failed {
    took_ms: Millis,
    why: String,
    attempt: Attempt,
}

/// The attempt under way.
#[derive(Default)]
struct Attempt {
    start: Millis,
    source: String,
    rbid: i32,
    /// Operations tried again, and the time in which the source did not answer.
    retried: u64,
    unreachable: Duration,
    /// Since when it has not, by the monotonic clock.
    silent_since: Option<Duration>,
    begin: Timestamp,
    stop: Timestamp,
    applied: u64,
    databases_to_clone: u64,
    databases: Vec<Database>,
    bytes_total: u64,
    /// Of a copy by files.
    file_bytes: u64,
}

#[derive(Default)]
struct Database {
    name: String,
    collections: u64,
    cloned: u64,
    start: Millis,
    end: Option<Millis>,
    list: Vec<Collection>,
}

#[derive(Default)]
struct Collection {
    ns: String,
    to_copy: u64,
    bytes_to_copy: u64,
    copied: u64,
    bytes: u64,
    indexes: u64,
    batches: u64,
    start: Millis,
    end: Option<Millis>,
}

impl SyncStatus {
    pub(crate) fn begin(&self, method: &'static str, attempts_max: u32, now: Millis) {
        *self.lock() = Inner { method, attempts_max, start: now, ..Inner::default() };
    }
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(poisoned)
    }

    // --- attempts

    pub(crate) fn attempt(&self, source: &str, now: Millis) {
        self.lock().now = Attempt { start: now, source: source.to_owned(), ..Attempt::default() };
    }
    pub(crate) fn attempt_failed(&self, why: &str, now: Millis) {
        let mut inner = self.lock();
        let attempt = std::mem::take(&mut inner.now);
        let took_ms = now - attempt.start;
        inner.failed.push(Failed { took_ms, why: why.to_owned(), attempt });
    }
    pub(crate) fn begins_at(&self, rbid: i32, begin: Timestamp) {
        let mut inner = self.lock();
        (inner.now.rbid, inner.now.begin) = (rbid, begin);
    }
    pub(crate) fn stops_at(&self, stop: Timestamp) {
        self.lock().now.stop = stop;
    }
    pub(crate) fn applied(&self, entries: u64) {
        self.lock().now.applied += entries;
    }

    // --- a source that does not answer

    /// An operation failed and may be tried again; for how long nothing has succeeded.
    pub(crate) fn retries(&self, now: Duration) -> Duration {
        let mut inner = self.lock();
        inner.now.retried += 1;
        let since = *inner.now.silent_since.get_or_insert(now);
        now.saturating_sub(since)
    }
    pub(crate) fn reached(&self, now: Duration) {
        let mut inner = self.lock();
        if let Some(since) = inner.now.silent_since.take() {
            inner.now.unreachable += now.saturating_sub(since);
        }
    }

    // --- what is copied

    pub(crate) fn set_method(&self, method: &'static str) {
        self.lock().method = method;
    }
    pub(crate) fn files(&self, bytes: u64) {
        self.lock().now.bytes_total = bytes;
    }
    pub(crate) fn file_bytes(&self, bytes: u64) {
        self.lock().now.file_bytes += bytes;
    }

    pub(crate) fn databases(&self, n: usize) {
        self.lock().now.databases_to_clone = n as u64;
    }
    pub(crate) fn database(&self, name: &str, collections: usize, now: Millis) {
        let (name, collections) = (name.to_owned(), collections as u64);
        self.lock().now.databases.push(Database { name, collections, start: now, ..Database::default() });
    }
    pub(crate) fn database_done(&self, now: Millis) {
        let mut inner = self.lock();
        inner.now.databases_to_clone = inner.now.databases_to_clone.saturating_sub(1);
        if let Some(db) = inner.now.databases.last_mut() {
            db.end = Some(now);
        }
    }
    pub(crate) fn collection(&self, ns: &str, documents: u64, bytes: u64, indexes: usize, now: Millis) {
        let mut inner = self.lock();
        inner.now.bytes_total += bytes;
        if let Some(db) = inner.now.databases.last_mut() {
            db.list.push(Collection {
                ns: ns.to_owned(),
                to_copy: documents,
                bytes_to_copy: bytes,
                indexes: indexes as u64,
                start: now,
                ..Collection::default()
            });
        }
    }
    pub(crate) fn batch(&self, documents: u64, bytes: u64) {
        let mut inner = self.lock();
        if let Some(c) = inner.now.databases.last_mut().and_then(|db| db.list.last_mut()) {
            (c.batches, c.copied, c.bytes) = (c.batches + 1, c.copied + documents, c.bytes + bytes);
        }
    }
    pub(crate) fn collection_done(&self, now: Millis) {
        let mut inner = self.lock();
        if let Some(db) = inner.now.databases.last_mut() {
            db.cloned += 1;
            if let Some(c) = db.list.last_mut() {
                c.end = Some(now);
            }
        }
    }

    /// The body of `initialSyncStatus`.
    pub fn append_to(&self, b: &mut DocBuilder, now: Millis) {
        let inner = self.lock();
        let at = &inner.now;
        let copied: u64 = at.databases.iter().flat_map(|db| &db.list).map(|c| c.bytes).sum();
        let copied = copied + at.file_bytes;
        let elapsed = now - inner.start;
        b.str("method", inner.method);
        b.i32("failedInitialSyncAttempts", inner.failed.len() as i32);
        b.i32("maxFailedInitialSyncAttempts", inner.attempts_max as i32);
        b.date("initialSyncStart", inner.start);
        b.i64("totalInitialSyncElapsedMillis", elapsed);
        b.array("initialSyncAttempts", |a| {
            for f in &inner.failed {
                a.doc(|d| f.append_to(d));
            }
        });
        b.i64("approxTotalDataSize", at.bytes_total as i64);
        b.i64("approxTotalBytesCopied", copied as i64);
        if copied > 0 {
            let left = at.bytes_total.saturating_sub(copied) as f64 / copied as f64;
            b.i64("remainingInitialSyncEstimatedMillis", ((now - at.start) as f64 * left) as i64);
        }
        b.i64("appliedOps", at.applied as i64);
        if !at.begin.is_zero() {
            b.timestamp("initialSyncOplogStart", at.begin);
        }
        if !at.stop.is_zero() {
            b.timestamp("initialSyncOplogEnd", at.stop);
        }
        b.i64("totalTimeUnreachableMillis", at.unreachable.as_millis() as i64);
        b.doc("databases", |d| {
            let done = at.databases.iter().filter(|db| db.end.is_some()).count();
            d.i32("databasesToClone", at.databases_to_clone as i32);
            d.i32("databasesCloned", done as i32);
            for db in &at.databases {
                d.doc(&db.name, |d| db.append_to(d, now));
            }
        });
    }
}

impl Failed {
    fn append_to(&self, d: &mut DocBuilder) {
        let a = &self.attempt;
        d.i32("durationMillis", self.took_ms as i32);
        d.str("status", &self.why);
        d.str("syncSource", &a.source);
        d.i32("rollBackId", a.rbid);
        d.i64("operationsRetried", a.retried as i64);
        d.i64("totalTimeUnreachableMillis", a.unreachable.as_millis() as i64);
    }
}

fn append_times(d: &mut DocBuilder, start: Millis, end: Option<Millis>, now: Millis) {
    d.date("start", start);
    if let Some(end) = end {
        d.date("end", end);
    }
    d.i32("elapsedMillis", (end.unwrap_or(now) - start) as i32);
}

impl Database {
    fn append_to(&self, d: &mut DocBuilder, now: Millis) {
        d.i32("collections", self.collections as i32);
        d.i32("clonedCollections", self.cloned as i32);
        append_times(d, self.start, self.end, now);
        for c in &self.list {
            d.doc(&c.ns, |d| {
                d.i64("documentsToCopy", c.to_copy as i64);
                d.i64("documentsCopied", c.copied as i64);
                d.i32("indexes", c.indexes as i32);
                d.i32("fetchedBatches", c.batches as i32);
                d.i64("bytesToCopy", c.bytes_to_copy as i64);
                if c.bytes > 0 {
                    d.i64("approxBytesCopied", c.bytes as i64);
                }
                append_times(d, c.start, c.end, now);
                d.i32("receivedBatches", c.batches as i32);
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_without_an_answer_adds_up_and_failed_attempts_are_kept() {
        let secs = Duration::from_secs;
        let s = SyncStatus::default();
        s.begin("logical", 10, 1_000);
        s.attempt("a:1", 1_000);
        assert_eq!(s.retries(secs(5)), secs(0));
        assert_eq!(s.retries(secs(8)), secs(3));
        s.reached(secs(9));
        s.reached(secs(10));
        assert_eq!(s.retries(secs(20)), secs(0));
        s.reached(secs(21));
        s.attempt_failed("gone", 4_000);
        s.attempt("b:1", 5_000);
        s.database("d", 1, 5_000);
        s.collection("d.c", 10, 1_000, 2, 5_000);
        s.batch(5, 500);
        let mut b = DocBuilder::new();
        s.append_to(&mut b, 7_000);
        let shown = b.finish();
        let failed =
            shown.get("initialSyncAttempts").and_then(|v| v.as_array()).and_then(|a| a.first()).unwrap();
        let of_failed = |name: &str| failed.value().as_doc().unwrap().get(name).and_then(|v| v.as_i64());
        assert_eq!(of_failed("totalTimeUnreachableMillis"), Some(5_000));
        assert_eq!(of_failed("operationsRetried"), Some(3));
        let n = |path: &str| shown.get_path(path).and_then(|v| v.as_i64());
        assert_eq!(n("remainingInitialSyncEstimatedMillis"), Some(2_000));
        assert_eq!(n("databases.d.clonedCollections"), Some(0));
    }
}
