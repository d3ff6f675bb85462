//! How members leave: quiesce mode and the hand-over.

use crate::sets::words::*;
use pando_bson::{Bson, Document, doc};
use pando_testserver::{Set, World, is, pause, run, spawn};
use std::time::{Duration, Instant};

fn awaiting(version: &Document) -> Document {
    doc! { "hello": 1, "topologyVersion": version.clone(), "maxAwaitTimeMS": 30_000, "$db": "admin" }
}

#[test]
fn a_secondary_that_shuts_down_tells_hello_and_serves_the_rest() {
    run(async {
        let set = Set::of(3).await;
        let s = set.secondaries().await[0];
        let mut c = set.connect(s).await;
        let hello = set.hello(s).await;
        let version = at(&hello, "topologyVersion").unwrap().as_doc().unwrap().clone();
        let mut waiter = set.connect(s).await;
        let waiting = spawn(async move { waiter.run(awaiting(&version)).await });
        pause(50).await;
        let mut asker = set.connect(s).await;
        let command = doc! { "shutdown": 1, "timeoutSecs": 5, "$db": "admin" }.to_raw();
        asker.send(&command, 0).await;
        let woken = waiting.await.unwrap();
        assert_eq!((code(&woken), is(&woken, "ok")), (91, false), "{woken:?}");
        assert_eq!(text(&woken), "The server is in quiesce mode and will shut down");
        let left = number(&woken, "remainingQuiesceTimeMillis");
        assert!((3000..=5000).contains(&left), "{woken:?}");
        assert!(
            number(&woken, "topologyVersion.counter") > number(&hello, "topologyVersion.counter"),
            "{woken:?}"
        );
        // Old and new connections are served; only hello sends them away.
        assert_eq!(code(&c.run(doc! { "hello": 1, "$db": "admin" }).await), 91);
        assert_eq!(code(&set.hello(s).await), 91);
        assert_eq!(code(&set.connect(s).await.run(doc! { "isMaster": 1, "$db": "admin" }).await), 91);
        assert_eq!(count(&mut c).await, 0);
        c.ok(doc! { "ping": 1 }).await;
        // It still replicates.
        let p = set.primary().await;
        set.connect(p).await.ok(insert(1, doc! { "w": 3, "wtimeout": 4000 })).await;
        set.shut_down().await;
    });
}

#[test]
fn a_primary_hands_over_before_it_goes() {
    run(async {
        let mut set = Set::of(3).await;
        let p = set.primary().await;
        set.connect(p).await.ok(insert(1, doc! { "w": 3, "wtimeout": 30_000 })).await;
        let begun = Instant::now();
        // Nobody is connected: it need not stay.
        set.stop(p).await;
        let stopped = begun.elapsed();
        let heir = set.primary().await;
        let writable = begun.elapsed();
        println!("stopped after {stopped:?}, another is writable after {writable:?}");
        assert!(heir != p && writable < Duration::from_secs(5), "{writable:?}");
        set.connect(heir).await.ok(insert(2, majority())).await;
        set.shut_down().await;
    });
}

#[test]
fn without_an_heir_the_shutdown_command_needs_force() {
    run(async {
        let set = Set::with(&[doc! {}, doc! { "priority": 0 }, doc! { "priority": 0 }]).await;
        let p = set.primary().await;
        let mut c = set.connect(p).await;
        let begun = Instant::now();
        let refused = c.run(doc! { "shutdown": 1, "timeoutSecs": 1, "$db": "admin" }).await;
        assert_eq!(code(&refused), 262, "{refused:?}");
        assert!(begun.elapsed() >= Duration::from_secs(1));
        c.ok(insert(1, majority())).await;
        let forced = doc! { "shutdown": 1, "force": true, "timeoutSecs": 2, "$db": "admin" }.to_raw();
        c.send(&forced, 0).await;
        set.until("a former primary", async |set| code(&set.hello(p).await) == 91).await;
        set.shut_down().await;
    });
}

#[test]
fn a_set_of_one_and_a_standalone_node_go_at_once() {
    run(async {
        for replicated in [true, false] {
            let world = World::new();
            let server = if replicated { world.start_set().await } else { world.start_standalone().await };
            let mut c = server.connect().await;
            c.ok(doc! { "ping": 1 }).await;
            let begun = Instant::now();
            server.server.take_leave().await;
            assert!(begun.elapsed() < Duration::from_secs(1));
            let hello = c.ok(doc! { "hello": 1, "$db": "admin" }).await;
            assert_eq!(hello.get("isWritablePrimary"), Some(&Bson::Boolean(true)), "primary to the end");
            server.shut_down().await;
        }
    });
}
