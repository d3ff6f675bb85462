//! What diagnostic commands tell is measured, or not told.

use pando_bson::{Bson, Document, doc};
use pando_testserver::{Client, EXHAUST_ALLOWED, Running, Set, World, pause, run, spawn};

fn at<'a>(reply: &'a Document, path: &str) -> Option<&'a Bson> {
    let (head, rest) = path.split_once('.').map_or((path, None), |(head, rest)| (head, Some(rest)));
    let found = reply.get(head)?;
    rest.map_or(Some(found), |rest| at(found.as_doc()?, rest))
}

fn number(reply: &Document, path: &str) -> i64 {
    at(reply, path).and_then(Bson::as_i64).unwrap_or_else(|| panic!("{path} in {reply:?}"))
}

#[test]
fn connections_between_members_are_counted_and_can_be_dropped() {
    run(async {
        let set = Set::of(2).await;
        set.settled().await;
        let primary = set.primary().await;
        let mut c = set.connect(primary).await;
        let stats = c.ok(doc! { "connPoolStats": 1 }).await;
        assert!(number(&stats, "totalCreated") > 0, "{stats:?}");
        let open = number(&stats, "totalInUse") + number(&stats, "totalAvailable");
        assert!(open > 0 && open <= number(&stats, "totalCreated"), "{stats:?}");
        let hosts: Vec<_> =
            at(&stats, "hosts").unwrap().as_doc().unwrap().iter().map(|(h, _)| h.to_owned()).collect();
        assert_eq!(hosts, [set.host(1 - primary)]);
        // More are made after those there were are dropped.
        set.until("a heartbeat needs a new connection", async |_| {
            let mut c = set.connect(primary).await;
            c.admin(doc! { "dropConnections": 1, "hostAndPort": [hosts[0].as_str()] }).await;
            let now = c.ok(doc! { "connPoolStats": 1 }).await;
            number(&now, "totalCreated") > number(&stats, "totalCreated")
        })
        .await;
        assert_eq!(c.err(doc! { "dropConnections": 1, "hostAndPort": "x", "$db": "admin" }).await.0, 14);
        set.shut_down().await;
    });
}

async fn collection_scans(c: &mut Client) -> (i64, i64) {
    let pipeline =
        doc! { "aggregate": "c", "pipeline": [{ "$collStats": { "queryExecStats": {} } }], "cursor": {} };
    let rows = c.all(pipeline).await;
    let of = |name: &str| number(&rows[0], &format!("queryExecStats.collectionScans.{name}"));
    (of("total"), of("nonTailable"))
}

#[test]
fn collection_scans_are_counted() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        c.ok(doc! { "create": "c", "capped": true, "size": 4096 }).await;
        c.ok(doc! { "insert": "c", "documents": [{ "_id": 1, "a": 1 }] }).await;
        assert_eq!(collection_scans(&mut c).await, (0, 0));
        c.all(doc! { "find": "c", "filter": { "a": 1 } }).await;
        c.all(doc! { "find": "c", "filter": { "_id": { "$gt": 0 } } }).await;
        assert_eq!(collection_scans(&mut c).await, (1, 1));
        c.ok(doc! { "find": "c", "tailable": true }).await;
        assert_eq!(collection_scans(&mut c).await, (2, 1));
        let status = c.ok(doc! { "serverStatus": 1 }).await;
        assert!(number(&status, "metrics.queryExecutor.collectionScans.total") >= 2);
        server.shut_down().await;
    });
}

#[test]
fn locks_that_a_transaction_holds_are_shown() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        c.ok(doc! { "create": "c" }).await;
        let shown = c.admin(doc! { "lockInfo": 1 }).await;
        assert_eq!(at(&shown, "lockInfo"), Some(&Bson::Array(Vec::new())));
        let id = Bson::Binary(pando_bson::Binary { subtype: 4, bytes: vec![1; 16] });
        let mut insert = doc! { "insert": "c", "documents": [{ "_id": 1 }], "startTransaction": true };
        insert.push("lsid", doc! { "id": id });
        insert.push("txnNumber", 1i64);
        insert.push("autocommit", false);
        c.ok(insert).await;
        let shown = c.admin(doc! { "lockInfo": 1 }).await;
        let wanted =
            doc! { "resourceId": "{Collection, test.c}", "granted": [{ "mode": "IX" }], "pending": [] };
        assert_eq!(at(&shown, "lockInfo"), Some(&Bson::Array(vec![wanted.into()])));
        server.shut_down().await;
    });
}

