//! A recipient's primary that ends between any two writes of the copier.

use super::all_kinds::{define, turn};
use super::*;
use pando_testserver::{run, spawn};

impl Pair {
    fn met(&self, i: usize) -> i64 {
        self.recipient.server(i).instance.fail_points.get(HANG).expect("it is known").times_entered()
    }
    async fn hang(&self, i: usize, n: usize) {
        let hang = doc! { "configureFailPoint": HANG, "mode": doc! { "skip": n as i32 } };
        self.recipient.connect(i).await.admin(hang).await;
    }
    /// Whether the step stands still at its `n`-th write of this process; else it has come to its end.
    async fn stands_still(&self, step: Document, n: usize) -> bool {
        let p = self.recipient.primary().await;
        self.hang(p, n).await;
        let before = self.met(p);
        let mut c = self.recipient.connect(p).await;
        let task = spawn(async move { c.try_run(step).await.unwrap_or_default() });
        loop {
            if self.met(p) > before {
                return true;
            }
            if task.is_finished() {
                let reply = task.await.expect("a reply");
                assert_eq!(code(&reply), 0, "{reply:?}");
                self.recipient.fail_point(p, HANG, false).await;
                return false;
            }
            pause(2).await;
        }
    }
}

#[test]
fn whoever_follows_next_goes_on_where_it_was() {
    run(async {
        let mut pair = Pair::of(1, 1).await;
        define(&mut pair.from().await).await;
        let start = pair.copy().await;
        pair.to().await.ok(doc! { "insert": "c", "documents": [{ "n": 1 }], "writeConcern": { "w": 1, "j": true }, "$db": "z_db" }).await;
        for i in 30..46 {
            turn(&mut pair.from().await, i).await;
        }
        pair.now().await;
        // Each process gets one write further than the one before, from wherever that has left it; what was written is on the disk or not.
        let mut kills = 0;
        while pair.stands_still(pair.follow(start), 1 + kills % 3).await {
            if kills % 2 == 0 {
                pause(150).await;
            }
            pair.recipient.kill(0).await;
            pair.recipient.restart(0).await;
            pair.recipient.settled().await;
            kills += 1;
            assert!(kills < 300, "it does not get on");
        }
        assert!(kills > 20, "{kills}");
        pair.catch_up(start).await;
        pair.same().await;
        pair.done().await;
    });
}

#[test]
fn a_primary_that_steps_down_or_ends_leaves_it_to_the_next_one() {
    run(async {
        let mut pair = Pair::of(3, 3).await;
        define(&mut pair.from().await).await;
        let start = pair.copy().await;
        pair.to()
            .await
            .ok(doc! { "insert": "c", "documents": [{ "n": 1 }], "writeConcern": majority(), "$db": "z_db" })
            .await;
        for i in 30..44 {
            turn(&mut pair.from().await, i).await;
        }
        pair.now().await;
        for kills in 0..4 {
            if !pair.stands_still(pair.follow(start), 2 + 3 * kills).await {
                break;
            }
            let p = pair.recipient.primary().await;
            if kills % 2 == 0 {
                pair.recipient.kill(p).await;
                pair.recipient.restart(p).await;
            } else {
                let down = doc! { "replSetStepDown": 5, "secondaryCatchUpPeriodSecs": 1, "force": true };
                pair.recipient.connect(p).await.admin(down).await;
                pair.recipient.fail_point(p, HANG, false).await;
            }
            pair.recipient.settled().await;
        }
        // The donor's primary changes as well: what follows needs the log only.
        let p = pair.donor.primary().await;
        pair.donor.kill(p).await;
        turn(&mut pair.from().await, 44).await;
        pair.donor.restart(p).await;
        pair.donor.settled().await;
        pair.catch_up(start).await;
        pair.same().await;
        pair.followers_have_the_same().await;
        pair.done().await;
    });
}

#[test]
fn a_copy_that_was_cut_off_begins_anew() {
    run(async {
        let mut pair = Pair::of(1, 1).await;
        define(&mut pair.from().await).await;
        for n in [0, 3, 8, 15, 40] {
            pair.to().await.ok(pair.step("clear")).await;
            if !pair.stands_still(pair.step("copy"), n).await {
                break;
            }
            pair.recipient.kill(0).await;
            pair.recipient.restart(0).await;
            pair.recipient.settled().await;
        }
        let start = pair.copy().await;
        turn(&mut pair.from().await, 30).await;
        pair.catch_up(start).await;
        pair.same().await;
        pair.done().await;
    });
}

