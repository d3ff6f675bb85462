//! Every bound of the server, with its unit in the name and its reason beside it.
//!
//! A queue, batch, depth, cache or timeout elsewhere takes its number from here. Some subjects have files of their own.

mod chunks;
mod index_builds;
mod migrations;
mod replies;
mod router;
mod shard_metadata;
mod shard_split;
mod tenant_data;

pub use chunks::*;
pub use index_builds::*;
pub use migrations::*;
pub use replies::*;
pub use router::*;
pub use shard_metadata::*;
pub use shard_split::*;
pub use tenant_data::*;

/// Largest document a user may store (the protocol's `maxBsonObjectSize`).
pub const BSON_USER_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Room the server itself may add around a user document (replies, oplog entries).
pub const BSON_INTERNAL_BYTES_MAX: usize = BSON_USER_BYTES_MAX + 16 * 1024;
/// Type, digits of the position and the zero behind them: what an array's element takes beside its value.
pub const BSON_ARRAY_ELEMENT_BYTES_MAX: usize = 12;
/// Nesting levels the parser walks before it refuses (MongoDB's `maxBSONDepth`).
pub const BSON_DEPTH_MAX: usize = 200;
/// Nesting levels of a document that may be stored (one more gives code 15, Overflow).
pub const BSON_STORED_DEPTH_MAX: usize = 180;
/// Largest wire message (`maxMessageSizeBytes`).
pub const WIRE_MESSAGE_BYTES_MAX: usize = 48_000_000;
/// Document sequences in one OP_MSG. Commands use at most two (`bulkWrite`); names are compared pairwise.
pub const WIRE_SEQUENCES_MAX: usize = 8;
/// First piece of output that decompression reserves; it then grows with what was really produced.
pub const WIRE_INFLATE_STEP_BYTES: usize = 64 * 1024;
/// Largest number of writes in one command (`maxWriteBatchSize`).
pub const WRITE_BATCH_OPS_MAX: usize = 100_000;
/// Database names are files and prefixes elsewhere in the ecosystem; MongoDB's bound.
pub const DB_NAME_BYTES_MAX: usize = 63;
/// `db.collection`, MongoDB's bound since 4.4.
pub const NAMESPACE_BYTES_MAX: usize = 255;
/// The same of a sharded collection (MongoDB's `MaxNsShardedCollectionLen`).
pub const SHARDED_NAMESPACE_BYTES_MAX: usize = 235;
/// Of a command's arguments, as much is kept in the audit log; what was left out is counted beside them.
pub const AUDIT_ARGS_BYTES_MAX: usize = 1 << 20;
/// Of an event that goes to syslog; daemons cut at a few kilobytes, and the socket takes no more than about 200.
pub const SYSLOG_RECORD_BYTES_MAX: usize = 64 << 10;
/// Of a command that somebody may not run, as much is shown in the refusal.
pub const UNAUTHORIZED_SHOWN_BYTES_MAX: usize = 4096;
/// Logins that may fail from one address before the next ones wait.
pub const LOGIN_FAILURES_FREE: u32 = 5;
/// Failed logins of one address that the log has a line for, a minute; the next line says how many were left out.
pub const LOGIN_FAILURES_LOGGED_A_MINUTE_MAX: u32 = 20;
/// After a minute without a failure they are forgotten.
pub const LOGIN_FAILURES_FORGOTTEN_SECS: u64 = 60;
/// Addresses of which failures are counted.
pub const LOGIN_FAILURES_ADDRESSES_MAX: usize = 10_000;
/// Networks of addresses whose rate of connections is kept (`connectionRatePerAddress`).
pub const CONNECTION_RATES_KEPT_MAX: usize = 10_000;
/// Between two lines of the log about connections that come too fast from one of them.
pub const CONNECTION_RATE_TOLD_SECS: u64 = 10;
/// Of an address of version 6, what one customer of a provider usually has.
pub const IPV6_NETWORK_BITS: u32 = 64;
/// The first pause, and the longest.
pub const LOGIN_PAUSE_MS_MIN: u64 = 100;
pub const LOGIN_PAUSE_MS_MAX: u64 = 1000;
/// Users whose privileges are kept ready; more, and all are read again.
pub const AUTHORITIES_KEPT_MAX: usize = 10_000;
/// Nulls that one update may put into an array to reach a far index; more is refused (code 34), as in MongoDB.
pub const ARRAY_BACKFILL_MAX: usize = 1_500_000;
/// Bytes of a document while an update writes it, which may repeat one value; more is code 13548, as in MongoDB.
pub const UPDATE_BUFFER_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Members of a replica set; also the largest `w`.
pub const REPLSET_MEMBERS_MAX: usize = 50;
/// A request body longer than this is not copied for `currentOp`; the copy is made for every operation.
pub const CURRENT_OP_BODY_BYTES_MAX: usize = 1024;
/// `hello.client`; the bound of MongoDB's servers (clients are to keep to half of it).
pub const CLIENT_METADATA_BYTES_MAX: usize = 1024;
/// `hello.client.application.name`; MongoDB's bound.
pub const CLIENT_APP_NAME_BYTES_MAX: usize = 128;
/// `metrics.apiVersions` tells of the last day, as MongoDB does; of so many applications; and a connection says which
/// version it uses once in so many seconds, not with every request.
pub const API_VERSION_SHOWN_SECS: u64 = 24 * 3600;
pub const API_VERSION_APPS_MAX: usize = 1000;
pub const API_VERSION_TOLD_SECS: u64 = 600;
/// Table blocks cached in memory: enough for the hot part of a small data set, leaves room on a 1 GiB machine.
pub const STORAGE_CACHE_BYTES: usize = 256 << 20;
/// Fewest blocks cached under a small `--wiredTigerCacheSizeGB`: the inner blocks that every read needs.
pub const STORAGE_CACHE_BYTES_MIN: usize = 8 << 20;
/// Committed rows not yet in tables; a flush starts above it, so recovery replays little and memory stays modest.
pub const STORAGE_MEMTABLE_BYTES: usize = 48 << 20;
/// The same under a small `--wiredTigerCacheSizeGB`; less would make tables too small.
pub const STORAGE_MEMTABLE_BYTES_MIN: usize = 4 << 20;
/// Commits are refused above this multiple of the memtable budget (the stable timestamp stands still).
pub const STORAGE_MEMTABLE_HARD_FACTOR: usize = 8;
/// Log on disk (MongoDB's smallest default, 990 MiB).
pub const OPLOG_BYTES: u64 = 990 << 20;
/// What a walk over the log reads from a file at once, and the rest of one entry.
pub const OPLOG_READ_BATCH_BYTES: usize = 4 << 20;
/// Replaced versions on disk before the oldest snapshots are given up.
pub const STORAGE_HISTORY_BYTES_MAX: u64 = 4 << 30;
/// Idle time after which a logical session is over (`localLogicalSessionTimeoutMinutes`).
pub const SESSION_TIMEOUT_MINUTES: u64 = 30;
/// What a write of an open transaction takes beside its bytes: its place in the list, in the table of its keys and among the
/// writers, an entry's share of the log's buffer.
pub const TRANSACTION_WRITE_OVERHEAD_BYTES: usize = 256;
/// Age in milliseconds of the oldest log entries that a start reads to learn which retryable writes were carried
/// out, where no checkpoint has kept that: as long as a session lives.
pub const RETRY_RESTORE_AGE_MS: i64 = 30 * 60 * 1000;
/// Databases with a profile filter.
pub const PROFILE_FILTERS_MAX: usize = 1000;
/// Profile entries waiting to be written: past this they are lost, because profiling must not slow operations down.
pub const PROFILE_QUEUE_MAX: usize = 1000;
/// Size of a `system.profile` collection that profiling creates, as in MongoDB.
pub const PROFILE_BYTES: i64 = 1 << 20;
/// Size of `local.startup_log`, as in MongoDB: some ten thousand starts.
pub const STARTUP_LOG_BYTES: i64 = 10 << 20;
/// Connections the kernel queues before the listener takes them: a burst of reconnects of a few drivers' pools.
pub const LISTEN_BACKLOG: u32 = 1024;
/// Idle seconds before a dead peer is looked for; well under the 5 minutes after which NATs forget.
pub const TCP_KEEPALIVE_SECS: u64 = 120;

