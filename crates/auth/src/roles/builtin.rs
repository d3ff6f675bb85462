//! The roles that every server has. Every database has those of [`OF_EVERY_DATABASE`], `admin` the rest as well.
//!
//! What each allows was asked of a real server (`tests/builtin_roles.json`), and what later releases added to it is named in the test that
//! compares the two.

use super::RoleName;
use crate::action::Action::*;
use crate::action::ActionSet;
use crate::privilege::Privileges;
use crate::resource::Resource;

/// To look at a collection.
const READ: ActionSet = ActionSet::of(&[
    ChangeStream,
    CollStats,
    DbHash,
    DbStats,
    Find,
    KillCursors,
    ListCollections,
    ListIndexes,
    ListSearchIndexes,
    PlanCacheRead,
]);
/// To change its documents, too, and what makes it fast.
const READ_WRITE: ActionSet = READ.or(ActionSet::of(&[
    CleanupStructuredEncryptionData,
    CompactStructuredEncryptionData,
    ConvertToCapped,
    CreateCollection,
    CreateIndex,
    CreateSearchIndexes,
    DropCollection,
    DropIndex,
    DropSearchIndex,
    Insert,
    Remove,
    RenameCollectionSameDB,
    Update,
    UpdateSearchIndex,
]));
/// To change its definition, without a look at its documents.
const DB_ADMIN: ActionSet = ActionSet::of(&[
    BypassDocumentValidation,
    CollMod,
    CollStats,
    Compact,
    ConfigureQueryAnalyzer,
    ConvertToCapped,
    CreateCollection,
    CreateIndex,
    CreateSearchIndexes,
    DbStats,
    DropCollection,
    DropDatabase,
    DropIndex,
    DropSearchIndex,
    EnableProfiler,
    ListCollections,
    ListIndexes,
    ListSearchIndexes,
    PlanCacheIndexFilter,
    PlanCacheRead,
    PlanCacheWrite,
    ReIndex,
    RenameCollectionSameDB,
    StorageDetails,
    UpdateSearchIndex,
    Validate,
]);
/// What an administrator of a database does with its profile.
const PROFILE: ActionSet = READ.or(ActionSet::of(&[ConvertToCapped, CreateCollection, DropCollection]));
/// To say who may do what.
const USER_ADMIN: ActionSet = ActionSet::of(&[
    ChangeCustomData,
    ChangePassword,
    CreateRole,
    CreateUser,
    DropRole,
    DropUser,
    GrantRole,
    RevokeRole,
    SetAuthenticationRestriction,
    ViewRole,
    ViewUser,
]);
/// To look at a set or a cluster.
const MONITOR_CLUSTER: ActionSet = ActionSet::of(&[
    AllCollectionStats,
    CheckFreeMonitoringStatus,
    ConnPoolStats,
    GetCmdLineOpts,
    GetDefaultRWConcern,
    GetLog,
    GetParameter,
    GetShardMap,
    HostInfo,
    Inprog,
    ListDatabases,
    ListSessions,
    ListShards,
    Netstat,
    OperationMetrics,
    ReplSetGetConfig,
    ReplSetGetStatus,
    ServerStatus,
    ShardedDataDistribution,
    ShardingState,
    Top,
    UseUUID,
]);
/// To look at how large collections are, and what their indexes are used for.
const MONITOR_DATABASES: ActionSet =
    ActionSet::of(&[CollStats, DbStats, GetDatabaseVersion, GetShardVersion, IndexStats]);
/// To change what a set or a cluster consists of.
const MANAGE_CLUSTER: ActionSet = ActionSet::of(&[
    AddShard,
    AppendOplogNote,
    ApplicationMessage,
    CleanupOrphaned,
    FlushRouterConfig,
    GetClusterParameter,
    GetDefaultRWConcern,
    ListSessions,
    ListShards,
    RemoveShard,
    ReplSetConfigure,
    ReplSetGetConfig,
    ReplSetGetStatus,
    ReplSetStateChange,
    Resync,
    RunTenantMigration,
    SetClusterParameter,
    SetDefaultRWConcern,
    SetFeatureCompatibilityVersion,
    SetFreeMonitoring,
    TransitionFromDedicatedConfigServer,
    TransitionToDedicatedConfigServer,
]);
/// To say where documents lie.
const MANAGE_DATABASES: ActionSet = ActionSet::of(&[
    AnalyzeShardKey,
    CheckMetadataConsistency,
    ClearJumboFlag,
    ConfigureQueryAnalyzer,
    EnableSharding,
    MoveChunk,
    RefineCollectionShardKey,
    ReshardCollection,
    SplitChunk,
    SplitVector,
]);
/// To look after one server.
const MANAGE_HOSTS: ActionSet = ActionSet::of(&[
    ApplicationMessage,
    AuditConfigure,
    ConnPoolSync,
    DropConnections,
    FlushRouterConfig,
    Fsync,
    InvalidateUserCache,
    KillAnyCursor,
    KillAnySession,
    Killop,
    LogRotate,
    OidReset,
    ReplSetResizeOplog,
    Resync,
    RotateCertificates,
    SetParameter,
    Shutdown,
    Touch,
    TrafficRecord,
    Unlock,
]);
/// To make a collection as it was.
const RESTORE: ActionSet = ActionSet::of(&[
    BypassDocumentValidation,
    CollMod,
    ConvertToCapped,
    CreateCollection,
    CreateIndex,
    DropCollection,
    Insert,
]);
const FIND: ActionSet = ActionSet::of(&[Find]);
const WRITE: ActionSet = ActionSet::of(&[Insert, Remove, Update]);

