//! What several crates count for one server: operations, latencies, connections, bytes, documents.
//!
//! What one crate alone counts stands in that crate. [`Instance`](crate::Instance) knows the places of these in `serverStatus`.

use crate::concern::{ReadConcern, ReadLevel};
use pando_base::limits;
use pando_metrics::{Collector, Counter, Family, Gauge, Source, group};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

group! {
    /// Operations by kind; writes count one per document.
    pub struct OpCounters {
        /// Documents to insert
        pub insert: Counter = "insert", "operations";
        /// Queries
        pub query: Counter = "query", "operations";
        /// Update statements
        pub update: Counter = "update", "operations";
        /// Delete statements
        pub delete: Counter = "delete", "operations";
        /// Requests for more of a cursor
        pub getmore: Counter = "getmore", "operations";
        /// Commands that are none of the others
        pub command: Counter = "command", "operations";
    }
}

group! {
    /// Commands by class (`opLatencies`).
    pub struct Latencies {
        /// Commands that read, and how long they took
        pub reads: Latency = "{class=reads}", "operations";
        /// Commands that write, and how long they took
        pub writes: Latency = "{class=writes}", "operations";
        /// Other commands, and how long they took
        pub commands: Latency = "{class=commands}", "operations";
        /// Transactions, and how long they were open
        pub transactions: Latency = "{class=transactions}", "operations";
    }
}

group! {
    /// Bytes of clients' messages (`network`).
    pub struct Network {
        /// Bytes of requests, decompressed
        pub bytes_in: Counter = "bytesIn", "bytes";
        /// Bytes of replies before they are compressed
        pub bytes_out: Counter = "bytesOut", "bytes";
        /// Bytes read from connections
        pub physical_bytes_in: Counter = "physicalBytesIn", "bytes";
        /// Bytes written to connections
        pub physical_bytes_out: Counter = "physicalBytesOut", "bytes";
        /// Requests received
        pub requests: Counter = "numRequests", "requests";
    }
}

group! {
    /// What one compressor did.
    pub struct Compression {
        /// Bytes given to the compressor
        pub compressor_bytes_in: Counter = "compressor.bytesIn", "bytes";
        /// Bytes that came from the compressor
        pub compressor_bytes_out: Counter = "compressor.bytesOut", "bytes";
        /// Bytes given to the decompressor
        pub decompressor_bytes_in: Counter = "decompressor.bytesIn", "bytes";
        /// Bytes that came from the decompressor
        pub decompressor_bytes_out: Counter = "decompressor.bytesOut", "bytes";
    }
}

/// Connections of clients and members to this server.
#[derive(Default, Debug)]
pub struct Connections {
    /// How many there may be.
    pub limit: Gauge,
    pub current: Gauge,
    pub total_created: Counter,
    pub rejected: Counter,
    /// Of those that are open, whom no bound concerns.
    pub limit_exempt: Gauge,
    /// Refused by the allow-list.
    pub not_allowed: Counter,
    /// Refused because they came too fast from one address.
    pub too_fast: Counter,
    /// Something of these is configured, so they are shown.
    pub has_sources: AtomicBool,
    /// Connections with an operation running.
    pub active: Gauge,
    pub exhaust_is_master: Gauge,
    pub exhaust_hello: Gauge,
    pub awaiting_topology_changes: Gauge,
}

impl Source for Connections {
    fn collect(&self, to: &mut Collector<'_>) {
        const UNIT: &str = "connections";
        let current = self.current.get();
        let available = (self.limit.get() - current).max(0);
        let gauge = |g: &Gauge| g.get() as i32;
        to.gauge("current", current as i32, UNIT, "Connections that are open")
            .gauge("available", available as i32, UNIT, "Connections that may be opened besides")
            .counter("totalCreated", self.total_created.get() as i32, UNIT, "Connections that were accepted")
            .counter(
                "rejected",
                self.rejected.get() as i32,
                UNIT,
                "Connections refused because there were too many",
            )
            .gauge("active", gauge(&self.active), UNIT, "Connections with an operation running")
            .gauge("threaded", current as i32, UNIT, "Connections with a task of their own")
            .gauge(
                "exhaustIsMaster",
                gauge(&self.exhaust_is_master),
                UNIT,
                "Connections on which isMaster is streamed",
            )
            .gauge("exhaustHello", gauge(&self.exhaust_hello), UNIT, "Connections on which hello is streamed")
            .gauge(
                "awaitingTopologyChanges",
                gauge(&self.awaiting_topology_changes),
                UNIT,
                "Connections on which hello waits for a change of the set",
            );
        if self.has_sources.load(Relaxed) {
            let (not_allowed, too_fast) = (self.not_allowed.get() as i64, self.too_fast.get() as i64);
            to.gauge("limitExempt", gauge(&self.limit_exempt), UNIT, "Connections that no bound concerns")
                .counter("refusedByAddress", not_allowed, UNIT, "Connections that the allow-list refused")
                .counter("refusedByRate", too_fast, UNIT, "Connections that came too fast from one address");
        }
    }
}

/// Connections with TLS that were accepted, by version; this server speaks no older one.
#[derive(Default, Debug)]
pub struct TransportSecurity {
    pub v1_2: Counter,
    pub v1_3: Counter,
}

impl Source for TransportSecurity {
    fn collect(&self, to: &mut Collector<'_>) {
        let (v1_2, v1_3) = (self.v1_2.get() as i64, self.v1_3.get() as i64);
        for (version, n) in [("1.0", 0), ("1.1", 0), ("1.2", v1_2), ("1.3", v1_3), ("unknown", 0)] {
            to.labelled_counter("version", version, n, "connections", "Connections with TLS, by its version");
        }
    }
}

