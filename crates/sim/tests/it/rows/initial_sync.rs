//! A member comes to a running set: its copy, what it counts for meanwhile, and what may go wrong.

use pando_bson::{Bson, Document, doc};
use pando_sim::rig::{Rig, words::*};

pub(crate) const NEW: usize = 2;

/// Members 0 and 1 are a set; member 2 is there and knows nothing.
pub(crate) fn pair_and_one(seed: u64) -> (Rig, usize) {
    let rig = Rig::unnamed(seed, 3);
    let config = rig.config(&[Document::new(), Document::new()], Document::new());
    rig.ok(0, doc! { "replSetInitiate": config, "$db": "admin" });
    rig.until("two members", |rig| rig.hello(1).get("secondary").is_some_and(Bson::is_truthy));
    let p = rig.primary();
    rig.ok(p, insert(0, w(2)));
    (rig, p)
}
pub(crate) fn hang(rig: &Rig, i: usize, point: &str, on: bool) {
    let mode = if on { "alwaysOn" } else { "off" };
    let server = rig.nodes[i].server().expect("a running member");
    let set = doc! { "configureFailPoint": point, "mode": mode }.to_raw();
    server.instance.fail_points.configure(point, &set).unwrap();
}
fn set_param(rig: &Rig, i: usize, name: &str, value: i64) {
    let mut command = doc! { "setParameter": 1 };
    command.push(name, value);
    rig.admin(i, command);
}
/// Member 2 joins, as `fields` say.
pub(crate) fn add(rig: &Rig, p: usize, fields: &Document) {
    add_member(rig, p, NEW, fields);
}
fn add_member(rig: &Rig, p: usize, new: usize, fields: &Document) {
    let mut config =
        at(&rig.admin(p, doc! { "replSetGetConfig": 1 }), "config").unwrap().as_doc().unwrap().clone();
    config.set("version", number(&config, "version") as i32 + 1);
    let mut members = config.get("members").unwrap().as_array().unwrap().to_vec();
    let mut member = doc! { "_id": new as i32, "host": rig.nodes[new].addr() };
    fields.iter().for_each(|(k, v)| member.push(k, v.clone()));
    members.push(member.into());
    config.set("members", members);
    rig.insist(p, &doc! { "replSetReconfig": config, "$db": "admin" });
}
pub(crate) fn sync_status(rig: &Rig, i: usize) -> Option<Document> {
    Some(rig.status(i).get("initialSyncStatus")?.as_doc()?.clone())
}
pub(crate) fn has_copied(rig: &Rig) -> bool {
    sync_status(rig, NEW).is_some_and(|s| {
        number(&s, "databases.databasesToClone") == 0 && number(&s, "databases.databasesCloned") > 0
    })
}
pub(crate) fn is_secondary(rig: &Rig, i: usize) -> bool {
    rig.hello(i).get("secondary").is_some_and(Bson::is_truthy)
}
pub(crate) fn is_marked(rig: &Rig, p: usize) -> bool {
    let stored = rig.ok(p, doc! { "find": "system.replset", "$db": "local" });
    let path = format!("cursor.firstBatch.0.members.{NEW}.newlyAdded");
    at(&stored, &path).is_some_and(Bson::is_truthy)
}
pub(crate) fn fill(rig: &Rig, p: usize, coll: &str, n: i32) {
    for from in (0..n).step_by(100) {
        let docs: Vec<Bson> =
            (from..from + 100).map(|i| doc! { "_id": i, "pad": "x".repeat(100) }.into()).collect();
        let mut insert = doc! { "insert": coll };
        insert.push("documents", docs);
        insert.push("writeConcern", w(2));
        rig.ok(p, insert);
    }
}
pub(crate) fn hash(rig: &Rig, i: usize) -> String {
    let reply = rig.ok(i, anywhere(doc! { "dbHash": 1 }));
    format!("{:?}{:?}", at(&reply, "md5"), at(&reply, "uuids"))
}

