//! What clients ask for, as data: the arguments of the commands that more than one role serves.
//!
//! ```text
//!   Request (body, sequences) ──parse──► FindArgs, UpdateArgs, ... ──► a member of a set runs it
//!                                              │
//!                                              └─spell──► the same command for a shard, changed where the router wants
//! ```
//! A command is read once, in the order and with the words of MongoDB; whoever serves it takes the typed arguments. What
//! they name is not looked up here: there is no catalog and no clock. Where a role has a say in the middle of reading
//! (which names may be written), it passes that in.
//!
//! * [`declare`] — one table for each command's fields, from which it is read, spelled and drawn at random;
//! * [`read`] — find, count, distinct, aggregate, getMore, mapReduce, explain, filemd5, remembered plans;
//! * [`write`] — insert, update, delete, bulkWrite, findAndModify;
//! * [`define`] — create, collMod, createIndexes and their like;
//! * [`list`], [`stats`] — what exists, and how large it is;
//! * [`session`], [`settings`] — sessions, cursors, transactions; parameters, running operations, users and roles;
//! * [`sharding`] — shardCollection, enableSharding;
//! * [`spell`] — how they become documents again.

pub mod constants;
pub mod declare;
pub mod define;
pub mod fields;
pub mod list;
pub mod read;
pub mod session;
pub mod settings;
pub mod sharding;
pub mod spell;
pub mod stats;
pub mod write;

pub use define::coll_mod::CollModArgs;
pub use define::convert_to_capped::{CloneAsCappedArgs, ConvertToCappedArgs};
pub use define::create::CreateArgs;
pub use define::create_indexes::CreateIndexesArgs;
pub use define::drop::{DropArgs, DropDatabaseArgs};
pub use define::drop_indexes::DropIndexesArgs;
pub use define::rename_collection::RenameCollectionArgs;
pub use define::set_index_commit_quorum::SetIndexCommitQuorumArgs;
pub use list::list_collections::ListCollectionsArgs;
pub use list::list_databases::ListDatabasesArgs;
pub use list::list_indexes::ListIndexesArgs;
pub use read::aggregate::AggregateArgs;
pub use read::count::CountArgs;
pub use read::distinct::DistinctArgs;
pub use read::explain::ExplainArgs;
pub use read::file_md5::FileMd5Args;
pub use read::find::FindArgs;
pub use read::get_more::GetMoreArgs;
pub use read::map_reduce::MapReduceArgs;
pub use read::plan_cache::{
    PlanCacheClearArgs, PlanCacheClearFiltersArgs, PlanCacheListFiltersArgs, PlanCacheSetFilterArgs,
};
pub use session::hello::HelloArgs;
pub use session::kill_cursors::KillCursorsArgs;
pub use session::sessions::{
    EndSessionsArgs, KillAllSessionsArgs, KillAllSessionsByPatternArgs, KillSessionsArgs, RefreshSessionsArgs,
};
pub use session::transactions::{AbortTransactionArgs, CommitTransactionArgs};
pub use settings::cluster_parameters::{GetClusterParameterArgs, SetClusterParameterArgs};
pub use settings::current_op::CurrentOpArgs;
pub use settings::drop_users_and_roles::{DropAllRolesArgs, DropAllUsersArgs, DropRoleArgs, DropUserArgs};
pub use settings::feature_version::SetFeatureVersionArgs;
pub use settings::kill_op::KillOpArgs;
pub use settings::login::{AuthenticateArgs, SaslContinueArgs, SaslStartArgs};
pub use settings::merge_principals::MergePrincipalsArgs;
pub use settings::parameters::{GetParameterArgs, SetParameterArgs};
pub use settings::profile::ProfileArgs;
pub use settings::roles::{
    CreateRoleArgs, GrantPrivilegesToRoleArgs, GrantRolesToRoleArgs, RevokePrivilegesFromRoleArgs,
    RevokeRolesFromRoleArgs, UpdateRoleArgs,
};
pub use settings::roles_info::RolesInfoArgs;
pub use settings::rw_concern::{GetDefaultRwConcernArgs, SetDefaultRwConcernArgs};
pub use settings::user_write_block::SetUserWriteBlockModeArgs;
pub use settings::users::{CreateUserArgs, GrantRolesToUserArgs, RevokeRolesFromUserArgs, UpdateUserArgs};
pub use settings::users_info::UsersInfoArgs;
pub use sharding::enable_sharding::EnableShardingArgs;
pub use sharding::shard_collection::ShardCollectionArgs;
pub use stats::coll_stats::CollStatsArgs;
pub use stats::compact::CompactArgs;
pub use stats::data_size::DataSizeArgs;
pub use stats::db_stats::DbStatsArgs;
pub use stats::split_vector::SplitVectorArgs;
pub use stats::validate::ValidateArgs;
pub use stats::validate_db_metadata::ValidateDbMetadataArgs;
pub use write::args::WriteArgs;
pub use write::bulk_write::{BulkOp, BulkWriteArgs, NsInfo};
pub use write::delete::{DeleteArgs, DeleteStatement};
pub use write::find_and_modify::FindAndModifyArgs;
pub use write::insert::InsertArgs;
pub use write::update::{UpdateArgs, UpdateStatement};
