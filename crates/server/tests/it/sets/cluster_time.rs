//! Signed cluster times (SYS-272).

use pando_base::Timestamp;
use pando_bson::{Binary, Bson, Document, doc};
use pando_testserver::{Client, Set, pause, run};

fn time_of(reply: &Document) -> Document {
    reply.get("$clusterTime").and_then(Bson::as_doc).expect("a time").clone()
}
fn key_of(time: &Document) -> i64 {
    time.get("signature").and_then(Bson::as_doc).and_then(|s| s.get("keyId")?.as_i64()).unwrap()
}
fn clock_of(time: &Document) -> Timestamp {
    match time.get("clusterTime") {
        Some(Bson::Timestamp(ts)) => *ts,
        other => panic!("{other:?}"),
    }
}
async fn ping(c: &mut Client, time: &Document) -> Document {
    c.run(doc! { "ping": 1, "$db": "admin", "$clusterTime": time.clone() }).await
}
async fn refused(c: &mut Client, time: &Document) -> i64 {
    ping(c, time).await.get("code").and_then(Bson::as_i64).expect("an error")
}
/// A time that is signed with another key than `before`.
async fn signed(c: &mut Client, before: i64) -> Document {
    for _ in 0..200 {
        let time = time_of(&c.admin(doc! { "ping": 1 }).await);
        if key_of(&time) != before {
            return time;
        }
        // Time moves on by writing.
        c.run(doc! { "insert": "c", "documents": [{}] }).await;
        pause(100).await;
    }
    panic!("key {before} signs for ever");
}

#[test]
fn a_time_that_no_member_signed_moves_no_clock() {
    run(async {
        let set = Set::configured(2, |c| c.signs_cluster_times = true).await;
        let (mut primary, secondary) = (set.connect(set.primary().await).await, set.secondaries().await[0]);
        let mut other = set.connect(secondary).await;
        let time = signed(&mut primary, 0).await;
        // Both sign and accept by the same key.
        let told = signed(&mut other, 0).await;
        assert_eq!(ping(&mut other, &time).await.get("ok"), Some(&Bson::Double(1.0)));
        assert_eq!(ping(&mut primary, &told).await.get("ok"), Some(&Bson::Double(1.0)));

        let ahead = Timestamp::new(clock_of(&time).secs() + 1000, 1);
        let mut forged = time.clone();
        forged.set("clusterTime", ahead);
        assert_eq!(refused(&mut other, &forged).await, 204, "a signature of another time");
        let unsigned = Bson::Binary(Binary { subtype: 0, bytes: vec![0; 20] });
        forged.set("signature", doc! { "hash": unsigned, "keyId": 0_i64 });
        assert_eq!(refused(&mut other, &forged).await, 211, "no signature");
        let now = time_of(&other.admin(doc! { "ping": 1 }).await);
        assert!(clock_of(&now) < ahead);
        set.shut_down().await;
    });
}

#[test]
fn the_next_key_is_there_before_it_is_needed() {
    run(async {
        let set = Set::configured(2, |c| {
            c.signs_cluster_times = true;
            c.params.set_at_startup("KeysRotationIntervalSec", "2").expect("a known parameter");
        })
        .await;
        let mut primary = set.connect(set.primary().await).await;
        let mut other = set.connect(set.secondaries().await[0]).await;
        let first = key_of(&signed(&mut primary, 0).await);
        let second = key_of(&signed(&mut primary, first).await);
        let third = signed(&mut primary, second).await;
        assert!(
            0 < first && first < second && second < key_of(&third),
            "{first} {second} {}",
            key_of(&third)
        );
        assert_eq!(ping(&mut other, &third).await.get("ok"), Some(&Bson::Double(1.0)));
        let keys = primary.all(doc! { "find": "system.keys", "$db": "admin" }).await;
        assert!(keys.len() >= 3, "{}", keys.len());
        set.shut_down().await;
    });
}

/// As MongoDB without authentication: keys are there, but nothing is signed, and any client's time is taken.
#[test]
fn without_authentication_times_are_not_signed() {
    run(async {
        let set = Set::of(1).await;
        let mut c = set.connect(0).await;
        let time = time_of(&c.admin(doc! { "ping": 1 }).await);
        assert_eq!(key_of(&time), 0);
        let mut later = time.clone();
        let ahead = Timestamp::new(clock_of(&time).secs() + 1000, 1);
        later.set("clusterTime", ahead);
        assert!(clock_of(&time_of(&ping(&mut c, &later).await)) >= ahead);
        set.until("it has two keys", async |set| {
            let find = doc! { "find": "system.keys", "$db": "admin" };
            set.connect(0).await.all(find).await.len() == 2
        })
        .await;
        set.shut_down().await;
    });
}

/// Another shard's time: nobody writes here, and who reads on a secondary does not wait for the next periodic entry.
#[test]
fn a_time_from_elsewhere_is_soon_there_on_a_secondary() {
    run(async {
        let set = Set::of(2).await;
        let (mut primary, mut other) =
            (set.connect(set.primary().await).await, set.connect(set.secondaries().await[0]).await);
        primary.admin(doc! { "setParameter": 1, "writePeriodicNoops": false }).await;
        primary
            .ok(doc! { "insert": "c", "documents": [{}], "writeConcern": { "w": 2, "wtimeout": 30_000 } })
            .await;
        for level in ["local", "majority"] {
            let mut time = time_of(&primary.admin(doc! { "ping": 1 }).await);
            let ahead = Timestamp::new(clock_of(&time).secs() + 5, 1);
            time.set("clusterTime", ahead);
            let mut read = doc! { "count": "c", "maxTimeMS": 20_000, "$clusterTime": time };
            read.push("readConcern", doc! { "level": level, "afterClusterTime": ahead });
            read.push("$readPreference", doc! { "mode": "secondary" });
            assert_eq!(other.ok(read).await.get("n"), Some(&Bson::Int32(1)), "{level}");
        }
        set.shut_down().await;
    });
}