#[test]
fn server_status_tells_what_is_counted_and_nothing_else() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        c.ok(doc! { "create": "s", "timeseries": { "timeField": "t" } }).await;
        c.ok(doc! { "create": "v", "viewOn": "c", "pipeline": [] }).await;
        let before = c.ok(doc! { "serverStatus": 1 }).await;
        assert_eq!(
            (number(&before, "catalogStats.timeseries"), number(&before, "catalogStats.views")),
            (1, 1)
        );
        let insert = doc! { "insert": "c", "documents": [{}], "writeConcern": { "w": "majority" } };
        c.ok(insert).await;
        let after = c.ok(doc! { "serverStatus": 1 }).await;
        let waits = "metrics.getLastError.wtime.num";
        assert_eq!(number(&after, waits), number(&before, waits) + 1);
        for absent in [
            "indexBulkBuilder",
            "wiredTiger.concurrentTransactions",
            "globalLock.activeClients.writers",
            "oplogTruncation.totalTimeTruncatingMicros",
            "electionMetrics.numCatchUpsFailedWithNewTerm",
            "network.numSlowDNSOperations",
        ] {
            assert_eq!(at(&after, absent), None, "{absent}");
        }
        server.shut_down().await;
    });
}

#[test]
fn a_name_that_stands_for_nothing_leaves_no_row_in_top() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        c.ok(doc! { "create": "there" }).await;
        for command in ["find", "count"] {
            let mut ask = Document::new();
            ask.push(command, "nowhere");
            c.ok(ask).await;
        }
        c.ok(doc! { "distinct": "nowhere", "key": "a" }).await;
        c.ok(doc! { "aggregate": "nowhere", "pipeline": [], "cursor": {} }).await;
        c.ok(doc! { "find": "there" }).await;
        let top = c.admin(doc! { "top": 1 }).await;
        let rows = at(&top, "totals").unwrap().as_doc().unwrap();
        assert!(rows.contains("test.there") && !rows.contains("test.nowhere"), "{rows:?}");
        server.shut_down().await;
    });
}

fn in_transaction(mut command: Document, session: u8, begins: bool) -> Document {
    let id = Bson::Binary(pando_bson::Binary { subtype: 4, bytes: vec![session; 16] });
    command.push("lsid", doc! { "id": id });
    command.push("txnNumber", 1i64);
    command.push("autocommit", false);
    if begins {
        command.push("startTransaction", true);
    }
    command
}

#[test]
fn transactions_and_their_write_conflicts_are_counted() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        c.ok(doc! { "insert": "c", "documents": [{ "_id": 1 }] }).await;
        let before = c.ok(doc! { "serverStatus": 1 }).await;
        let update = |session: u8| {
            let set = doc! { "q": { "_id": 1 }, "u": { "$set": { "by": i32::from(session) } } };
            in_transaction(doc! { "update": "c", "updates": [set] }, session, true)
        };
        c.ok(update(1)).await;
        assert_eq!(c.err(update(2)).await.0, 112, "the first updater wins");
        c.ok(in_transaction(doc! { "commitTransaction": 1, "$db": "admin" }, 1, false)).await;
        let after = c.ok(doc! { "serverStatus": 1 }).await;
        let grown = |path: &str| number(&after, path) - number(&before, path);
        assert_eq!(grown("metrics.operation.writeConflicts"), 1);
        assert_eq!(grown("opLatencies.transactions.ops"), 2, "one committed, one aborted");
        assert!(grown("opLatencies.transactions.latency") > 0);
        server.shut_down().await;
    });
}

