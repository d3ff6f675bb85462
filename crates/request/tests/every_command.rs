//! Every command that more than one role serves has its arguments here, or a reason why not.

#![allow(clippy::unwrap_used)]

use pando_command::COMMANDS;
use pando_command::roles::Roles;
use pando_request::declare::table::{ARGUMENTS, arguments_of};

/// Types that are read by hand: they are asked for all the time.
const BY_HAND: &[&str] = &[
    "aggregate",
    "bulkWrite",
    "count",
    "delete",
    "distinct",
    "find",
    "findAndModify",
    "getMore",
    "insert",
    "update",
];

/// Commands without a type, by reason.
const WITHOUT: &[(&str, &[&str])] = &[
    (
        "nobody serves it yet",
        &[
            "analyzeShardKey",
            "authenticate",
            "cleanupStructuredEncryptionData",
            "compactStructuredEncryptionData",
            "configureQueryAnalyzer",
            "getnonce",
        ],
    ),
    (
        "refused or answered without a look at its arguments",
        &[
            "availableQueryOptions",
            "createSearchIndexes",
            "dropSearchIndex",
            "echo",
            "flushRouterConfig",
            "getLastError",
            "getShardMap",
            "listSearchIndexes",
            "ping",
            "reapLogicalSessionCacheNow",
            "refreshLogicalSessionCacheNow",
            "setProfilingFilterGlobally",
            "startSession",
            "testDeprecation",
            "testDeprecationInVersion2",
            "testRemoval",
            "testVersion2",
            "testVersions1And2",
            "updateSearchIndex",
            "whatsmysni",
            "whatsmyuri",
        ],
    ),
    (
        "about the process that is asked: a router answers for itself and forwards nothing",
        &[
            "_hashBSONElement",
            "_isSelf",
            "buildInfo",
            "configureFailPoint",
            "connPoolStats",
            "connPoolSync",
            "connectionStatus",
            "driverOIDTest",
            "dropConnections",
            "features",
            "fsync",
            "fsyncUnlock",
            "getAuditConfig",
            "getCmdLineOpts",
            "getDiagnosticData",
            "getLog",
            "hello",
            "hostInfo",
            "invalidateUserCache",
            "isMaster",
            "listCommands",
            "logApplicationMessage",
            "logMessage",
            "logRotate",
            "logout",
            "replSetGetStatus",
            "rotateCertificates",
            "serverStatus",
            "setAuditConfig",
            "shutdown",
            "sleep",
            "startRecordingTraffic",
            "stopRecordingTraffic",
            "waitForFailPoint",
        ],
    ),
    ("a shard is told other things than a router", &["getShardVersion", "mergeChunks"]),
];

fn is_typed(name: &str) -> bool {
    BY_HAND.contains(&name) || arguments_of(name).is_some()
}

#[test]
fn every_command_of_several_roles_has_a_type_or_a_reason() {
    let several = |roles: Roles| roles.any(Roles::D) && roles.any(Roles::R);
    let excused: Vec<&str> = WITHOUT.iter().flat_map(|(_, names)| names.iter().copied()).collect();
    for row in COMMANDS.iter().filter(|row| several(row.roles)) {
        let ways = usize::from(is_typed(row.name)) + excused.iter().filter(|n| **n == row.name).count();
        assert_eq!(ways, 1, "{} must have a type or one reason for having none", row.name);
    }
    for name in excused {
        let row = COMMANDS.iter().find(|row| row.name == name);
        assert!(row.is_some_and(|row| several(row.roles)), "{name} needs no reason");
    }
}

#[test]
fn tables_belong_to_commands_and_name_each_field_once() {
    for table in ARGUMENTS {
        assert!(COMMANDS.iter().any(|row| row.name == table.command), "{} is no command", table.command);
        assert_eq!(ARGUMENTS.iter().filter(|t| t.command == table.command).count(), 1);
        for field in table.fields {
            let times = table.fields.iter().filter(|f| f.name == field.name).count();
            assert_eq!(times, 1, "{}.{}", table.command, field.name);
        }
    }
}
