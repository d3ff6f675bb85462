//! Who writes, who follows whom.

use pando_bson::{Bson, Document, doc};
use pando_sim::rig::{Rig, words::*};

#[test]
fn only_the_primary_takes_writes_and_a_chain_acknowledges() {
    let rig = Rig::of(1, 3);
    let p = rig.primary();
    let rest = rig.others(p);
    for &s in &rest {
        let refused = rig.ask(s, insert(1, w(1)));
        assert_eq!(code(&refused), 10107, "{refused:?}");
    }
    // The last one cannot reach the primary.
    let [_, middle, last] = rig.chain();
    rig.part(p, last);
    assert_eq!(rig.source_of(middle), Some(p));
    let done = rig.ok(p, insert(2, w(3)));
    assert_eq!(number(&done, "n"), 1);
    assert_eq!(ids(&rig.ok(last, find("local"))), [0, 2]);
    rig.heal();
}

#[test]
fn a_secondary_pulls_and_catches_up_by_itself() {
    let rig = Rig::of(2, 3);
    let p = rig.primary();
    rig.ok(p, insert(1, w(3)));
    let s = rig.others(p)[0];
    rig.isolate(s);
    for i in 2..40 {
        rig.ok(p, insert(i, w(2)));
    }
    assert_eq!(ids(&rig.ok(s, find("local"))), [1]);
    rig.heal();
    rig.until("the secondary to have everything", |rig| ids(&rig.ok(s, find("local"))).len() == 39);
    // It asked: the primary has answered its cursors, and made no calls but heartbeats and votes.
    let metrics = rig.admin(p, doc! { "serverStatus": 1 });
    assert!(number(&metrics, "metrics.commands.getMore.total") > 0, "{metrics:?}");
}

/// Nothing is pushed: what a secondary is asked while its primary writes are heartbeats and this test's own questions.
#[test]
fn a_primary_sends_its_secondaries_no_entries() {
    let rig = Rig::of(7, 3);
    let p = rig.primary();
    rig.ok(p, insert(0, w(3)));
    let served = |rig: &Rig, i: usize| -> Vec<(String, i64)> {
        let status = rig.admin(i, doc! { "serverStatus": 1 });
        let all = at(&status, "metrics.commands").and_then(Bson::as_doc).expect("counters of commands");
        all.iter()
            .filter_map(|(name, c)| Some((name.to_owned(), c.as_doc()?.get("total")?.as_i64()?)))
            .collect()
    };
    let before: Vec<_> = (0..3).map(|i| served(&rig, i)).collect();
    for i in 1..60 {
        rig.ok(p, insert(i, w(3)));
    }
    for s in rig.others(p) {
        let grown: Vec<String> = served(&rig, s)
            .into_iter()
            .filter(|(name, n)| before[s].iter().find(|(b, _)| b == name).is_none_or(|(_, b)| n > b))
            .map(|(name, _)| name)
            .collect();
        // A member behind another one asks and reports there.
        let expected = [
            "replSetHeartbeat",
            "serverStatus",
            "hello",
            "find",
            "getMore",
            "replSetUpdatePosition",
            "replSetGetRBID",
        ];
        assert!(grown.iter().all(|name| expected.contains(&name.as_str())), "{grown:?}");
    }
    // It is the secondaries that hold connections to the primary's oplog.
    let open = rig.admin(p, doc! { "serverStatus": 1 });
    assert!(number(&open, "metrics.cursor.open.total") >= 1, "{open:?}");
    assert_eq!(ids(&rig.ok(rig.others(p)[0], find("local"))).len(), 60);
}

/// Two primaries for a moment: equal timestamps of different terms stay apart, and the newer term wins.
#[test]
fn two_primaries_write_in_different_terms_and_one_history_remains() {
    let rig = Rig::of(3, 3);
    let old = rig.primary();
    rig.ok(old, insert(1, w(3)));
    rig.isolate(old);
    let lonely = rig.start(old, insert(2, doc! { "w": 1 }));
    rig.until("another primary", |rig| rig.others(old).into_iter().any(|i| rig.is_primary(i)));
    let new = rig.others(old).into_iter().find(|i| rig.is_primary(*i)).unwrap();
    let first = rig.ok(new, insert(3, majority()));
    let lonely = lonely.answer().expect("an answer with w: 1");
    assert!(number(&first, "opTime.t") > number(&lonely, "opTime.t"), "{first:?} {lonely:?}");
    rig.heal();
    rig.until("the old primary to roll back and follow", |rig| {
        let found = rig.ask(old, find("local"));
        found.get("ok").is_some_and(Bson::is_truthy) && ids(&found) == [1, 3]
    });
    let hash = |i| rig.ok(i, anywhere(doc! { "dbHash": 1 })).get("md5").cloned();
    assert_eq!(hash(old), hash(new));
    rig.until("majority reads after the rollback", |rig| {
        let found = rig.ask(old, find("majority"));
        found.get("ok").is_some_and(Bson::is_truthy) && ids(&found) == [1, 3]
    });
}

