//! When a donor lets writes wait: once its recipient has caught up, and no sooner (SYS-222).

use super::*;
use pando_testserver::STEP;

#[test]
fn a_donor_lets_clients_write_until_its_recipient_has_caught_up() {
    run(async {
        let (cluster, mut c) = cluster("c", 100).await;
        let (mut free, mut blocked, mut late) = (0, 0, 0);
        for step in 0..18 {
            let (from, to) = (step % 2, 1 - step % 2);
            let (mut donor, mut recipient) = (cluster.shard(from).await, cluster.shard(to).await);
            // The recipient stands still before one of its steps.
            let mut hang = doc! { "configureFailPoint": STEP };
            hang.push("mode", doc! { "skip": step as i32 });
            let entered = recipient.admin(hang).await.get("count").and_then(Bson::as_i64).unwrap();
            let mut mover = cluster.shard(from).await;
            let moved = move_range("c", &format!("s{to}"), 10, 90);
            let moved = spawn(async move { mover.run(moved).await });
            let mut stands =
                doc! { "waitForFailPoint": STEP, "timesEntered": entered + 1, "maxTimeMS": 2_000 };
            stands.push("$db", "admin");
            let stands = recipient.run(stands).await;
            // What goes on without it comes to its rest.
            pause(100).await;
            loop {
                let sections = doc! { "find": "collection_critical_sections", "$db": "config" };
                let waits = !donor.all(sections).await.is_empty();
                let chunk = doc! { "find": "chunks", "filter": doc! { "min.k": 10 }, "$db": "config" };
                let of = c.all(chunk).await.first().and_then(|chunk| chunk.get("shard").cloned());
                if waits || of == Some(format!("s{to}").into()) {
                    blocked += 1;
                    let range: Vec<i64> = (10..90).collect();
                    let has: Vec<i64> = there(&cluster, to, "c").await;
                    assert!(range.iter().all(|k| has.contains(k)), "step {step}: {has:?}");
                    break;
                }
                let mut update = doc! { "update": "c" };
                let change = doc! { "q": doc! { "k": 50 }, "u": doc! { "$inc": doc! { "n": 1 } } };
                update.push("updates", vec![Bson::from(change)]);
                update.push("maxTimeMS", 1_000);
                let reply = c.run(update).await;
                if reply.get("ok").and_then(Bson::as_f64) == Some(1.0) {
                    free += 1;
                    break;
                }
                // The donor has gone on meanwhile.
                late += 1;
                assert!(late < 5, "step {step}: {reply:?}");
            }
            recipient.admin(doc! { "configureFailPoint": STEP, "mode": "off" }).await;
            let reply = moved.await.unwrap();
            assert!(
                stands.get("ok").and_then(Bson::as_f64) == Some(1.0) || step > 8,
                "step {step}: {stands:?}"
            );
            assert_eq!(reply.get("ok").and_then(Bson::as_f64), Some(1.0), "step {step}: {reply:?}");
        }
        assert!(free > 4 && blocked > 4, "{free} steps before, {blocked} behind");
        let changed = c.all(doc! { "find": "c", "filter": doc! { "k": 50 } }).await;
        let n = changed.iter().filter_map(|d| d.get("n").and_then(Bson::as_i64)).sum::<i64>();
        assert!(changed.len() == 1 && n >= free && n <= free + late, "{n} of {free}");
        cluster.shut_down().await;
    });
}
