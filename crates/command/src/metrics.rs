//! Counters that `serverStatus` reports. One place, so that a metric has one writer and one name.

use crate::concern::{ReadConcern, ReadLevel};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Only grows.
#[derive(Default, Debug)]
pub struct Counter(AtomicU64);

impl Counter {
    #[inline]
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Relaxed);
    }
    #[inline]
    pub fn inc(&self) {
        self.add(1);
    }
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Goes up and down.
#[derive(Default, Debug)]
pub struct Gauge(AtomicI64);

impl Gauge {
    pub fn add(&self, n: i64) {
        self.0.fetch_add(n, Relaxed);
    }
    pub fn set(&self, n: i64) {
        self.0.store(n, Relaxed);
    }
    pub fn get(&self) -> i64 {
        self.0.load(Relaxed)
    }
}

/// Operations by kind; writes count one per document.
#[derive(Default, Debug)]
pub struct OpCounters {
    pub insert: Counter,
    pub query: Counter,
    pub update: Counter,
    pub delete: Counter,
    pub getmore: Counter,
    pub command: Counter,
}

/// Count and total time of a class of operations.
#[derive(Default, Debug)]
pub struct Latency {
    pub ops: Counter,
    pub micros: Counter,
}

impl Latency {
    pub fn took(&self, time: Duration) {
        self.ops.inc();
        self.micros.add(time.as_micros() as u64);
    }
    pub fn millis(&self) -> i64 {
        (self.micros.get() / 1000) as i64
    }
}

/// Waits for write concerns.
#[derive(Default, Debug)]
pub struct WriteConcernWaits {
    pub waited: Latency,
    /// Those that `wtimeout` ended.
    pub timed_out: Counter,
}

#[derive(Default, Debug)]
pub struct Latencies {
    pub reads: Latency,
    pub writes: Latency,
    pub commands: Latency,
    pub transactions: Latency,
}

#[derive(Default, Debug)]
pub struct Network {
    /// Logical bytes (after decompression, before compression).
    pub bytes_in: Counter,
    pub bytes_out: Counter,
    /// Bytes on the wire.
    pub physical_bytes_in: Counter,
    pub physical_bytes_out: Counter,
    pub requests: Counter,
    /// By compressor id (snappy 1, zlib 2, zstd 3): bytes before and after, both directions.
    pub compression: [Compression; 4],
}

#[derive(Default, Debug)]
pub struct Compression {
    pub compressor_bytes_in: Counter,
    pub compressor_bytes_out: Counter,
    pub decompressor_bytes_in: Counter,
    pub decompressor_bytes_out: Counter,
}

#[derive(Default, Debug)]
pub struct Connections {
    pub current: Gauge,
    pub total_created: Counter,
    pub rejected: Counter,
    /// Connections with an operation running.
    pub active: Gauge,
    pub exhaust_is_master: Gauge,
    pub exhaust_hello: Gauge,
    pub awaiting_topology_changes: Gauge,
}

#[derive(Default, Debug)]
pub struct Asserts {
    pub regular: Counter,
    pub warning: Counter,
    pub msg: Counter,
    /// Errors returned to users.
    pub user: Counter,
}

/// What a member fetches from its sync source, and what it applies (`metrics.repl`).
#[derive(Default, Debug)]
pub struct Replication {
    pub fetched_bytes: Counter,
    pub fetched_ops: Counter,
    pub batches: Latency,
    pub empty_batches: Counter,
    pub readers_created: Counter,
    pub applied_batches: Latency,
    pub applied_ops: Counter,
    pub position_updates: Counter,
    /// Fetched, and not applied yet.
    pub buffered_bytes: Gauge,
    pub buffered_ops: Gauge,
}

/// Reads by the level of their read concern (`readConcernCounters`).
#[derive(Default, Debug)]
pub struct ReadConcerns {
    /// The client named no level.
    pub none: Counter,
    pub local: Counter,
    pub available: Counter,
    pub majority: Counter,
    pub linearizable: Counter,
    pub snapshot_at: Counter,
    pub snapshot: Counter,
}

impl ReadConcerns {
    pub fn count(&self, rc: &ReadConcern) {
        let counter = match rc.level {
            None => &self.none,
            Some(ReadLevel::Local) => &self.local,
            Some(ReadLevel::Available) => &self.available,
            Some(ReadLevel::Majority) => &self.majority,
            Some(ReadLevel::Linearizable) => &self.linearizable,
            Some(ReadLevel::Snapshot) if rc.at_cluster_time.is_some() => &self.snapshot_at,
            Some(ReadLevel::Snapshot) => &self.snapshot,
        };
        counter.inc();
    }
}

/// Documents touched by user operations (`metrics.document`, `metrics.queryExecutor`, `metrics.operation`).
#[derive(Default, Debug)]
pub struct Documents {
    pub inserted: Counter,
    pub updated: Counter,
    pub deleted: Counter,
    pub returned: Counter,
    pub scanned_keys: Counter,
    pub scanned_docs: Counter,
    pub collection_scans: Counter,
    /// Of cursors that do not wait for more.
    pub collection_scans_not_tailing: Counter,
    pub sorted_in_memory: Counter,
    pub write_conflicts: Counter,
    pub killed_by_max_time: Counter,
}

/// All counters of one server.
#[derive(Default, Debug)]
pub struct Metrics {
    pub write_concern_waits: WriteConcernWaits,
    pub op_counters: OpCounters,
    pub op_counters_repl: OpCounters,
    pub replication: Arc<Replication>,
    pub read_concerns: ReadConcerns,
    pub read_concerns_in_transactions: ReadConcerns,
    pub latencies: Latencies,
    pub network: Network,
    pub connections: Connections,
    pub asserts: Asserts,
    pub documents: Documents,
}