#[test]
fn a_term_never_falls_and_every_message_carries_it() {
    let rig = Rig::of(4, 3);
    let mut terms = vec![0; 3];
    for round in 0..3 {
        let p = rig.primary();
        rig.ok(p, insert(round, majority()));
        for (i, term) in terms.iter_mut().enumerate() {
            let now = number(&rig.status(i), "term");
            assert!(now >= *term, "member {i} went from term {term} to {now}");
            *term = now;
        }
        rig.ask(p, doc! { "replSetStepDown": 10, "secondaryCatchUpPeriodSecs": 5, "$db": "admin" });
        // Its own step-down period ends before the next one's begins: somebody must be electable.
        rig.wait_ms(11_000);
        rig.until("another primary", |rig| rig.primary_now().is_some_and(|i| i != p));
    }
    assert!(terms.iter().all(|t| *t >= 3), "{terms:?}");
    let p = rig.primary();
    let s = rig.others(p)[0];
    // Asked as members ask: heartbeats, oplog queries.
    let beat = doc! { "replSetHeartbeat": "rs0", "configVersion": 1, "configTerm": 1, "hbv": 1,
    "from": rig.nodes[s].addr(), "fromId": s as i32, "term": 1_i64, "primaryId": -1, "$db": "admin" };
    assert_eq!(number(&rig.ask(p, beat), "term"), number(&rig.status(p), "term"));
    let query = doc! { "find": "oplog.rs", "limit": 1, "$replData": 1, "$oplogQueryData": 1, "$db": "local" };
    let reply = rig.ok(p, query);
    assert_eq!(number(&reply, "$replData.term"), number(&rig.status(p), "term"));
    assert!(at(&reply, "$replData.lastOpVisible.t").is_some() && at(&reply, "$oplogQueryData").is_some());
}

/// Batches are applied by several workers; a reader sees them whole: what is there is always a prefix of the history.
#[test]
fn a_reader_of_a_secondary_sees_whole_batches() {
    let rig = Rig::of(5, 3);
    let p = rig.primary();
    rig.ok(p, insert(0, w(3)));
    let s = rig.others(p)[0];
    let mut different = 0;
    for round in 0..40 {
        // Several hundred entries at once, in the order of their ids.
        let docs: Vec<Bson> = (1..=300).map(|i| doc! { "_id": round * 300 + i }.into()).collect();
        let mut many = doc! { "insert": "c" };
        many.push("documents", docs);
        many.push("writeConcern", doc! { "w": 1 });
        let writing = rig.start(p, many);
        let mut seen = Vec::new();
        rig.until("the write to arrive", |rig| {
            let read = anywhere(doc! { "aggregate": "c", "cursor": {},
            "pipeline": [{ "$group": { "_id": 1, "n": { "$sum": 1 }, "last": { "$max": "$_id" } } }] });
            let found = rig.ok(s, read);
            let (n, last) =
                (number(&found, "cursor.firstBatch.0.n"), number(&found, "cursor.firstBatch.0.last"));
            assert_eq!(n, last + 1, "a hole in what a reader saw");
            seen.push(n);
            writing.answer().is_some() && n == i64::from(round + 1) * 300 + 1
        });
        seen.dedup();
        different += seen.len();
    }
    assert!(different > 40, "{different}");
}

#[test]
fn busy_clients_do_not_hold_up_heartbeats() {
    let rig = Rig::of(6, 3);
    let p = rig.primary();
    rig.ok(p, insert(0, w(3)));
    let term = number(&rig.status(p), "term");
    let waiting: Vec<_> = (0..3)
        .flat_map(|i| (0..200).map(move |_| i))
        .map(|i| {
            let mut ask = doc! { "hello": 1, "maxAwaitTimeMS": 60_000, "$db": "admin" };
            ask.push("topologyVersion", rig.hello(i).get("topologyVersion").cloned().unwrap());
            rig.start(i, ask)
        })
        .collect();
    for i in 1..60 {
        rig.ok(p, insert(i, w(3)));
        rig.wait_ms(500);
    }
    assert!(waiting.iter().all(|w| w.answer().is_none()), "connections that wait");
    assert_eq!((number(&rig.status(p), "term"), rig.is_primary(p)), (term, true));
}

/// Clients have taken every connection of the primary, and those of the members break: members find room again, clients are told
/// that there is none, and the primary stays.
#[test]
fn members_have_room_where_clients_have_none() {
    let rig = Rig::with_connections(8, 3, 60);
    let p = rig.primary();
    rig.ok(p, insert(0, w(3)));
    let term = number(&rig.status(p), "term");
    let version = rig.hello(p).get("topologyVersion").cloned().unwrap();
    let ask = || {
        let mut ask = doc! { "hello": 1, "maxAwaitTimeMS": 50_000, "$db": "admin" };
        ask.push("topologyVersion", version.clone());
        rig.start(p, ask)
    };
    let waiting: Vec<_> = (0..80).map(|_| ask()).collect();
    rig.wait_ms(1_000);
    let refused: Vec<Document> = waiting.iter().filter_map(|w| w.answer()).collect();
    assert!(!refused.is_empty() && refused.iter().all(|r| code(r) == 6), "{refused:?}");
    rig.world.net.reset_connections(|a, b| a.0 < 30_000 && b.0 < 30_000);
    // Whatever room that made is taken by clients again.
    let more: Vec<_> = (0..40).map(|_| ask()).collect();
    rig.wait_ms(40_000);
    assert!(more.iter().any(|w| w.answer().is_some_and(|r| code(&r) == 6)));
    rig.wait_ms(15_000);
    let status = rig.status(p);
    assert_eq!((number(&status, "term"), number(&status, "myState")), (term, 1));
    for i in 0..3 {
        assert_eq!(number(&status, &format!("members.{i}.health")), 1, "{status:?}");
    }
    rig.ok(p, insert(1, w(3)));
}
