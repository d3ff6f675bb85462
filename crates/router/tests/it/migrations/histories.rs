//! What sessions have done goes along with a range: a write that is sent again is not carried out again (SYS-230).

use super::*;

pub(super) fn lsid(n: u8) -> Document {
    let mut lsid = Document::new();
    lsid.push("id", Bson::Binary(pando_bson::Binary { subtype: 4, bytes: vec![n; 16] }));
    lsid
}
fn retryable(mut command: Document, session: u8, number: i64) -> Document {
    command.push("lsid", lsid(session));
    command.push("txnNumber", number);
    command
}
fn updates(k: i64, u: Document, upsert: bool) -> Document {
    let mut command = doc! { "update": "c" };
    let mut one = doc! { "q": doc! { "k": k }, "upsert": upsert };
    one.push("u", u);
    command.push("updates", vec![Bson::from(one)]);
    command
}
fn find_and_modify(k: i64, new: bool) -> Document {
    let mut command = doc! { "findAndModify": "c", "new": new };
    command.push("query", doc! { "k": k });
    command.push("update", doc! { "$inc": doc! { "n": 1 } });
    command
}
/// What must be the same when it is told again.
fn told(reply: &Document) -> Document {
    let names = ["n", "nModified", "upserted", "value", "lastErrorObject", "ok"];
    let mut told = Document::new();
    for name in names {
        reply.get(name).iter().for_each(|v| told.push(name, (*v).clone()));
    }
    told
}

#[test]
fn a_write_that_is_sent_again_behind_a_move_is_not_carried_out_again() {
    run(async {
        let (mut cluster, mut c) = cluster("c", 300).await;
        let mut inserts = doc! { "insert": "c" };
        inserts.push(
            "documents",
            vec![doc! { "_id": 1000, "k": 150 }.into(), doc! { "_id": 1001, "k": 151 }.into()],
        );
        let mut deletes = doc! { "delete": "c" };
        deletes.push("deletes", vec![Bson::from(doc! { "q": doc! { "k": 160 }, "limit": 1 })]);
        let mut remove = doc! { "findAndModify": "c", "remove": true };
        remove.push("query", doc! { "k": 161 });
        let commands = [
            retryable(inserts, 1, 1),
            retryable(updates(152, doc! { "$inc": doc! { "n": 1 } }, false), 2, 1),
            retryable(updates(199, doc! { "$inc": doc! { "n": 1 } }, true), 3, 7),
            retryable(deletes, 4, 1),
            retryable(find_and_modify(153, false), 5, 1),
            retryable(find_and_modify(154, true), 6, 1),
            retryable(remove, 7, 1),
            retryable(updates(100_000, doc! { "$set": doc! { "n": 1 } }, true), 8, 1),
        ];
        let mut first = Vec::new();
        for command in &commands {
            first.push(told(&c.ok(command.clone()).await));
        }
        let mut put_back = doc! { "insert": "c" };
        put_back.push(
            "documents",
            vec![doc! { "_id": 160, "k": 160 }.into(), doc! { "_id": 161, "k": 161 }.into()],
        );
        c.ok(put_back).await;
        // It has gone on since: what it did before is asked for by nobody.
        c.ok(retryable(updates(155, doc! { "$inc": doc! { "n": 1 } }, false), 9, 1)).await;
        c.ok(retryable(updates(156, doc! { "$inc": doc! { "n": 1 } }, false), 9, 2)).await;
        let before = c.all(doc! { "find": "c", "sort": doc! { "_id": 1 } }).await;
        for (round, (from, to)) in [(0, "s1"), (1, "s0"), (0, "s1")].into_iter().enumerate() {
            let mut shard = cluster.shard(from).await;
            shard.ok(move_range("c", to, 100, Bson::MaxKey)).await;
            if round == 2 {
                // It knows from its log what it was told.
                cluster.restart_shard(1).await;
            }
            for (command, first) in commands.iter().zip(&first) {
                let reply = c.ok(command.clone()).await;
                assert_eq!(&told(&reply), first, "round {round}: {command:?}: {reply:?}");
            }
            let after = c.all(doc! { "find": "c", "sort": doc! { "_id": 1 } }).await;
            assert_eq!(after, before, "round {round}");
            let old = c.run(retryable(updates(155, doc! { "$inc": doc! { "n": 1 } }, false), 9, 1)).await;
            assert_eq!(old.get("code").and_then(Bson::as_i64), Some(225), "{old:?}");
        }
        cluster.shut_down().await;
    });
}