/// Fields of an index or sort pattern (MongoDB's bound).
pub const INDEX_FIELDS_MAX: usize = 32;
/// Memory of one sort before it spills, MongoDB's `internalQueryMaxBlockingSortMemoryUsageBytes`.
pub const SORT_MEMORY_BYTES_MAX: usize = 100 * 1024 * 1024;
/// Records that a plan tells apart so that it gives each once: about 800 million neighbours, or 1.5 million
/// of which no two lie within 65,536 ids.
pub const RECORD_SET_BYTES_MAX: usize = 100 * 1024 * 1024;
/// Cells that stand for one stored geometry in an index on places (MongoDB's 50).
pub const GEO_INDEX_CELLS_MAX: usize = 50;
/// Cells that a query about places looks through (MongoDB's 20 on the sphere).
pub const GEO_QUERY_CELLS_MAX: usize = 20;
/// Documents that a search for what is near holds on to; of others it knows the record and the distance.
pub const GEO_NEAR_DOCUMENTS_KEPT_MAX: usize = 1_000;
/// Index scans that a sort over `$in` points may be split into; more are sorted in memory instead.
pub const SORT_MERGE_SCANS_MAX: usize = 200;
/// Query shapes whose best plan one collection remembers (MongoDB's 5,000).
pub const PLAN_CACHE_ENTRIES_MAX: usize = 5_000;
/// Of these, how many tell how their race went: some kilobytes each.
pub const PLAN_CACHE_TRIALS_MAX: usize = 500;
/// How many times more steps than so far will do for the next winner, when the last one took more.
pub const PLAN_CACHE_WORKS_GROWTH: u64 = 2;
/// Steps of a trial between candidate plans, or three tenths of the records if that is more.
pub const PLAN_TRIAL_WORKS_MIN: u64 = 10_000;
/// Candidate plans that are tried against each other.
pub const CANDIDATE_PLANS_MAX: usize = 64;
/// Plans for one `$or` that are tried: each branch may have several ways.
pub const UNION_PLANS_MAX: usize = 8;
/// Longest regular expression (MongoDB's bound for `$regex`).
pub const REGEX_PATTERN_BYTES_MAX: usize = 32_764;
/// A compiled regular expression; repeats multiply quickly.
pub const REGEX_PROGRAM_BYTES_MAX: usize = 10 * 1024 * 1024;
/// Parentheses within parentheses in a regular expression; the parser recurses.
pub const REGEX_NESTING_MAX: u32 = 250;
/// Steps of a backtracking match before it counts as failed.
pub const REGEX_BACKTRACKS_MAX: usize = 1_000_000;
/// A message of SCRAM; drivers send a few hundred bytes.
pub const SCRAM_MESSAGE_BYTES_MAX: usize = 16 * 1024;
/// A client's nonce, at least (MongoDB's number).
pub const SCRAM_NONCE_BYTES_MIN: usize = 4;
/// A salt, of a stored user or a server's challenge.
pub const SCRAM_SALT_BYTES_MAX: usize = 256;
/// Rounds of hashing of a stored user, or that a server may ask of a client: ten seconds and more.
pub const SCRAM_ITERATIONS_MAX: u32 = 10_000_000;
/// Fewer would hand the password of a client to who listens (RFC 7677).
pub const SCRAM_ITERATIONS_ASKED_MIN: u32 = 4096;
/// Of a whole keyfile.
pub const KEYFILE_BYTES_MAX: usize = 64 * 1024;
/// Characters of a key that members share (MongoDB's bounds).
pub const KEYFILE_KEY_CHARS: std::ops::RangeInclusive<usize> = 6..=1024;
/// Bytes of chance of a key that `pando up --auth` makes, as MongoDB's guide does, and of a password that nobody guesses.
pub const KEY_MADE_BYTES: usize = 756;
pub const PASSWORD_MADE_BYTES: usize = 18;
/// What keys of members come to under salts of others, kept by each process.
pub const SALTED_KEYS_KEPT_MAX: usize = 128;
/// Log lines kept in memory for `getLog` (MongoDB's number).
pub const LOG_RING_LINES: usize = 1024;
/// Connections at the same time (MongoDB's default for `maxConns`); file descriptors usually run out earlier.
pub const CONNECTIONS_MAX: usize = 1_000_000;
/// First read of a connection: a typical command fits, an idle connection holds no more.
pub const READ_CHUNK_BYTES: usize = 4 * 1024;
/// A message's buffer may grow by this much, or double, per read; a length that lies costs no more.
pub const READ_GROWTH_BYTES_MIN: usize = 32 * 1024;
/// A larger read buffer is given back when the connection has been idle for [`IDLE_BUFFER_MS`].
pub const IDLE_BUFFER_BYTES_MAX: usize = 64 * 1024;
/// Idle milliseconds before a large buffer goes: longer than the gap between batches of a bulk load.
pub const IDLE_BUFFER_MS: u64 = 1000;
/// Pause after a failed accept.
pub const ACCEPT_RETRY_MS: u64 = 100;
/// Steps of a collection's totals kept between checkpoints (24 bytes each); beyond it neighbours are joined.
pub const SIZE_CHANGES_KEPT_MAX: usize = 16 * 1024;
/// Documents of one storage unit of a bulk insert: MongoDB's `internalInsertMaxBatchSize`.
pub const INSERT_UNIT_DOCS_MAX: usize = 500;
/// Bytes of one storage unit of a bulk insert: keeps its log slots open for a few milliseconds at most.
pub const INSERT_UNIT_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Events of one transaction that a change stream makes ahead, and operations it looks at in one turn.
pub const CHANGE_STREAM_PENDING_BYTES: usize = 1024 * 1024;
pub const CHANGE_STREAM_STEP_OPS: usize = 1000;
/// Levels of nesting of a value that an expression makes step by step; walks over values recurse.
pub const VALUE_DEPTH_MAX: usize = 1000;
/// Steps of a `$reduce` between two looks at how deep its value is: each adds no more levels than a command may have.
pub const REDUCE_STEPS_PER_LOOK: usize = 8;
/// Levels of nesting of all stages of a pipeline together: each may wrap what the one before made.
pub const PIPELINE_DEPTH_MAX: usize = 8000;
/// Stack of a worker: enough to walk over the deepest value there can be. Only what is used takes memory.
pub const WORKER_STACK_BYTES: usize = 16 * 1024 * 1024;
/// Views on views; MongoDB's bound (one more gives code 165).
pub const VIEW_DEPTH_MAX: usize = 20;
/// Bytes of a view's whole pipeline, views below included (code 195).
pub const VIEW_PIPELINE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Waits that know no other way look this often whether their operation is to stop: nobody notices a tenth of a second.
pub const INTERRUPT_CHECK_MS: u64 = 100;
/// Expired documents deleted by one storage unit of the TTL sweeper.
pub const TTL_UNIT_DOCS: usize = 100;
/// Indexes of one collection, `_id_` included, MongoDB's bound (one more gives code 67).
pub const INDEXES_PER_COLLECTION_MAX: usize = 64;
/// Texts of write errors in one reply; past this only index and code are told, as in MongoDB.
pub const WRITE_ERRORS_BYTES_MAX: usize = 1024 * 1024;
/// Documents that an update or delete of many changes in one unit: large enough to spread the cost of a commit,
/// small enough that a write conflict repeats little.
pub const MULTI_WRITE_UNIT_DOCS: usize = 64;
/// Times that an upsert tries again because another one was faster: the document in its way is the one that it asks for, so it finds it
/// next time unless that is gone already.
pub const UPSERT_RACES_MAX: u32 = 100;
/// Documents and bytes that MongoDB inserts in one unit; tests count by it.
pub const INSERT_GROUP_DOCS_MAX: usize = 500;
pub const INSERT_GROUP_BYTES_MAX: usize = 256 * 1024;
/// Bytes that one `$push`, `$addToSet`, `$firstN` .. of one group may hold; they cannot spill (MongoDB's bound).
pub const ACCUMULATED_ARRAY_BYTES_MAX: usize = 100 * 1024 * 1024;
/// Bytes a `$group` keeps in memory before it spills, or fails when it may not (MongoDB's bound).
pub const GROUP_BYTES_MAX: usize = 100 * 1024 * 1024;
/// Looks at conditions while filters move towards the front of one pipeline: so many in any case, as 100 conditions past
/// 100 stages need. What is left then stays where it was written, which is slower to run but never wrong.
pub const CONDITION_MOVES_MIN: usize = 10_000;
/// More such looks for every stage and every condition, so that planning takes time in proportion to what was written.
pub const CONDITION_MOVES_EACH: usize = 16;
/// Bytes of a condition that are rewritten in one look.
pub const CONDITION_BYTES_PER_LOOK: usize = 256;
/// Stages of one pipeline whose rows are cut to the fields that are looked at later: for each, all later ones are walked.
pub const STAGES_NARROWED_MAX: usize = 16;
/// Stages in one pipeline (MongoDB's bound, code 9).
pub const PIPELINE_STAGES_MAX: usize = 1000;
/// Bytes of an array that one expression may make out of nothing (`$range`; MongoDB's bound).
pub const EXPRESSION_ARRAY_BYTES_MAX: usize = 100 * 1024 * 1024;
/// Milliseconds to connect to another node, and again for the handshake: a host on another continent answers in less.
pub const RPC_CONNECT_MS: u64 = 10_000;
/// Milliseconds for a client's TLS handshake, from its first byte on, or from its connecting where nothing else is allowed: a
/// slow line needs two or three of its round trips.
pub const TLS_HANDSHAKE_MS: u64 = 10_000;
/// Milliseconds in which the log says once that the handshake with a server fails for the same reason.
pub const TLS_REFUSAL_TOLD_MS: u64 = 60_000;
/// Bytes that are encrypted before they are written: four records.
pub const TLS_CHUNK_BYTES: usize = 64 * 1024;
/// Encrypted bytes read at once: a whole record and its header.
pub const TLS_READ_BYTES: usize = 17 * 1024;
/// A file of certificates or revocation lists; those of the largest authorities have a few MB.
pub const TLS_FILE_BYTES_MAX: usize = 64 << 20;
/// Days that certificates of an authority of one's own are good for: the longest that browsers and drivers let pass.
pub const LOCAL_CERTIFICATE_DAYS: i64 = 397;
/// Seconds between looks at the end of the server's certificate: the log says once a day that it is near.
pub const TLS_EXPIRY_LOOK_SECS: u64 = 24 * 3600;
/// Days before a certificate ends that the log begins to warn (`tlsX509ExpirationWarningThresholdDays`).
pub const TLS_EXPIRY_WARNING_DAYS: i64 = 30;
/// Connections to one host, of one pool, idle ones and those being made included: more calls at once than a peer can work
/// on would only wait over there, where nobody can give them up.
pub const RPC_OPEN_PER_HOST_MAX: usize = 128;
/// Calls that wait for a connection to one host; the next one is refused. Behind so many nobody is served in time.
pub const RPC_WAITING_PER_HOST_MAX: usize = 1024;
/// Hosts that a pool remembers; beyond, each new one costs a walk over all, to forget the quiet ones: a thousand shards of a dozen members.
pub const RPC_HOSTS_MAX: usize = 16 * 1024;
/// Tries of a call that may be repeated, the first one included.
pub const RPC_TRIES_MAX: u32 = 4;
/// Room for the body of a command, and for the framing, in a message that carries document sequences.
pub const RPC_BODY_BYTES_MAX: usize = 16 * 1024;
/// Idle connections kept per host: calls to one peer rarely overlap.
pub const RPC_IDLE_PER_HOST_MAX: usize = 4;
/// Idle milliseconds after which a kept connection is not trusted any more: firewalls forget at about five minutes.
pub const RPC_IDLE_MS: u64 = 60_000;
/// Oplog entries that a worker of a secondary applies in one storage unit (MongoDB groups up to 64 inserts).
pub const APPLY_UNIT_OPS_MAX: usize = 64;
/// Bytes of entries in one such unit.
pub const APPLY_UNIT_BYTES_MAX: usize = 256 * 1024;
/// Bytes of fetched oplog entries waiting to be written (MongoDB's 256 MB): a few seconds of a fast primary.
pub const FETCH_BUFFER_BYTES_MAX: usize = 256 << 20;
/// Bytes of written entries waiting to be applied: the applier works on while the writer syncs.
pub const APPLY_BUFFER_BYTES_MAX: usize = 100 << 20;
/// Oplog entries of one applier batch (`replBatchLimitOperations`).
pub const APPLY_BATCH_OPS_MAX: usize = 5_000;
/// Bytes of entries in one applier batch (`replBatchLimitBytes`).
pub const APPLY_BATCH_BYTES_MAX: usize = 100 << 20;
/// Tasks that apply a batch (`replWriterThreadCount`); never more than twice the cores.
pub const APPLY_WORKERS_MAX: usize = 16;
/// Entries for which one more worker pays: handing work over costs about as much as applying ten entries.
pub const APPLY_ENTRIES_PER_WORKER_MIN: usize = 100;
/// `batchSize` of oplog queries: as many as fit into a reply of 16 MiB (MongoDB's number).
pub const OPLOG_QUERY_BATCH_SIZE: i32 = 13_981_010;
/// Milliseconds for the first oplog query (`oplogInitialFindMaxSeconds`): the source may have to read from disk.
pub const OPLOG_INITIAL_FIND_MS: u64 = 60_000;
/// The same when the query is repeated on a connection that was cut (`oplogRetriedFindMaxSeconds`).
pub const OPLOG_RETRIED_FIND_MS: u64 = 2_000;
/// Milliseconds beyond a query's own limit before its connection counts as dead.
pub const OPLOG_NETWORK_SLACK_MS: u64 = 5_000;
/// Reconnections to one sync source without a good batch in between (`oplogFetcherSteadyStateMaxFetcherRestarts`).
pub const FETCHER_RESTARTS_MAX: u32 = 1;
/// Pause when no sync source is eligible.
pub const SYNC_SOURCE_RETRY_MS: u64 = 1_000;
/// The same when something was heard of the other members meanwhile: a new primary is followed at once.
pub const SYNC_SOURCE_RETRY_MS_MIN: u64 = 10;
/// How long a source is avoided after its probe failed, or it had no usable oplog.
pub const DENY_PROBE_FAILED_MS: u64 = 10_000;
/// How long a source is avoided that did not answer in time.
pub const DENY_PROBE_TIMED_OUT_MS: u64 = 30_000;
/// How long a source is avoided whose oplog starts after our newest entry.
pub const DENY_TOO_STALE_MS: u64 = 60_000;
/// How long a member waits for members that are down or behind, before it copies the set's data again because nobody
/// else can tell where its log has parted, or has what comes after it: a member that restarts is back by then.
pub const COPY_AGAIN_WAIT_MS: i64 = 60_000;
/// A start that leaves so many bytes of replayed rows in memory is followed by a checkpoint at once.
pub const EARLY_CHECKPOINT_BYTES: usize = 4 << 20;
/// Bytes of sessions that are kept in one step, roughly, and of those that are told to a member that copies this one:
/// beyond, it copies more of the log.
pub const SESSION_RECORDS_PART_BYTES: usize = 1 << 20;
pub const SESSION_RECORDS_BYTES_MAX: usize = 12 << 20;
/// What retried findAndModify commands return, where it is not in the node's log: with the above less than a reply may hold.
pub const SESSION_RECORD_IMAGES_BYTES_MAX: usize = 3 << 20;
/// Bytes that carried-out statements of sessions may take in memory; beyond, those of sessions that have rested longest
/// are given up, and a retry of one is refused.
pub const RETRYABLE_BYTES_MAX: usize = 256 << 20;
/// The log of a copied member begins so long before the copy, in seconds, where its source cannot tell what sessions have
/// done: as long as they live without use.
pub const INITIAL_SYNC_HISTORY_SECS: u32 = 1_800;
/// A source that has been silent for so long, in seconds, is given up when another member can be copied from.
pub const INITIAL_SYNC_SOURCE_GONE_SECS: u64 = 30;
/// Pause before the next try, and between attempts.
pub const INITIAL_SYNC_PAUSE_MS: u64 = 1_000;
/// Documents in the first batch of a collection; later ones are bounded by their size.
pub const CLONE_FIRST_BATCH_DOCS: i32 = 1_000;
/// A collection of so many documents is copied straight into tables; for a smaller one that would cost more syncs than it saves.
pub const CLONE_BULK_DOCS_MIN: u64 = 1_000;
/// Documents copied in one storage unit.
pub const CLONE_UNIT_DOCS_MAX: usize = 256;
/// Bytes of log entries that an initial sync reads back at once to apply them.
pub const REAPPLY_CHUNK_BYTES: usize = 4 << 20;

