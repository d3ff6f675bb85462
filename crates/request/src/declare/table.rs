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
    ProfileArgs::ARGUMENTS,
    RefreshSessionsArgs::ARGUMENTS,
    RenameCollectionArgs::ARGUMENTS,
    SetDefaultRwConcernArgs::ARGUMENTS,
    SetIndexCommitQuorumArgs::ARGUMENTS,
    SetParameterArgs::ARGUMENTS,
    SetUserWriteBlockModeArgs::ARGUMENTS,
    ValidateArgs::ARGUMENTS,
    ValidateDbMetadataArgs::ARGUMENTS,
];

/// The arguments of a command.
pub fn arguments_of(command: &str) -> Option<&'static Arguments> {
    ARGUMENTS.iter().find(|a| a.command == command)
}