/// Each part with the note of how far that is: nobody holds all of it in memory, and whoever goes on begins behind the last one that there is.
#[test]
fn a_transaction_of_many_entries_comes_in_parts_and_each_of_them_once() {
    run(async {
        let mut pair = Pair::of(1, 1).await;
        let mut c = pair.from().await;
        c.ok(doc! { "create": "c", "$db": "a_db" }).await;
        c.ok(doc! { "create": "c", "$db": "b_db" }).await;
        let start = pair.copy().await;
        pair.to().await.ok(doc! { "insert": "c", "documents": [{ "n": 1 }], "writeConcern": { "w": 1, "j": true }, "$db": "z_db" }).await;
        c.ok(doc! { "insert": "c", "documents": [{ "_id": -1 }], "$db": "a_db" }).await;
        let mut all = vec![-1];
        for i in 0..12 {
            let db = if i % 4 == 3 { "b_db" } else { "a_db" };
            let wide =
                doc! { "insert": "c", "documents": [{ "_id": i, "pad": "x".repeat(3_000_000) }], "$db": db };
            c.ok(within(wide, 1, 1, i == 0)).await;
            all.extend((i % 4 != 3).then_some(i64::from(i)));
        }
        // As if this one had not been there before.
        c.ok(within(doc! { "insert": "made", "documents": [{ "_id": 1 }], "$db": "a_db" }, 1, 1, false))
            .await;
        c.ok(commit(1, 1)).await;
        c.ok(doc! { "insert": "c", "documents": [{ "_id": 100 }], "$db": "a_db" }).await;
        all.push(100);
        pair.now().await;
        let ids = async |pair: &Pair| {
            let find = doc! { "find": "c", "projection": { "_id": 1 }, "$db": "a_db" };
            let found = pair.to().await.all(find).await;
            found.iter().map(|d| number(d, "_id")).collect::<Vec<_>>()
        };
        let mut amid = false;
        for turn in 0.. {
            // It stands still before it carries a part out, or comes to the end of one answer.
            let still = pair.stands_still(pair.follow(start), if turn % 2 == 0 { 1 } else { 9 }).await;
            let there = ids(&pair).await;
            assert_eq!(there, all[..there.len()], "in the order of the transaction, and nothing twice");
            amid |= there.len() > 1 && there.len() < all.len() - 1;
            if there.len() == all.len() {
                break;
            }
            if still {
                pair.recipient.kill(0).await;
                pair.recipient.restart(0).await;
                pair.recipient.settled().await;
                let there = ids(&pair).await;
                assert_eq!(there, all[..there.len()]);
            } else if turn % 3 != 0 {
                // On the disk.
                pause(150).await;
            }
            assert!(turn < 200, "it does not get on");
        }
        assert!(amid, "it was carried out as a whole");
        pair.recipient.fail_point(0, HANG, false).await;
        pair.catch_up(start).await;
        assert_eq!(ids(&pair).await, all);
        pair.same().await;
        pair.to().await.ok(commit(1, 1)).await;
        pair.done().await;
    });
}

/// As if so much of the transaction at `of` had been carried out.
async fn note_part(pair: &Pair, upto: Timestamp, of: Timestamp) -> Document {
    let mut noted = doc! { "_id": uuid(9), "upto": upto };
    noted.push("part", doc! { "of": of, "told": 3 });
    noted.push("number", 1i64);
    let mut insert = doc! { "insert": "tenantMigrationProgress", "$db": "config" };
    insert.push("documents", vec![Bson::from(noted.clone())]);
    pair.to().await.ok(insert).await;
    noted
}
async fn noted(pair: &Pair) -> Vec<Document> {
    pair.to().await.all(doc! { "find": "tenantMigrationProgress", "$db": "config" }).await
}

#[test]
fn the_rest_of_another_transaction_is_none() {
    run(async {
        let pair = Pair::of(1, 1).await;
        let mut c = pair.from().await;
        c.ok(doc! { "create": "c", "$db": "a_db" }).await;
        let start = pair.copy().await;
        c.ok(doc! { "insert": "c", "documents": [{ "_id": 1 }], "$db": "a_db" }).await;
        pair.now().await;
        note_part(&pair, start, Timestamp::new(1, 1)).await;
        assert_eq!(code(&pair.to().await.run(pair.follow(start)).await), 96);
        assert!(pair.to().await.all(doc! { "find": "c", "$db": "a_db" }).await.is_empty());
        pair.done().await;
    });
}

/// Whoever is the donor's primary now tells of what its majority has, for all that it knows: the rest of a transaction may come later.
#[test]
fn a_part_is_not_the_whole_where_the_rest_is_not_told_yet() {
    run(async {
        let pair = Pair::of(1, 1).await;
        pair.from().await.ok(doc! { "create": "c", "$db": "a_db" }).await;
        let start = pair.copy().await;
        let last = pair.now().await;
        let later = Timestamp::new(last.secs() + 1000, 1);
        let before = note_part(&pair, last, later).await;
        assert!(pair.now().await > last);
        for start in [start, last] {
            assert_eq!(time(&pair.to().await.ok(pair.follow(start)).await, "at"), last);
            assert_eq!(noted(&pair).await, std::slice::from_ref(&before));
        }
        pair.done().await;
    });
}
