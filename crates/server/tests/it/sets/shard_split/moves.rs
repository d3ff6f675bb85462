//! A split from its command to the end of its document.

use super::*;
use pando_testserver::run;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// Writes one document after another into a database of the donor until it is told to stop, or to go elsewhere. Returns how many were
/// acknowledged, and the last reply.
fn writer(mut c: Client, db: &'static str, stop: Arc<AtomicBool>) -> JoinHandle<(i32, Document)> {
    spawn(async move {
        let mut n = 0;
        loop {
            let reply = c.run(put(db, n)).await;
            if code(&reply) != 0 || reply.get("writeErrors").is_some() || stop.load(SeqCst) {
                return (n, reply);
            }
            n += 1;
        }
    })
}

async fn ids(c: &mut Client, db: &str) -> Vec<i64> {
    let all = c.all(anywhere(doc! { "find": "c", "sort": { "_id": 1 }, "$db": db })).await;
    all.iter().map(|d| number(d, "_id")).collect()
}

#[test]
fn tenants_move_to_a_set_of_their_own_and_their_clients_are_told() {
    run(async {
        let d = Donor::start().await;
        let stop = Arc::new(AtomicBool::new(false));
        let writes = |c, db| writer(c, db, stop.clone());
        let (acme, other) = (writes(d.client().await, "acme_db"), writes(d.client().await, "other_db"));
        pause(300).await;
        let reply = d.split(1, &["acme", "zeta"]).await;
        assert_eq!(reply.get("state"), Some(&"committed".into()), "{reply:?}");
        let (acked, refused) = acme.await.expect("it writes");
        assert_eq!(code(&refused), 321, "{refused:?}");
        stop.store(true, SeqCst);
        let (of_other, _) = other.await.expect("it writes");
        assert!(acked > 0 && of_other > acked, "{acked} {of_other}");

        // What was acknowledged is there, and the new set takes writes.
        let p = d.new_primary().await;
        let mut new = d.set.connect(p).await;
        assert_eq!(ids(&mut new, "acme_db").await, (0..i64::from(acked)).collect::<Vec<_>>());
        new.ok(put("acme_db", -1)).await;
        new.ok(put("zeta_db", -1)).await;
        for i in 3..6 {
            let hello = d.set.hello(i).await;
            assert_eq!(hello.get("setName"), Some(&RECIPIENT.into()), "{hello:?}");
            assert!(
                d.state(p, 1).await.is_none(),
                "what the old set knows of the split is not the new one's business"
            );
        }
        // The old one tells them so, whatever they ask, and serves its other tenants.
        let mut old = d.client().await;
        for command in [
            put("acme_db", 9999),
            look("acme_db"),
            doc! { "count": "c", "$db": "acme_db" },
            doc! { "create": "d", "$db": "acme_db" },
            doc! { "createIndexes": "c", "indexes": [{ "key": { "a": 1 }, "name": "a" }], "$db": "acme_db" },
            doc! { "dropDatabase": 1, "$db": "acme_db" },
        ] {
            assert_eq!(code(&old.run(command.clone()).await), 321, "{command:?}");
        }
        for i in 0..3 {
            d.until_told(i, "acme_db", 321).await;
            d.until_told(i, "other_db", 0).await;
        }
        old.ok(put("other_db", -1)).await;
        let config = d.set.current(d.primary().await).await;
        assert_eq!(at(&config, "members").and_then(Bson::as_array).map(<[Bson]>::len), Some(3), "{config:?}");
        d.done().await;
    });
}

