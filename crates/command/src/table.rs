//! The table of commands: one row each, in alphabetical order, whichever role serves it.
//!
//! ```text
//!   name  aliases  properties  Stable API  who serves it  what a user must be allowed  what it is
//! ```
//! Who serves it: `D` every process that holds data (a standalone server, a member of a set, of a shard, of the config
//! servers), `S` a shard only, `C` a config server only, `R` a router.
//!
//! A role registers its handlers against these rows ([`crate::Registry::new`]). A row that nobody has registered a handler for
//! is a command of MongoDB that this server does not have yet, and its help line says what it belongs to. It is answered
//! with 115 (CommandNotSupported); a command of a cluster role that this process does not have, with 20 (config servers) or
//! 193 (shards). Fail points see it first, as they do on MongoDB.

use crate::privilege::{Action, Privileges, Resource};
use crate::roles::Roles;
use crate::spec::{CommandRow, Flags};

macro_rules! commands {
    ($($name:literal [$($alias:literal),*] ($($flag:ident)|+) $api:tt [$($role:ident)+] ($($needs:ident)+) $help:literal;)*) => {
        &[$(CommandRow {
            name: $name,
            aliases: &[$($alias),*],
            flags: Flags::NONE$(.or(Flags::$flag))+,
            api_v1: commands!(@api $api),
            roles: Roles::NONE$(.or(Roles::$role))+,
            privileges: commands!(@needs $($needs)+),
            help: $help,
        },)*]
    };
    (@api v1) => { true };
    (@api -) => { false };
    (@needs open) => { Privileges::Open };
    (@needs login) => { Privileges::Login };
    (@needs by_args) => { Privileges::ByArguments };
    (@needs internal) => { Privileges::Internal };
    (@needs collection $($action:ident)+) => { Privileges::Needs(Resource::Collection, &[$(Action::$action),+]) };
    (@needs database $($action:ident)+) => { Privileges::Needs(Resource::Database, &[$(Action::$action),+]) };
    (@needs cluster $($action:ident)+) => { Privileges::Needs(Resource::Cluster, &[$(Action::$action),+]) };
}

