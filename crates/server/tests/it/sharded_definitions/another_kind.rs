//! A definition of another kind, which comes while the next primary goes on with one (SYS-261).

use super::*;

#[test]
fn a_definition_of_another_kind_waits_for_the_one_that_the_next_primary_takes_up() {
    run(async {
        let b = bench().await;
        let mut c = b.router().await;
        zones(&mut c, "test.c").await;
        c.ok(shard("test.c", doc! { "_id": 1 })).await;
        c.ok(doc! { "insert": "c", "documents": [doc! { "_id": 1 }, doc! { "_id": 1001 }] }).await;
        give_ranges(&mut c, "test.c", false).await;

        // The primary stands still amid the drop, and whoever comes next before the first step that it takes up.
        let first = b.set.primary().await;
        for i in 0..3 {
            b.set.hang_at(i, if i == first { 6 } else { 0 }).await;
        }
        let before = b.set.entered(first);
        let drop = b.until_ok(doc! { "drop": "c", "$db": "test" });
        assert!(b.set.hangs(first, before, &drop).await, "the drop has no such step");
        // What it keeps is on a majority, and so known to whoever comes next.
        let kind = |left: &[Document]| {
            assert_eq!(left.len(), 1, "{left:?}");
            // It has its locks: before that it has done nothing, and whoever comes may come first.
            assert_eq!(left[0].get("phase").and_then(Bson::as_str), Some("drop"), "{left:?}");
            let id = left[0].get("_id").and_then(Bson::as_doc).cloned().unwrap();
            id.get("operationType").and_then(Bson::as_str).map(str::to_owned)
        };
        let state = doc! { "find": "system.sharding_ddl_coordinators", "$db": "config" };
        let of_drop = kind(&b.shard_primary().await.all(state.clone()).await);
        let mut warm = doc! { "insert": "warm", "documents": [doc! { "_id": 1 }], "$db": "test" };
        warm.push("writeConcern", doc! { "w": "majority" });
        c.ok(warm).await;
        let entered: Vec<_> = (0..3).map(|i| b.set.entered(i)).collect();
        let forced = doc! { "replSetStepDown": 20, "secondaryCatchUpPeriodSecs": 1, "force": true };
        b.set.connect(first).await.admin(forced).await;
        b.set.fail_point(first, STEP, false).await;
        let next = b.set.primary().await;
        assert_ne!(next, first);
        assert!(b.set.hangs(next, entered[next], &drop).await, "nothing was taken up");

        let rename = {
            let port = b.cluster.router_port(0);
            spawn(async move {
                let rename = doc! { "renameCollection": "test.c", "to": "test.d", "$db": "admin" };
                Client::connect(port).await.run(rename).await
            })
        };
        pause(500).await;
        assert!(!rename.is_finished() && !drop.is_finished());
        assert_eq!(kind(&b.set.connect(next).await.all(state).await), of_drop, "both go on");
        for i in (0..3).filter(|i| *i != first) {
            b.set.fail_point(i, STEP, false).await;
        }
        drop.await.unwrap();
        let refused = rename.await.unwrap();
        assert_eq!(number(&refused, "code"), 26, "{refused:?}");
        b.until_nothing_is_left().await;
        for coll in ["c", "d"] {
            assert_eq!(ids(&mut c, coll).await, [0; 0]);
        }
        b.cluster.shut_down().await;
        b.set.shut_down().await;
    });
}
