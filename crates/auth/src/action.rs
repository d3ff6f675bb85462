//! What can be allowed, by MongoDB's names.

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
    AddShard "addShard"
    AdvanceClusterTime "advanceClusterTime"
    AllCollectionStats "allCollectionStats"
    AnalyzeShardKey "analyzeShardKey"
    AppendOplogNote "appendOplogNote"
    ApplicationMessage "applicationMessage"
    ApplyOps "applyOps"
    AuditConfigure "auditConfigure"
    AuditLogRotate "auditLogRotate"
    AuthSchemaUpgrade "authSchemaUpgrade"
    BypassDocumentValidation "bypassDocumentValidation"
    BypassWriteBlockingMode "bypassWriteBlockingMode"
    ChangeCustomData "changeCustomData"
    ChangeOwnCustomData "changeOwnCustomData"
    ChangeOwnPassword "changeOwnPassword"
    ChangePassword "changePassword"
    ChangeStream "changeStream"
    CheckFreeMonitoringStatus "checkFreeMonitoringStatus"
    CheckMetadataConsistency "checkMetadataConsistency"
    CleanupOrphaned "cleanupOrphaned"
    CleanupStructuredEncryptionData "cleanupStructuredEncryptionData"
    ClearJumboFlag "clearJumboFlag"
    CollMod "collMod"
    CollStats "collStats"
    Compact "compact"
    CompactStructuredEncryptionData "compactStructuredEncryptionData"
    ConfigureQueryAnalyzer "configureQueryAnalyzer"
    ConnPoolStats "connPoolStats"
    ConnPoolSync "connPoolSync"
    ConvertToCapped "convertToCapped"
    CpuProfiler "cpuProfiler"
    CreateCollection "createCollection"
    CreateIndex "createIndex"
    CreateRole "createRole"
    CreateSearchIndexes "createSearchIndexes"
    CreateUser "createUser"
    DbCheck "dbCheck"
    DbHash "dbHash"
    DbStats "dbStats"
    DropAllUsersFromDatabase "dropAllUsersFromDatabase"
    DropCollection "dropCollection"
    DropConnections "dropConnections"
    DropDatabase "dropDatabase"
    DropIndex "dropIndex"
    DropRole "dropRole"
    DropSearchIndex "dropSearchIndex"
    DropUser "dropUser"
    EnableProfiler "enableProfiler"
    EnableSharding "enableSharding"
    ExportCollection "exportCollection"
    Find "find"
    FlushRouterConfig "flushRouterConfig"
    ForceUUID "forceUUID"
    Fsync "fsync"
    GetClusterParameter "getClusterParameter"
    GetCmdLineOpts "getCmdLineOpts"
    GetDatabaseVersion "getDatabaseVersion"
    GetDefaultRWConcern "getDefaultRWConcern"
    GetLog "getLog"
    GetParameter "getParameter"
    GetShardMap "getShardMap"
    GetShardVersion "getShardVersion"
    GrantPrivilegesToRole "grantPrivilegesToRole"
    GrantRole "grantRole"
    HostInfo "hostInfo"
    Impersonate "impersonate"
    ImportCollection "importCollection"
    IndexStats "indexStats"
    Inprog "inprog"
    Insert "insert"
    Internal "internal"
    InvalidateUserCache "invalidateUserCache"
    KillAnyCursor "killAnyCursor"
    KillAnySession "killAnySession"
    KillCursors "killCursors"
    Killop "killop"
    ListCachedAndActiveUsers "listCachedAndActiveUsers"
    ListCollections "listCollections"
    ListDatabases "listDatabases"
    ListIndexes "listIndexes"
    ListSearchIndexes "listSearchIndexes"
    ListSessions "listSessions"
    ListShards "listShards"
    LogRotate "logRotate"
    MoveChunk "moveChunk"
    Netstat "netstat"
    OidReset "oidReset"
    OperationMetrics "operationMetrics"
    PlanCacheIndexFilter "planCacheIndexFilter"
    PlanCacheRead "planCacheRead"
    PlanCacheWrite "planCacheWrite"
    ReIndex "reIndex"
    RefineCollectionShardKey "refineCollectionShardKey"
    Remove "remove"
    RemoveShard "removeShard"
    RenameCollectionSameDB "renameCollectionSameDB"
    ReplSetConfigure "replSetConfigure"
    ReplSetGetConfig "replSetGetConfig"
    ReplSetGetStatus "replSetGetStatus"
    ReplSetResizeOplog "replSetResizeOplog"
    ReplSetStateChange "replSetStateChange"
    ReshardCollection "reshardCollection"
    Resync "resync"
    RevokeRole "revokeRole"
    RotateCertificates "rotateCertificates"
    RunAsLessPrivilegedUser "runAsLessPrivilegedUser"
    RunTenantMigration "runTenantMigration"
    ServerStatus "serverStatus"
    SetAuthenticationRestriction "setAuthenticationRestriction"
    SetClusterParameter "setClusterParameter"
    SetDefaultRWConcern "setDefaultRWConcern"
    SetFeatureCompatibilityVersion "setFeatureCompatibilityVersion"
    SetFreeMonitoring "setFreeMonitoring"
    SetParameter "setParameter"
    SetUserWriteBlockMode "setUserWriteBlockMode"
    ShardedDataDistribution "shardedDataDistribution"
    ShardingState "shardingState"
    Shutdown "shutdown"
    SplitChunk "splitChunk"
    SplitVector "splitVector"
    StorageDetails "storageDetails"
    Top "top"
    Touch "touch"
    TrafficRecord "trafficRecord"
    TransitionFromDedicatedConfigServer "transitionFromDedicatedConfigServer"
    TransitionToDedicatedConfigServer "transitionToDedicatedConfigServer"
    Unlock "unlock"
    Update "update"
    UpdateRole "updateRole"
    UpdateSearchIndex "updateSearchIndex"
    UseTenant "useTenant"
    UseUUID "useUUID"
    Validate "validate"
    ViewRole "viewRole"
    ViewUser "viewUser"
}