#[test]
fn a_split_is_forgotten_when_somebody_says_so() {
    run(async {
        let d = Donor::start().await;
        for i in 0..3 {
            let delay = doc! { "setParameter": 1, "shardSplitGarbageCollectionDelayMS": 1500 };
            d.set.connect(i).await.admin(delay).await;
        }
        assert_eq!(code(&d.ask(of_split("forgetShardSplit", 1)).await), 327);
        d.client().await.ok(put("acme_db", 1)).await;
        let reply = d.split(1, &["acme"]).await;
        assert_eq!(reply.get("state"), Some(&"committed".into()), "{reply:?}");
        // Whoever asks again hears the same.
        let again = d.split(1, &["acme"]).await;
        assert_eq!(again.get("state"), Some(&"committed".into()), "{again:?}");
        assert_eq!(code(&d.split(1, &["beta"]).await), 117, "other tenants");
        assert_eq!(code(&d.split(2, &["acme"]).await), 117, "the tenant is part of another one");
        assert_eq!(code(&d.ask(of_split("abortShardSplit", 1)).await), 321);
        let p = d.primary().await;
        let state = d.state(p, 1).await.expect("a document");
        assert!(state.get("blockTimestamp").is_some() && state.get("expireAt").is_none(), "{state:?}");

        let reply = d.ask(of_split("forgetShardSplit", 1)).await;
        assert_eq!(code(&reply), 0, "{reply:?}");
        let state = d.state(p, 1).await.expect("a document");
        assert!(state.get("expireAt").is_some(), "{state:?}");
        assert_eq!(code(&d.client().await.run(look("acme_db")).await), 321, "until the document goes");
        for i in 0..3 {
            d.set.until("it is gone", async |_| d.state(i, 1).await.is_none()).await;
            d.until_told(i, "acme_db", 0).await;
        }
        // What is left of the tenant is the caller's business (SV-GC-2).
        d.client().await.ok(put("acme_db", 2)).await;
        d.done().await;
    });
}

#[test]
fn two_splits_at_once_go_one_after_the_other() {
    run(async {
        let d = Donor::beside(3).await;
        let p = d.primary().await;
        let mut config = d.set.current(p).await;
        let version = number(&config, "version");
        config.set("version", version + 1);
        let mut members = at(&config, "members").and_then(Bson::as_array).expect("members").to_vec();
        for i in 6..9 {
            let mut m =
                doc! { "_id": i as i32, "host": d.set.host(i), "votes": 0, "priority": 0, "hidden": true };
            m.push("tags", doc! { "goes": format!("g{i}") });
            members.push(m.into());
        }
        config.set("members", members);
        let mut reply = d.set.reconfig(config.clone(), false).await;
        while code(&reply) == 109 {
            pause(20).await;
            reply = d.set.reconfig(config.clone(), false).await;
        }
        assert_eq!(code(&reply), 0, "{reply:?}");
        d.client().await.ok(put("acme_db", 1)).await;
        d.client().await.ok(put("zeta_db", 1)).await;
        let mut other = split(2, &["zeta"]);
        other.set("recipientTagName", "goes");
        other.set("recipientSetName", "second");
        // One that was never begun, and one that nobody has forgotten, stay with the old set.
        assert_eq!(code(&d.ask(of_split("abortShardSplit", 3)).await), 0);
        let both: Vec<_> = [split(1, &["acme"]), other]
            .into_iter()
            .map(|command| {
                let port = d.set.host(p).rsplit(':').next().and_then(|p| p.parse().ok()).expect("a port");
                spawn(async move { Client::connect(port).await.run(command).await })
            })
            .collect();
        for one in both {
            let reply = one.await.expect("it ends");
            assert_eq!(reply.get("state"), Some(&"committed".into()), "{reply:?}");
        }
        for (members, name, db) in [([3, 4, 5], RECIPIENT, "acme_db"), ([6, 7, 8], "second", "zeta_db")] {
            let p = d.primary_of(&members, name).await;
            d.set.connect(p).await.ok(put(db, 2)).await;
            for id in 1..4 {
                d.set
                    .until("nothing of the old set's is left", async |_| d.state(p, id).await.is_none())
                    .await;
            }
        }
        for db in ["acme_db", "zeta_db"] {
            assert_eq!(code(&d.client().await.run(look(db)).await), 321);
        }
        d.done().await;
    });
}