/// All commands.
pub static COMMANDS: &[CommandRow] = commands! {
    "_addShard" [] (ADMIN_ONLY | WRITE) - [S] (internal) "sharding";
    "_closeBackup" [] (ADMIN_ONLY | SECONDARY_OK) - [D] (by_args) "Lets the files of a backup go.";
    "_configsvrAbortReshardCollection" [] (ADMIN_ONLY) - [C] (internal) "sharding";
    "_configsvrAddShard" [] (ADMIN_ONLY | WRITE) - [C] (internal) "sharding";
    "_configsvrAddShardToZone" [] (ADMIN_ONLY | WRITE) - [C] (internal) "sharding";
    "_configsvrBalancerCollectionStatus" [] (ADMIN_ONLY) - [C] (internal) "sharding";
    "_configsvrBalancerStart" [] (ADMIN_ONLY | WRITE) - [C] (internal) "sharding";
    "_configsvrBalancerStatus" [] (ADMIN_ONLY) - [C] (internal) "sharding";
    "_configsvrBalancerStop" [] (ADMIN_ONLY | WRITE) - [C] (internal) "sharding";
    "_configsvrCleanupReshardCollection" [] (ADMIN_ONLY) - [C] (internal) "sharding";
    "_configsvrClearJumboFlag" [] (ADMIN_ONLY | WRITE) - [C] (internal) "sharding";
    "_configsvrCollMod" [] (NONE) - [C] (internal) "sharding";
    "_configsvrCommitChunkMigration" [] (ADMIN_ONLY | WRITE) - [C] (internal) "sharding";
    "_configsvrCommitChunkSplit" [] (ADMIN_ONLY | WRITE) - [C] (internal) "sharding";
    "_configsvrCommitChunksMerge" [] (ADMIN_ONLY | WRITE) - [C] (internal) "sharding";
    "_configsvrCommitDropCollection" [] (ADMIN_ONLY | WRITE) - [C] (internal) "sharding";
    "_configsvrCommitDropDatabase" [] (ADMIN_ONLY | WRITE) - [C] (internal) "sharding";
    "_configsvrCommitMergeAllChunksOnShard" [] (ADMIN_ONLY | WRITE) - [C] (internal) "sharding";
    "_configsvrCommitMovePrimary" [] (ADMIN_ONLY | WRITE) - [C] (internal) "sharding";
    "_configsvrCommitRefineCollectionShardKey" [] (ADMIN_ONLY | WRITE) - [C] (internal) "sharding";
    "_configsvrCommitReshardCollection" [] (ADMIN_ONLY) - [C] (internal) "sharding";
    "_configsvrCommitShardCollection" [] (ADMIN_ONLY | WRITE) - [C] (internal) "sharding";
    "_configsvrConfigureCollectionBalancing" [] (ADMIN_ONLY | WRITE) - [C] (internal) "sharding";
    "_configsvrCreateDatabase" [] (ADMIN_ONLY | WRITE) - [C] (internal) "sharding";
    "_configsvrEnsureChunkVersionIsGreaterThan" [] (ADMIN_ONLY | WRITE) - [C] (internal) "sharding";
    "_configsvrMoveChunk" [] (ADMIN_ONLY) - [C] (internal) "sharding";
    "_configsvrMoveRange" [] (ADMIN_ONLY | WRITE) - [C] (internal) "sharding";
    "_configsvrRefineCollectionShardKey" [] (ADMIN_ONLY) - [C] (internal) "sharding";
    "_configsvrRemoveChunks" [] (ADMIN_ONLY | WRITE | RETRYABLE) - [C] (internal) "sharding";
    "_configsvrRemoveShard" [] (ADMIN_ONLY | WRITE) - [C] (internal) "sharding";
    "_configsvrRemoveShardFromZone" [] (ADMIN_ONLY | WRITE) - [C] (internal) "sharding";
    "_configsvrRemoveTags" [] (ADMIN_ONLY | WRITE | RETRYABLE) - [C] (internal) "sharding";
    "_configsvrRenameCollectionMetadata" [] (ADMIN_ONLY | WRITE) - [C] (internal) "sharding";
    "_configsvrRepairShardedCollectionChunksHistory" [] (ADMIN_ONLY) - [C] (internal) "sharding";
    "_configsvrReshardCollection" [] (ADMIN_ONLY) - [C] (internal) "sharding";
    "_configsvrRunRestore" [] (ADMIN_ONLY) - [C] (internal) "sharding";
    "_configsvrSetAllowMigrations" [] (ADMIN_ONLY | WRITE) - [C] (internal) "sharding";
    "_configsvrSetClusterParameter" [] (ADMIN_ONLY | WRITE) - [C] (internal) "sharding";
    "_configsvrSetUserWriteBlockMode" [] (ADMIN_ONLY | WRITE) - [C] (internal) "sharding";
    "_configsvrTransitionFromDedicatedConfigServer" [] (ADMIN_ONLY | WRITE) - [C] (internal) "sharding";
    "_configsvrTransitionToDedicatedConfigServer" [] (ADMIN_ONLY | WRITE) - [C] (internal) "sharding";
    "_configsvrUpdateZoneKeyRange" [] (ADMIN_ONLY | WRITE) - [C] (internal) "sharding";
    "_demoWorkflow" [] (ADMIN_ONLY | SECONDARY_OK | TEST_ONLY) - [D] (internal) "Starts, nudges or awaits a workflow that counts.";
    "_flushDatabaseCacheUpdates" [] (ADMIN_ONLY | WRITE_CONCERN | SECONDARY_OK) - [S] (internal) "sharding";
    "_flushDatabaseCacheUpdatesWithWriteConcern" [] (ADMIN_ONLY | WRITE_CONCERN | SECONDARY_OK) - [S] (internal) "sharding";
    "_flushReshardingStateChange" [] (ADMIN_ONLY) - [S] (internal) "sharding";
    "_flushRoutingTableCacheUpdates" [] (ADMIN_ONLY | WRITE_CONCERN | SECONDARY_OK) - [S] (internal) "sharding";
    "_flushRoutingTableCacheUpdatesWithWriteConcern" [] (ADMIN_ONLY | WRITE_CONCERN | SECONDARY_OK) - [S] (internal) "sharding";
    "_forgetImport" [] (ADMIN_ONLY | SECONDARY_OK) - [D] (internal) "Nothing need be remembered of collections that were taken in.";
    "_getNextSessionMods" [] (ADMIN_ONLY) - [S] (internal) "sharding";
    "_getUserCacheGeneration" [] (ADMIN_ONLY | SECONDARY_OK) - [C] (internal) "What routers ask whether users or roles have changed.";
    "_hashBSONElement" [] (SECONDARY_OK | TEST_ONLY | NAMES_NOTHING) - [D R] (login) "The hash of a value in an index.";
    "_importCollections" [] (ADMIN_ONLY | WRITE) - [D] (internal) "Collections that were taken in from another set come into being.";
    "_isSelf" [] (SECONDARY_OK) - [D R] (open) "Tells which process this is.";
    "_keptSessions" [] (ADMIN_ONLY | SECONDARY_OK) - [D] (internal) "What sessions have done, for a member that copies.";
    "_killOperations" [] (ADMIN_ONLY | SECONDARY_OK) - [D] (internal) "other";
    "_mergeAuthzCollections" [] (ADMIN_ONLY | WRITE | NAMES_NOTHING | TYPED) - [D] (by_args) "Takes users and roles over that a tool has loaded.";
    "_migrateClone" [] (ADMIN_ONLY) - [S] (internal) "sharding";
    "_openBackup" [] (ADMIN_ONLY | SECONDARY_OK) - [D] (by_args) "Holds a checkpoint still and names its files.";
    "_readBackup" [] (ADMIN_ONLY | SECONDARY_OK) - [D] (by_args) "A piece of a file of a backup.";
    "_recipientCommitMigration" [] (ADMIN_ONLY) - [D] (internal) "Tells a set that the tenants that came to it are its own.";
    "_recvChunkAbort" [] (ADMIN_ONLY | WRITE) - [S] (internal) "sharding";
    "_recvChunkCommit" [] (ADMIN_ONLY | WRITE) - [S] (internal) "sharding";
    "_recvChunkReleaseCritSec" [] (ADMIN_ONLY | WRITE) - [S] (internal) "sharding";
    "_recvChunkStart" [] (ADMIN_ONLY | WRITE) - [S] (internal) "sharding";
    "_recvChunkStatus" [] (ADMIN_ONLY | WRITE) - [S] (internal) "sharding";
    "_shardsvrAbortReshardCollection" [] (ADMIN_ONLY) - [S] (internal) "sharding";
    "_shardsvrCleanupReshardCollection" [] (ADMIN_ONLY) - [S] (internal) "sharding";
    "_shardsvrCloneCatalogData" [] (ADMIN_ONLY) - [S] (internal) "sharding";
    "_shardsvrCollMod" [] (WRITE) - [S] (internal) "sharding";
    "_shardsvrCollModParticipant" [] (WRITE) - [S] (internal) "sharding";
    "_shardsvrCommitReshardCollection" [] (ADMIN_ONLY) - [S] (internal) "sharding";
    "_shardsvrCompactStructuredEncryptionData" [] (NONE) - [S] (internal) "sharding";
    "_shardsvrCreateCollection" [] (WRITE) - [S] (internal) "sharding";
    "_shardsvrCreateCollectionParticipant" [] (WRITE) - [S] (internal) "sharding";
    "_shardsvrDropCollection" [] (WRITE) - [S] (internal) "sharding";
    "_shardsvrDropCollectionIfUUIDNotMatching" [] (NONE) - [S] (internal) "sharding";
    "_shardsvrDropCollectionParticipant" [] (WRITE) - [S] (internal) "sharding";
    "_shardsvrDropDatabase" [] (WRITE) - [S] (internal) "sharding";
    "_shardsvrDropDatabaseParticipant" [] (WRITE) - [S] (internal) "sharding";
    "_shardsvrDropIndexes" [] (WRITE) - [S] (internal) "sharding";
    "_shardsvrFenceDatabase" [] (WRITE) - [S] (internal) "sharding";
    "_shardsvrGetStatsForBalancing" [] (ADMIN_ONLY) - [S] (internal) "sharding";
    "_shardsvrJoinMigrations" [] (ADMIN_ONLY) - [S] (internal) "sharding";
    "_shardsvrMergeAllChunksOnShard" [] (ADMIN_ONLY | WRITE) - [S] (internal) "sharding";
    "_shardsvrMigrationIsOver" [] (ADMIN_ONLY | WRITE) - [S] (internal) "sharding";
    "_shardsvrMovePrimary" [] (ADMIN_ONLY | WRITE) - [S] (internal) "sharding";
    "_shardsvrMoveRange" [] (ADMIN_ONLY | WRITE) - [S] (internal) "sharding";
    "_shardsvrParticipantBlock" [] (NONE) - [S] (internal) "sharding";
    "_shardsvrRefineCollectionShardKey" [] (WRITE) - [S] (internal) "sharding";
    "_shardsvrRenameCollection" [] (WRITE) - [S] (internal) "sharding";
    "_shardsvrRenameCollectionParticipant" [] (WRITE) - [S] (internal) "sharding";
    "_shardsvrRenameCollectionParticipantUnblock" [] (WRITE) - [S] (internal) "sharding";
    "_shardsvrReshardCollection" [] (ADMIN_ONLY) - [S] (internal) "sharding";
    "_shardsvrReshardingOperationTime" [] (ADMIN_ONLY) - [S] (internal) "sharding";
    "_shardsvrSetAllowMigrations" [] (WRITE) - [S] (internal) "sharding";
    "_shardsvrSetClusterParameter" [] (ADMIN_ONLY | WRITE) - [S] (internal) "sharding";
    "_shardsvrSetUserWriteBlockMode" [] (ADMIN_ONLY | WRITE | RETRYABLE) - [S] (internal) "sharding";
    "_shardsvrTakeMovedDocuments" [] (WRITE) - [S] (internal) "sharding";
    "_shardsvrValidateShardKeyCandidate" [] (WRITE) - [S] (internal) "sharding";
    "_takeInCollections" [] (ADMIN_ONLY | SECONDARY_OK) - [D] (internal) "Takes collections of another set in by their files.";
    "_tenantCollections" [] (ADMIN_ONLY) - [D] (internal) "More of what _tenantSnapshot tells.";
    "_tenantCopy" [] (ADMIN_ONLY | TEST_ONLY) - [D] (internal) "Copies a tenant from another set, step by step.";
    "_tenantDocuments" [] (ADMIN_ONLY) - [D] (internal) "Documents of a tenant's collection as of the snapshot.";
    "_tenantEntries" [] (ADMIN_ONLY) - [D] (internal) "What the log says of a tenant behind a time.";
    "_tenantSessions" [] (ADMIN_ONLY) - [D] (internal) "What sessions have done in a tenant's databases up to the snapshot.";
    "_tenantSnapshot" [] (ADMIN_ONLY) - [D] (internal) "Holds a tenant's data still as of one time, for another set.";
    "_tenantSnapshotEnd" [] (ADMIN_ONLY) - [D] (internal) "Lets that go.";
    "_transferMods" [] (ADMIN_ONLY) - [S] (internal) "sharding";
    "abortReshardCollection" [] (ADMIN_ONLY) - [R] (login) "sharding";
    "abortShardSplit" [] (ADMIN_ONLY | WRITE_CONCERN) - [D] (cluster RunTenantMigration) "Calls a shard split off.";
    "abortTransaction" [] (ADMIN_ONLY | IN_TXN | WRITE_CONCERN | NAMES_NOTHING | ARGS_FIRST) v1 [D R] (login) "Ends a transaction without a trace.";
    "addShard" [] (ADMIN_ONLY | WRITE_CONCERN) - [R] (cluster AddShard) "Makes a replica set a shard.";
    "addShardToZone" [] (ADMIN_ONLY | WRITE_CONCERN) - [R] (by_args) "Lets a shard hold a zone's ranges.";
    "aggregate" [] (READ | SECONDARY_OPT_IN | IN_TXN | READ_CONCERN | WRITE_CONCERN | ARGS_FIRST) v1 [D R] (by_args) "Runs a pipeline of stages over a collection.";
    "analyzeShardKey" [] (ADMIN_ONLY) - [D R] (collection AnalyzeShardKey) "other";
    "appendOplogNote" [] (ADMIN_ONLY | WRITE) - [D] (cluster AppendOplogNote) "Writes an entry without effect to the oplog.";
    "applyOps" [] (WRITE | SENSITIVE) - [D] (by_args) "Carries entries of an oplog out.";
    "authenticate" [] (SECONDARY_OK | SENSITIVE | TYPED) v1 [D R] (open) "A login in one message, by certificate.";
    "autoSplitVector" [] (NONE) - [S] (collection SplitVector) "sharding";
    "availableQueryOptions" [] (SECONDARY_OK) - [D R] (login) "Relic: the flags of an old message.";
    "balancerCollectionStatus" [] (ADMIN_ONLY) - [R] (by_args) "Whether a collection's chunks are spread as they should be.";
    "balancerStart" [] (ADMIN_ONLY) - [R] (by_args) "Lets chunks be moved.";
    "balancerStatus" [] (ADMIN_ONLY) - [R] (by_args) "Whether chunks are being moved.";
    "balancerStop" [] (ADMIN_ONLY) - [R] (by_args) "Keeps chunks where they are.";
    "buildInfo" ["buildinfo"] (SECONDARY_OK) - [D R] (open) "Version and build facts.";
    "bulkWrite" [] (SENSITIVE | WRITE | IN_TXN | RETRYABLE | OWN_OPCOUNTER | ADMIN_ONLY) v1 [D R] (by_args) "Writes to several collections at once.";
    "captrunc" [] (WRITE | TEST_ONLY) - [D] (internal) "Takes documents off the end of a capped collection.";
    "checkMetadataConsistency" [] (NONE) - [R] (collection CheckMetadataConsistency) "Whether shards have what the config servers say.";
    "checkShardingIndex" [] (NONE) - [S] (internal) "sharding";
    "cleanupOrphaned" [] (ADMIN_ONLY) - [S] (cluster CleanupOrphaned) "sharding";
    "cleanupReshardCollection" [] (ADMIN_ONLY) - [R] (login) "sharding";
    "cleanupStructuredEncryptionData" [] (NONE) - [D R] (collection CleanupStructuredEncryptionData) "other";
    "clearJumboFlag" [] (ADMIN_ONLY | WRITE_CONCERN) - [R] (by_args) "Lets a chunk be moved that was too large.";
    "clearLog" [] (ADMIN_ONLY | SECONDARY_OK | TEST_ONLY | NAMES_NOTHING | TYPED) - [D] (internal) "Empties the log lines kept in memory.";
    "cloneCollectionAsCapped" [] (WRITE) - [D] (by_args) "Copies a collection's newest documents into a capped one.";
    "clusterAbortTransaction" [] (ADMIN_ONLY | SECONDARY_OK) - [S] (internal) "sharding";
    "clusterAggregate" [] (SECONDARY_OK) - [S] (internal) "sharding";
    "clusterCommitTransaction" [] (ADMIN_ONLY | SECONDARY_OK) - [S] (internal) "sharding";
    "clusterDelete" [] (NONE) - [S] (internal) "sharding";
    "clusterFind" [] (NONE) - [S] (internal) "sharding";
    "clusterGetMore" [] (SECONDARY_OK) - [S] (internal) "sharding";
    "clusterInsert" [] (NONE) - [S] (internal) "sharding";
    "clusterUpdate" [] (NONE) - [S] (internal) "sharding";
    "collMod" [] (WRITE) v1 [D R] (by_args) "Changes options of a collection, view or index.";
    "collStats" ["collstats"] (READ | SECONDARY_OK) - [D R] (collection CollStats) "Sizes and counts of a collection.";
    "commitReshardCollection" [] (ADMIN_ONLY) - [R] (login) "sharding";
    "commitShardSplit" [] (ADMIN_ONLY | WRITE_CONCERN) - [D] (cluster RunTenantMigration) "Makes hidden members of a set a set of their own, which owns some of its tenants.";
    "commitTransaction" [] (ADMIN_ONLY | IN_TXN | WRITE_CONCERN | NAMES_NOTHING | ARGS_FIRST) v1 [D R] (login) "Makes a transaction's writes take place.";
    "compact" [] (SECONDARY_OK) - [D] (collection Compact) "Rewrites tables to give space back.";
    "compactStructuredEncryptionData" [] (NONE) - [D R] (collection CompactStructuredEncryptionData) "other";
    "configureCollectionBalancing" [] (ADMIN_ONLY) - [R] (by_args) "How a collection's chunks are spread.";
    "configureFailPoint" [] (ADMIN_ONLY | SECONDARY_OK | TEST_ONLY) - [D R] (open) "Switches a fail point.";
    "configureQueryAnalyzer" [] (ADMIN_ONLY) - [D R] (collection ConfigureQueryAnalyzer) "other";
    "connPoolStats" [] (SECONDARY_OK) - [D R] (cluster ConnPoolStats) "Outgoing connections to other members.";
    "connPoolSync" ["connpoolsync"] (SECONDARY_OK) - [D R] (cluster ConnPoolSync) "Closes idle connections to other members.";
    "connectionStatus" [] (SECONDARY_OK | NAMES_NOTHING | TYPED) - [D R] (open) "Who is logged in on this connection.";
    "convertToCapped" [] (WRITE) - [D R] (collection ConvertToCapped) "Makes a collection capped, keeping its newest documents.";
    "coordinateCommitTransaction" [] (ADMIN_ONLY | IN_TXN | WRITE_CONCERN | NAMES_NOTHING) - [S] (internal) "Commits a transaction on all shards that take part, or tells what became of it.";
    "count" [] (READ | SECONDARY_OPT_IN | READ_CONCERN | NO_SNAPSHOT | OWN_OPCOUNTER) v1 [D R] (collection Find) "Counts documents.";
    "cpuload" [] (SECONDARY_OK | TEST_ONLY) - [D] (login) "Keeps a processor busy.";
    "create" [] (WRITE | IN_TXN | ARGS_FIRST) v1 [D R] (by_args) "Creates a collection or view.";
    "createIndexes" [] (WRITE | IN_TXN | ARGS_FIRST) v1 [D R] (collection CreateIndex) "Builds indexes.";
    "createRole" [] (WRITE | TYPED) - [D R] (by_args) "Creates a role of this database.";
    "createSearchIndexes" [] (NONE) - [D R] (login) "Refused: search indexes exist on Atlas only.";
    "createUser" [] (WRITE | TYPED | SENSITIVE) - [D R] (by_args) "Creates a user of this database.";
    "currentOp" [] (ADMIN_ONLY | SECONDARY_OK | NOW) - [D R] (by_args) "Running operations.";
    "dataSize" ["datasize"] (READ | SECONDARY_OK | ARGS_FIRST | TYPED) - [D R] (by_args) "Bytes of a collection or of a key range of it.";
    "dbCheck" [] (NONE) - [D] (collection DbCheck) "other";
    "dbHash" ["dbhash"] (READ | SECONDARY_OK | READ_CONCERN | NOW) - [D] (database DbHash) "Digests of all collections of a database.";
    "dbStats" ["dbstats"] (READ | SECONDARY_OK) - [D R] (database DbStats) "Sizes and counts of a database.";
    "delete" [] (WRITE | IN_TXN | RETRYABLE | OWN_OPCOUNTER | ARGS_FIRST) v1 [D R] (collection Remove) "Deletes documents.";
    "distinct" [] (READ | SECONDARY_OPT_IN | IN_TXN | READ_CONCERN) - [D R] (collection Find) "The different values of a field.";
    "donorAbortMigration" [] (ADMIN_ONLY | WRITE_CONCERN) - [D] (cluster RunTenantMigration) "Calls a migration of tenants off.";
    "donorForgetMigration" [] (ADMIN_ONLY | WRITE_CONCERN) - [D] (cluster RunTenantMigration) "Lets what is kept of a migration of tenants go.";
    "donorStartMigration" [] (ADMIN_ONLY | WRITE_CONCERN) - [D] (cluster RunTenantMigration) "Moves a tenant, or all of them, to another set.";
    "driverOIDTest" [] (SECONDARY_OK | TEST_ONLY) - [D R] (login) "Returns an ObjectId and its text.";
    "drop" [] (WRITE | ARGS_FIRST) v1 [D R] (collection DropCollection) "Drops a collection or view.";
    "dropAllRolesFromDatabase" [] (WRITE | NAMES_NOTHING | TYPED) - [D R] (database DropRole) "Drops all roles of a database.";
    "dropAllUsersFromDatabase" [] (WRITE | NAMES_NOTHING | TYPED) - [D R] (database DropUser) "Drops all users of a database.";
    "dropConnections" [] (ADMIN_ONLY | SECONDARY_OK | NAMES_NOTHING | TYPED) - [D R] (cluster DropConnections) "Closes idle connections to members that are named.";
    "dropDatabase" [] (WRITE | ARGS_FIRST | NAMES_NOTHING) v1 [D R] (database DropDatabase) "Drops a database.";
    "dropIndexes" ["deleteIndexes"] (WRITE | ARGS_FIRST) v1 [D R] (collection DropIndex) "Drops indexes.";
    "dropRole" [] (WRITE | TYPED) - [D R] (database DropRole) "Drops a role.";
    "dropSearchIndex" [] (NONE) - [D R] (collection DropSearchIndex) "Refused: search indexes exist on Atlas only.";
    "dropUser" [] (WRITE | TYPED) - [D R] (database DropUser) "Drops a user.";
    "echo" [] (SECONDARY_OK | TEST_ONLY | NAMES_NOTHING) - [D R] (open) "Returns the request.";
    "emptycapped" [] (WRITE | TEST_ONLY) - [D] (internal) "Takes all documents out of a collection.";
    "enableSharding" [] (ADMIN_ONLY | WRITE_CONCERN) - [R] (by_args) "Creates a database.";
    "endSessions" [] (SECONDARY_OK | NAMES_NOTHING | ARGS_FIRST) v1 [D R] (login) "Ends sessions.";
    "explain" [] (READ | SENSITIVE | SECONDARY_OPT_IN | NAMES_NOTHING | ARGS_FIRST) v1 [D R] (by_args) "Shows how a command would run, or ran.";
    "features" [] (SECONDARY_OK | NAMES_NOTHING | TYPED) - [D R] (login) "Relic: capabilities of the server.";
    "filemd5" [] (READ | SECONDARY_OK | NAMES_NOTHING | ARGS_FIRST) - [D R] (by_args) "The MD5 digest of a GridFS file.";
    "find" [] (READ | SECONDARY_OPT_IN | IN_TXN | READ_CONCERN | OWN_OPCOUNTER) v1 [D R] (collection Find) "Queries a collection.";
    "findAndModify" ["findandmodify"] (WRITE | IN_TXN | RETRYABLE | ARGS_FIRST) v1 [D R] (by_args) "Changes one document and returns it.";
    "flushRouterConfig" [] (ADMIN_ONLY | SECONDARY_OK) - [D R] (cluster FlushRouterConfig) "Refused: not part of a sharded cluster.";
    "forgetShardSplit" [] (ADMIN_ONLY | WRITE_CONCERN) - [D] (cluster RunTenantMigration) "Lets what is kept of a shard split go.";
    "fsync" [] (ADMIN_ONLY | SECONDARY_OK) - [D R] (cluster Fsync) "Writes everything to disk; can lock writes out.";
    "fsyncUnlock" [] (ADMIN_ONLY | SECONDARY_OK) - [D R] (cluster Unlock) "Lets writes in again.";
    "getAuditConfig" [] (ADMIN_ONLY | SECONDARY_OK | NAMES_NOTHING) - [D R] (cluster AuditConfigure) "The audit log at runtime.";
    "getClusterParameter" [] (ADMIN_ONLY | SECONDARY_OK | NAMES_NOTHING | ARGS_FIRST) - [D R] (cluster GetClusterParameter) "Parameters of the whole set.";
    "getCmdLineOpts" [] (ADMIN_ONLY | SECONDARY_OK | NAMES_NOTHING | TYPED) - [D R] (cluster GetCmdLineOpts) "How the process was started.";
    "getDatabaseVersion" [] (ADMIN_ONLY | SECONDARY_OK) - [S] (cluster GetDatabaseVersion) "sharding";
    "getDefaultRWConcern" [] (ADMIN_ONLY | SECONDARY_OK | NAMES_NOTHING | TYPED) - [D R] (cluster GetDefaultRWConcern) "Default read and write concern.";
    "getDiagnosticData" [] (ADMIN_ONLY | SECONDARY_OK) - [D R] (by_args) "Figures for tools that watch the server.";
    "getFreeMonitoringStatus" [] (ADMIN_ONLY | SECONDARY_OK) - [D] (cluster CheckFreeMonitoringStatus) "There is no free monitoring.";
    "getLastError" ["getlasterror"] (SECONDARY_OK | HIDDEN) - [D R] (open) "Removed; write concerns took its place.";
    "getLog" [] (ADMIN_ONLY | SECONDARY_OK) - [D R] (cluster GetLog) "The latest log lines.";
    "getMore" [] (READ | SECONDARY_OK | IN_TXN | READ_CONCERN | OWN_MAX_TIME | OWN_OPCOUNTER | NAMES_NOTHING | ARGS_FIRST) v1 [D R] (by_args) "The next batch of a cursor.";
    "getParameter" [] (ADMIN_ONLY | SECONDARY_OK) - [D R] (cluster GetParameter) "Server parameters.";
    "getShardMap" [] (ADMIN_ONLY | SECONDARY_OK) - [D R] (cluster GetShardMap) "Refused: not part of a sharded cluster.";
    "getShardVersion" [] (ADMIN_ONLY | SECONDARY_OK) - [S R] (by_args) "sharding";
    "getnonce" [] (SECONDARY_OK | SENSITIVE) - [D R] (open) "Relic: a random number for the first password protocol.";
    "godinsert" [] (WRITE | TEST_ONLY) - [D] (internal) "Inserts a document as it is.";
    "grantPrivilegesToRole" [] (WRITE | TYPED) - [D R] (by_args) "Allows a role more.";
    "grantRolesToRole" [] (WRITE | TYPED) - [D R] (by_args) "Lets a role include others.";
    "grantRolesToUser" [] (WRITE | TYPED) - [D R] (by_args) "Grants roles to a user.";
    "hello" [] (SECONDARY_OK | MAINTENANCE_OK | QUIET | SENSITIVE) v1 [D R] (open) "Who this node is.";
    "hostInfo" ["hostinfo"] (SECONDARY_OK | NAMES_NOTHING | TYPED) - [D R] (cluster HostInfo) "The machine underneath.";
    "insert" [] (WRITE | IN_TXN | RETRYABLE | OWN_OPCOUNTER | ARGS_FIRST) v1 [D R] (by_args) "Inserts documents.";
    "internalRenameIfOptionsAndIndexesMatch" [] (ADMIN_ONLY) - [D] (internal) "sharding";
    "invalidateUserCache" [] (SECONDARY_OK | NAMES_NOTHING | TYPED) - [D R] (cluster InvalidateUserCache) "Reads users and roles anew.";
    "isMaster" ["ismaster"] (SECONDARY_OK | MAINTENANCE_OK | QUIET | SENSITIVE) - [D R] (open) "Who this node is, in older words.";
    "isdbgrid" [] (SECONDARY_OK) - [R] (open) "Is this a router?";
    "killAllSessions" [] (SECONDARY_OK) - [D R] (cluster KillAnySession) "Kills sessions of users.";
    "killAllSessionsByPattern" [] (SECONDARY_OK) - [D R] (by_args) "Kills sessions by pattern.";
    "killCursors" [] (SECONDARY_OK | IN_TXN | ARGS_FIRST) v1 [D R] (by_args) "Closes cursors.";
    "killOp" [] (ADMIN_ONLY | SECONDARY_OK) - [D R] (by_args) "Interrupts an operation.";
    "killSessions" [] (SECONDARY_OK) - [D R] (by_args) "Kills sessions.";
    "listCollections" [] (READ | SECONDARY_OPT_IN | ARGS_FIRST | NAMES_NOTHING) v1 [D R] (by_args) "Collections and views of a database.";
    "listCommands" [] (SECONDARY_OK) - [D R] (open) "The commands there are.";
    "listDatabases" [] (ADMIN_ONLY | READ | SECONDARY_OPT_IN | ARGS_FIRST | NAMES_NOTHING) v1 [D R] (by_args) "Databases and their sizes.";
    "listIndexes" [] (READ | SECONDARY_OPT_IN | ARGS_FIRST) v1 [D R] (collection ListIndexes) "Indexes of a collection.";
    "listSearchIndexes" [] (NONE) - [D R] (collection ListSearchIndexes) "Refused: search indexes exist on Atlas only.";
    "listShards" [] (ADMIN_ONLY | SECONDARY_OK) - [R] (cluster ListShards) "The shards there are.";
    "lockInfo" [] (ADMIN_ONLY | SECONDARY_OK) - [D] (cluster ServerStatus) "Locks that are held or waited for.";
    "logApplicationMessage" [] (ADMIN_ONLY | SECONDARY_OK | NAMES_NOTHING) - [D R] (cluster ApplicationMessage) "Writes a message of the caller's to the audit log.";
    "logMessage" [] (ADMIN_ONLY | SECONDARY_OK | TEST_ONLY | NAMES_NOTHING | TYPED) - [D R] (cluster ApplicationMessage) "Writes a line to the log.";
    "logRotate" [] (ADMIN_ONLY | SECONDARY_OK | NAMES_NOTHING | TYPED) - [D R] (cluster LogRotate) "Begins a new log file.";
    "logout" [] (SECONDARY_OK | NAMES_NOTHING | TYPED) - [D R] (open) "Ends the login of this connection.";
    "makeSnapshot" [] (ADMIN_ONLY | SECONDARY_OK | TEST_ONLY) - [D] (login) "The name of what has been applied.";
    "mapReduce" ["mapreduce"] (READ | SECONDARY_OPT_IN | WRITE_CONCERN | NOW) - [D R] (by_args) "Maps documents to keys and values, and reduces each key's values to one (deprecated).";
    "mergeAllChunksOnShard" [] (ADMIN_ONLY) - [R] (by_args) "Puts neighbouring chunks of a shard together.";
    "mergeChunks" [] (ADMIN_ONLY | WRITE) - [S R] (by_args) "Puts neighbouring chunks together.";
    "moveChunk" [] (ADMIN_ONLY | WRITE_CONCERN) - [R] (by_args) "Gives a chunk to another shard.";
    "movePrimary" [] (ADMIN_ONLY | WRITE_CONCERN) - [R] (by_args) "Gives what is not sharded of a database to another shard.";
    "moveRange" [] (ADMIN_ONLY | WRITE_CONCERN) - [R] (by_args) "Gives a range of keys to another shard.";
    "ping" [] (SECONDARY_OK | MAINTENANCE_OK | NAMES_NOTHING | NOW) v1 [D R] (open) "Is the server there?";
    "planCacheClear" [] (SECONDARY_OPT_IN) - [D R] (collection PlanCacheWrite) "Forgets remembered plans.";
    "planCacheClearFilters" [] (SECONDARY_OPT_IN) - [D R] (collection PlanCacheIndexFilter) "Removes index filters.";
    "planCacheListFilters" [] (SECONDARY_OPT_IN) - [D R] (collection PlanCacheIndexFilter) "Lists index filters.";
    "planCacheSetFilter" [] (SECONDARY_OPT_IN) - [D R] (collection PlanCacheIndexFilter) "Which indexes queries of a shape may use.";
    "prepareTransaction" [] (ADMIN_ONLY | IN_TXN | WRITE_CONCERN) - [D] (internal) "Logs a transaction and leaves it undecided (for its coordinator).";
    "profile" [] (SECONDARY_OK) - [D R] (by_args) "Which operations are profiled.";
    "reIndex" [] (SECONDARY_OK) - [D] (collection ReIndex) "Builds indexes again, on a standalone server.";
    "reapLogicalSessionCacheNow" [] (SECONDARY_OK | TEST_ONLY) - [D R] (login) "Accepted; sessions go when their time is over.";
    "recipientForgetMigration" [] (ADMIN_ONLY) - [D] (cluster RunTenantMigration) "Lets what a recipient keeps of a migration of tenants go.";
    "recipientSyncData" [] (ADMIN_ONLY) - [D] (cluster RunTenantMigration) "Has a set copy tenants of another one.";
    "recipientVoteImportedFiles" [] (ADMIN_ONLY) - [D] (internal) "serverless";
    "refineCollectionShardKey" [] (ADMIN_ONLY | WRITE_CONCERN) - [R] (by_args) "Adds fields to a shard key.";
    "refreshLogicalSessionCacheNow" [] (SECONDARY_OK | TEST_ONLY) - [D R] (open) "Records the sessions in use at once.";
    "refreshSessions" [] (SECONDARY_OK | NAMES_NOTHING | ARGS_FIRST) v1 [D R] (login) "Keeps sessions alive.";
    "removeShard" [] (ADMIN_ONLY | WRITE_CONCERN) - [R] (cluster RemoveShard) "Takes a shard out of the cluster.";
    "removeShardFromZone" [] (ADMIN_ONLY | WRITE_CONCERN) - [R] (by_args) "Keeps a shard from a zone's ranges.";
    "renameCollection" [] (ADMIN_ONLY | WRITE | ARGS_FIRST | TYPED) - [D R] (by_args) "Gives a collection another name.";
    "replSetAbortPrimaryCatchUp" [] (ADMIN_ONLY | SECONDARY_OK) - [D] (cluster ReplSetStateChange) "Ends a new primary's catching up.";
    "replSetFreeze" [] (ADMIN_ONLY | SECONDARY_OK) - [D] (cluster ReplSetStateChange) "Keeps a secondary from standing for election.";
    "replSetGetConfig" [] (ADMIN_ONLY | SECONDARY_OK) - [D] (cluster ReplSetGetConfig) "The set's configuration.";
    "replSetGetRBID" [] (ADMIN_ONLY | SECONDARY_OK) - [D] (internal) "Number of rollbacks.";
    "replSetGetStatus" [] (ADMIN_ONLY | SECONDARY_OK | MAINTENANCE_OK) - [D R] (cluster ReplSetGetStatus) "The set as this member sees it.";
    "replSetHeartbeat" [] (ADMIN_ONLY | SECONDARY_OK | MAINTENANCE_OK | QUIET) - [D] (internal) "How members know of each other.";
    "replSetInitiate" [] (ADMIN_ONLY | SECONDARY_OK | MAINTENANCE_OK) - [D] (cluster ReplSetConfigure) "Makes this node a replica set.";
    "replSetMaintenance" [] (ADMIN_ONLY | SECONDARY_OK) - [D] (cluster ReplSetStateChange) "Takes a secondary out of service.";
    "replSetReconfig" [] (ADMIN_ONLY | SECONDARY_OK) - [D] (cluster ReplSetConfigure) "Changes the set's configuration.";
    "replSetRequestVotes" [] (ADMIN_ONLY | SECONDARY_OK | MAINTENANCE_OK) - [D] (internal) "Asks for this member's vote.";
    "replSetResizeOplog" [] (ADMIN_ONLY | SECONDARY_OK) - [D] (cluster ReplSetResizeOplog) "Changes the oplog's size limit.";
    "replSetStepDown" [] (ADMIN_ONLY | SECONDARY_OK) - [D] (cluster ReplSetStateChange) "Makes a primary step down.";
    "replSetStepUp" [] (ADMIN_ONLY | SECONDARY_OK) - [D] (cluster ReplSetStateChange) "Makes a secondary stand for election.";
    "replSetSyncFrom" [] (ADMIN_ONLY | SECONDARY_OK) - [D] (cluster ReplSetStateChange) "Chooses a secondary's sync source.";
    "replSetTest" [] (ADMIN_ONLY | SECONDARY_OK | MAINTENANCE_OK | TEST_ONLY) - [D] (login) "Waits for a member to be in a state.";
    "replSetUpdatePosition" [] (ADMIN_ONLY | SECONDARY_OK | MAINTENANCE_OK | QUIET) - [D] (internal) "How far members behind this one are.";
    "reshardCollection" [] (ADMIN_ONLY) - [R] (login) "sharding";
    "resync" [] (ADMIN_ONLY | SECONDARY_OK) - [D] (cluster ReplSetStateChange) "Gives this member's data up and copies the set's again.";
    "revokePrivilegesFromRole" [] (WRITE | TYPED) - [D R] (by_args) "Allows a role less.";
    "revokeRolesFromRole" [] (WRITE | TYPED) - [D R] (by_args) "Takes included roles from a role.";
    "revokeRolesFromUser" [] (WRITE | TYPED) - [D R] (by_args) "Takes roles from a user.";
    "rolesInfo" [] (SECONDARY_OPT_IN | NAMES_NOTHING | TYPED | ARGS_FIRST) - [D R] (by_args) "Roles, and what they allow.";
    "rotateCertificates" [] (ADMIN_ONLY | SECONDARY_OK | NAMES_NOTHING | TYPED) - [D R] (cluster RotateCertificates) "Reads the files of net.tls again.";
    "saslContinue" [] (SECONDARY_OK | SENSITIVE | TYPED) v1 [D R] (open) "Goes on with a login.";
    "saslStart" [] (SECONDARY_OK | SENSITIVE | TYPED) v1 [D R] (open) "Begins a login.";
    "serverStatus" [] (SECONDARY_OK | MAINTENANCE_OK | NOW) - [D R] (cluster ServerStatus) "Counters of the server.";
    "setAllowMigrations" [] (ADMIN_ONLY | WRITE_CONCERN) - [R] (by_args) "Says whether chunks of a collection may move.";
    "setAuditConfig" [] (ADMIN_ONLY | NAMES_NOTHING) - [D R] (cluster AuditConfigure) "The audit log at runtime.";
    "setClusterParameter" [] (ADMIN_ONLY | WRITE | OWN_WRITE_CONCERN | NAMES_NOTHING | ARGS_FIRST) - [D R] (cluster SetClusterParameter) "Changes a parameter of the whole set.";
    "setCommittedSnapshot" [] (ADMIN_ONLY | SECONDARY_OK) - [D] (internal) "replication between members";
    "setDefaultRWConcern" [] (ADMIN_ONLY | WRITE | NAMES_NOTHING | TYPED) - [D R] (cluster SetDefaultRWConcern) "Changes default read and write concern.";
    "setFeatureCompatibilityVersion" [] (ADMIN_ONLY | WRITE) - [D R] (cluster SetFeatureCompatibilityVersion) "Which release's features may be used.";
    "setFreeMonitoring" [] (ADMIN_ONLY | SECONDARY_OK) - [D] (cluster SetFreeMonitoring) "There is no free monitoring to enable.";
    "setIndexCommitQuorum" [] (WRITE) - [D R] (collection CreateIndex) "Changes how many members a running index build waits for.";
    "setParameter" [] (SENSITIVE | ADMIN_ONLY | SECONDARY_OK) - [D R] (cluster SetParameter) "Changes server parameters.";
    "setProfilingFilterGlobally" [] (SECONDARY_OK) - [D R] (by_args) "Refused: filters are set by database.";
    "setShardVersion" [] (ADMIN_ONLY | SECONDARY_OK) - [S] (internal) "sharding";
    "setUserWriteBlockMode" [] (ADMIN_ONLY | WRITE | OWN_WRITE_CONCERN | ARGS_FIRST | TYPED) - [D R] (cluster SetUserWriteBlockMode) "Blocks the writes of users.";
    "shardCollection" [] (ADMIN_ONLY | WRITE_CONCERN) - [R] (by_args) "Spreads a collection over shards.";
    "shardingState" [] (ADMIN_ONLY | SECONDARY_OK) - [D] (cluster ShardingState) "Whether this node belongs to a sharded cluster.";
    "shutdown" [] (ADMIN_ONLY | SECONDARY_OK | MAINTENANCE_OK) - [D R] (cluster Shutdown) "Ends the process.";
    "sleep" [] (ADMIN_ONLY | SECONDARY_OK | TEST_ONLY) - [D R] (login) "Does nothing for a while.";
    "split" [] (ADMIN_ONLY | WRITE_CONCERN) - [R] (by_args) "Cuts a chunk in two.";
    "splitChunk" [] (ADMIN_ONLY | WRITE) - [S] (internal) "sharding";
    "splitVector" [] (READ | SECONDARY_OK | ARGS_FIRST) - [D R] (by_args) "Keys that split a range into pieces of a size.";
    "startRecordingTraffic" [] (SECONDARY_OK | TYPED) - [D R] (cluster TrafficRecord) "Refused: there is no folder for recordings.";
    "startSession" [] (SECONDARY_OK) - [D R] (login) "Starts a session.";
    "stopRecordingTraffic" [] (SECONDARY_OK | TYPED) - [D R] (cluster TrafficRecord) "Refused: nothing is being recorded.";
    "testDeprecation" [] (SECONDARY_OK | TEST_ONLY | DEPRECATED_IN_V1) v1 [D R] (open) "Deprecated in API version 1.";
    "testDeprecationInVersion2" [] (SECONDARY_OK | TEST_ONLY) v1 [D R] (open) "Deprecated in API version 2.";
    "testInternalTransactions" [] (ADMIN_ONLY) - [D] (internal) "transactions";
    "testRemoval" [] (SECONDARY_OK | TEST_ONLY) v1 [D R] (open) "Removed in API version 2.";
    "testReshardCloneCollection" [] (ADMIN_ONLY) - [D] (internal) "sharding";
    "testVersion2" [] (SECONDARY_OK | TEST_ONLY) - [D R] (open) "Only in API version 2.";
    "testVersions1And2" [] (SECONDARY_OK | TEST_ONLY) v1 [D R] (open) "In both API versions.";
    "top" [] (ADMIN_ONLY | SECONDARY_OK) - [D] (cluster Top) "Time spent per collection.";
    "transitionFromDedicatedConfigServer" [] (ADMIN_ONLY) - [R] (cluster TransitionFromDedicatedConfigServer) "Makes the config servers a shard.";
    "transitionToDedicatedConfigServer" [] (ADMIN_ONLY) - [R] (cluster TransitionToDedicatedConfigServer) "Makes the config servers a shard no more.";
    "update" [] (WRITE | IN_TXN | RETRYABLE | OWN_OPCOUNTER | ARGS_FIRST) v1 [D R] (by_args) "Changes documents.";
    "updateRole" [] (WRITE | TYPED) - [D R] (by_args) "Changes a role.";
    "updateSearchIndex" [] (NONE) - [D R] (collection UpdateSearchIndex) "Refused: search indexes exist on Atlas only.";
    "updateUser" [] (WRITE | TYPED | SENSITIVE) - [D R] (by_args) "Changes a user.";
    "updateZoneKeyRange" [] (ADMIN_ONLY | WRITE_CONCERN) - [R] (by_args) "Which keys a zone has.";
    "usersInfo" [] (SECONDARY_OPT_IN | NAMES_NOTHING | TYPED | ARGS_FIRST) - [D R] (by_args) "Users, and what they may do.";
    "validate" [] (READ | SECONDARY_OPT_IN | NOW) - [D R] (collection Validate) "Checks a collection and its indexes.";
    "validateDBMetadata" [] (SECONDARY_OK | NAMES_NOTHING | TYPED) - [D R] (by_args) "What of a database is outside the Stable API.";
    "voteAbortIndexBuild" [] (ADMIN_ONLY | WRITE | NAMES_NOTHING) - [D] (internal) "A member cannot make its part of an index build.";
    "voteCommitIndexBuild" [] (ADMIN_ONLY | WRITE | NAMES_NOTHING) - [D] (internal) "A member has its part of an index build.";
    "waitForFailPoint" [] (ADMIN_ONLY | SECONDARY_OK | TEST_ONLY | NAMES_NOTHING) - [D R] (open) "Waits until a fail point was hit.";
    "waitForOngoingChunkSplits" [] (SECONDARY_OK) - [D] (open) "Accepted; nothing is being split.";
    "whatsmysni" [] (ADMIN_ONLY | SECONDARY_OK) - [D R] (login) "TLS server name of the connection.";
    "whatsmyuri" [] (SECONDARY_OK) - [D R] (open) "The client's address.";
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_and_every_row_is_complete() {
        assert_eq!(CommandRow::check(COMMANDS), Ok(()));
    }

    #[test]
    fn what_a_table_may_not_say_is_told() {
        let row = CommandRow { roles: Roles::D, ..CommandRow::new("b", Flags::READ) };
        let told = |rows: &[CommandRow]| CommandRow::check(rows).unwrap_err();
        assert!(told(&[row, CommandRow { name: "a", ..row }]).contains("must come before"));
        assert!(told(&[row, row]).contains("must come before"));
        assert!(told(&[CommandRow { aliases: &["b"], ..row }]).contains("twice"));
        assert!(told(&[CommandRow { roles: Roles::NONE, ..row }]).contains("nobody"));
        assert!(
            told(&[CommandRow { flags: Flags::READ.or(Flags::WRITE), ..row }]).contains("reads and writes")
        );
        assert!(told(&[CommandRow { help: "", ..row }]).contains("help"));
        let nothing = Privileges::Needs(Resource::Cluster, &[]);
        assert!(told(&[CommandRow { privileges: nothing, ..row }]).contains("no action"));
    }
}