/// Entries of the log kept in memory after they are on disk: what secondaries and change streams that keep up read.
pub const LOG_RECENT_BYTES_MAX: usize = 16 << 20;
/// A log of the smallest size still has this many files, so that dropping one frees a small part.
pub const LOG_SEGMENTS_MIN: u64 = 16;
/// Smallest file of the log: head, foot and index stay small beside it.
pub const LOG_SEGMENT_BYTES_MIN: u64 = 64 << 10;
/// Largest file of the log: a start scans the newest one whole.
pub const LOG_SEGMENT_BYTES_MAX: u64 = 64 << 20;
/// Checkpoints held still for backups at a time: each keeps its files on the disk.
pub const BACKUPS_OPEN_MAX: usize = 4;
/// A backup from which nobody reads for so long is given up.
pub const BACKUP_IDLE_MS: u64 = 600_000;
/// Bytes of a file in one reply of `_readBackup`.
pub const BACKUP_READ_BYTES: usize = 4 << 20;
/// One call of `pando backup` waits so long: opening a backup takes a checkpoint first.
pub const BACKUP_CALL_MS: u64 = 600_000;
/// Documents of a dump that are read and sent at a time.
pub const DUMP_PART_BYTES: usize = 8 << 20;
/// Entries of the oplog may be longer than documents.
pub const DUMP_DOCUMENT_BYTES_MAX: usize = 48 << 20;
/// Documents in one insert of `pando load`.
pub const LOAD_INSERT_DOCS: usize = 1000;
/// Free bytes that a backup or restore leaves beside its files.
pub const BACKUP_SPARE_BYTES: u64 = 64 << 20;
/// Chunks of files under way at once in a copy: one on the wire, one on the disk, one to spare.
pub const FILE_COPY_STREAMS: usize = 3;
/// Bytes of a pinned file read at a time when it is checked.
pub const PINNED_READ_BYTES: usize = 1 << 20;
/// Bytes of the log handed to the disk in one call.
pub const LOG_WRITE_BYTES: usize = 1 << 20;
/// A record of the log that claims to be longer is none; well above the largest entry and unreplicated write with its keys.
pub const LOG_RECORD_BYTES_MAX: usize = 1 << 30;
/// Bytes of the rows of one unreplicated write, which become one record: a document of 16 MiB under 50 long keys.
pub const LOCAL_UNIT_BYTES_MAX: usize = 900 << 20;
/// File of the small log of untimestamped writes.
pub const LOCAL_LOG_SEGMENT_BYTES: u64 = 4 << 20;
/// A checkpoint starts a new file of that log once it holds this much.
pub const LOCAL_LOG_SEAL_BYTES: u64 = 256 << 10;
/// A history below this is left to ordinary compaction; above, it is rewritten when it has doubled.
pub const STORAGE_HISTORY_SWEEP_BYTES: u64 = 64 << 20;
/// Bytes of all keys that one index has for one document: a long value in a compound key comes once for each element of an
/// array beside it. MongoDB's bound is its cache.
pub const DOCUMENT_KEYS_BYTES_MAX: usize = 128 << 20;
/// Longest key of a row. Several fields of one document of 16 MiB give less, even doubled or as sort keys of a collation.
pub const STORAGE_KEY_BYTES_MAX: usize = 256 << 20;
/// Cursors of users open at once; those of members that fetch the oplog are not counted.
pub const CURSORS_OPEN_MAX: usize = 50_000;
/// What all of them hold in memory between their batches: sorted rows, groups, tables of joins, records told apart.
pub const CURSORS_HELD_BYTES_MAX: u64 = 1 << 30;
/// Rows of memory tables that a cursor fetches under one lock.
pub const CURSOR_MEMORY_ROWS_MAX: usize = 256;
/// Table files kept open; well below the usual limit of 1024 descriptors.
pub const TABLE_FILES_OPEN_MAX: usize = 512;
/// Size of tables after everything is rewritten.
pub const TABLE_BYTES: u64 = 64 << 20;
/// Rows of a bulk load gathered in memory before they become a table.
pub const BULK_TABLE_BYTES: usize = 32 << 20;
/// Rows of a bulk load that is no larger than this stay in memory until a checkpoint: a table, with its files and syncs, for
/// every index over a small collection costs more than its rows, and thousands of them slow down every change of the tables.
pub const BULK_IN_MEMORY_BYTES: usize = 256 << 10;
/// ... and no larger than this part of the memory for rows: loads do not wait for room.
pub const BULK_MEMORY_SHARE: usize = 64;
/// Files of the simulated tables before they become one.
pub const MEM_BACKEND_FILES_MAX: usize = 24;
/// Records that a fetch steps over in an open cursor rather than looking one up.
pub const FETCH_STEPS_MAX: i64 = 8;
/// One read or write of a file of spilled rows.
pub const SORT_IO_BYTES: usize = 256 * 1024;
/// Longest pause before a unit that met a write conflict is tried again.
pub const CONFLICT_WAIT_MS_MAX: u64 = 100;
/// Nested `$and`/`$or` levels of a partial index's filter (MongoDB's bound).
pub const PARTIAL_FILTER_DEPTH_MAX: usize = 4;
/// Errors that `validate` lists; the rest is only counted.
pub const VALIDATE_ERRORS_MAX: usize = 100;
/// Largest `size` of a capped collection: 1 PiB, MongoDB's bound.
pub const CAPPED_BYTES_MAX: i64 = 1 << 50;
/// `splitVector`: the largest chunk that can be asked for, and documents of a piece where nobody says how many.
pub const SPLIT_MEGABYTES_MAX: i64 = 1024;
pub const SPLIT_OBJECTS_MAX: i64 = 250_000;
/// Documents in a first batch when the client names no size (MongoDB's).
pub const FIRST_BATCH_DOCS: u64 = 101;
/// Keys for signing cluster times that are there at any time: the one in use and the next.
pub const CLUSTER_TIME_KEYS_AHEAD: usize = 2;
/// Seconds between two looks at whether a key is to be made; one is good for months.
pub const CLUSTER_TIME_KEYS_CHECK_SECS: u64 = 300;
/// A server that lacks a key reads their collection again, this often at most.
pub const CLUSTER_TIME_KEYS_READ_MS: u64 = 1000;
/// A query's snapshot is given up after this long, so that history need not be kept for a slow query.
pub const SNAPSHOT_AGE_SECS_MAX: u64 = 20;
/// How long an awaitData cursor waits when its client does not say (MongoDB's).
pub const AWAIT_DATA_MS: i64 = 1000;
/// Bounds of `replSetResizeOplog` in megabytes (MongoDB's).
pub const OPLOG_MB_MIN: f64 = 990.0;
pub const OPLOG_MB_MAX: f64 = (1u64 << 30) as f64;
/// Seconds that one sync of a log or checkpoint file may take; then the disk hangs, and the process ends so that others
/// take over. A whole file of the log, while a checkpoint writes as much, needs half of it at 1 MiB/s.
pub const SYNC_STALL_SECS_MAX: u64 = 300;
/// A shutdown waits this long for running operations to notice that they are interrupted.
pub const SHUTDOWN_DRAIN_SECS_MAX: u64 = 15;
/// Members of a replica set that vote (MongoDB's bound, R-CONF).
pub const REPLSET_VOTING_MEMBERS_MAX: usize = 7;
/// A term that another member names may be so far above the own: elections of centuries, and far from the end of the numbers.
pub const TERM_LEAP_MAX: crate::Term = 1 << 32;
/// No term is ever larger: whoever reaches it elects nobody any more.
pub const TERM_MAX: crate::Term = 1 << 62;
/// Versions of configurations end here (MongoDB's bound).
pub const REPLSET_VERSION_MAX: i64 = i32::MAX as i64;
/// Periods of a configuration and of commands count as no longer than this, a century: they are added to the time of day.
pub const REPL_PERIOD_MS_MAX: crate::Millis = 100 * 366 * 86_400_000;
/// Largest priority of a member (MongoDB's bound).
pub const REPLSET_PRIORITY_MAX: f64 = 1000.0;
/// A refused connection shows within a round trip; what takes longer is no refusal.
pub const FAILOVER_PROBE_MS_MAX: crate::Millis = 500;
/// Each better-placed member gets this much of a start in an election: about one dry run plus one vote on disk.
pub const FAILOVER_STAGGER_MS: crate::Millis = 150;
/// Random part of a start, so that equals rarely meet.
pub const FAILOVER_SPREAD_MS: crate::Millis = 50;
/// After a lost election, or a vote for another: time for the winner to show itself.
pub const FAILOVER_RETRY_MS: crate::Millis = 500;
/// Early elections tried before the ordinary timeout takes over.
pub const FAILOVER_TRIES_MAX: u32 = 5;
/// So long after an early election the next one waits for the ordinary timeout: an operation that kills every primary that
/// runs it must not go through the whole set within a second.
pub const FAILOVER_COOLDOWN_MS: crate::Millis = 10_000;
/// So many elections within this time are worth a warning.
pub const ELECTIONS_WARN: usize = 3;
pub const ELECTIONS_WARN_MS: crate::Millis = 600_000;
/// Connections beyond the bound that are looked at at a time: to answer their first message, and to find members among them.
pub const CONNECTIONS_TURNED_AWAY_MAX: usize = 256;
/// Connections of members that may stand beyond the bound: each member has a few.
pub const CONNECTIONS_RESERVED_FOR_MEMBERS: usize = 256;
/// How long one that is turned away has for its first message, and that message's bound.
pub const TURN_AWAY_MS: u64 = 2_000;
pub const TURN_AWAY_BYTES_MAX: usize = 64 << 10;
/// How often members' names are resolved anew because somebody else claims to be one, and how long that may take.
pub const MEMBER_ADDRESSES_LOOK_MS: u64 = 1_000;
pub const MEMBER_ADDRESSES_WAIT_MS: u64 = 5_000;
/// How often the log says of one address that its members' commands are refused, and of how many addresses it is kept: a
/// stranger gets no more lines than he has addresses, and all of them together four a second.
pub const REFUSED_MEMBERS_LINE_MS: u64 = 60_000;
pub const REFUSED_MEMBERS_TOLD_MAX: usize = 256;
/// Orders of the consensus core that wait for this node's disk: beyond, votes are refused.
pub const COORDINATOR_QUEUE_MAX: usize = 1_000;
/// Silence in the middle of a message ends its connection: no network pauses for so long and goes on.
pub const MESSAGE_PAUSE_MS_MAX: u64 = 30_000;
/// Bytes of messages that are not complete, over all connections: ten of the largest. Beyond, a connection is read from
/// when another's message is complete.
pub const UNFINISHED_BYTES_MAX: usize = 512 << 20;
/// What each connection may hold of an incomplete message besides: ordinary commands never wait for room.
pub const UNFINISHED_FREE_BYTES: usize = 64 << 10;
/// Sessions ended by their clients whose end the set's record is not told of yet; beyond, those end by their age there.
pub const SESSIONS_ENDED_MAX: usize = 100_000;
/// A client's `$clusterTime` so far ahead of the wall clock, in seconds, is not taken over: a clock that shows local time
/// instead of UTC is less wrong, and a set whose clock was pushed ahead is right again after a day.
pub const CLUSTER_TIME_AHEAD_SECS: u32 = 86_400;
/// Bytes of a long message that must arrive in a second, on average, besides [`MESSAGE_PAUSE_MS_MAX`].
pub const MESSAGE_BYTES_PER_SEC_MIN: usize = 64 << 10;
/// How often a delayed member looks whether its delay has been changed.
pub const SECONDARY_DELAY_LOOK_MS: crate::Millis = 1_000;
/// How long a secondary waits for a time before it has its primary write an entry, and before it asks again.
pub const NOTE_ASKED_FOR_AFTER_MS: u64 = 10;
pub const NOTE_ASKED_FOR_AGAIN_MS: u64 = 500;
/// Tries of a heartbeat after its first one (MongoDB's).
pub const HEARTBEAT_RETRIES_MAX: u32 = 2;
/// `replSetSyncFrom` warns when the wanted source is further behind than this (MongoDB's).
pub const SYNC_SOURCE_WARN_LAG_SECS: i64 = 10;
/// All questions to a possible sync source together.
pub const SYNC_SOURCE_PROBE_SECS_MAX: u64 = 30;
/// A member that is up tells a new primary where it stands within this; a round trip takes far less.
pub const CATCH_UP_ANSWERS_MS: crate::Millis = 1000;
/// A primary that shuts down waits so long for a member that can take over.
pub const SHUTDOWN_HANDOVER_MS: i64 = 10_000;
/// A primary that steps down to shut down does not stand again in this process (MongoDB's day).
pub const SHUTDOWN_STEP_DOWN_MS: i64 = 86_400_000;
/// A former primary that shuts down waits so long to see its heir: asking and an election take far less.
pub const SHUTDOWN_HEIR_MS: u64 = 1000;
/// How often a server in quiesce mode looks whether anybody is still connected.
pub const QUIESCE_POLL_MS: u64 = 10;
/// `timeoutSecs` of the `shutdown` command (MongoDB's default).
pub const SHUTDOWN_COMMAND_SECS: i64 = 15;
/// A question to another member that names no limit of its own: MongoDB's heartbeat timeout.
pub const REPL_CALL_MS_MAX: i64 = 10_000;
/// A question to a sync source during a rollback or an initial sync.
pub const SYNC_SOURCE_CALL_SECS_MAX: u64 = 30;
/// A batch of documents that an initial sync copies: the source may be slow.
pub const CLONER_CALL_SECS_MAX: u64 = 60;
/// How often an initial sync tells how far it is.
pub const CLONER_TELL_SECS: u64 = 10;
/// A report of positions that takes longer says that the connection is dead.
pub const REPORT_MS_MAX: u64 = 10_000;
/// After a failed report of positions, unless another source is followed sooner.
pub const REPORT_PAUSE_MS: u64 = 500;
/// Between two reports of positions while nobody waits for them (R-UPOS-1): what came meanwhile goes in one.
pub const REPORT_GATHER_MS: u64 = 10;
/// After a write or read that waits for other members, how long their positions are wanted at once.
pub const POSITIONS_AWAITED_MS: u64 = 200;
/// How often a rollback looks whether the operations it told to stop have ended.
pub const ROLLBACK_POLL_MS: u64 = 5;
/// Bytes of `_id`s that a rollback holds at a time; with more of them its entries are read several times.
pub const ROLLBACK_IDS_BYTES_MAX: usize = 32 << 20;
/// Documents that a rollback asks its source for at once.
pub const REFETCH_DOCS: usize = 500;
/// `_id`s of undone entries that observers of a rollback are told, in bytes; beyond, they only know that there are more.
pub const ROLLBACK_TOLD_IDS_BYTES_MAX: usize = 4 << 20;
/// Documents of a rollback file that are written at once.
pub const ROLLBACK_FILE_WRITE_BYTES: usize = 1 << 20;
/// A smaller `maxStalenessSeconds` cannot be told from the time between two heartbeats (MongoDB's).
pub const MAX_STALENESS_SECS_MIN: i64 = 90;
/// How often a step-down tells writes to end that have not noticed yet.
pub const STATE_LOCK_KILL_MS: u64 = 100;
/// `dropDatabase` waits so long for a majority to drop the collections (MongoDB's).
pub const DROP_DATABASE_WAIT_MS: i64 = 600_000;
/// Write commands per second where nothing is held back (MongoDB's figure).
pub const FLOW_CONTROL_TICKETS_MAX: i64 = 1_000_000_000;
/// How often the rate of writes is decided, and how often in between the log's place is noted.
pub const FLOW_CONTROL_PERIOD_MS: u64 = 1000;
pub const FLOW_CONTROL_SAMPLES_PER_PERIOD: u32 = 5;
/// A workflow's action that failed is tried again after this.
pub const WORKFLOW_RETRY_MS: u64 = 500;
/// The pause before a call is made once more doubles up to this.
pub const WORKFLOW_RETRY_MS_MAX: u64 = 10_000;
/// How often a workflow's call is made before the workflow hears that it failed: with the pauses above, time for an election.
pub const WORKFLOW_TRIES_MAX: u32 = 6;
/// One call of a workflow to another node; it may write there and wait for a majority.
pub const WORKFLOW_CALL_MS_MAX: u64 = 30_000;
/// Actions that one workflow may have under way: a call to each shard of the largest cluster, and a few more.
pub const WORKFLOW_ACTIONS_MAX: usize = 16 * 1024;
/// Instances of one service at a time; each has a document, a task and a place in memory.
pub const WORKFLOW_INSTANCES_MAX: usize = 1000;
/// How often a coordinator without a deadline asks its core anyway.
pub const COORDINATOR_IDLE_MS: u64 = 1000;
/// Entries of a sync source's log that a rollback looks at in one question.
pub const COMMON_POINT_BATCH: i32 = 1000;

