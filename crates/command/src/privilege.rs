//! What a user must be allowed to run a command: actions on a resource.
//!
//! The table of commands says it for every command whose arguments do not matter. Of the others ([`Privileges::ByArguments`])
//! the command itself tells when it has read them.

macro_rules! actions {
    ($($action:ident $name:literal)*) => {
        /// Something that can be allowed.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Action {
            $(#[doc = concat!("`", $name, "`")] $action,)*
        }
        impl Action {
            /// All of them, by name.
            pub const ALL: &[Action] = &[$(Action::$action),*];
            /// As it is written in a role.
            pub const fn name(self) -> &'static str {
                match self { $(Action::$action => $name,)* }
            }
        }
    };
}

actions! {
    AnalyzeShardKey "analyzeShardKey"
    AppendOplogNote "appendOplogNote"
    CheckFreeMonitoringStatus "checkFreeMonitoringStatus"
    CheckMetadataConsistency "checkMetadataConsistency"
    CleanupOrphaned "cleanupOrphaned"
    CleanupStructuredEncryptionData "cleanupStructuredEncryptionData"
    CollMod "collMod"
    CollStats "collStats"
    Compact "compact"
    CompactStructuredEncryptionData "compactStructuredEncryptionData"
    ConfigureQueryAnalyzer "configureQueryAnalyzer"
    ConnPoolStats "connPoolStats"
    ConnPoolSync "connPoolSync"
    ConvertToCapped "convertToCapped"
    CreateIndex "createIndex"
    DbHash "dbHash"
    DbStats "dbStats"
    DropCollection "dropCollection"
    DropConnections "dropConnections"
    DropDatabase "dropDatabase"
    DropIndex "dropIndex"
    DropRole "dropRole"
    DropSearchIndex "dropSearchIndex"
    DropUser "dropUser"
    Find "find"
    FlushRouterConfig "flushRouterConfig"
    Fsync "fsync"
    GetClusterParameter "getClusterParameter"
    GetCmdLineOpts "getCmdLineOpts"
    GetDatabaseVersion "getDatabaseVersion"
    GetDefaultRWConcern "getDefaultRWConcern"
    GetLog "getLog"
    GetParameter "getParameter"
    GetShardMap "getShardMap"
    GetShardVersion "getShardVersion"
    HostInfo "hostInfo"
    Insert "insert"
    InvalidateUserCache "invalidateUserCache"
    KillAnySession "killAnySession"
    ListIndexes "listIndexes"
    ListSearchIndexes "listSearchIndexes"
    LogRotate "logRotate"
    PlanCacheIndexFilter "planCacheIndexFilter"
    PlanCacheWrite "planCacheWrite"
    ReIndex "reIndex"
    Remove "remove"
    ReplSetConfigure "replSetConfigure"
    ReplSetGetConfig "replSetGetConfig"
    ReplSetGetStatus "replSetGetStatus"
    ReplSetResizeOplog "replSetResizeOplog"
    ReplSetStateChange "replSetStateChange"
    RotateCertificates "rotateCertificates"
    ServerStatus "serverStatus"
    SetClusterParameter "setClusterParameter"
    SetDefaultRWConcern "setDefaultRWConcern"
    SetFeatureCompatibilityVersion "setFeatureCompatibilityVersion"
    SetFreeMonitoring "setFreeMonitoring"
    SetParameter "setParameter"
    SetUserWriteBlockMode "setUserWriteBlockMode"
    ShardingState "shardingState"
    Shutdown "shutdown"
    SplitVector "splitVector"
    Top "top"
    TrafficRecord "trafficRecord"
    Unlock "unlock"
    UpdateSearchIndex "updateSearchIndex"
    Validate "validate"
}

/// What an action is allowed on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resource {
    /// The collection that the command names first.
    Collection,
    /// The database that it is sent to.
    Database,
    /// The set or the cluster as a whole.
    Cluster,
}

/// What a command needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Privileges {
    /// Nothing: it runs before anybody has logged in.
    Open,
    /// A login, whoever it is.
    Login,
    /// Each of these actions on the resource.
    Needs(Resource, &'static [Action]),
    /// What the arguments say.
    ByArguments,
    /// To be another member, a router, or somebody with the action `internal`.
    Internal,
}

#[cfg(test)]
mod tests {
    use super::Action;

    #[test]
    fn actions_are_in_order_and_named_once() {
        assert!(Action::ALL.windows(2).all(|w| w[0].name() < w[1].name()));
    }
}