/// Of one writer.
const SESSIONS: u8 = 40;

/// Each increment is sent twice, while its range goes there and back.
#[test]
fn increments_that_are_sent_again_while_a_range_moves_count_once() {
    run(async {
        let (cluster, mut c) = cluster("c", 200).await;
        let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let mut writers = Vec::new();
        for w in 0..4_u8 {
            let (mut own, stop) = (cluster.router(0).await, stop.clone());
            writers.push(spawn(async move {
                let (mut done, mut sent) = (0, std::collections::BTreeMap::new());
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    let k = (i64::from(w) * 50 + done * 7) % 200;
                    // It comes again when its session has its next turn: its range may have moved meanwhile.
                    let session = 20 + w * SESSIONS + (done % i64::from(SESSIONS)) as u8;
                    if let Some(before) = sent.remove(&session) {
                        own.ok(before).await;
                    }
                    let inc = retryable(updates(k, doc! { "$inc": doc! { "n": 1 } }, false), session, done);
                    own.ok(inc.clone()).await;
                    sent.insert(session, inc);
                    done += 1;
                }
                for again in sent.into_values() {
                    own.ok(again).await;
                }
                done
            }));
        }
        for round in 0..6 {
            let mut shard = cluster.shard(round % 2).await;
            shard.ok(move_range("c", if round % 2 == 0 { "s1" } else { "s0" }, 20, 180)).await;
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        let mut increments = 0;
        for writer in writers {
            increments += writer.await.unwrap();
        }
        let all = c.all(doc! { "find": "c" }).await;
        let sum: i64 = all.iter().filter_map(|d| d.get("n").and_then(Bson::as_i64)).sum();
        assert_eq!((all.len(), sum), (200, increments));
        cluster.shut_down().await;
    });
}

/// Its old key is in the range, the new one is not: the retry asks by the old one.
#[test]
fn a_write_that_changed_a_shard_key_is_known_where_its_old_key_is() {
    run(async {
        let (cluster, mut c) = cluster("c", 10).await;
        let mut two = doc! { "insert": "c" };
        two.push(
            "documents",
            vec![
                doc! { "_id": 1000, "k": 12, "t": 90 }.into(),
                doc! { "_id": 1001, "k": 12, "t": 91 }.into(),
            ],
        );
        c.ok(two).await;
        let mut one = doc! { "q": doc! { "k": 12 } };
        one.push("u", vec![Bson::from(doc! { "$set": doc! { "k": "$t" } })]);
        let mut update = doc! { "update": "c" };
        update.push("updates", vec![Bson::from(one)]);
        let update = retryable(update, 40, 1);
        let first = told(&c.ok(update.clone()).await);
        let mut shard = cluster.shard(0).await;
        shard.ok(move_range("c", "s1", 10, 20)).await;
        // The router learns where the range is: the donor would know, too.
        assert_eq!(c.all(doc! { "find": "c", "filter": doc! { "k": 12 } }).await.len(), 1);
        let again = c.ok(update).await;
        assert_eq!(told(&again), first);
        assert!(again.get("retriedStmtIds").is_some(), "{again:?}");
        assert_eq!(c.all(doc! { "find": "c", "filter": doc! { "k": 12 } }).await.len(), 1);
        cluster.shut_down().await;
    });
}