/// `pando up --members`: how often ended processes are looked for, and how often members are asked for their state.
pub const SET_TICK_MS: u64 = 100;
pub const SET_STATUS_MS: u64 = 1_000;
/// How long a member may take to answer before it counts as silent.
pub const SET_CALL_MS: u64 = 2_000;
/// How long members may take to start, and to stop.
pub const SET_START_MS: u64 = 120_000;
pub const SET_STOP_MS: u64 = 60_000;
/// Pause before a member that ended is started again: doubled up to the most; the least again once a member ran for a while.
pub const SET_RESTART_MS_MIN: u64 = 500;
pub const SET_RESTART_MS_MAX: u64 = 30_000;
pub const SET_RESTART_FORGIVEN_MS: u64 = 60_000;
/// Members of a set that `pando up` starts: more than seven cannot vote.
pub const SET_MEMBERS_MAX: usize = 7;
/// Shards and routers that `pando up` starts: each is a process or several, and all of them share one machine.
pub const CLUSTER_SHARDS_MAX: usize = 32;
pub const CLUSTER_ROUTERS_MAX: usize = 8;
/// Config servers that `pando up` starts: more copies of a cluster's metadata win nothing on one machine.
pub const CLUSTER_CONFIG_SERVERS_MAX: usize = 3;
/// How long a secondary waits for the primary to carry out a command without a time limit of its own.
pub const PASSED_ON_MS_MAX: u64 = 24 * 3_600_000;
/// Pipelines inside of pipelines.
pub const SUB_PIPELINE_DEPTH_MAX: usize = 20;
/// Results of a `$facet` before it gives up.
pub const FACET_OUTPUT_BYTES_MAX: usize = 100 * 1024 * 1024;
/// Input that the branches of a `$facet` share at a time: enough that switching between them costs little.
pub const FACET_ROUND_DOCS: usize = 256;
/// The same in bytes.
pub const FACET_ROUND_BYTES: usize = 4 * 1024 * 1024;
/// Matches of one document in a `$lookup`, with those of all pipelines it is within.
pub const LOOKUP_OUTPUT_BYTES_MAX: usize = 100 * 1024 * 1024;
/// What the `$lookup`s of an operation remember of foreign collections that they read whole.
pub const LOOKUP_CACHE_BYTES_MAX: usize = 100 * 1024 * 1024;
/// Documents that one `$graphLookup` has visited, and its frontier.
pub const GRAPH_LOOKUP_BYTES_MAX: usize = 100 * 1024 * 1024;
/// An entry of a `$lookup`'s table beside its key.
pub const LOOKUP_ENTRY_BYTES: usize = 64;
/// Matches that a `$lookup` takes from an index in one go; a value with more is an ordinary query, which can yield.
pub const LOOKUP_PROBE_DOCS_MAX: usize = 1000;
/// Stretches of a spilled partition held in memory: several functions follow both ends of their windows.
pub const WINDOW_STRETCHES_MAX: usize = 16;
/// One partition of a `$setWindowFields` in memory.
pub const WINDOW_BYTES_MAX: usize = 100 * 1024 * 1024;
/// Documents that window functions look at between two chances for others to run.
pub const WINDOW_STEPS_PER_TURN: usize = 4096;
/// Documents that one `$densify` makes.
pub const DENSIFY_DOCS_MAX: u64 = 500_000;
/// What a `$densify` remembers of its partitions.
pub const DENSIFY_PARTITION_BYTES_MAX: usize = 100 * 1024 * 1024;
/// Rows that the stages of a pipeline pass on between two chances for others to run.
pub const STAGE_ROWS_PER_TURN: u32 = 4096;
/// Measurements in one bucket of a time series, as in MongoDB.
pub const BUCKET_MEASUREMENTS_MAX: usize = 1000;
/// Seconds that one bucket may span, as in MongoDB: a year.
pub const BUCKET_SPAN_SECS_MAX: i64 = 365 * 24 * 3600;
/// Bytes of measurements in one bucket, as in MongoDB.
pub const BUCKET_BYTES_MAX: usize = 125 * 1024;
/// Sources of time series whose open buckets are remembered; one forgotten costs a bucket that is not full.
pub const OPEN_BUCKETS_MAX: usize = 100_000;
/// Rows beyond the wanted ones that a sort by time lets wait before it drops those that come too late.
pub const BOUNDED_SORT_SLACK_ROWS: usize = 1000;
/// Measurements of a compressed bucket. Other servers stop at 1,000 unless they are told otherwise.
pub const UNPACKED_BUCKET_ROWS_MAX: usize = 1_000_000;
/// Bytes that the columns of a compressed bucket may come to: a few bytes can repeat a large value often.
pub const UNPACKED_BUCKET_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Longer words are kept as they are: no language has them, and a stemmer takes long over them.
pub const STEMMED_BYTES_MAX: usize = 1024;
/// Steps of work between two questions whether the operation goes on: well under a millisecond.
pub const PATIENCE_STEPS: usize = 4096;
/// Work that goes on for longer without a chance for others hands them to another thread.
pub const PATIENCE_LONG_TURN_MS: u64 = 5;
/// Longest that it waits for that.
pub const PATIENCE_ASIDE_MS_MAX: u64 = 20;
/// Values that running expressions hold together: as much as a whole stage may hold.
pub const EXPRESSION_VALUES_BYTES_MAX: usize = 100 * 1024 * 1024;
/// Constant parts of an operation's expressions that are evaluated ahead: what would take more is evaluated when it is needed.
pub const FOLDED_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Memory of one operation's scripts (`internalQueryJavaScriptHeapSizeLimitMB`).
pub const JS_HEAP_MEGABYTES: i64 = 100;
/// Longest single call of a script (`internalQueryJavaScriptFnTimeoutMillis`).
pub const JS_CALL_MS: i64 = 60_000;
/// The interpreter's share of a thread's stack (2 MiB), below expressions nested as deeply as allowed.
pub const JS_STACK_BYTES_MAX: usize = 1 << 20;
/// Nesting of an object that a script returns (MongoDB's bound).
pub const JS_OBJECT_DEPTH_MAX: usize = 150;
/// Longest array that built-in loops of scripts walk (under 200 ms): so many dense elements fill two thirds of the heap.
pub const JS_ARRAY_MAX: usize = 4 << 20;
/// Length of text times length of what is looked for in it: the search compares so many characters at worst.
pub const JS_SEARCH_STEPS_MAX: usize = 200_000_000;
/// Arguments of `$accumulator` calls gathered for one trip into the interpreter.
pub const JS_GATHERED_CALLS_BYTES_MAX: usize = 64 << 10;
/// Pieces of memory from this size on are a reason to ask whether a script must stop.
pub const JS_LARGE_PIECE_BYTES: usize = 64 << 10;
/// Longest that a busy script waits for others to take its thread's tasks over.
pub const JS_ASIDE_MS_MAX: u64 = 20;
/// Namespaces whose times `top` keeps: a row takes 200 bytes, and a client may name what does not exist. Those beyond are
/// not counted.
pub const TOP_NAMESPACES_MAX: usize = 100_000;
/// Locks of databases that are kept although nobody holds them or waits; above it they are thrown away (about 200 bytes
/// each: any name that a write names makes one).
pub const DATABASE_LOCKS_MAX: usize = 1_000;
/// What a statement that may be retried takes in memory beside its documents, roughly: for the account of the table.
pub const RETRYABLE_STATEMENT_BYTES: usize = 96;
/// ... and a session with such statements.
pub const RETRYABLE_SESSION_BYTES: usize = 256;
/// Of the block that is taken and freed so often, so that the allocator gives free memory back while nothing else goes on:
/// larger than what shares a page with others.
pub const FREE_PAGE_BYTES: usize = 1 << 20;
pub const FREE_PAGE_EVERY_MS: u64 = 2000;
/// Bytes sealed under one writing key before another is derived: far from the 2^32 nonces that it has, and, in blocks of 32 KiB, 8 TiB.
pub const SEALED_PER_WRITING_KEY: u64 = 1 << 28;
/// Writing keys kept ready for reading, one for each start since the oldest file was written; behind it all are derived again.
pub const WRITING_KEYS_KEPT_MAX: usize = 4096;
/// Data keys in a key store; each rotation adds one.
pub const DATA_KEYS_MAX: usize = 1000;
/// A page of an encrypted file: what a small read has to decrypt, and what a small write seals anew.
pub const SEALED_PAGE_BYTES: usize = 16 << 10;
/// A key file's size: 44 characters, with room for white space around them.
pub const ENCRYPTION_KEYFILE_BYTES_MAX: usize = 1024;
/// Fields of a shard key; an index has as many.
pub const SHARD_KEY_FIELDS_MAX: usize = 32;
/// Owners of a chunk that are remembered, the present one too; one that moves more often loses the oldest.
pub const CHUNK_OWNERS_MAX: usize = 100;
/// Boxes of shard key values that a query's condition is taken apart into; a condition that needs more concerns all shards.
pub const TARGETING_BOXES_MAX: usize = 1_000;
/// Chunks that are looked at for one query, a third of a microsecond each; behind them whoever owns anything is asked.
pub const TARGETING_STEPS_MAX: usize = 20_000;
/// Chunks that a hashed collection begins with: more can be made later by splitting.
pub const INITIAL_CHUNKS_MAX: usize = 8_192;
/// The largest `chunkSize` of a cluster; MongoDB's bound.
pub const CHUNK_MB_MAX: u64 = 1024;
/// Points that one `split` may name.
pub const SPLIT_POINTS_MAX: usize = 8_192;
/// Routing tables that are kept; those used longest ago are dropped first.
pub const ROUTING_TABLES_MAX: usize = 100_000;
/// Operations that wait for one refresh.
pub const REFRESH_WAITERS_MAX: usize = 100_000;
/// Times that a refresh is tried before those who wait are told of its failure.
pub const REFRESH_TRIES_MAX: u32 = 3;
/// How often a member of another set is asked how it is, where it does not tell of changes by itself (MongoDB's).
pub const MONITOR_HEARTBEAT_MS: i64 = 10_000;
/// Pause before one that did not answer is asked again.
pub const MONITOR_RETRY_MS: i64 = 100;
/// Members that are so much farther away than the nearest still take reads (MongoDB's).
pub const MONITOR_LATENCY_WINDOW_US: i64 = 15_000;
/// Operations that wait for a member of one set.
pub const MONITOR_WAITERS_MAX: usize = 100_000;
/// Hosts of one answer that are taken for members; a set has 50.
pub const MONITOR_HOSTS_MAX: usize = 200;
/// Tag sets of a read preference that are tried.
pub const READ_PREFERENCE_TAG_SETS_MAX: usize = 100;
/// A call waits so long for a member that may answer it (MongoDB's for calls between nodes).
pub const MONITOR_SELECTION_MS: u64 = 20_000;
/// Milliseconds for one read of the config servers' collections, and for a command to them that changes something.
pub const CONFIG_READ_MS: u64 = 30_000;
/// Times that a shard asks the config servers about a collection or a database for one operation.
pub const SHARD_REFRESHES_PER_OP_MAX: usize = 16;
/// Chunks that `getShardVersion` lists.
pub const SHARD_VERSION_CHUNKS_SHOWN_MAX: usize = 10_000;
/// What happened to a cluster is kept up to this size (MongoDB's).
pub const CHANGELOG_BYTES: i64 = 200 << 20;
/// The same of what its balancer did.
pub const ACTIONLOG_BYTES: i64 = 20 << 20;
/// How often a set that is to become a shard is asked for its primary: an election takes its time.
pub const SHARD_PRIMARY_ROUNDS: u32 = 20;
/// Pause in between.
pub const SHARD_PRIMARY_PAUSE_MS: u64 = 500;
/// How long the config servers wait for a command on a shard (MongoDB's).
pub const SHARD_COMMAND_MS_MAX: u64 = 60_000;
/// How long a shard may take for a majority of it to have what the config servers tell it (MongoDB's).
pub const SHARD_WRITE_MS_MAX: u64 = 60_000;
/// Chunks of a dropped collection that one transaction removes; a quarter of a kilobyte each.
pub const CHUNKS_REMOVED_AT_ONCE: usize = 10_000;
/// How often the config servers look who the members of a shard's set are.
pub const SHARD_MEMBERS_LOOK_MS: u64 = 30_000;
/// How old a config server's idea of the topology time may be that it hands on.
pub const TOPOLOGY_TIME_READ_MS: u64 = 1_000;
/// Pause before a starting router asks config servers again that did not answer.
pub const ROUTER_START_RETRY_MS: u64 = 500;
/// How often a router looks after its cursors.
pub const ROUTER_UPKEEP_MS: u64 = 4_000;
/// How often a router tells the config servers that it is there (MongoDB's).
pub const ROUTER_REPORT_MS: u64 = 10_000;
/// Bytes of statements that a router sends to a shard at once: a full message of a client has no room for what routers add.
pub const ROUTER_WRITE_GROUP_BYTES_MAX: usize = 32 << 20;
/// Sessions that one command to a shard names.
pub const ROUTER_SESSIONS_TOLD_AT_ONCE: usize = 10_000;
/// Every so many looks it reads the list of shards again (MongoDB: every 30 seconds).
pub const ROUTER_SHARDS_READ_ROUNDS: u64 = 8;
/// Milliseconds that a call to a shard may take where the client says nothing: a day. Broken connections are noticed by themselves.
pub const ROUTER_CALL_MS: u64 = 86_400_000;
/// How much longer a call may take than its operation, which gives up by itself.
pub const ROUTER_CALL_GRACE_MS: u64 = 1_000;
/// Times that an operation is routed again because shards knew better (MongoDB's).
pub const ROUTER_STALE_TRIES_MAX: u32 = 10;
/// Pause before it is, from the second time on, doubled up to the 256-fold: shards learn, and refuse a write that met the end of a move thrice.
pub const ROUTER_STALE_PAUSE_MS: u64 = 3;
/// Pause before `checkMetadataConsistency` looks again at what does not fit together: a definition is over in less, as a rule.
pub const CONSISTENCY_LOOK_PAUSE_MS: u64 = 300;
/// Times that it does while a definition goes on, which may take as long as data takes to move: half a minute.
pub const CONSISTENCY_LOOKS_MAX: u32 = 100;
