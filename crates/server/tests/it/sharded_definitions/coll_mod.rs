//! `collMod` of a collection with parts on two shards, while the primary that coordinates it ends, or steps down.

use super::*;
use pando_base::Timestamp;

/// One change of everything that is looked at.
fn change(n: i32) -> Document {
    let mut change = doc! { "collMod": "c", "index": { "name": "at_1", "expireAfterSeconds": 7200 + n } };
    change.push("validator", doc! { "n": doc! { "$lt": n } });
    change.push("$db", "test");
    change
}
/// As one shard has it.
async fn definition(c: &mut Client, coll: &str) -> (Option<Document>, Document) {
    let mut list = doc! { "listCollections": 1 };
    list.push("filter", doc! { "name": coll });
    let listed = c.all(list).await;
    let options = listed[0].get("options").and_then(Bson::as_doc).cloned();
    let indexes = c.all(doc! { "listIndexes": coll }).await;
    let index = indexes.into_iter().find(|d| d.get("name").and_then(Bson::as_str) != Some("_id_"));
    (options.and_then(|o| o.get("validator").and_then(Bson::as_doc).cloned()), index.unwrap())
}
fn is_of(definition: &(Option<Document>, Document), n: i32) -> bool {
    definition.0 == Some(doc! { "n": doc! { "$lt": n } })
        && number(&definition.1, "expireAfterSeconds") == i64::from(7200 + n)
}
async fn on_both(b: &Bench, coll: &str) -> [(Option<Document>, Document); 2] {
    [
        definition(&mut b.shard_primary().await, coll).await,
        definition(&mut b.cluster.shard(0).await, coll).await,
    ]
}
/// Sharded by `_id`, with a part on each shard.
async fn collection(b: &Bench) {
    let mut c = b.router().await;
    zones(&mut c, "test.c").await;
    c.ok(shard("test.c", doc! { "_id": 1 })).await;
    let mut create = doc! { "createIndexes": "c" };
    let index = doc! { "key": { "at": 1 }, "name": "at_1", "expireAfterSeconds": 7200 };
    create.push("indexes", vec![Bson::from(index)]);
    create.push("$db", "test");
    c.ok(create).await;
    c.ok(change(0)).await;
}

/// It is asked for once: whoever is primary by then has all shards follow.
async fn every_step(end: End) {
    let (mut b, mut n, mut done_unheard) = (bench().await, 0, 0);
    collection(&b).await;
    let mut is = 0;
    for round in 1..STEPS_MAX as i32 {
        let office = b.office().await;
        let primary = office.0;
        b.set.hang_at(primary, n).await;
        let before = b.set.entered(primary);
        // In turns through a router, which sends it again to the next primary, and from somebody who does not.
        let is_direct = round % 2 == 0;
        let mut c = if is_direct { b.set.connect(primary).await } else { b.router().await };
        let name = if is_direct { "_shardsvrCollMod" } else { "collMod" };
        let mut command = Document::new();
        change(round).iter().for_each(|(field, v)| {
            command.push(if field == "collMod" { name } else { field }, v.clone());
        });
        let task = spawn(async move { c.run(command).await });
        let hung = b.set.hangs(primary, before, &task).await;
        match hung {
            true => strike(&mut b, primary, end).await,
            false => b.set.fail_point(primary, STEP, false).await,
        }
        // Whoever has lost the connection hears nothing.
        let reply = task.await.unwrap_or_default();
        // There is a primary again, whoever was told.
        let mut warm = doc! { "insert": "warm" };
        warm.push("documents", vec![Bson::from(doc! { "n": round })]);
        warm.push("writeConcern", doc! { "w": "majority" });
        warm.push("$db", "test");
        b.until_ok(warm).await.unwrap();
        b.until_nothing_is_left().await;
        let [on_rs, on_s0] = on_both(&b, "c").await;
        assert_eq!(on_rs, on_s0, "before step {n}: {reply:?}");
        let is_told = number(&reply, "ok") == 1;
        assert!(
            is_of(&on_rs, round) || !is_told && is_of(&on_rs, is),
            "before step {n}: {on_rs:?} {reply:?}"
        );
        done_unheard += i32::from(is_of(&on_rs, round) && !is_told);
        is = if is_of(&on_rs, round) { round } else { is };
        // Another primary, elected by itself on a machine that is busy, takes the steps that were to be held; and who was refused has taken none.
        if !hung && is_told && b.office().await == office {
            assert!(
                n > 8 && done_unheard > 0,
                "{n} steps only, {done_unheard} of them were finished unheard: {reply:?}"
            );
            b.cluster.shut_down().await;
            b.set.shut_down().await;
            return;
        }
        n += usize::from(hung && !is_direct);
    }
    panic!("it does not end");
}