#[test]
fn connections_on_which_hello_is_streamed_are_counted() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        let hello = c.admin(doc! { "hello": 1 }).await;
        let version = hello.get("topologyVersion").cloned().expect("a version");
        let mut wait = doc! { "hello": 1, "maxAwaitTimeMS": 50, "$db": "admin" };
        wait.push("topologyVersion", version);
        let mut streamed = server.connect().await;
        let now = async |c: &mut Client| {
            number(&c.ok(doc! { "serverStatus": 1 }).await, "connections.exhaustHello")
        };
        assert_eq!(now(&mut c).await, 0);
        streamed.send(&wait.to_raw(), EXHAUST_ALLOWED).await;
        streamed.receive().await;
        assert_eq!(now(&mut c).await, 1, "one reply came, others will");
        drop(streamed);
        while now(&mut c).await > 0 {
            pause(5).await;
        }
        server.shut_down().await;
    });
}

/// What a command adds to figures below `metrics`, without those that stay.
async fn added(c: &mut Client, below: &str, command: Document) -> Vec<(String, i64)> {
    fn leaves(path: &str, d: &Document, into: &mut Vec<(String, i64)>) {
        for (name, v) in d.iter() {
            let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
            match v {
                Bson::Document(d) => leaves(&path, d, into),
                v => into.extend(v.as_i64().map(|n| (path, n))),
            }
        }
    }
    let mut seen = Vec::new();
    for command in [None, Some(command)] {
        if let Some(command) = command {
            c.run(command).await;
        }
        let status = c.ok(doc! { "serverStatus": 1 }).await;
        let mut all = Vec::new();
        leaves("", at(&status, below).and_then(Bson::as_doc).expect("the section"), &mut all);
        seen.push(all);
    }
    let (before, after) = (&seen[0], &seen[1]);
    let grown = after.iter().zip(before).filter(|(a, b)| a.1 != b.1);
    grown.map(|(a, b)| (a.0.clone(), a.1 - b.1)).collect()
}

fn rows(all: &[(&str, i64)]) -> Vec<(String, i64)> {
    all.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect()
}

#[test]
fn stages_and_operators_are_counted_when_a_request_names_them() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        let docs: Vec<Bson> = (0..5).map(|i| Bson::Document(doc! { "_id": i, "a": i })).collect();
        c.ok(doc! { "insert": "c", "documents": docs }).await;
        let pipeline = |stages: Vec<Document>| {
            let stages: Vec<Bson> = stages.into_iter().map(Bson::Document).collect();
            doc! { "aggregate": "c", "pipeline": stages, "cursor": {} }
        };
        let filter = doc! { "a": { "$gt": 1, "$not": { "$in": [7] } }, "b": Bson::Null,
        "$expr": { "$lt": ["$a", { "$add": ["$a", 1] }] } };
        let all = [
            ("expressions.$add", 1),
            ("expressions.$lt", 1),
            ("match.$eq", 1),
            ("match.$expr", 1),
            ("match.$gt", 1),
            ("match.$in", 1),
            ("match.$not", 1),
        ];
        let operators = "metrics.operatorCounters";
        for wanted in
            [doc! { "find": "c", "filter": filter.clone() }, pipeline(vec![doc! { "$match": filter }])]
        {
            assert_eq!(added(&mut c, operators, wanted.clone()).await, rows(&all), "{wanted:?}");
        }
        // A stage that stands for others is itself, and what it becomes is counted among the operators.
        let facet = doc! { "x": [{ "$match": { "a": 1 } }, { "$count": "n" }] };
        let nested = || {
            let join = doc! { "from": "c", "pipeline": [{ "$limit": 1 }], "as": "j" };
            pipeline(vec![
                doc! { "$facet": facet.clone() },
                doc! { "$lookup": join },
                doc! { "$set": { "k": 1 } },
            ])
        };
        let wanted =
            [("$count", 1), ("$facet", 1), ("$limit", 1), ("$lookup", 1), ("$match", 1), ("$set", 1)];
        assert_eq!(added(&mut c, "metrics.aggStageCounters", nested()).await, rows(&wanted));
        let wanted = [("groupAccumulators.$sum", 1), ("match.$eq", 1)];
        assert_eq!(added(&mut c, operators, nested()).await, rows(&wanted));
        let output = doc! { "r": { "$rank": {} }, "s": { "$sum": "$a" } };
        let windows = doc! { "$setWindowFields": { "sortBy": { "a": 1 }, "output": output } };
        let group = doc! { "$group": { "_id": Bson::Null, "p": { "$push": "$a" } } };
        let wanted =
            [("groupAccumulators.$push", 1), ("windowAccumulators.$rank", 1), ("windowAccumulators.$sum", 1)];
        assert_eq!(added(&mut c, operators, pipeline(vec![windows, group])).await, rows(&wanted));
        // Nobody asked for what a validator says each time somebody writes.
        let validated = doc! { "create": "v", "validator": { "a": { "$gte": 1 } } };
        c.ok(validated).await;
        let insert = doc! { "insert": "v", "documents": [{ "a": 1 }, { "a": 2 }] };
        assert_eq!(added(&mut c, operators, insert).await, rows(&[]));
        let change = doc! { "update": "c", "updates": [{ "q": { "a": { "$gt": 0 } }, "u": [{ "$set": { "z": 1 } }], "multi": true }] };
        assert_eq!(added(&mut c, operators, change.clone()).await, rows(&[("match.$gt", 1)]));
        assert_eq!(added(&mut c, "metrics.aggStageCounters", change).await, rows(&[("$set", 1)]));
        server.shut_down().await;
    });
}