#[test]
fn a_new_voter_counts_for_nothing_until_it_has_the_data() {
    let (rig, p) = pair_and_one(81);
    hang(&rig, NEW, "initialSyncHangAfterDataCloning", true);
    add(&rig, p, &Document::new());
    rig.until("the copy", has_copied);
    assert!(is_marked(&rig, p));
    let shown = rig.admin(p, doc! { "replSetGetConfig": 1 });
    assert_eq!(at(&shown, &format!("config.members.{NEW}.newlyAdded")), None);
    assert_eq!(number(&rig.status(p), "votingMembersCount"), 2);
    let before = number(&shown, "config.version");

    // Of two voters one is away: the third, which copies, does not stand in for it.
    let other = 1 - p;
    hang(&rig, other, "stopReplProducer", true);
    let reply = rig.ask(p, insert(1, doc! { "w": "majority", "wtimeout": 3_000 }));
    assert_eq!(concern_code(&reply), Some(64), "{reply:?}");
    let reply = rig.ask(p, insert(2, doc! { "w": 2, "wtimeout": 3_000 }));
    assert_eq!(concern_code(&reply), Some(64), "{reply:?}");
    hang(&rig, other, "stopReplProducer", false);
    rig.ok(p, insert(3, majority()));
    assert!(is_marked(&rig, p));

    hang(&rig, NEW, "initialSyncHangAfterDataCloning", false);
    rig.until("its vote", |rig| number(&rig.status(p), "votingMembersCount") == 3);
    assert!(!is_marked(&rig, p) && is_secondary(&rig, NEW));
    let shown = rig.admin(p, doc! { "replSetGetConfig": 1 });
    assert_eq!(number(&shown, "config.version"), before + 1);
    rig.ok(p, insert(4, w(3)));
}

fn requests(rig: &Rig) -> i64 {
    (0..2).map(|i| number(&rig.admin(i, doc! { "serverStatus": 1 }), "network.numRequests")).sum()
}

#[test]
fn a_cut_in_the_middle_of_a_collection_costs_no_document_twice() {
    let (rig, p) = pair_and_one(82);
    fill(&rig, p, "big", 3_000);
    set_param(&rig, NEW, "collectionClonerBatchSize", 20);
    hang(&rig, NEW, "initialSyncHangAfterDataCloning", true);
    let asked = requests(&rig);
    add(&rig, p, &doc! { "votes": 0, "priority": 0 });
    let of_big = |rig: &Rig, name: &str| {
        let status = sync_status(rig, NEW)?;
        at(&status, "databases.test")?.as_doc()?.get("test.big")?.as_doc()?.get(name)?.as_i64()
    };
    let new = rig.nodes[NEW].machine();
    let mut cuts = 0;
    let end = rig.world.sim.now() + std::time::Duration::from_secs(120);
    while !has_copied(&rig) && rig.world.sim.now() < end {
        if cuts < 3 && of_big(&rig, "documentsCopied").is_some_and(|n| n > 700 * (cuts + 1) && n < 2_900) {
            rig.world.net.reset_connections(|a, b| (a == new || b == new) && a.0 < 30_000 && b.0 < 30_000);
            cuts += 1;
        }
        rig.wait_ms(1);
    }
    assert!(cuts > 1, "{cuts} cuts");
    assert_eq!(of_big(&rig, "documentsCopied"), Some(3_000));
    // 150 batches are the collection; at a cut one was on its way, and the first of a cursor may be followed by none.
    let batches = of_big(&rig, "receivedBatches").unwrap();
    assert!((150..=152 + cuts).contains(&batches), "{batches} batches with {cuts} cuts");
    // They came as streams: hardly any was asked for.
    let asked = requests(&rig) - asked;
    assert!(asked < 110, "{asked} requests, {batches} batches");
    hang(&rig, NEW, "initialSyncHangAfterDataCloning", false);
    rig.until("the member", |rig| is_secondary(rig, NEW));
    assert_eq!(hash(&rig, p), hash(&rig, NEW));
}

