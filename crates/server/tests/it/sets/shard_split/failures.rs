//! Primaries and recipients that end while a split is under way, at each of its steps (SV-RES).

use super::*;
use pando_testserver::run;
use std::task::Poll;

/// Steps of a split that nothing holds up, from its first document to that of its decision.
const STEPS: usize = 16;

async fn write_until_told(d: &Donor, from: i32) -> (Vec<i32>, Document) {
    let mut acked = Vec::new();
    for id in from.. {
        let reply = d.ask(put("acme_db", id)).await;
        match code(&reply) {
            0 if reply.get("writeErrors").is_none() && reply.get("writeConcernError").is_none() => {
                acked.push(id)
            }
            // It may have been done by the primary that ended.
            0 | 11000 => {}
            321 | 325 => return (acked, reply),
            _ => panic!("{reply:?}"),
        }
        pause(5).await;
    }
    unreachable!("it is told")
}

/// Both, at the same time.
async fn both<A: Future, B: Future>(a: A, b: B) -> (A::Output, B::Output) {
    let (mut a, mut b) = (std::pin::pin!(a), std::pin::pin!(b));
    let (mut of_a, mut of_b) = (None, None);
    std::future::poll_fn(|cx| {
        if of_a.is_none() {
            of_a = ready(a.as_mut().poll(cx));
        }
        if of_b.is_none() {
            of_b = ready(b.as_mut().poll(cx));
        }
        match of_a.is_some() && of_b.is_some() {
            true => Poll::Ready((of_a.take().expect("it ended"), of_b.take().expect("it ended"))),
            false => Poll::Pending,
        }
    })
    .await
}
fn ready<T>(poll: Poll<T>) -> Option<T> {
    match poll {
        Poll::Ready(done) => Some(done),
        Poll::Pending => None,
    }
}

/// The split goes on with the next primary wherever the last one ended; whoever asks again joins it.
async fn ends_before(n: usize, kill: bool) -> bool {
    let mut d = Donor::start().await;
    d.client().await.ok(put("acme_db", -1)).await;
    let p = d.primary().await;
    d.set.hang_at(p, n).await;
    let before = d.set.entered(p);
    let task = {
        let mut c = d.set.connect(p).await;
        spawn(async move { c.try_run(split(1, &["acme"])).await.unwrap_or_default() })
    };
    let hangs = d.set.hangs(p, before, &task).await;
    if hangs && kill {
        d.set.kill(p).await;
    } else if hangs {
        let mut down = doc! { "replSetStepDown": 30, "force": true };
        down.push("$db", "admin");
        let mut c = d.set.connect(p).await;
        let down = spawn(async move { c.try_run(down).await });
        pause(200).await;
        d.go_on(p).await;
        let _ = down.await;
    }
    let (reply, (acked, told)) = both(d.split(1, &["acme"]), write_until_told(&d, 0)).await;
    assert_eq!(reply.get("state"), Some(&"committed".into()), "step {n}: {reply:?}");
    assert_eq!(code(&told), 321, "step {n}: {told:?}");
    let new = d.new_primary().await;
    let there = d.set.connect(new).await.all(look("acme_db")).await;
    let ids: Vec<i64> = there.iter().map(|d| number(d, "_id")).collect();
    assert!(
        ids.contains(&-1) && acked.iter().all(|id| ids.contains(&i64::from(*id))),
        "step {n}: {acked:?} {ids:?}"
    );
    if hangs && kill {
        d.set.restart(p).await;
    }
    d.set.connect(new).await.ok(put("acme_db", -2)).await;
    d.client().await.ok(put("other_db", 1)).await;
    assert_eq!(code(&d.client().await.run(look("acme_db")).await), 321);
    d.done().await;
    hangs
}

#[test]
fn a_split_goes_on_when_its_primary_is_killed_before_an_early_step() {
    run(async {
        for n in 0..5 {
            assert!(ends_before(n, true).await, "step {n}");
        }
    });
}
#[test]
fn a_split_goes_on_when_its_primary_is_killed_before_a_step_in_the_middle() {
    run(async {
        for n in 5..10 {
            assert!(ends_before(n, true).await, "step {n}");
        }
    });
}
#[test]
fn a_split_goes_on_when_its_primary_is_killed_before_a_late_step() {
    run(async {
        for n in 10..STEPS {
            ends_before(n, true).await;
        }
    });
}
#[test]
fn a_split_goes_on_when_its_primary_steps_down() {
    run(async {
        for n in [1, 4, 5, 6, 8, 9, 13] {
            ends_before(n, false).await;
        }
    });
}