/// Roles that each database has, for itself.
pub const OF_EVERY_DATABASE: &[&str] =
    &["dbAdmin", "dbOwner", "enableSharding", "read", "readWrite", "userAdmin"];
/// Roles that only `admin` has.
pub const OF_ADMIN: &[&str] = &[
    "__queryableBackup",
    "__system",
    "backup",
    "clusterAdmin",
    "clusterManager",
    "clusterMonitor",
    "dbAdminAnyDatabase",
    "directShardOperations",
    "hostManager",
    "readAnyDatabase",
    "readWriteAnyDatabase",
    "restore",
    "root",
    "userAdminAnyDatabase",
];

/// What the built-in role of that name allows; `None` when there is no such role.
pub fn privileges(role: &RoleName) -> Option<Privileges> {
    let RoleName { role, db } = role;
    let mut p = Privileges::new();
    match role.as_str() {
        "read" => read(&mut p, db),
        "readWrite" => read_write(&mut p, db),
        "dbAdmin" => db_admin(&mut p, db),
        "userAdmin" => p.allow(within(db), USER_ADMIN),
        "enableSharding" => {
            p.allow(
                Resource::any_normal(),
                ActionSet::of(&[
                    AnalyzeShardKey,
                    EnableSharding,
                    RefineCollectionShardKey,
                    ReshardCollection,
                ]),
            );
        }
        "dbOwner" => {
            read_write(&mut p, db);
            db_admin(&mut p, db);
            p.allow(within(db), USER_ADMIN);
        }
        _ if db != "admin" => return None,
        "readAnyDatabase" => of_any_database(&mut p, READ),
        "readWriteAnyDatabase" => of_any_database(&mut p, READ_WRITE),
        "dbAdminAnyDatabase" => db_admin_any_database(&mut p),
        "userAdminAnyDatabase" => user_admin_any_database(&mut p),
        "hostManager" => host_manager(&mut p),
        "clusterMonitor" => cluster_monitor(&mut p),
        "clusterManager" => cluster_manager(&mut p),
        "clusterAdmin" => cluster_admin(&mut p),
        "backup" => backup(&mut p),
        "__queryableBackup" => queryable_backup(&mut p),
        "restore" => restore(&mut p),
        "root" => root(&mut p),
        // Checked by name where it counts.
        "directShardOperations" => {}
        "__system" => p.allow(Resource::Any, ActionSet::ANY),
        _ => return None,
    }
    Some(p)
}

/// The collections of a database that are no system's.
fn within(db: &str) -> Resource {
    Resource::collection(db, "")
}
fn exact(db: &str, collection: &str) -> Resource {
    Resource::collection(db, collection)
}
fn any_buckets() -> Resource {
    Resource::Buckets { db: String::new(), collection: String::new() }
}

fn read(p: &mut Privileges, db: &str) {
    p.allow(within(db), READ);
    p.allow(exact(db, "system.js"), READ);
}

fn read_write(p: &mut Privileges, db: &str) {
    p.allow(within(db), READ_WRITE);
    p.allow(exact(db, "system.js"), READ_WRITE);
}

fn db_admin(p: &mut Privileges, db: &str) {
    p.allow(within(db), DB_ADMIN);
    p.allow(exact(db, "system.profile"), PROFILE);
}

fn of_any_database(p: &mut Privileges, actions: ActionSet) {
    p.allow(Resource::Cluster, ActionSet::of(&[ListDatabases]));
    for on in [Resource::any_normal(), exact("", "system.js"), any_buckets()] {
        p.allow(on, actions);
    }
}

fn db_admin_any_database(p: &mut Privileges) {
    p.allow(Resource::Cluster, ActionSet::of(&[ApplyOps, ListDatabases]));
    p.allow(Resource::any_normal(), DB_ADMIN);
    p.allow(any_buckets(), DB_ADMIN);
    p.allow(exact("", "system.profile"), PROFILE);
}

fn user_admin_any_database(p: &mut Privileges) {
    p.allow(
        Resource::Cluster,
        ActionSet::of(&[AuthSchemaUpgrade, InvalidateUserCache, ListDatabases, ViewUser]),
    );
    p.allow(Resource::any_normal(), USER_ADMIN.or(ActionSet::of(&[ListCachedAndActiveUsers])));
    p.allow(within("local"), USER_ADMIN);
    p.allow(within("config"), USER_ADMIN);
    p.allow(exact("", "system.users"), READ);
    let indexes = ActionSet::of(&[CreateIndex, DropIndex]);
    p.allow(exact("admin", "system.users"), READ.or(indexes));
    p.allow(exact("admin", "system.roles"), READ.or(indexes));
    p.allow(exact("admin", "system.version"), READ);
    p.allow(exact("admin", "system.backup_users"), READ);
}