#[test]
fn a_source_that_is_gone_is_replaced_and_the_failed_attempt_is_told() {
    let (rig, p) = pair_and_one(83);
    fill(&rig, p, "big", 300);
    hang(&rig, NEW, "initialSyncHangAfterDataCloning", true);
    add(&rig, p, &doc! { "votes": 0, "priority": 0 });
    rig.until("a source", |rig| rig.source_of(NEW).is_some());
    rig.until("the copy", has_copied);
    let source = rig.source_of(NEW).unwrap();
    rig.part(source, NEW);
    let (a, b) = (rig.nodes[source].machine(), rig.nodes[NEW].machine());
    rig.world.net.reset_connections(|x, y| (x, y) == (a, b) || (y, x) == (a, b));
    hang(&rig, NEW, "initialSyncHangAfterDataCloning", false);
    let mut told = None;
    rig.until("the other source", |rig| {
        told = sync_status(rig, NEW).filter(|s| number(s, "failedInitialSyncAttempts") == 1).or(told.take());
        is_secondary(rig, NEW)
    });
    let told = told.expect("a failed attempt in the status");
    let host = at(&told, "initialSyncAttempts.0.syncSource").and_then(Bson::as_str);
    assert_eq!(host, Some(rig.nodes[source].addr().as_str()));
    assert!(number(&told, "initialSyncAttempts.0.operationsRetried") > 0, "{told:?}");
    rig.heal();
    rig.ok(rig.primary(), insert(7, w(3)));
}

#[test]
fn a_silent_source_gets_the_time_that_the_parameter_gives() {
    let (rig, p) = pair_and_one(84);
    fill(&rig, p, "big", 300);
    hang(&rig, NEW, "initialSyncHangAfterDataCloning", true);
    set_param(&rig, NEW, "initialSyncTransientErrorRetryPeriodSeconds", 5);
    set_param(&rig, NEW, "numInitialSyncAttempts", 2);
    add(&rig, p, &doc! { "votes": 0, "priority": 0 });
    rig.until("the copy", has_copied);
    hang(&rig, NEW, "initialSyncHangAfterDataCloning", false);
    rig.isolate(NEW);
    let new = rig.nodes[NEW].machine();
    rig.world.net.reset_connections(|a, b| (a == new || b == new) && a.0 < 30_000 && b.0 < 30_000);
    rig.until("the end of the first attempt", |rig| {
        sync_status(rig, NEW).is_some_and(|s| number(&s, "failedInitialSyncAttempts") == 1)
    });
    rig.heal();
    rig.until("a second attempt that succeeds", |rig| is_secondary(rig, NEW));
    assert_eq!(hash(&rig, p), hash(&rig, NEW));
}

#[test]
fn reads_below_the_end_of_the_copy_are_refused() {
    let (rig, p) = pair_and_one(85);
    let early = rig.ok(p, insert(50, majority()));
    let early = early.get("operationTime").unwrap().clone();
    rig.wait_ms(2_000);
    rig.ok(p, insert(51, majority()));
    add(&rig, p, &doc! { "votes": 0, "priority": 0 });
    rig.until("the new member", |rig| is_secondary(rig, NEW));
    rig.ok(p, insert(52, w(3)));
    rig.wait_ms(2_000);
    let read = |i: usize, time: &Bson| {
        let mut concern = doc! { "level": "snapshot" };
        concern.push("atClusterTime", time.clone());
        let mut find = doc! { "find": "c" };
        find.push("readConcern", concern);
        rig.ask(i, anywhere(find))
    };
    assert_eq!(code(&read(NEW, &early)), 239);
    let later = rig.ok(p, insert(53, w(3))).get("operationTime").unwrap().clone();
    rig.wait_ms(2_000);
    assert_eq!(ids(&read(NEW, &later)).len(), 5, "{:?}", read(NEW, &later));
}

