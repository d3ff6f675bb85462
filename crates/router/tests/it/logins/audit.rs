//! What audit logs of a cluster record, and of whom.

use crate::logins::{insert, log_in, role, with_user};
use pando_audit::{AuditLog, Format, Memory, Settings};
use pando_auth::Mechanism;
use pando_base::Uuid;
use pando_bson::{Bson, Document, doc};
use pando_env_tokio::RealClock;
use pando_testserver::{Cluster, run};
use std::sync::Arc;

/// An audit log, and what it has recorded.
fn audit_log() -> (Arc<AuditLog>, Memory) {
    let trail = Memory::default();
    let settings = Settings { format: Format::Json, filter: None };
    let end = |e: &std::io::Error| panic!("{e}");
    let clock = Arc::new(RealClock::new());
    (Arc::new(AuditLog::new(clock, settings, Box::new(trail.clone()), Uuid([7; 16]), end)), trail)
}

/// What a router has shards and config servers do is its client's doing.
#[test]
fn audit_logs_of_a_cluster_name_the_user_who_did_it() {
    run(async {
        let (log, trail) = audit_log();
        let mut cluster = Cluster::audited(1, 1, log).await;
        let (of_router, trail_of_router) = audit_log();
        let audited = cluster.add_router_with(|c| c.audit = Some(of_router)).await;
        let mut ann = with_user(&cluster, audited, "ann", vec![role("root", "admin")]).await;
        trail.take();
        ann.ok(doc! { "createUser": "bob", "pwd": "pw", "roles": [], "$db": "test" }).await;
        ann.ok(doc! { "dropUser": "bob", "$db": "test" }).await;
        ann.ok(doc! { "create": "c", "$db": "test" }).await;
        ann.ok(insert("made")).await;
        let index = doc! { "key": { "a": 1 }, "name": "a" };
        let mut indexes = doc! { "createIndexes": "c" };
        indexes.push("indexes", vec![Bson::from(index)]);
        indexes.push("$db", "test");
        ann.ok(indexes).await;
        let events: Vec<String> =
            trail.take().into_iter().map(|line| String::from_utf8(line).unwrap()).collect();
        for action in ["createUser", "dropUser", "createCollection", "createIndex", "createDatabase"] {
            let of: Vec<&String> =
                events.iter().filter(|l| l.contains(&format!("\"atype\":\"{action}\""))).collect();
            let by_ann = |l: &&&String| l.contains("\"user\":\"ann\"") && l.contains("\"role\":\"root\"");
            assert!(!of.is_empty() && of.iter().filter(by_ann).count() == of.len(), "{action}: {of:#?}");
        }
        // What comes on the same connection, and of nobody, is not hers.
        assert!(events.iter().filter(|l| l.contains("made")).all(|l| l.contains("\"user\":\"ann\"")));
        // Nobody else is believed to ask for another one.
        let forged =
            doc! { "$impersonatedUsers": [{ "user": "x", "db": "admin" }], "$impersonatedRoles": [] };
        let mut create = doc! { "create": "forged" };
        create.push("$audit", forged);
        create.push("$db", "test");
        ann.ok(create).await;
        let events: Vec<String> =
            trail.take().into_iter().map(|line| String::from_utf8(line).unwrap()).collect();
        assert!(events.iter().any(|l| l.contains("forged") && l.contains("\"user\":\"ann\"")), "{events:#?}");
        trail_of_router.take();
        ann.ok(doc! { "enableSharding": "e", "$db": "admin" }).await;
        ann.ok(doc! { "shardCollection": "e.c", "key": { "k": 1 }, "$db": "admin" }).await;
        let events: Vec<String> =
            trail_of_router.take().into_iter().map(|line| String::from_utf8(line).unwrap()).collect();
        for action in ["enableSharding", "shardCollection"] {
            let is = |l: &&String| {
                l.contains(&format!("\"atype\":\"{action}\"")) && l.contains("\"user\":\"ann\"")
            };
            assert_eq!(events.iter().filter(is).count(), 1, "{events:#?}");
        }
        // Whoever asks for what a coordinator does is kept with its state.
        trail.take();
        ann.ok(doc! { "shardCollection": "e.d", "key": { "k": 1 }, "$db": "admin" }).await;
        ann.ok(doc! { "drop": "d", "$db": "e" }).await;
        ann.ok(doc! { "dropDatabase": 1, "$db": "e" }).await;
        let events: Vec<String> =
            trail.take().into_iter().map(|line| String::from_utf8(line).unwrap()).collect();
        for (action, ns) in [
            ("createCollection", "e.d"),
            ("dropCollection", "e.d"),
            ("dropCollection", "e.c"),
            ("dropDatabase", "e"),
        ] {
            let of = |l: &&String| {
                l.contains(&format!("\"atype\":\"{action}\"")) && l.contains(&format!("\"ns\":\"{ns}\""))
            };
            let is_anns = |l: &&String| l.contains("\"user\":\"ann\"");
            assert!(events.iter().filter(of).any(|l| is_anns(&l)), "{action} of {ns}: {events:#?}");
        }
        cluster.shut_down().await;
    });
}

