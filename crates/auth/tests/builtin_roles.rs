//! Built-in roles, compared with what a real server 6.0.5 says that each allows (`rolesInfo` with `showPrivileges`).
#![allow(clippy::unwrap_used)]

use pando_auth::roles::{RoleName, builtin};
use pando_auth::{ActionSet, Privileges, Resource};
use pando_bson::{Bson, extjson};

const RECORDED: &str = include_str!("builtin_roles.json");

/// What later releases allow as well, by their documentation.
const SINCE: &[&str] = &[
    "analyzeShardKey",
    "checkMetadataConsistency",
    "cleanupStructuredEncryptionData",
    "configureQueryAnalyzer",
    "createSearchIndexes",
    "dropSearchIndex",
    "listSearchIndexes",
    "transitionFromDedicatedConfigServer",
    "transitionToDedicatedConfigServer",
    "updateSearchIndex",
];

#[test]
fn each_allows_what_it_allows_on_a_real_server() {
    let recorded = extjson::parse_value(RECORDED).unwrap();
    let recorded = recorded.as_doc().unwrap();
    let mut wrong = Vec::new();
    for (name, privileges) in recorded.iter() {
        let (db, role) = name.split_once('.').unwrap();
        let ours = builtin::privileges(&RoleName::new(role, db)).expect(name);
        let mut theirs = Privileges::new();
        for p in privileges.as_array().unwrap() {
            theirs.parse_into(p.as_doc().unwrap()).unwrap();
        }
        let on =
            |p: &Privileges, r: &Resource| p.iter().find(|(on, _)| *on == r).map_or(ActionSet::NONE, |p| p.1);
        let all = ours.iter().chain(theirs.iter()).map(|(r, _)| r.clone());
        for r in all.collect::<std::collections::BTreeSet<_>>() {
            let more = on(&ours, &r).without(on(&theirs, &r));
            let less = on(&theirs, &r).without(on(&ours, &r));
            if more.iter().any(|a| !SINCE.contains(&a.name())) || !less.is_empty() {
                wrong.push(format!("{name} on {:?}: more {more:?}, less {less:?}", Bson::from(r.document())));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(recorded.len(), builtin::OF_ADMIN.len() + 2 * builtin::OF_EVERY_DATABASE.len());
}

#[test]
fn every_name_is_a_role() {
    for name in builtin::OF_ADMIN {
        assert!(RoleName::new(*name, "admin").is_builtin());
        assert!(!RoleName::new(*name, "test").is_builtin());
    }
    for name in builtin::OF_EVERY_DATABASE {
        assert!(RoleName::new(*name, "admin").is_builtin() && RoleName::new(*name, "test").is_builtin());
    }
    assert!(!RoleName::new("no", "admin").is_builtin());
}