#[test]
fn a_source_that_rolls_back_is_not_trusted() {
    let rig = Rig::unnamed(86, 4);
    let config = rig.config(&vec![Document::new(); 3], Document::new());
    rig.ok(0, doc! { "replSetInitiate": config, "$db": "admin" });
    rig.until("three members", |rig| (0..3).all(|i| rig.is_primary(i) || is_secondary(rig, i)));
    rig.ok(rig.primary(), insert(0, w(3)));
    let new = 3;
    hang(&rig, new, "initialSyncHangBeforeFinish", true);
    add_member(&rig, rig.primary(), new, &doc! { "votes": 0, "priority": 0 });
    rig.until("a source", |rig| rig.source_of(new).is_some());
    let source = rig.source_of(new).unwrap();
    rig.until("its office", |rig| {
        rig.ask(source, doc! { "replSetStepUp": 1, "$db": "admin" });
        rig.wait_ms(2_000);
        rig.is_primary(source)
    });
    // The voters lose it; the new member goes on reading from it.
    let voters: Vec<usize> = (0..3).filter(|i| *i != source).collect();
    voters.iter().for_each(|i| rig.part(source, *i));
    rig.ok(source, insert(1, doc! { "w": 1 }));
    rig.until("another primary", |rig| voters.iter().any(|i| rig.is_primary(*i)));
    let next = voters.iter().copied().find(|i| rig.is_primary(*i)).unwrap();
    rig.ok(next, insert(2, majority()));
    rig.heal();
    rig.until("the rollback", |rig| {
        is_secondary(rig, source) && ids(&rig.ok(source, find("local"))) == [0, 2]
    });
    hang(&rig, new, "initialSyncHangBeforeFinish", false);
    let mut why = None;
    rig.until("a second attempt that succeeds", |rig| {
        let failed = sync_status(rig, new)
            .and_then(|s| Some(at(&s, "initialSyncAttempts.0.status")?.as_str()?.to_owned()));
        why = failed.or(why.take());
        is_secondary(rig, new)
    });
    assert!(why.as_ref().is_some_and(|w| w.contains("rolled back")), "{why:?}");
    rig.until("all entries", |rig| ids(&rig.ok(new, find("local"))) == [0, 2]);
}

/// A member with this little memory may ask for patience until its stable timestamp has moved.
fn insert_patiently(rig: &Rig, p: usize, coll: &str, mut docs: Vec<Bson>) {
    while !docs.is_empty() {
        let mut insert = doc! { "insert": coll };
        insert.push("documents", docs.clone());
        insert.push("writeConcern", w(2));
        let reply = rig.ask(p, insert);
        let refused = at(&reply, "writeErrors.0.code").and_then(Bson::as_i64);
        assert!(matches!(refused, None | Some(365)), "{reply:?}");
        assert!(concern_code(&reply).is_none() && code(&reply) == 0, "{reply:?}");
        docs.drain(..number(&reply, "n") as usize);
        if refused.is_some() {
            rig.wait_ms(200);
        }
    }
}

#[test]
fn a_large_collection_is_loaded_in_bulk_with_its_indexes() {
    let (rig, p) = pair_and_one(87);
    for (coll, options) in [
        ("plain", doc! {}),
        ("clustered", doc! { "clusteredIndex": { "key": { "_id": 1 }, "unique": true } }),
    ] {
        let mut create = doc! { "create": coll };
        options.iter().for_each(|(k, v)| create.push(k, v.clone()));
        rig.ok(p, create);
        let indexes: Vec<Bson> = vec![
            doc! { "key": { "pad": 1, "_id": -1 }, "name": "pair" }.into(),
            doc! { "key": { "n": 1 }, "name": "n", "unique": true }.into(),
            doc! { "key": { "tags": 1 }, "name": "tags", "partialFilterExpression": { "n": { "$gt": 500 } } }
                .into(),
            doc! { "key": { "sub.$**": 1 }, "name": "any" }.into(),
        ];
        let mut create = doc! { "createIndexes": coll };
        create.push("indexes", indexes);
        rig.ok(p, create);
        for from in (0..2_000).step_by(100) {
            let docs: Vec<Bson> = (from..from + 100)
                .map(|i| doc! { "_id": i, "n": i, "pad": i % 7, "tags": [i, i + 1], "sub": { "a": i, "b": [1, i] } }.into())
                .collect();
            insert_patiently(&rig, p, coll, docs);
        }
    }
    // Changed while it is copied, and afterwards.
    hang(&rig, NEW, "initialSyncHangAfterDataCloning", true);
    add(&rig, p, &doc! { "votes": 0, "priority": 0 });
    rig.until("the copy", has_copied);
    for coll in ["plain", "clustered"] {
        // In parts: what is written must fit into memory until a majority has it and a checkpoint has taken it along.
        for from in (0..1_000).step_by(100) {
            let these = doc! { "_id": { "$gte": from, "$lt": from + 100 } };
            let mut change = doc! { "q": these, "u": { "$set": { "tags": [7] }, "$inc": { "n": 10_000 } } };
            change.push("multi", true);
            let mut update = doc! { "update": coll, "writeConcern": w(2) };
            update.push("updates", vec![Bson::from(change)]);
            rig.ok(p, update);
            rig.wait_ms(500);
        }
        rig.ok(p, doc! { "delete": coll, "deletes": [{ "q": { "pad": 3 }, "limit": 0 }] });
    }
    hang(&rig, NEW, "initialSyncHangAfterDataCloning", false);
    rig.until("the member", |rig| is_secondary(rig, NEW));
    rig.ok(p, insert(1, w(3)));
    assert_eq!(hash(&rig, p), hash(&rig, NEW));
    for coll in ["plain", "clustered"] {
        let valid = rig.ok(NEW, anywhere(doc! { "validate": coll, "full": true, "enforceFastCount": true }));
        assert!(at(&valid, "valid").is_some_and(Bson::is_truthy), "{valid:?}");
        for i in [p, NEW] {
            let count = |query: Document| {
                let mut find = doc! { "count": coll };
                query.iter().for_each(|(k, v)| find.push(k, v.clone()));
                number(&rig.ok(i, anywhere(find)), "n")
            };
            assert_eq!(count(doc! {}), 1_714);
            assert_eq!(count(doc! { "query": { "tags": 1_602, "n": { "$gt": 500 } }, "hint": "tags" }), 2);
            assert_eq!(count(doc! { "query": { "sub.b": 1_600 }, "hint": "any" }), 1);
        }
    }
}

