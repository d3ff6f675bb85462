//! What a process that holds data does for each command: one file per command, registered against the rows of
//! [`pando_command::table`].

mod prelude;
mod principals;

mod aggregate;
mod apply_ops;
mod authorization;
mod backup;
pub(crate) mod build_info;
mod bulk_write;
mod capped_tests;
mod clear_log;
mod cluster_parameter;
mod coll_mod;
pub(crate) mod coll_stats;
mod collection_imports;
mod compact;
mod configsvr;
mod configure_fail_point;
mod conn_pool_stats;
mod convert_to_capped;
mod count;
mod cpu_load;
mod create;
mod create_indexes;
pub(crate) mod current_op;
mod data_size;
mod db_hash;
mod db_stats;
mod delete;
mod demo_workflow;
mod diagnostic_data;
pub(crate) mod distinct;
mod drop;
mod drop_database;
mod drop_indexes;
mod echo;
mod explain;
mod features;
mod file_md5;
mod find;
mod find_and_modify;
mod free_monitoring;
mod fsync;
mod get_cmd_line_opts;
mod get_last_error;
mod get_log;
mod get_more;
mod get_parameter;
mod getnonce;
mod god_insert;
mod hash_element;
mod hello;
mod host_and_port;
mod host_info;
mod index_build_votes;
mod index_filters;
mod insert;
mod key_range;
mod kill_cursors;
mod kill_op;
mod list_collections;
mod list_commands;
mod list_databases;
mod list_indexes;
mod lock_info;
mod map_reduce;
mod no_op;
mod ping;
mod plan_cache;
mod profile;
mod re_index;
mod rename_collection;
mod repl_set_admin;
mod repl_set_get_config;
mod repl_set_get_status;
mod repl_set_heartbeat;
mod repl_set_initiate;
mod repl_set_reconfig;
mod repl_set_request_votes;
mod repl_set_test;
mod rw_concern;
mod server_status;
mod session_records;
mod sessions;
mod set_feature_compatibility_version;
mod set_parameter;
mod shard_split;
mod sharding_state;
mod shardsvr;
mod shutdown;
mod split_vector;
mod tenant_migration;
mod tenant_operations;
mod top;
mod traffic;
mod transactions;
mod update;
mod user_write_block;
mod validate;
mod validate_db_metadata;
mod whatsmyuri;

use crate::Server;
use pando_base::{Result, Uuid};
use pando_command::{COMMANDS, Handler, OpCtx, Registry, Request, Roles, everywhere};
use pando_logins::commands as logins;

macro_rules! handlers {
    ($($name:literal => $($handler:ident)::+;)*) => {
        &[$(($name, |server, ctx, req| Box::pin($($handler)::+(server, ctx, req)))),*]
    };
}

