//! Workflows of the primary-only services, across changes of primary.

use crate::sets::words::*;
use pando_bson::{Bson, Document, doc};
use pando_testserver::{Client, Set, run, spawn};

fn demo(action: &str) -> Document {
    doc! { "_demoWorkflow": action, "id": "w", "$db": "admin" }
}
fn start(target: i32, rest_ms: i32, held: bool) -> Document {
    let mut command = demo("start");
    command.push("target", target);
    command.push("restMillis", rest_ms);
    command.push("held", held);
    command
}
async fn service(set: &Set, i: usize) -> (String, i64) {
    let status = set.connect(i).await.admin(doc! { "serverStatus": 1 }).await;
    let of = |field| at(&status, &format!("repl.primaryOnlyServices.DemoWorkflowService.{field}"));
    let state = of("state").and_then(Bson::as_str).unwrap_or_default().to_owned();
    (state, of("numInstances").and_then(Bson::as_i64).unwrap_or(-1))
}
async fn in_config(c: &mut Client, collection: &str) -> i64 {
    number(&c.ok(anywhere(doc! { "count": collection, "$db": "config" })).await, "n")
}

#[test]
fn a_workflow_resumes_on_the_next_primary_and_runs_on_one_only() {
    run(async {
        let set = Set::of(3).await;
        let first = set.primary().await;
        let mut c = set.connect(first).await;
        let state = c.ok(start(25, 10, true)).await;
        assert_eq!(at(&state, "state.phase").and_then(Bson::as_str), Some("held"));
        for s in set.secondaries().await {
            assert_eq!(code(&set.connect(s).await.run(demo("show")).await), 10107);
            assert_eq!(service(&set, s).await, ("paused".to_owned(), 0));
        }
        assert_eq!(service(&set, first).await, ("running".to_owned(), 1));
        // The same _id is the same instance, whatever else is asked for.
        let again = c.ok(start(99, 0, false)).await;
        assert_eq!(number(&again, "state.target"), 25);
        c.ok(demo("nudge")).await;
        set.until("some of it is counted", async |set| {
            let shown = set.connect(first).await.ok(demo("show")).await;
            number(&shown, "state.count") >= 3
        })
        .await;
        let mut waiter = set.connect(first).await;
        let waiting = spawn(async move { waiter.run(demo("wait")).await });
        set.until("a step-down", async |set| {
            let reply = set.connect(first).await.run(doc! { "replSetStepDown": 30, "$db": "admin" }).await;
            pando_testserver::is(&reply, "ok")
        })
        .await;
        // It may have been too late to wait.
        assert!(matches!(code(&waiting.await.unwrap()), 11602 | 10107));
        assert_eq!(service(&set, first).await, ("paused".to_owned(), 0));
        let second = set.primary().await;
        assert_ne!(second, first);
        let mut c = set.connect(second).await;
        let reply = c.run(demo("wait")).await;
        // It may have ended before it was asked for.
        if code(&reply) != 4 {
            assert_eq!(number(&reply, "result.sum"), 325, "{reply:?}");
        }
        assert_eq!(in_config(&mut c, "demoTally").await, 25);
        assert_eq!(in_config(&mut c, "demoWorkflows").await, 0, "its state goes with it");
        assert_eq!(service(&set, second).await, ("running".to_owned(), 0));
        set.shut_down().await;
    });
}

#[test]
fn what_waits_for_a_nudge_waits_on_after_a_restart_of_the_whole_set() {
    run(async {
        let mut set = Set::of(1).await;
        set.connect(0).await.ok(start(3, 0, true)).await;
        set.until("the first checkpoint", async |set| {
            in_config(&mut set.connect(0).await, "demoWorkflows").await == 1
        })
        .await;
        set.stop(0).await;
        set.restart(0).await;
        set.primary().await;
        let mut c = set.connect(0).await;
        let shown = c.ok(demo("show")).await;
        assert_eq!(at(&shown, "state.phase").and_then(Bson::as_str), Some("held"));
        c.ok(demo("nudge")).await;
        set.until("the end", async |set| in_config(&mut set.connect(0).await, "demoWorkflows").await == 0)
            .await;
        assert_eq!(in_config(&mut c, "demoTally").await, 3);
        set.shut_down().await;
    });
}

#[test]
fn a_step_down_that_fails_holds_a_workflow_up_and_does_not_end_it() {
    run(async {
        let set = Set::of(1).await;
        let first = set.primary().await;
        let mut c = set.connect(first).await;
        c.ok(start(40, 30, false)).await;
        // Nobody can take over, so the office is kept.
        let reply =
            c.run(doc! { "replSetStepDown": 10, "secondaryCatchUpPeriodSecs": 1, "$db": "admin" }).await;
        assert_eq!(code(&reply), 262, "{reply:?}");
        // It may have ended before it was asked for.
        let reply = c.run(demo("wait")).await;
        assert!(code(&reply) == 4 || number(&reply, "result.sum") == 820, "{reply:?}");
        assert_eq!(in_config(&mut c, "demoTally").await, 40);
        assert_eq!(in_config(&mut c, "demoWorkflows").await, 0);
        set.shut_down().await;
    });
}