/// Options of collections, views, and what they stand on arrive as they are.
#[test]
fn options_and_views_are_copied() {
    let (rig, p) = pair_and_one(98);
    let create = |d: Document| rig.ok(p, d);
    create(doc! { "create": "capped", "capped": true, "size": 8192, "max": 10 });
    create(
        doc! { "create": "strict", "validator": { "n": { "$type": "int" } }, "validationAction": "error" },
    );
    create(doc! { "create": "sorted", "collation": { "locale": "en", "strength": 2 } });
    create(doc! { "create": "clustered", "clusteredIndex": { "key": { "_id": 1 }, "unique": true } });
    create(doc! { "create": "pre", "changeStreamPreAndPostImages": { "enabled": true } });
    create(doc! { "create": "view", "viewOn": "sorted", "pipeline": [{ "$match": { "a": "x" } }],
    "collation": { "locale": "en", "strength": 2 } });
    create(
        doc! { "create": "over", "viewOn": "view", "pipeline": [], "collation": { "locale": "en", "strength": 2 } },
    );
    rig.ok(p, doc! { "insert": "sorted", "documents": [{ "_id": 1, "a": "X" }, { "_id": 2, "a": "y" }] });
    add(&rig, p, &Document::new());
    rig.until("a secondary", |rig| is_secondary(rig, NEW) && !is_marked(rig, p));
    rig.ok(p, insert(9_000, w(3)));
    let listed = |rig: &Rig, i: usize| {
        let reply = rig.ok(i, anywhere(doc! { "listCollections": 1 }));
        let mut all: Vec<String> = at(&reply, "cursor.firstBatch")
            .and_then(Bson::as_array)
            .unwrap_or_default()
            .iter()
            .filter_map(Bson::as_doc)
            .map(|d| format!("{d:?}"))
            .collect();
        all.sort();
        all
    };
    assert!(listed(&rig, p).len() >= 8, "{:?}", listed(&rig, p));
    assert_eq!(listed(&rig, p), listed(&rig, NEW));
    let found = rig.ok(NEW, anywhere(doc! { "find": "over" }));
    assert_eq!(ids(&found), [1]);
}