#[test]
fn shards_that_come_and_go_are_told_in_the_routers_audit_log() {
    run(async {
        let mut cluster = Cluster::with_logins(2, 1).await;
        let (log, trail) = audit_log();
        let audited = cluster.add_router_with(|c| c.audit = Some(log)).await;
        let mut ann = with_user(&cluster, audited, "ann", vec![role("root", "admin")]).await;
        let shards = ann.ok(doc! { "listShards": 1, "$db": "admin" }).await;
        let shards = shards.get("shards").and_then(Bson::as_array).unwrap().to_vec();
        let host = shards.iter().filter_map(Bson::as_doc).find(|s| s.get("_id") == Some(&"s1".into()));
        let host = host.and_then(|s| s.get("host")).cloned().unwrap();
        trail.take();
        let gone = |reply: &Document| reply.get("state").and_then(Bson::as_str) == Some("completed");
        let remove = || doc! { "removeShard": "s1", "$db": "admin" };
        let mut replies = Vec::new();
        while !replies.last().is_some_and(gone) {
            replies.push(ann.ok(remove()).await);
            assert!(replies.len() < 10, "{replies:#?}");
        }
        ann.ok(doc! { "addShard": host, "name": "s1", "$db": "admin" }).await;
        let events: Vec<String> =
            trail.take().into_iter().map(|line| String::from_utf8(line).unwrap()).collect();
        for (action, times) in [("removeShard", replies.len()), ("addShard", 1)] {
            let is = |l: &&String| {
                l.contains(&format!("\"atype\":\"{action}\"")) && l.contains("\"user\":\"ann\"")
            };
            assert_eq!(events.iter().filter(is).count(), times, "{action}: {events:#?}");
        }
        cluster.shut_down().await;
    });
}

#[test]
fn a_router_accounts_for_logins_and_for_what_it_refuses() {
    run(async {
        let mut cluster = Cluster::with_logins(1, 1).await;
        let (log, trail) = audit_log();
        let audited = cluster.add_router_with(|c| c.audit = Some(log)).await;
        let told = || -> Vec<String> {
            trail.take().into_iter().map(|line| String::from_utf8(line).unwrap()).collect()
        };
        let has =
            |lines: &[String], parts: &[&str]| lines.iter().any(|l| parts.iter().all(|p| l.contains(p)));
        assert!(has(&told(), &["\"startup\""]));
        let mut ann = with_user(&cluster, audited, "ann", vec![role("read", "test")]).await;
        ann.err(insert("x")).await;
        ann.ok(doc! { "logout": 1, "$db": "admin" }).await;
        let wrong = ("admin", "ann", "wrong");
        log_in(&mut ann, Mechanism::ScramSha256, wrong, false).await.unwrap_err();
        let lines = told();
        let role = "\"role\":\"read\"";
        assert!(has(&lines, &["\"authenticate\"", "\"user\":\"ann\"", role, "\"result\":0"]), "{lines:#?}");
        assert!(has(&lines, &["\"authCheck\"", "\"command\":\"insert\"", "\"result\":13"]), "{lines:#?}");
        assert!(has(&lines, &["\"logout\"", "\"user\":\"ann\""]), "{lines:#?}");
        assert!(has(&lines, &["\"authenticate\"", "\"user\":\"ann\"", "\"result\":18"]), "{lines:#?}");
        cluster.shut_down().await;
    });
}