#[test]
fn a_modification_survives_a_step_down_before_each_of_its_steps() {
    run(every_step(End::Down));
}

#[test]
fn a_modification_survives_a_crash_before_each_of_its_steps() {
    run(every_step(End::Killed));
}

#[test]
fn who_modifies_otherwise_meanwhile_is_refused_and_what_comes_late_changes_nothing() {
    run(async {
        let b = bench().await;
        collection(&b).await;
        let (primary, first) = stopped(&b, 5, change(1)).await;
        let port = b.cluster.router_port(0);
        let same = spawn(async move { Client::connect(port).await.run(change(1)).await });
        let other = b.router().await.err(change(2)).await;
        assert_eq!(other.0, 117, "{other:?}");
        assert!(!first.is_finished() && !same.is_finished());
        b.set.fail_point(primary, STEP, false).await;
        for task in [first, same] {
            let reply = task.await.unwrap();
            assert_eq!(number(&reply, "expireAfterSeconds_new"), 7201, "{reply:?}");
        }
        let mut late = doc! { "_shardsvrCollModParticipant": "c" };
        late.push("validator", doc! {});
        late.push("writeConcern", doc! { "w": "majority" });
        late.push("$db", "test");
        let mut numbered = late.clone();
        numbered.push("timestamp", Bson::Timestamp(Timestamp::new(1, 1)));
        for mut c in [b.shard_primary().await, b.cluster.shard(0).await] {
            assert_eq!(c.err(numbered.clone()).await.0, 225);
        }
        let mut of_nobody = late;
        of_nobody.push("shardVersion", stale_version());
        assert_eq!(b.cluster.shard(0).await.err(of_nobody).await.0, 13388);
        for shard in on_both(&b, "c").await {
            assert!(is_of(&shard, 1), "{shard:?}");
        }
        b.cluster.shut_down().await;
        b.set.shut_down().await;
    });
}

/// Of a collection that is not sharded.
fn stale_version() -> Document {
    let mut version = doc! { "e": Bson::ObjectId(pando_bson::ObjectId([0; 12])) };
    version.push("t", Bson::Timestamp(Timestamp::ZERO));
    version.push("v", Bson::Timestamp(Timestamp::ZERO));
    version
}

/// Documents of another shard stand in the way: nothing has been changed, here neither.
#[test]
fn an_index_becomes_unique_on_all_shards_or_on_none() {
    run(async {
        let b = bench().await;
        let mut c = b.router().await;
        for (shard, zone, min, max) in ZONES {
            c.ok(doc! { "addShardToZone": shard, "zone": zone, "$db": "admin" }).await;
            let mut range = doc! { "updateZoneKeyRange": "test.u", "zone": zone };
            range.push("min", doc! { "k": min });
            range.push("max", doc! { "k": max });
            range.push("$db", "admin");
            c.ok(range).await;
        }
        c.ok(shard("test.u", doc! { "k": 1, "n": 1 })).await;
        let insert = |id: i32, k: i32| {
            let mut insert = doc! { "insert": "u", "$db": "test" };
            insert.push("documents", vec![Bson::from(doc! { "_id": id, "k": k, "n": 1 })]);
            insert
        };
        for (id, k) in [(1, 1), (2, 2000), (3, 2000)] {
            c.ok(insert(id, k)).await;
        }
        let to = |what: &str| {
            let mut change = doc! { "collMod": "u", "$db": "test" };
            let mut index = doc! { "name": "k_1_n_1" };
            index.push(what, true);
            change.push("index", index);
            change
        };
        c.ok(to("prepareUnique")).await;
        let refused = c.run(to("unique")).await;
        assert_eq!(number(&refused, "code"), 359, "{refused:?}");
        assert!(refused.get("violations").is_some(), "{refused:?}");
        for (_, index) in on_both(&b, "u").await {
            assert!(index.get("unique").is_none(), "{index:?}");
        }
        let mut delete = doc! { "delete": "u", "$db": "test" };
        delete.push("deletes", vec![Bson::from(doc! { "q": { "_id": 3 }, "limit": 0 })]);
        c.ok(delete).await;
        let told = c.ok(to("unique")).await;
        assert_eq!(told.get("unique_new"), Some(&Bson::Boolean(true)), "{told:?}");
        for (_, index) in on_both(&b, "u").await {
            assert_eq!(index.get("unique"), Some(&Bson::Boolean(true)), "{index:?}");
        }
        b.until_nothing_is_left().await;
        b.cluster.shut_down().await;
        b.set.shut_down().await;
    });
}