/// As many attempts as are allowed, each of them told; then the process ends and says why.
#[test]
fn an_initial_sync_gives_up_after_so_many_attempts() {
    let (rig, p) = pair_and_one(99);
    fill(&rig, p, "big", 300);
    set_param(&rig, NEW, "numInitialSyncAttempts", 3);
    hang(&rig, NEW, "initialSyncHangAfterDataCloning", true);
    add(&rig, p, &doc! { "votes": 0, "priority": 0 });
    let mut attempts = 0;
    rig.until("the end of the process", |rig| {
        if rig.nodes[NEW].exit().is_some() {
            return true;
        }
        if has_copied(rig) {
            attempts = attempts.max(number(&sync_status(rig, NEW).unwrap(), "failedInitialSyncAttempts") + 1);
            // What was copied goes away under the copy: the source rolls back its number.
            for i in 0..2 {
                let server = rig.nodes[i].server().expect("a running member");
                server.replication.progress.set_rbid(server.replication.progress.rbid() + 1);
            }
            hang(rig, NEW, "initialSyncHangAfterDataCloning", false);
            rig.wait_ms(50);
            if rig.nodes[NEW].exit().is_none() {
                hang(rig, NEW, "initialSyncHangAfterDataCloning", true);
            }
        }
        false
    });
    assert_eq!(attempts, 3);
    assert!(!matches!(rig.nodes[NEW].exit(), Some(pando_sim::Exit::Clean)));
    // The set does not care.
    rig.ok(p, insert(7_000, w(2)));
}

/// While it copies, what it copies is gone and comes back with other rules: two equal values, the collection dropped, made
/// anew with a unique index, filled again, its documents changed and removed. All of that is applied over the copy.
#[test]
fn entries_are_applied_over_a_copy_that_has_seen_some_of_them() {
    let (rig, p) = pair_and_one(100);
    fill(&rig, p, "big", 300);
    let put = |id: i32, n: i32| doc! { "insert": "u", "documents": [{ "_id": id, "n": n, "a": [1] }], "writeConcern": w(2) };
    let unique =
        || doc! { "createIndexes": "u", "indexes": [{ "key": { "n": 1 }, "name": "n", "unique": true }] };
    rig.ok(p, put(1, 7));
    hang(&rig, NEW, "initialSyncHangBeforeCopyingDatabases", true);
    add(&rig, p, &Document::new());
    rig.until("the beginning", |rig| sync_status(rig, NEW).is_some());
    rig.wait_ms(3_000);
    let change = |rig: &Rig, from: i32| {
        rig.ok(p, put(from, 7 + from));
        rig.ok(p, put(from + 1, 7 + from * 100));
        rig.ok(
            p,
            doc! { "update": "u", "updates": [
            { "q": { "_id": from }, "u": { "$inc": { "n": 1 }, "$push": { "a": from } } }] },
        );
        rig.ok(p, doc! { "drop": "u" });
        rig.ok(p, put(from, 1));
        rig.ok(p, put(from + 1, 1));
        rig.ok(p, doc! { "delete": "u", "deletes": [{ "q": { "_id": from }, "limit": 1 }] });
        rig.ok(p, unique());
        rig.ok(p, put(from + 2, 2));
        rig.ok(
            p,
            doc! { "update": "u", "updates": [
            { "q": { "_id": from + 2 }, "u": { "$inc": { "n": 5 }, "$pop": { "a": 1 } } }] },
        );
    };
    change(&rig, 10);
    hang(&rig, NEW, "initialSyncHangAfterDataCloning", true);
    hang(&rig, NEW, "initialSyncHangBeforeCopyingDatabases", false);
    rig.until("the copy", has_copied);
    change(&rig, 20);
    change(&rig, 30);
    hang(&rig, NEW, "initialSyncHangAfterDataCloning", false);
    rig.until("a secondary", |rig| is_secondary(rig, NEW) && !is_marked(rig, p));
    rig.ok(p, insert(9_000, w(3)));
    assert_eq!(hash(&rig, p), hash(&rig, NEW));
    let valid = rig.ok(NEW, anywhere(doc! { "validate": "u", "full": true, "enforceFastCount": true }));
    assert!(at(&valid, "valid").is_some_and(Bson::is_truthy), "{valid:?}");
    assert_eq!(number(&valid, "keysPerIndex.n"), 2, "{valid:?}");
}