impl Action {
    pub fn of_name(name: &str) -> Option<Action> {
        let at = Action::ALL.binary_search_by(|a| a.name().cmp(name)).ok()?;
        Some(Action::ALL[at])
    }
}

/// Any number of actions; all of them are `anyAction`.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct ActionSet([u64; ActionSet::WORDS]);

impl ActionSet {
    const WORDS: usize = Action::ALL.len().div_ceil(64);
    pub const NONE: ActionSet = ActionSet([0; ActionSet::WORDS]);
    pub const ANY: ActionSet = ActionSet::of(Action::ALL);

    pub const fn of(actions: &[Action]) -> ActionSet {
        let mut set = ActionSet::NONE;
        let mut i = 0;
        while i < actions.len() {
            set.0[actions[i] as usize / 64] |= 1 << (actions[i] as usize % 64);
            i += 1;
        }
        set
    }
    pub const fn or(self, other: ActionSet) -> ActionSet {
        let mut set = self;
        let mut i = 0;
        while i < ActionSet::WORDS {
            set.0[i] |= other.0[i];
            i += 1;
        }
        set
    }
    /// What of this is not in the other.
    pub fn without(self, other: ActionSet) -> ActionSet {
        let mut set = self;
        set.0.iter_mut().zip(other.0).for_each(|(a, b)| *a &= !b);
        set
    }
    pub fn contains(self, action: Action) -> bool {
        self.0[action as usize / 64] & 1 << (action as usize % 64) != 0
    }
    pub fn contains_all(self, other: ActionSet) -> bool {
        other.without(self).is_empty()
    }
    /// Whether the two have an action in common.
    pub fn has_any(self, other: ActionSet) -> bool {
        self.0.iter().zip(other.0).any(|(a, b)| a & b != 0)
    }
    pub fn is_empty(self) -> bool {
        self == ActionSet::NONE
    }
    /// By name.
    pub fn iter(self) -> impl Iterator<Item = Action> {
        Action::ALL.iter().copied().filter(move |a| self.contains(*a))
    }
    /// As a role shows them.
    pub fn names(self) -> Vec<&'static str> {
        match self == ActionSet::ANY {
            true => vec!["anyAction"],
            false => self.iter().map(Action::name).collect(),
        }
    }
}

impl FromIterator<Action> for ActionSet {
    fn from_iter<I: IntoIterator<Item = Action>>(actions: I) -> ActionSet {
        actions.into_iter().fold(ActionSet::NONE, |set, a| set.or(ActionSet::of(&[a])))
    }
}

impl std::fmt::Debug for ActionSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_are_in_order_and_named_once() {
        assert!(Action::ALL.windows(2).all(|w| w[0].name() < w[1].name()));
        assert!(Action::ALL.iter().all(|a| Action::of_name(a.name()) == Some(*a)));
        assert_eq!(Action::of_name("anyAction"), None);
    }

    #[test]
    fn sets_hold_what_was_put_in() {
        let set = ActionSet::of(&[Action::Find, Action::Validate]);
        assert_eq!(set.names(), ["find", "validate"]);
        assert!(set.contains(Action::Find) && !set.contains(Action::Insert));
        assert!(ActionSet::ANY.contains_all(set) && !set.contains_all(ActionSet::ANY));
        assert_eq!(set.without(ActionSet::of(&[Action::Find])).names(), ["validate"]);
        assert_eq!(ActionSet::ANY.names(), ["anyAction"]);
        assert_eq!(Action::ALL.iter().copied().collect::<ActionSet>(), ActionSet::ANY);
    }
}