#[test]
fn errors_of_commands_and_of_single_writes_are_counted() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        c.ok(doc! { "insert": "c", "documents": [{ "_id": 1 }] }).await;
        for (command, errors) in [
            (doc! { "ping": 1 }, 0),
            (doc! { "find": "c", "filter": { "$nope": 1 } }, 1),
            (doc! { "insert": "c", "documents": [{ "_id": 1 }, { "_id": 1 }], "ordered": false }, 2),
        ] {
            let wanted: &[_] = if errors == 0 { &[] } else { &[("user", errors)] };
            assert_eq!(added(&mut c, "asserts", command.clone()).await, rows(wanted), "{command:?}");
        }
        server.shut_down().await;
    });
}

#[test]
fn documents_with_dollars_and_api_versions_are_told_of() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        let dollars = doc! { "insert": "c", "documents": [{ "$a": 1 }, { "x": { "$b": 1 } }, { "a.b": 1 }] };
        assert_eq!(added(&mut c, "metrics.dotsAndDollarsFields", dollars).await, rows(&[("inserts", 1)]));
        let versions = async |c: &mut Client| {
            let status = c.ok(doc! { "serverStatus": 1 }).await;
            at(&status, "metrics.apiVersions").and_then(Bson::as_doc).and_then(|d| d.get("").cloned())
        };
        assert_eq!(versions(&mut c).await, Some(Bson::Array(vec!["default".into()])));
        c.ok(doc! { "ping": 1, "apiVersion": "1" }).await;
        assert_eq!(versions(&mut c).await, Some(Bson::Array(vec!["default".into(), "1".into()])));
        server.shut_down().await;
    });
}

/// The row of an operation that others see while it runs, which is ended then.
async fn seen_running(world: &Running, command: Document, planned: bool) -> Document {
    let (mut runs, mut looks) = (world.connect().await, world.connect().await);
    let name = command.iter().next().map(|(name, _)| format!("command.{name}")).expect("a command");
    let running = spawn(async move { runs.run(command).await });
    let mut ask = doc! { "currentOp": 1 };
    ask.push(&name, doc! { "$exists": true });
    ask.push("planSummary", doc! { "$exists": planned });
    if !planned {
        // It has read its arguments by then: before that, nobody knows its namespace.
        ask.push("microsecs_running", doc! { "$gte": 20_000i64 });
    }
    let row = loop {
        let ops = looks.admin(ask.clone()).await;
        if let Some(Bson::Document(row)) = ops.get("inprog").and_then(Bson::as_array).and_then(|l| l.first())
        {
            break row.clone();
        }
        pause(1).await;
    };
    looks.admin(doc! { "killOp": 1, "op": number(&row, "opid") }).await;
    running.await.expect("an answer");
    row
}