/// Another source would be better, and its operator asks for it: the copy goes on with the one it is of.
#[test]
fn an_initial_sync_stays_with_its_source() {
    let (rig, p) = pair_and_one(97);
    fill(&rig, p, "big", 200);
    hang(&rig, NEW, "initialSyncHangAfterDataCloning", true);
    add(&rig, p, &doc! { "votes": 0, "priority": 0 });
    rig.until("the copy", has_copied);
    let source = rig.source_of(NEW).or_else(|| {
        let status = sync_status(&rig, NEW)?;
        let host = at(&status, "initialSyncAttempts").is_none().then(|| rig.nodes[p].addr());
        rig.nodes.iter().position(|n| Some(n.addr()) == host)
    });
    let other = 1 - source.unwrap_or(p).min(1);
    rig.ask(NEW, doc! { "replSetSyncFrom": rig.nodes[other].addr(), "$db": "admin" });
    let readers = |rig: &Rig| {
        let server = rig.nodes[NEW].server().expect("a running member");
        server.instance.metrics.replication.readers_created.get()
    };
    let before = readers(&rig);
    for i in 0..20 {
        rig.ok(p, insert(5_000 + i, w(1)));
        rig.wait_ms(1_000);
    }
    assert!(readers(&rig) <= before + 1, "{} connections to sources", readers(&rig) - before);
    hang(&rig, NEW, "initialSyncHangAfterDataCloning", false);
    rig.until("a secondary", |rig| is_secondary(rig, NEW));
    rig.ok(p, insert(6_000, w(3)));
    assert_eq!(hash(&rig, p), hash(&rig, NEW));
}

/// A secondary was away for longer than the others' logs reach back.
/// The member's own log on its disk is the buffer of what is written while it copies.
#[test]
fn a_member_copies_while_more_is_written_than_its_memory_holds() {
    let (rig, p) = pair_and_one(98);
    fill(&rig, p, "copied", 1_000);
    hang(&rig, NEW, "initialSyncHangAfterDataCloning", true);
    add(&rig, p, &doc! { "votes": 0, "priority": 0 });
    rig.until("the copy", has_copied);
    let server = rig.nodes[NEW].server().unwrap();
    let stats = || server.storage.stats();
    let before = stats().log_bytes;
    let memory = stats().memtable_bytes_max * pando_base::limits::STORAGE_MEMTABLE_HARD_FACTOR;
    let mut written = 0;
    for from in (0..).step_by(20) {
        let docs = |n: i32| doc! { "_id": n, "pad": "y".repeat(4_000) }.into();
        insert_patiently(&rig, p, "later", (from..from + 20).map(docs).collect());
        written += 20 * 4_000;
        let s = rig.admin(NEW, doc! { "serverStatus": 1 });
        let queued = number(&s, "metrics.repl.buffer.sizeBytes") as usize;
        assert!(queued + stats().memtable_bytes < memory, "{queued} bytes wait in memory after {written}");
        if written > 8 * memory {
            break;
        }
    }
    rig.wait_ms(2_000);
    let kept = (stats().log_bytes - before) as usize;
    assert!(kept > 8 * memory, "{kept} bytes in its log of {written}");
    hang(&rig, NEW, "initialSyncHangAfterDataCloning", false);
    rig.until("the member", |rig| is_secondary(rig, NEW));
    rig.ok(p, insert(1, w(3)));
    assert_eq!(hash(&rig, p), hash(&rig, NEW));
}

pub(crate) fn with_a_stale_member(seed: u64, by_itself: bool) -> (Rig, usize) {
    let rig = Rig::with_oplog(seed, 3, 1 << 20);
    let p = rig.primary();
    rig.ok(p, insert(0, w(3)));
    let s = rig.others(p)[0];
    rig.isolate(s);
    if !by_itself {
        rig.admin(s, doc! { "setParameter": 1, "resyncWhenTooStale": false });
    }
    let large = "x".repeat(64 << 10);
    for i in 1..120 {
        rig.ok(p, doc! { "insert": "c", "documents": [{ "_id": i, "x": large.as_str() }], "writeConcern": { "w": 2 } });
        rig.wait_ms(200);
    }
    rig.heal();
    (rig, s)
}

