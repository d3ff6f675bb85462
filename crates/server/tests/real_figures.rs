//! What diagnostic commands tell is measured, or not told.

use pando_bson::{Bson, Document, doc};
use pando_testserver::{Client, EXHAUST_ALLOWED, Set, World, pause, run};

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
