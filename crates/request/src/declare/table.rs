//! The tables of all commands that are declared as such.

use super::Arguments;
use crate::*;

pub static ARGUMENTS: &[Arguments] = &[
    AbortTransactionArgs::ARGUMENTS,
    CloneAsCappedArgs::ARGUMENTS,
    CollModArgs::ARGUMENTS,
    CollStatsArgs::ARGUMENTS,
    CommitTransactionArgs::ARGUMENTS,
    CompactArgs::ARGUMENTS,
    ConvertToCappedArgs::ARGUMENTS,
    CreateArgs::ARGUMENTS,
    CreateIndexesArgs::ARGUMENTS,
    CurrentOpArgs::ARGUMENTS,
    DataSizeArgs::ARGUMENTS,
    DbStatsArgs::ARGUMENTS,
    DropAllRolesArgs::ARGUMENTS,
    DropAllUsersArgs::ARGUMENTS,
    DropArgs::ARGUMENTS,
    DropDatabaseArgs::ARGUMENTS,
    DropIndexesArgs::ARGUMENTS,
    DropRoleArgs::ARGUMENTS,
    DropUserArgs::ARGUMENTS,
    EndSessionsArgs::ARGUMENTS,
    ExplainArgs::ARGUMENTS,
    FileMd5Args::ARGUMENTS,
    GetClusterParameterArgs::ARGUMENTS,
    GetDefaultRwConcernArgs::ARGUMENTS,
    GetParameterArgs::ARGUMENTS,
    KillAllSessionsArgs::ARGUMENTS,
    KillAllSessionsByPatternArgs::ARGUMENTS,
    KillCursorsArgs::ARGUMENTS,
    KillOpArgs::ARGUMENTS,
    KillSessionsArgs::ARGUMENTS,
    ListCollectionsArgs::ARGUMENTS,
    ListDatabasesArgs::ARGUMENTS,
    ListIndexesArgs::ARGUMENTS,
    MapReduceArgs::ARGUMENTS,
    PlanCacheClearArgs::ARGUMENTS,
    PlanCacheClearFiltersArgs::ARGUMENTS,
    PlanCacheListFiltersArgs::ARGUMENTS,
    PlanCacheSetFilterArgs::ARGUMENTS,
    ProfileArgs::ARGUMENTS,
    RefreshSessionsArgs::ARGUMENTS,
    RenameCollectionArgs::ARGUMENTS,
    RolesInfoArgs::ARGUMENTS,
    SetClusterParameterArgs::ARGUMENTS,
    SetDefaultRwConcernArgs::ARGUMENTS,
    SetFeatureVersionArgs::ARGUMENTS,
    SetIndexCommitQuorumArgs::ARGUMENTS,
    SetParameterArgs::ARGUMENTS,
    SetUserWriteBlockModeArgs::ARGUMENTS,
    SplitVectorArgs::ARGUMENTS,
    UsersInfoArgs::ARGUMENTS,
    ValidateArgs::ARGUMENTS,
    ValidateDbMetadataArgs::ARGUMENTS,
];

/// The arguments of a command.
pub fn arguments_of(command: &str) -> Option<&'static Arguments> {
    ARGUMENTS.iter().find(|a| a.command == command)
}