#[test]
fn a_member_that_is_too_stale_waits_for_its_operator_where_that_was_asked_for() {
    let (rig, s) = with_a_stale_member(88, false);
    rig.until("RECOVERING", |rig| number(&rig.status(s), "myState") == 3);
    rig.wait_ms(120_000);
    let status = rig.status(s);
    assert_eq!(number(&status, "myState"), 3);
    assert_eq!(status.get("tooStale"), Some(&Bson::Boolean(true)));
    let p = rig.primary();
    assert!(!rig.status(p).contains("tooStale"));
    let refused = rig.ask(p, doc! { "resync": 1, "$db": "admin" });
    assert_eq!(code(&refused), 95, "{refused:?}");
    rig.admin(s, doc! { "resync": 1 });
    rig.until("a secondary", |rig| is_secondary(rig, s));
    rig.ok(p, insert(1_000, w(3)));
    assert_eq!(hash(&rig, p), hash(&rig, s));
}

#[test]
fn a_member_that_is_too_stale_for_everybody_comes_back_by_itself() {
    let (rig, s) = with_a_stale_member(89, true);
    let count = |rig: &Rig| rig.ask(s, anywhere(doc! { "count": "c" })).get("n").and_then(Bson::as_i64);
    rig.until("all documents", |rig| is_secondary(rig, s) && count(rig) == Some(120));
    let p = rig.primary();
    rig.ok(p, insert(1_000, w(3)));
    assert_eq!(hash(&rig, p), hash(&rig, s));
}

/// A new member is there while an index is being built; then the builder dies.
#[test]
fn an_index_build_that_began_before_an_initial_sync_ends_on_the_new_member() {
    for (seed, unique) in [(110, false), (111, true)] {
        let (mut rig, p) = pair_and_one(seed);
        fill(&rig, p, "built", 300);
        hang(&rig, p, "hangAfterStartingIndexBuild", true);
        let mut spec = doc! { "key": { "pad": 1, "_id": -1 }, "name": "i" };
        spec.push("unique", unique);
        let mut create = doc! { "createIndexes": "built" };
        create.push("indexes", vec![Bson::from(spec)]);
        let building = rig.start(p, create);
        let listed = |rig: &Rig, i: usize| {
            let reply = rig.ask(i, anywhere(doc! { "listIndexes": "built", "includeBuildUUIDs": true }));
            at(&reply, "cursor.firstBatch").and_then(Bson::as_array).unwrap_or_default().to_vec()
        };
        let unfinished = |rig: &Rig, i: usize| {
            let all = listed(rig, i);
            all.len() == 2 && all.iter().any(|d| d.as_doc().is_some_and(|d| d.contains("buildUUID")))
        };
        rig.until("the build", |rig| unfinished(rig, 1 - p));
        add(&rig, p, &Document::new());
        rig.until("a new secondary", |rig| is_secondary(rig, NEW) && !is_marked(rig, p));
        assert!(unfinished(&rig, NEW), "{:?}", listed(&rig, NEW));
        let mut one = doc! { "insert": "built", "documents": [{ "_id": 1000, "pad": "later" }] };
        one.push("writeConcern", w(3));
        rig.ok(p, one);
        assert!(building.answer().is_none());
        rig.nodes[p].lose_power();
        rig.until("the new member in office", |rig| {
            rig.ask(NEW, doc! { "replSetStepUp": 1, "$db": "admin" });
            rig.wait_ms(2_000);
            rig.is_primary(NEW)
        });
        // Its vote is wanted: it votes, like the others.
        rig.wait_ms(5_000);
        assert!(unfinished(&rig, NEW) && unfinished(&rig, 1 - p));
        rig.nodes[p].boot();
        rig.until("the index everywhere", |rig| {
            is_secondary(rig, p) && (0..3).all(|i| listed(rig, i).len() == 2 && !unfinished(rig, i))
        });
        for i in 0..3 {
            let valid =
                rig.ok(i, anywhere(doc! { "validate": "built", "full": true, "enforceFastCount": true }));
            assert!(at(&valid, "valid").is_some_and(Bson::is_truthy), "{valid:?}");
            assert_eq!(number(&valid, "keysPerIndex.i"), 301, "{valid:?}");
        }
    }
}