/// What a process that holds data does when it is asked.
static HANDLERS: &[(&str, Handler<Server>)] = handlers! {
    "_addShard" => shardsvr::add_shard;
    "_flushDatabaseCacheUpdates" => shardsvr::flush_database;
    "_flushDatabaseCacheUpdatesWithWriteConcern" => shardsvr::flush_database;
    "_flushRoutingTableCacheUpdates" => shardsvr::flush_collection;
    "_flushRoutingTableCacheUpdatesWithWriteConcern" => shardsvr::flush_collection;
    "_shardsvrCollMod" => shardsvr::coll_mod;
    "_shardsvrCollModParticipant" => shardsvr::coll_mod_participant;
    "_shardsvrCreateCollection" => shardsvr::create_collection;
    "_shardsvrCreateCollectionParticipant" => shardsvr::create_participant;
    "_shardsvrDropCollection" => shardsvr::drop_collection;
    "_shardsvrDropCollectionParticipant" => shardsvr::drop_participant;
    "_shardsvrDropDatabase" => shardsvr::drop_database;
    "_shardsvrDropDatabaseParticipant" => shardsvr::drop_database_participant;
    "_shardsvrDropIndexes" => shardsvr::drop_indexes;
    "_getNextSessionMods" => shardsvr::migration::histories;
    "_migrateClone" => shardsvr::migration::documents;
    "_recvChunkAbort" => shardsvr::migration::abort;
    "_recvChunkCommit" => shardsvr::migration::commit;
    "_recvChunkReleaseCritSec" => shardsvr::migration::release;
    "_recvChunkStart" => shardsvr::migration::start;
    "_recvChunkStatus" => shardsvr::migration::status;
    "_shardsvrGetStatsForBalancing" => shardsvr::sizes;
    "_shardsvrMergeAllChunksOnShard" => shardsvr::merge_all;
    "_shardsvrMigrationIsOver" => shardsvr::migration::is_over;
    "_shardsvrMoveRange" => shardsvr::migration::move_range;
    "_transferMods" => shardsvr::migration::changes;
    "_shardsvrFenceDatabase" => shardsvr::fence_database;
    "_shardsvrMovePrimary" => shardsvr::move_primary;
    "_shardsvrTakeMovedDocuments" => shardsvr::take_moved;
    "_shardsvrRefineCollectionShardKey" => shardsvr::refine_shard_key;
    "_shardsvrValidateShardKeyCandidate" => shardsvr::validate_shard_key;
    "_shardsvrRenameCollection" => shardsvr::rename_collection;
    "_shardsvrSetAllowMigrations" => shardsvr::set_allow_migrations;
    "_shardsvrSetClusterParameter" => shardsvr::set_cluster_parameter;
    "_shardsvrSetUserWriteBlockMode" => shardsvr::user_write_block;
    "_shardsvrRenameCollectionParticipant" => shardsvr::rename_participant;
    "_shardsvrRenameCollectionParticipantUnblock" => shardsvr::unblock_renamed;
    "_mergeAuthzCollections" => principals::merge::run;
    "_closeBackup" => backup::close;
    "_configsvrAddShard" => configsvr::add_shard::run;
    "_configsvrAddShardToZone" => configsvr::add_shard_to_zone::run;
    "_configsvrBalancerCollectionStatus" => configsvr::balancer_collection_status::run;
    "_configsvrBalancerStart" => configsvr::balancer_start::run;
    "_configsvrBalancerStatus" => configsvr::balancer_status::run;
    "_configsvrBalancerStop" => configsvr::balancer_stop::run;
    "_configsvrClearJumboFlag" => configsvr::clear_jumbo_flag::run;
    "_configsvrCommitChunkMigration" => configsvr::commit_chunk_migration::run;
    "_configsvrCommitChunkSplit" => configsvr::commit_chunk_split::run;
    "_configsvrCommitChunksMerge" => configsvr::commit_chunks_merge::run;
    "_configsvrCommitDropCollection" => configsvr::commit_drop_collection::run;
    "_configsvrCommitDropDatabase" => configsvr::commit_drop_database::run;
    "_configsvrCommitMergeAllChunksOnShard" => configsvr::commit_merge_all_chunks::run;
    "_configsvrCommitMovePrimary" => configsvr::commit_move_primary::run;
    "_configsvrCommitRefineCollectionShardKey" => configsvr::commit_refine_shard_key::run;
    "_configsvrCommitShardCollection" => configsvr::commit_shard_collection::run;
    "_configsvrConfigureCollectionBalancing" => configsvr::configure_collection_balancing::run;
    "_configsvrCreateDatabase" => configsvr::create_database::run;
    "_configsvrEnsureChunkVersionIsGreaterThan" => configsvr::ensure_chunk_version::run;
    "_configsvrMoveRange" => configsvr::move_range::run;
    "_configsvrRemoveChunks" => configsvr::remove_chunks::run;
    "_configsvrRemoveShard" => configsvr::remove_shard::run;
    "_configsvrRemoveShardFromZone" => configsvr::remove_shard_from_zone::run;
    "_configsvrRemoveTags" => configsvr::remove_tags::run;
    "_configsvrRenameCollectionMetadata" => configsvr::rename_collection_metadata::run;
    "_configsvrSetAllowMigrations" => configsvr::set_allow_migrations::run;
    "_configsvrSetClusterParameter" => configsvr::set_cluster_parameter::run;
    "_configsvrSetUserWriteBlockMode" => configsvr::user_write_block::run;
    "_configsvrTransitionFromDedicatedConfigServer" => configsvr::transition_from_dedicated::run;
    "_configsvrTransitionToDedicatedConfigServer" => configsvr::transition_to_dedicated::run;
    "_configsvrUpdateZoneKeyRange" => configsvr::update_zone_key_range::run;
    "_demoWorkflow" => demo_workflow::run;
    "_forgetImport" => collection_imports::forget;
    "_getUserCacheGeneration" => principals::user_cache_generation::run;
    "_hashBSONElement" => hash_element::run;
    "_importCollections" => collection_imports::import;
    "_isSelf" => repl_set_admin::is_self;
    "_keptSessions" => session_records::run;
    "_openBackup" => backup::open;
    "_recipientCommitMigration" => tenant_migration::recipient_commit::run;
    "_readBackup" => backup::read;
    "_takeInCollections" => collection_imports::take_in;
    "_tenantCollections" => tenant_migration::donor::snapshot::collections;
    "_tenantCopy" => tenant_migration::copy_test::run;
    "_tenantDocuments" => tenant_migration::donor::snapshot::documents;
    "_tenantEntries" => tenant_migration::donor::entries::run;
    "_tenantSessions" => tenant_migration::donor::snapshot::sessions;
    "_tenantSnapshot" => tenant_migration::donor::snapshot::begin;
    "_tenantSnapshotEnd" => tenant_migration::donor::snapshot::end;
    "abortShardSplit" => shard_split::abort::run;
    "abortTransaction" => transactions::abort;
    "aggregate" => aggregate::run;
    "appendOplogNote" => repl_set_admin::append_note;
    "applyOps" => apply_ops::run;
    "authenticate" => logins::authenticate::run;
    "availableQueryOptions" => no_op::query_options;
    "buildInfo" => build_info::run;
    "bulkWrite" => bulk_write::run;
    "captrunc" => capped_tests::truncate;
    "clearLog" => clear_log::run;
    "cloneCollectionAsCapped" => convert_to_capped::clone;
    "collMod" => coll_mod::run;
    "collStats" => coll_stats::run;
    "commitShardSplit" => shard_split::commit::run;
    "commitTransaction" => transactions::commit;
    "compact" => compact::run;
    "configureFailPoint" => configure_fail_point::run;
    "connPoolStats" => conn_pool_stats::stats;
    "connPoolSync" => conn_pool_stats::sync;
    "connectionStatus" => logins::connection_status::run;
    "convertToCapped" => convert_to_capped::run;
    "coordinateCommitTransaction" => transactions::coordinate;
    "count" => count::run;
    "cpuload" => cpu_load::run;
    "create" => create::run;
    "createIndexes" => create_indexes::run;
    "createRole" => principals::role::create;
    "createSearchIndexes" => everywhere::search_indexes::run;
    "createUser" => principals::user::create;
    "currentOp" => current_op::run;
    "dataSize" => data_size::run;
    "dbHash" => db_hash::run;
    "dbStats" => db_stats::run;
    "delete" => delete::run;
    "distinct" => distinct::run;
    "donorAbortMigration" => tenant_migration::abort::run;
    "donorForgetMigration" => tenant_migration::forget::run;
    "donorStartMigration" => tenant_migration::start::run;
    "driverOIDTest" => everywhere::driver_oid_test::run;
    "drop" => drop::run;
    "dropAllRolesFromDatabase" => principals::drop::all_roles;
    "dropAllUsersFromDatabase" => principals::drop::all_users;
    "dropConnections" => conn_pool_stats::drop_some;
    "dropDatabase" => drop_database::run;
    "dropIndexes" => drop_indexes::run;
    "dropRole" => principals::drop::role;
    "dropSearchIndex" => everywhere::search_indexes::run;
    "dropUser" => principals::drop::user;
    "echo" => echo::run;
    "emptycapped" => capped_tests::empty;
    "endSessions" => sessions::end;
    "explain" => explain::run;
    "features" => features::run;
    "filemd5" => file_md5::run;
    "find" => find::run;
    "findAndModify" => find_and_modify::run;
    "flushRouterConfig" => sharding_state::not_enabled;
    "forgetShardSplit" => shard_split::forget::run;
    "fsync" => fsync::lock;
    "fsyncUnlock" => fsync::unlock;
    "getClusterParameter" => cluster_parameter::get;
    "getCmdLineOpts" => get_cmd_line_opts::run;
    "getDatabaseVersion" => shardsvr::database_version;
    "getDefaultRWConcern" => rw_concern::get;
    "getDiagnosticData" => diagnostic_data::run;
    "getFreeMonitoringStatus" => free_monitoring::status;
    "getLastError" => get_last_error::run;
    "getLog" => get_log::run;
    "getMore" => get_more::run;
    "getParameter" => get_parameter::run;
    "getShardMap" => sharding_state::not_enabled;
    "getShardVersion" => shardsvr::collection_version;
    "getnonce" => getnonce::run;
    "godinsert" => god_insert::run;
    "grantPrivilegesToRole" => principals::grant::privileges_to_role;
    "grantRolesToRole" => principals::grant::roles_to_role;
    "grantRolesToUser" => principals::grant::roles_to_user;
    "hello" => hello::run;
    "hostInfo" => host_info::run;
    "insert" => insert::run;
    "invalidateUserCache" => no_op::user_cache;
    "isMaster" => hello::run;
    "killAllSessions" => sessions::kill_all;
    "killAllSessionsByPattern" => sessions::kill_by_pattern;
    "killCursors" => kill_cursors::run;
    "killOp" => kill_op::run;
    "killSessions" => sessions::kill;
    "listCollections" => list_collections::run;
    "listCommands" => list_commands::run;
    "listDatabases" => list_databases::run;
    "listIndexes" => list_indexes::run;
    "listSearchIndexes" => everywhere::search_indexes::run;
    "lockInfo" => lock_info::run;
    "logApplicationMessage" => logins::log_application_message::run;
    "logMessage" => everywhere::log_message::run;
    "logRotate" => logins::log_rotate::run;
    "logout" => logins::sasl::logout;
    "makeSnapshot" => repl_set_test::snapshot;
    "mapReduce" => map_reduce::run;
    "mergeChunks" => shardsvr::merge;
    "ping" => ping::run;
    "planCacheClear" => plan_cache::clear;
    "planCacheClearFilters" => index_filters::clear;
    "planCacheListFilters" => index_filters::list;
    "planCacheSetFilter" => index_filters::set;
    "prepareTransaction" => transactions::prepare;
    "profile" => profile::run;
    "reIndex" => re_index::run;
    "reapLogicalSessionCacheNow" => no_op::run;
    "recipientForgetMigration" => tenant_migration::recipient_forget::run;
    "recipientSyncData" => tenant_migration::sync_data::run;
    "refreshLogicalSessionCacheNow" => sessions::refresh_now;
    "refreshSessions" => sessions::refresh;
    "renameCollection" => rename_collection::run;
    "replSetAbortPrimaryCatchUp" => repl_set_admin::abort_catch_up;
    "replSetFreeze" => repl_set_admin::freeze;
    "replSetGetConfig" => repl_set_get_config::run;
    "replSetGetRBID" => repl_set_admin::get_rbid;
    "replSetGetStatus" => repl_set_get_status::run;
    "replSetHeartbeat" => repl_set_heartbeat::run;
    "replSetInitiate" => repl_set_initiate::run;
    "replSetMaintenance" => repl_set_admin::maintenance;
    "replSetReconfig" => repl_set_reconfig::run;
    "replSetRequestVotes" => repl_set_request_votes::run;
    "replSetResizeOplog" => repl_set_admin::resize_oplog;
    "replSetStepDown" => repl_set_admin::step_down;
    "replSetStepUp" => repl_set_admin::step_up;
    "replSetSyncFrom" => repl_set_admin::sync_from;
    "replSetTest" => repl_set_test::run;
    "replSetUpdatePosition" => repl_set_admin::update_position;
    "resync" => repl_set_admin::resync;
    "revokePrivilegesFromRole" => principals::grant::privileges_from_role;
    "revokeRolesFromRole" => principals::grant::roles_from_role;
    "revokeRolesFromUser" => principals::grant::roles_from_user;
    "rolesInfo" => principals::roles_info::run;
    "rotateCertificates" => logins::rotate_certificates::run;
    "saslContinue" => logins::sasl::go_on;
    "saslStart" => logins::sasl::start;
    "serverStatus" => server_status::run;
    "setClusterParameter" => cluster_parameter::set;
    "setDefaultRWConcern" => rw_concern::set;
    "setFeatureCompatibilityVersion" => set_feature_compatibility_version::run;
    "setFreeMonitoring" => free_monitoring::set;
    "setIndexCommitQuorum" => index_build_votes::set_quorum;
    "setParameter" => set_parameter::run;
    "setProfilingFilterGlobally" => profile::globally;
    "setUserWriteBlockMode" => user_write_block::run;
    "shardingState" => shardsvr::state;
    "shutdown" => shutdown::run;
    "sleep" => everywhere::sleep::run;
    "cleanupOrphaned" => shardsvr::cleanup_orphaned;
    "splitChunk" => shardsvr::split;
    "splitVector" => split_vector::run;
    "startRecordingTraffic" => traffic::start;
    "startSession" => sessions::start;
    "stopRecordingTraffic" => traffic::stop;
    "testDeprecation" => everywhere::test_api::run;
    "testDeprecationInVersion2" => everywhere::test_api::run;
    "testRemoval" => everywhere::test_api::run;
    "testVersion2" => everywhere::test_api::run;
    "testVersions1And2" => everywhere::test_api::run;
    "top" => top::run;
    "update" => update::run;
    "updateRole" => principals::role::update;
    "updateSearchIndex" => everywhere::search_indexes::run;
    "updateUser" => principals::user::update;
    "usersInfo" => principals::users_info::run;
    "validate" => validate::run;
    "validateDBMetadata" => validate_db_metadata::run;
    "voteAbortIndexBuild" => index_build_votes::vote_abort;
    "voteCommitIndexBuild" => index_build_votes::vote;
    "waitForFailPoint" => everywhere::wait_for_fail_point::run;
    "waitForOngoingChunkSplits" => no_op::run;
    "whatsmysni" => everywhere::whatsmysni::run;
    "whatsmyuri" => whatsmyuri::run;
};