#[test]
fn a_recipient_that_is_down_is_waited_for() {
    run(async {
        let mut d = Donor::start().await;
        d.client().await.ok(put("acme_db", 1)).await;
        d.set.kill(4).await;
        let p = d.primary().await;
        let task = {
            let mut c = d.set.connect(p).await;
            spawn(async move { c.run(split(1, &["acme"])).await })
        };
        pause(1000).await;
        assert!(!task.is_finished(), "it has not caught up");
        d.set.restart(4).await;
        assert_eq!(task.await.expect("it ends").get("state"), Some(&"committed".into()));
        let new = d.new_primary().await;
        d.set.connect(new).await.ok(put("acme_db", 2)).await;
        d.done().await;
    });
}

#[test]
fn blockers_outlive_restarts() {
    run(async {
        let mut d = Donor::start().await;
        d.client().await.ok(put("acme_db", 1)).await;
        assert_eq!(d.split(1, &["acme"]).await.get("state"), Some(&"committed".into()));
        for i in 0..3 {
            d.set.kill(i).await;
        }
        // Alone it does not know that the decision holds; it knows that there can be no other.
        d.set.restart(0).await;
        d.until_told(0, "other_db", 0).await;
        let mut alone = d.set.connect(0).await;
        assert_eq!(code(&alone.run(briefly(anywhere(look("acme_db")))).await), 50);
        for i in 1..3 {
            d.set.restart(i).await;
        }
        let p = d.primary().await;
        for i in 0..3 {
            d.until_told(i, "acme_db", 321).await;
        }
        assert_eq!(code(&d.set.connect(p).await.run(put("acme_db", 2)).await), 321);
        d.done().await;
    });
}

#[test]
fn a_split_that_takes_too_long_is_called_off() {
    run(async {
        let mut d = Donor::start().await;
        d.client().await.ok(put("acme_db", 1)).await;
        d.set.kill(4).await;
        let p = d.primary().await;
        d.set.connect(p).await.admin(doc! { "setParameter": 1, "shardSplitTimeoutMS": 1500 }).await;
        let begun = d.set.server(p).instance.env.clock.mono();
        let reply = d.split(1, &["acme"]).await;
        let took = d.set.server(p).instance.env.clock.mono() - begun;
        assert_eq!((code(&reply), at(&reply, "abortReason.code")), (125, Some(&262.into())), "{reply:?}");
        assert!(took.as_secs() < 15, "tenants waited for {took:?}");
        d.client().await.ok(put("acme_db", 2)).await;
        d.done().await;
    });
}

/// The primary was started again amid a build, and finds it in its log behind an index that had the same name, and was dropped.
#[test]
fn a_build_that_a_primary_has_found_in_its_log_is_given_up() {
    run(async {
        let mut d = Donor::start().await;
        let p = d.primary().await;
        let mut c = d.client().await;
        c.ok(put("acme_db", 1)).await;
        let index =
            doc! { "createIndexes": "c", "indexes": [{ "key": { "a": 1 }, "name": "a" }], "$db": "acme_db" };
        c.ok(index.clone()).await;
        c.ok(doc! { "dropIndexes": "c", "index": "a", "$db": "acme_db" }).await;
        for i in 0..6 {
            d.set.fail_point(i, "hangAfterStartingIndexBuild", true).await;
        }
        let build = {
            let mut c = d.set.connect(p).await;
            spawn(async move { c.try_run(index).await })
        };
        let of_build = |command: &str| {
            let mut filter = doc! { "op": "c", "ns": "acme_db.$cmd" };
            filter.push(format!("o.{command}"), "c");
            let mut find = anywhere(doc! { "find": "oplog.rs", "$db": "local" });
            find.push("filter", filter);
            find
        };
        while c.all(of_build("startIndexBuild")).await.len() < 2 {
            pause(20).await;
        }
        c.ok(put("other_db", 1)).await;
        d.set.kill(p).await;
        let _ = build.await;
        d.set.restart(p).await;
        d.set
            .until("the same primary", async |set| {
                let up = doc! { "replSetStepUp": 1, "$db": "admin" };
                is(&set.hello(p).await, "isWritablePrimary") || is(&set.connect(p).await.run(up).await, "ok")
            })
            .await;
        assert_eq!(d.primary().await, p);
        // Whoever has begun it holds it up no more; it could have been finished.
        let reply = d.split(1, &["acme"]).await;
        assert_eq!(reply.get("state"), Some(&"committed".into()), "{reply:?}");
        let mut c = d.set.connect(p).await;
        let block =
            d.state(p, 1).await.and_then(|d| d.get("blockTimestamp").cloned()).expect("it has blocked");
        let ends = c.all(of_build("abortIndexBuild")).await;
        let at = ends.first().and_then(|e| e.get("ts").cloned()).expect("the build is given up");
        let time = |at: &Bson| match at {
            Bson::Timestamp(at) => *at,
            other => panic!("no time: {other:?}"),
        };
        assert!(time(&at) < time(&block), "behind blockTimestamp: {ends:?}");
        for i in (0..6).filter(|i| *i != p) {
            d.set.fail_point(i, "hangAfterStartingIndexBuild", false).await;
        }
        d.done().await;
    });
}
