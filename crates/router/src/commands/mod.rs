//! What a router does for each command: one file per command or per kind of them, registered against the rows of
//! [`pando_command::table`].

mod aggregate;
mod authorization;
mod bulk_write;
mod count;
mod define;
mod delete;
mod distinct;
mod explain;
mod find;
mod find_and_modify;
mod get_more;
mod hello;
mod insert;
mod kill_cursors;
mod list;
mod map_reduce;
mod of_config;
mod on_owners;
mod prelude;
mod principals;
mod process;
mod raw;
mod sharding;
mod transactions;
mod update;
mod views;

pub(crate) use explain::{append_command, append_process};

use crate::Router;
use pando_command::{COMMANDS, Handler, Registry, Roles, everywhere};
use pando_logins::commands as logins;

macro_rules! handlers {
    ($($name:literal => $($handler:ident)::+;)*) => {
        &[$(($name, |router, ctx, req| Box::pin($($handler)::+(router, ctx, req)))),*]
    };
}

static HANDLERS: &[(&str, Handler<Router>)] = handlers! {
    "abortTransaction" => transactions::abort;
    "addShard" => sharding::shards::add;
    "addShardToZone" => sharding::on_config::add_shard_to_zone;
    "aggregate" => aggregate::run;
    "authenticate" => logins::authenticate::run;
    "balancerCollectionStatus" => sharding::on_config::balancer_collection_status;
    "balancerStart" => sharding::on_config::balancer_start;
    "balancerStatus" => sharding::on_config::balancer_status;
    "balancerStop" => sharding::on_config::balancer_stop;
    "buildInfo" => process::about::build_info;
    "bulkWrite" => bulk_write::run;
    "checkMetadataConsistency" => sharding::check_metadata_consistency::run;
    "clearJumboFlag" => sharding::chunks::clear_jumbo_flag;
    "collMod" => define::coll_mod::run;
    "collStats" => list::stats::of_collection;
    "commitTransaction" => transactions::commit;
    "configureCollectionBalancing" => sharding::on_config::configure_collection_balancing;
    "configureFailPoint" => process::operations::fail_point;
    "connPoolStats" => process::connections::stats;
    "connPoolSync" => process::connections::sync;
    "connectionStatus" => logins::connection_status::run;
    "convertToCapped" => define::convert_to_capped::run;
    "count" => count::run;
    "create" => define::create::run;
    "createIndexes" => define::create_indexes::run;
    "createRole" => principals::change;
    "createSearchIndexes" => everywhere::search_indexes::run;
    "createUser" => principals::change;
    "currentOp" => process::operations::current;
    "dataSize" => list::stats::of_collection;
    "dbStats" => list::stats::of_database;
    "delete" => delete::run;
    "distinct" => distinct::run;
    "driverOIDTest" => everywhere::driver_oid_test::run;
    "drop" => define::drop::run;
    "dropAllRolesFromDatabase" => principals::change;
    "dropAllUsersFromDatabase" => principals::change;
    "dropDatabase" => define::drop_database::run;
    "dropIndexes" => define::drop_indexes::run;
    "dropRole" => principals::change;
    "dropSearchIndex" => everywhere::search_indexes::run;
    "dropUser" => principals::change;
    "echo" => process::refused::echo;
    "enableSharding" => sharding::enable_sharding::run;
    "endSessions" => process::sessions::end;
    "explain" => explain::run;
    "features" => process::about::features;
    "find" => find::run;
    "findAndModify" => find_and_modify::run;
    "flushRouterConfig" => sharding::known::flush;
    "fsync" => process::fsync::run;
    "getClusterParameter" => of_config::read;
    "getCmdLineOpts" => process::about::command_line;
    "getDefaultRWConcern" => of_config::read;
    "getLastError" => process::refused::last_error;
    "getLog" => process::about::log;
    "getMore" => get_more::run;
    "getParameter" => process::parameters::get;
    "getShardMap" => sharding::known::shard_map;
    "getShardVersion" => sharding::known::shard_version;
    "grantPrivilegesToRole" => principals::change;
    "grantRolesToRole" => principals::change;
    "grantRolesToUser" => principals::change;
    "hello" => hello::run;
    "hostInfo" => process::about::host_info;
    "insert" => insert::run;
    "invalidateUserCache" => principals::invalidate;
    "isMaster" => hello::run;
    "isdbgrid" => sharding::known::is_db_grid;
    "killAllSessions" => process::sessions::kill_all;
    "killAllSessionsByPattern" => process::sessions::kill_by_pattern;
    "killCursors" => kill_cursors::run;
    "killOp" => process::operations::kill;
    "killSessions" => process::sessions::kill;
    "listCollections" => list::cursors::collections;
    "listCommands" => process::about::list_commands;
    "listDatabases" => list::list_databases::run;
    "listIndexes" => list::cursors::indexes;
    "listSearchIndexes" => everywhere::search_indexes::run;
    "listShards" => sharding::shards::list;
    "logApplicationMessage" => logins::log_application_message::run;
    "logMessage" => everywhere::log_message::run;
    "logRotate" => logins::log_rotate::run;
    "logout" => logins::sasl::logout;
    "mapReduce" => map_reduce::run;
    "mergeAllChunksOnShard" => sharding::chunks::merge_all;
    "mergeChunks" => sharding::chunks::merge;
    "moveChunk" => sharding::chunks::move_range;
    "movePrimary" => sharding::move_primary::run;
    "moveRange" => sharding::chunks::move_range;
    "ping" => process::about::ping;
    "planCacheClear" => on_owners::plan_cache;
    "planCacheClearFilters" => on_owners::plan_cache;
    "planCacheListFilters" => on_owners::plan_cache;
    "planCacheSetFilter" => on_owners::plan_cache;
    "profile" => process::profile::run;
    "reapLogicalSessionCacheNow" => process::about::nothing;
    "refineCollectionShardKey" => sharding::refine_key::run;
    "refreshLogicalSessionCacheNow" => process::sessions::tell;
    "refreshSessions" => process::sessions::refresh;
    "removeShard" => sharding::shards::remove;
    "removeShardFromZone" => sharding::on_config::remove_shard_from_zone;
    "renameCollection" => define::rename_collection::run;
    "replSetGetStatus" => process::refused::of_members;
    "revokePrivilegesFromRole" => principals::change;
    "revokeRolesFromRole" => principals::change;
    "revokeRolesFromUser" => principals::change;
    "rolesInfo" => of_config::read;
    "rotateCertificates" => logins::rotate_certificates::run;
    "saslContinue" => logins::sasl::go_on;
    "saslStart" => logins::sasl::start;
    "serverStatus" => process::server_status::run;
    "setClusterParameter" => sharding::on_config::set_cluster_parameter;
    "setDefaultRWConcern" => of_config::set_concern_defaults;
    "setFeatureCompatibilityVersion" => of_config::write_again;
    "setParameter" => process::parameters::set;
    "setAllowMigrations" => sharding::set_allow_migrations::run;
    "setUserWriteBlockMode" => sharding::set_user_write_block_mode::run;
    "shardCollection" => sharding::shard_collection::run;
    "shutdown" => process::operations::shutdown;
    "sleep" => everywhere::sleep::run;
    "split" => sharding::chunks::split;
    "startSession" => process::sessions::start;
    "testDeprecation" => everywhere::test_api::run;
    "testDeprecationInVersion2" => everywhere::test_api::run;
    "testRemoval" => everywhere::test_api::run;
    "testVersion2" => everywhere::test_api::run;
    "testVersions1And2" => everywhere::test_api::run;
    "transitionFromDedicatedConfigServer" => sharding::transition_from_dedicated::run;
    "transitionToDedicatedConfigServer" => sharding::transition_to_dedicated::run;
    "update" => update::run;
    "updateRole" => principals::change;
    "updateSearchIndex" => everywhere::search_indexes::run;
    "updateUser" => principals::change;
    "updateZoneKeyRange" => sharding::on_config::update_zone_key_range;
    "usersInfo" => of_config::read;
    "validate" => on_owners::validate;
    "validateDBMetadata" => list::validate_db_metadata::run;
    "waitForFailPoint" => everywhere::wait_for_fail_point::run;
    "whatsmysni" => everywhere::whatsmysni::run;
    "whatsmyuri" => process::about::my_uri;
};

pub(crate) fn registry() -> Registry<Router> {
    Registry::new(Roles::R, COMMANDS, HANDLERS, authorization::CHECKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_handler_has_a_row() {
        assert_eq!(registry().strangers(HANDLERS), Vec::<&str>::new());
    }

    #[test]
    fn whoever_looks_at_arguments_looks_at_those_of_every_command_that_says_so() {
        assert_eq!(registry().unchecked(), Vec::<&str>::new());
    }
}