#[test]
fn what_runs_is_shown_with_its_namespace_and_its_plan() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        for from in (0..20_000).step_by(2_000) {
            let docs: Vec<Bson> =
                (from..from + 2_000).map(|i| Bson::Document(doc! { "_id": i, "a": i })).collect();
            c.ok(doc! { "insert": "c", "documents": docs }).await;
        }
        c.ok(doc! { "createIndexes": "c", "indexes": [{ "key": { "a": 1 }, "name": "a" }] }).await;
        let range = doc! { "$range": [0, { "$add": [20, { "$multiply": ["$a", 0] }] }] };
        let sum = doc! { "$reduce": { "input": range, "initialValue": 0, "in": { "$add": ["$$value", "$$this"] } } };
        let slow = doc! { "$expr": { "$lt": [sum, -1] } };
        let indexed = doc! { "a": { "$gte": 0 }, "$expr": slow.get("$expr").unwrap().clone() };
        let summary =
            |row: &Document| at(row, "planSummary").and_then(Bson::as_str).unwrap_or_default().to_owned();
        let ns = |row: &Document| at(row, "ns").and_then(Bson::as_str).unwrap_or_default().to_owned();
        let pipeline = Bson::Array(vec![doc! { "$match": slow.clone() }.into()]);
        for (command, plan) in [
            (doc! { "find": "c", "filter": slow.clone() }, "COLLSCAN"),
            (doc! { "find": "c", "filter": indexed }, "IXSCAN { a: 1 }"),
            (doc! { "count": "c", "query": slow.clone() }, "COLLSCAN"),
            (doc! { "distinct": "c", "key": "b", "query": slow.clone() }, "COLLSCAN"),
            (doc! { "aggregate": "c", "pipeline": pipeline, "cursor": {} }, "COLLSCAN"),
            (doc! { "findAndModify": "c", "query": slow.clone(), "remove": true }, "COLLSCAN"),
            (doc! { "delete": "c", "deletes": [{ "q": slow.clone(), "limit": 0 }] }, "COLLSCAN"),
        ] {
            let row = seen_running(&server, command.clone(), true).await;
            assert_eq!(
                (ns(&row), summary(&row)),
                ("test.c".to_owned(), plan.to_owned()),
                "{command:?}: {row:?}"
            );
        }
        let explained = doc! { "explain": { "find": "c", "filter": slow }, "verbosity": "executionStats" };
        assert_eq!(ns(&seen_running(&server, explained, false).await), "test.c");
        let sleep = doc! { "sleep": 1, "millis": 60_000, "$db": "admin" };
        assert_eq!(ns(&seen_running(&server, sleep, false).await), "admin.$cmd");
        server.shut_down().await;
    });
}

#[test]
fn transactions_are_shown_with_their_client_and_since_when_they_are_prepared() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let (mut a, mut b) = (server.connect().await, server.connect().await);
        a.ok(doc! { "create": "c" }).await;
        a.ok(in_transaction(doc! { "insert": "c", "documents": [{ "_id": 1 }] }, 1, true)).await;
        let ask = doc! { "currentOp": 1, "transaction": { "$exists": true } };
        let rows = async |b: &mut Client| {
            let ops = b.admin(ask.clone()).await;
            ops.get("inprog").and_then(Bson::as_array).expect("rows").to_vec()
        };
        let idle = rows(&mut b).await;
        let row = idle[0].as_doc().expect("a row");
        assert_eq!(at(row, "type"), Some(&Bson::from("idleSession")));
        assert!(at(row, "client").is_some() && number(row, "connectionId") > 0, "{row:?}");
        assert!(at(row, "transaction.timePreparedMicros").is_none(), "{row:?}");
        let prepare = in_transaction(doc! { "prepareTransaction": 1, "$db": "admin" }, 1, false);
        a.ok(prepare).await;
        let prepared = rows(&mut b).await;
        let row = prepared[0].as_doc().expect("a row");
        assert!(number(row, "transaction.timePreparedMicros") >= 0, "{row:?}");
        a.ok(in_transaction(doc! { "abortTransaction": 1, "$db": "admin" }, 1, false)).await;
        server.shut_down().await;
    });
}