group! {
    /// Errors (`asserts`).
    pub struct Asserts {
        /// Broken invariants that ended an operation
        pub regular: Counter = "regular", "errors", int;
        /// Broken invariants that ended nothing
        pub warning: Counter = "warning", "errors", int;
        /// Errors of the server itself
        pub msg: Counter = "msg", "errors", int;
        /// Errors that were returned to users
        pub user: Counter = "user", "errors", int;
        /// Broken invariants that are looked for by tests alone
        pub tripwire: Counter = "tripwire", "errors", int;
        /// Times that these counters began again at 0
        pub rollovers: Counter = "rollovers", "times", int;
    }
}

group! {
    /// What a member fetches from its sync source, and what it applies (`metrics.repl`).
    pub struct Replication {
        /// Batches of log entries that were applied
        pub applied_batches: Timer = "apply.batches", "batches";
        /// Log entries that were applied
        pub applied_ops: Counter = "apply.ops", "log entries";
        /// Log entries fetched and not applied yet
        pub buffered_ops: Gauge = "buffer.count", "log entries";
        /// Bytes that may wait to be applied
        pub buffer_bytes_max: Gauge = "buffer.maxSizeBytes", "bytes";
        /// Bytes fetched and not applied yet
        pub buffered_bytes: Gauge = "buffer.sizeBytes", "bytes";
        /// Bytes of log entries that were fetched
        pub fetched_bytes: Counter = "network.bytes", "bytes";
        /// Batches of log entries that were fetched
        pub batches: Timer = "network.getmores", "batches";
        /// Fetched batches without any entry
        pub empty_batches: Counter = "network.getmores.numEmptyBatches", "batches";
        /// Log entries that were fetched
        pub fetched_ops: Counter = "network.ops", "log entries";
        /// Times a sync source's log was opened
        pub readers_created: Counter = "network.readersCreated", "cursors";
        /// Reports of this member's position to its sync source
        pub position_updates: Counter = "network.replSetUpdatePosition.num", "reports";
    }
}

group! {
    /// Reads by the level of their read concern (`readConcernCounters`).
    pub struct ReadConcerns {
        /// Reads that name no level
        pub none: Counter = "none", "reads";
        /// Reads with level local
        pub local: Counter = "local", "reads";
        /// Reads with level available
        pub available: Counter = "available", "reads";
        /// Reads with level majority
        pub majority: Counter = "majority", "reads";
        /// Reads with level snapshot at a named cluster time
        pub snapshot_at: Counter = "snapshot.withClusterTime", "reads";
        /// Reads with level snapshot at a time the server chooses
        pub snapshot: Counter = "snapshot.withoutClusterTime", "reads";
        /// Reads with level linearizable
        pub linearizable: Counter = "linearizable", "reads";
    }
}

impl ReadConcerns {
    pub fn count(&self, rc: &ReadConcern) {
        let counter = match rc.level {
            None => &self.none,
            Some(_) if rc.by_default => &self.none,
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

group! {
    /// Documents that users' operations touched, what was read for them, and waits for write concerns (`metrics`).
    pub struct Documents {
        /// Documents deleted
        pub deleted: Counter = "document.deleted", "documents";
        /// Documents inserted
        pub inserted: Counter = "document.inserted", "documents";
        /// Documents returned by queries
        pub returned: Counter = "document.returned", "documents";
        /// Documents changed by updates
        pub updated: Counter = "document.updated", "documents";
        /// Waits for a write concern of more than this member
        pub write_concern_waits: Timer = "getLastError.wtime", "waits";
        /// Waits for a write concern that wtimeout ended
        pub write_concern_timeouts: Counter = "getLastError.wtimeouts", "waits";
        /// Queries that sorted in memory
        pub sorted_in_memory: Counter = "operation.scanAndOrder", "queries";
        /// Collection scans of cursors that do not wait for more
        pub collection_scans_not_tailing: Counter = "queryExecutor.collectionScans.nonTailable", "scans";
        /// Collection scans
        pub collection_scans: Counter = "queryExecutor.collectionScans.total", "scans";
        /// Index keys that queries looked at
        pub scanned_keys: Counter = "queryExecutor.scanned", "keys";
        /// Documents that queries looked at
        pub scanned_docs: Counter = "queryExecutor.scannedObjects", "documents";
    }
}

/// What the crates around commands count of one server.
#[derive(Debug)]
pub struct Metrics {
    pub op_counters: OpCounters,
    pub op_counters_repl: OpCounters,
    pub replication: Arc<Replication>,
    pub read_concerns: ReadConcerns,
    pub read_concerns_in_transactions: ReadConcerns,
    pub latencies: Latencies,
    pub network: Network,
    pub compression: Family<Compression>,
    pub connections: Connections,
    pub transport_security: TransportSecurity,
    pub asserts: Asserts,
    pub documents: Documents,
}

impl Default for Metrics {
    fn default() -> Metrics {
        let replication = Replication::default();
        let buffers = limits::FETCH_BUFFER_BYTES_MAX + limits::APPLY_BUFFER_BYTES_MAX;
        replication.buffer_bytes_max.set(buffers as i64);
        Metrics {
            op_counters: OpCounters::default(),
            op_counters_repl: OpCounters::default(),
            replication: Arc::new(replication),
            read_concerns: ReadConcerns::default(),
            read_concerns_in_transactions: ReadConcerns::default(),
            latencies: Latencies::default(),
            network: Network::default(),
            compression: Family::new("compressor", &["snappy", "zstd", "zlib"]),
            connections: Connections::default(),
            transport_security: TransportSecurity::default(),
            asserts: Asserts::default(),
            documents: Documents::default(),
        }
    }
}