fn host_manager(p: &mut Privileges) {
    p.allow(Resource::Cluster, MANAGE_HOSTS);
    p.allow(Resource::any_normal(), ActionSet::of(&[KillCursors]));
}

fn cluster_monitor(p: &mut Privileges) {
    p.allow(Resource::Cluster, MONITOR_CLUSTER);
    p.allow(Resource::any_normal(), MONITOR_DATABASES);
    p.allow(exact("config", "system.sessions"), MONITOR_DATABASES);
    for db in ["config", "local"] {
        p.allow(within(db), MONITOR_DATABASES);
        read(p, db);
    }
    for collection in ["system.replset", "replset.election", "replset.minvalid"] {
        p.allow(exact("local", collection), FIND);
    }
    p.allow(exact("", "system.profile"), FIND);
}

fn cluster_manager(p: &mut Privileges) {
    p.allow(Resource::Cluster, MANAGE_CLUSTER);
    for on in [Resource::any_normal(), any_buckets(), within("config"), within("local")] {
        p.allow(on, MANAGE_DATABASES);
    }
    read(p, "config");
    p.allow(within("config"), WRITE);
    p.allow(within("local"), WRITE);
    for collection in ["system.replset", "system.healthlog"] {
        p.allow(exact("local", collection), READ);
    }
    for collection in ["replset.election", "replset.minvalid"] {
        p.allow(exact("local", collection), WRITE);
    }
    p.allow(Resource::Any, ActionSet::of(&[DbCheck]));
}

fn cluster_admin(p: &mut Privileges) {
    host_manager(p);
    cluster_monitor(p);
    cluster_manager(p);
    p.allow(Resource::any_normal(), ActionSet::of(&[DropDatabase]));
    p.allow(Resource::Any, ActionSet::of(&[ExportCollection, ImportCollection]));
}

/// What a backup reads, live or from files.
fn queryable_backup(p: &mut Privileges) {
    p.allow(Resource::Cluster, ActionSet::of(&[GetParameter, ListDatabases, UseUUID]));
    p.allow(Resource::Any, ActionSet::of(&[CollStats, ListCollections, ListIndexes]));
    for db in ["", "config", "local"] {
        p.allow(within(db), FIND);
    }
    p.allow(any_buckets(), FIND);
    for collection in ["replset.election", "replset.minvalid"] {
        p.allow(exact("local", collection), FIND);
    }
    for collection in ["system.js", "system.users", "system.profile"] {
        p.allow(exact("", collection), FIND);
    }
    for collection in ["system.backup_users", "system.roles", "system.version"] {
        p.allow(exact("admin", collection), FIND);
    }
    p.allow(exact("config", "settings"), FIND);
}

fn backup(p: &mut Privileges) {
    queryable_backup(p);
    p.allow(Resource::Cluster, ActionSet::of(&[AppendOplogNote, ServerStatus, SetUserWriteBlockMode]));
    p.allow(exact("config", "settings"), ActionSet::of(&[Insert, Update]));
}

fn restore(p: &mut Privileges) {
    p.allow(
        Resource::Cluster,
        ActionSet::of(&[
            ApplyOps,
            BypassWriteBlockingMode,
            ForceUUID,
            GetParameter,
            SetUserWriteBlockMode,
            UseUUID,
        ]),
    );
    p.allow(Resource::Any, ActionSet::of(&[ListCollections]));
    p.allow(Resource::any_normal(), RESTORE.or(USER_ADMIN));
    for on in [within("config"), within("local"), any_buckets(), exact("", "system.js")] {
        p.allow(on, RESTORE);
    }
    for collection in ["system.replset", "replset.election", "replset.minvalid"] {
        p.allow(exact("local", collection), RESTORE);
    }
    p.allow(exact("admin", "system.backup_users"), RESTORE);
    p.allow(exact("admin", "system.version"), RESTORE.or(FIND));
    p.allow(exact("admin", "system.roles"), ActionSet::of(&[CreateIndex]));
    p.allow(exact("", "system.users"), RESTORE.or(FIND).or(WRITE));
    for collection in ["tempusers", "temproles"] {
        p.allow(exact("admin", collection), FIND);
    }
}

fn root(p: &mut Privileges) {
    cluster_admin(p);
    user_admin_any_database(p);
    db_admin_any_database(p);
    of_any_database(p, READ_WRITE);
    restore(p);
    backup(p);
    p.allow(Resource::Cluster, ActionSet::of(&[UseTenant]));
    p.allow(Resource::Any, ActionSet::of(&[Validate]));
    p.allow(exact("config", "system.preimages"), ActionSet::of(&[Find, Remove]));
}