/// The commands of a process that holds data.
pub fn registry() -> Registry<Server> {
    Registry::new(Roles::D, COMMANDS, HANDLERS, authorization::CHECKS)
}

pub(crate) use shardsvr::ddl::steps::own_step;

/// `create` as part of another operation; with the UUID of a sharded collection, a part of which it is, or of one that comes from another shard.
pub(crate) async fn create_as(
    server: &Server,
    ctx: &OpCtx,
    req: Request<'_>,
    part: Option<Uuid>,
) -> Result<()> {
    create::run_as(server, ctx, req, part.map(create::As::Part)).await.map(drop)
}
/// `createIndexes` as part of another operation.
pub(crate) async fn create_indexes(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<()> {
    create_indexes::run(server, ctx, req).await.map(drop)
}
/// `dropDatabase` as part of another operation.
pub(crate) async fn drop_database(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<()> {
    drop_database::run(server, ctx, req).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::{HANDLERS, registry};

    const FUTURE_BYTES_MAX: usize = 8 * 1024;

    /// Of what a handler does; it is moved to the heap for each command.
    fn size<'a, F, Fut>(_: F) -> usize
    where
        F: Fn(&'a super::Server, &'a pando_command::OpCtx, pando_command::Request<'a>) -> Fut,
    {
        size_of::<Fut>()
    }

    #[test]
    fn what_is_done_often_is_small() {
        let sizes = [
            ("aggregate", size(super::aggregate::run)),
            ("bulkWrite", size(super::bulk_write::run)),
            ("count", size(super::count::run)),
            ("delete", size(super::delete::run)),
            ("distinct", size(super::distinct::run)),
            ("find", size(super::find::run)),
            ("findAndModify", size(super::find_and_modify::run)),
            ("getMore", size(super::get_more::run)),
            ("insert", size(super::insert::run)),
            ("update", size(super::update::run)),
        ];
        eprintln!("{sizes:?}");
        for (name, bytes) in sizes {
            assert!(bytes <= FUTURE_BYTES_MAX, "{name} takes {bytes} bytes");
        }
    }

    #[test]
    fn every_handler_belongs_to_a_command() {
        assert_eq!(registry().strangers(HANDLERS), Vec::<&str>::new());
        assert_eq!(registry().commands().filter(|c| c.handler.is_some()).count(), HANDLERS.len());
    }
}
