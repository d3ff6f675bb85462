//! What a client must be allowed for commands whose arguments decide it, by the checks that every node makes.

use crate::Router;
use pando_auth::Authority;
use pando_base::Result;
use pando_command::checks::{self, sharding};
use pando_command::{Check, OpCtx, Request};

fn explain(router: &Router, ctx: &OpCtx, req: &Request<'_>, who: &Authority) -> Result<bool> {
    checks::explain(&router.registry, router, ctx, req, who)
}

pub(super) static CHECKS: &[(&str, Check<Router>)] = &[
    ("addShardToZone", sharding::add_shard_to_zone),
    ("aggregate", checks::aggregate),
    ("balancerCollectionStatus", sharding::enable),
    ("balancerStart", sharding::control_balancer),
    ("balancerStatus", sharding::balancer_status),
    ("balancerStop", sharding::control_balancer),
    ("bulkWrite", checks::bulk_write),
    ("clearJumboFlag", sharding::clear_jumbo_flag),
    ("collMod", checks::coll_mod),
    ("configureCollectionBalancing", sharding::configure_balancing),
    ("create", checks::create),
    ("createRole", checks::create_role),
    ("createUser", checks::create_user),
    ("currentOp", checks::current_op),
    ("dataSize", checks::data_size),
    ("enableSharding", sharding::enable),
    ("explain", explain),
    ("findAndModify", checks::find_and_modify),
    ("getMore", checks::of_its_own),
    ("getShardVersion", sharding::shard_version),
    ("grantPrivilegesToRole", checks::grant_privileges),
    ("grantRolesToRole", checks::grant_roles),
    ("grantRolesToUser", checks::grant_roles),
    ("insert", checks::insert),
    ("killAllSessionsByPattern", checks::kill_by_pattern),
    ("killCursors", checks::of_its_own),
    ("killOp", checks::kill_op),
    ("killSessions", checks::of_its_own),
    ("listCollections", checks::list_collections),
    ("listDatabases", checks::list_databases),
    ("mapReduce", checks::map_reduce),
    ("mergeAllChunksOnShard", sharding::merge),
    ("mergeChunks", sharding::merge),
    ("moveChunk", sharding::move_chunks),
    ("movePrimary", sharding::move_chunks),
    ("moveRange", sharding::move_chunks),
    ("profile", checks::profile),
    ("refineCollectionShardKey", sharding::refine_key),
    ("removeShardFromZone", sharding::remove_shard_from_zone),
    ("renameCollection", checks::rename),
    ("revokePrivilegesFromRole", checks::revoke_privileges),
    ("revokeRolesFromRole", checks::revoke_roles),
    ("revokeRolesFromUser", checks::revoke_roles),
    ("rolesInfo", checks::roles_info),
    ("setAllowMigrations", sharding::move_chunks),
    ("shardCollection", sharding::enable),
    ("split", sharding::split_chunk),
    ("update", checks::update),
    ("updateRole", checks::update_role),
    ("updateUser", checks::update_user),
    ("updateZoneKeyRange", sharding::update_zone),
    ("usersInfo", checks::users_info),
    ("validateDBMetadata", checks::validate_metadata),
];
