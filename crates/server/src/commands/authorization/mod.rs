//! What a client must be allowed for commands whose arguments decide it: checks that every node makes ([`checks`]), and this server's own.

mod apply_ops;

use crate::Server;
use pando_auth::{Action, Authority};
use pando_base::Result;
use pando_command::checks::{self, is_on, split, text};
use pando_command::{Check, OpCtx, Request};

/// A shard tells it as figures of the cluster are told.
fn shard_version(_: &Server, _: &OpCtx, _: &Request<'_>, who: &Authority) -> Result<bool> {
    Ok(who.may_on_cluster(Action::GetShardVersion))
}

fn explain(server: &Server, ctx: &OpCtx, req: &Request<'_>, who: &Authority) -> Result<bool> {
    checks::explain(&server.registry, server, ctx, req, who)
}

pub(super) static CHECKS: &[(&str, Check<Server>)] = &[
    ("_closeBackup", checks::backup),
    ("_mergeAuthzCollections", checks::merge),
    ("_openBackup", checks::backup),
    ("_readBackup", checks::backup),
    ("aggregate", checks::aggregate),
    ("applyOps", apply_ops::run),
    ("bulkWrite", checks::bulk_write),
    ("cloneCollectionAsCapped", checks::clone_as_capped),
    ("collMod", checks::coll_mod),
    ("create", checks::create),
    ("createRole", checks::create_role),
    ("createUser", checks::create_user),
    ("currentOp", checks::current_op),
    ("dataSize", checks::data_size),
    ("explain", explain),
    ("filemd5", checks::file_md5),
    ("findAndModify", checks::find_and_modify),
    ("getDiagnosticData", checks::diagnostic_data),
    ("getMore", checks::of_its_own),
    ("getShardVersion", shard_version),
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
    ("mergeChunks", checks::sharding::merge_on_shard),
    ("profile", checks::profile),
    ("renameCollection", checks::rename),
    ("revokePrivilegesFromRole", checks::revoke_privileges),
    ("revokeRolesFromRole", checks::revoke_roles),
    ("revokeRolesFromUser", checks::revoke_roles),
    ("rolesInfo", checks::roles_info),
    ("setProfilingFilterGlobally", checks::profiling_filter),
    ("splitVector", checks::split_vector),
    ("update", checks::update),
    ("updateRole", checks::update_role),
    ("updateUser", checks::update_user),
    ("usersInfo", checks::users_info),
    ("validateDBMetadata", checks::validate_metadata),
];
