//! How clients learn of changes.

use pando_bson::{Bson, Document, doc};
use pando_sim::rig::{Rig, words::*};

fn awaiting(hello: &Document) -> Document {
    let mut ask = doc! { "hello": 1, "maxAwaitTimeMS": 60_000, "$db": "admin" };
    ask.push("topologyVersion", hello.get("topologyVersion").cloned().unwrap());
    ask
}

#[test]
fn a_waiting_hello_returns_with_every_change() {
    let rig = Rig::of(31, 3);
    let p = rig.primary();
    rig.ok(p, insert(1, w(3)));
    // A reconfiguration.
    let before = rig.hello(p);
    let waiting: Vec<_> = (0..3).map(|i| rig.start(i, awaiting(&rig.hello(i)))).collect();
    rig.wait_ms(3000);
    assert!(waiting.iter().all(|w| w.answer().is_none()), "nothing has changed");
    rig.admin(p, doc! { "replSetReconfig": rig.next_config(p) });
    rig.until("all three to be told", |_| waiting.iter().all(|w| w.answer().is_some()));
    let told = waiting[p].answer().unwrap();
    assert!(number(&told, "topologyVersion.counter") > number(&before, "topologyVersion.counter"));
    assert!(number(&told, "setVersion") > number(&before, "setVersion"), "{told:?}");
    // An election.
    let waiting: Vec<_> = (0..3).map(|i| rig.start(i, awaiting(&rig.hello(i)))).collect();
    let begun = rig.world.sim.now();
    rig.ask(p, doc! { "replSetStepDown": 20, "secondaryCatchUpPeriodSecs": 5, "$db": "admin" });
    rig.until("the old primary to say so", |_| waiting[p].answer().is_some());
    assert!((rig.world.sim.now() - begun).as_secs() < 8);
    let told = waiting[p].answer().unwrap();
    assert!(!at(&told, "isWritablePrimary").is_some_and(Bson::is_truthy), "{told:?}");
    rig.until("everybody to be told of the new one", |_| waiting.iter().all(|w| w.answer().is_some()));
}

#[test]
fn hello_ok_is_answered_when_asked_for() {
    let rig = Rig::of(32, 1);
    let p = rig.primary();
    let with = rig.ask(p, doc! { "isMaster": 1, "helloOk": true, "$db": "admin" });
    assert!(with.get("helloOk").is_some_and(Bson::is_truthy), "{with:?}");
    let without = rig.ask(p, doc! { "isMaster": 1, "$db": "admin" });
    assert!(!without.contains("helloOk"), "{without:?}");
}

#[test]
fn is_master_and_hello_name_the_same_thing_and_are_counted_apart() {
    let rig = Rig::of(33, 1);
    let p = rig.primary();
    let count = |name: &str| {
        number(&rig.admin(p, doc! { "serverStatus": 1 }), &format!("metrics.commands.{name}.total"))
    };
    let (old, new) = (count("isMaster"), count("hello"));
    let legacy = rig.ask(p, doc! { "isMaster": 1, "$db": "admin" });
    assert!(legacy.get("ismaster").is_some_and(Bson::is_truthy) && !legacy.contains("isWritablePrimary"));
    assert_eq!((count("isMaster"), count("hello")), (old + 1, new));
    let hello = rig.hello(p);
    assert!(hello.get("isWritablePrimary").is_some_and(Bson::is_truthy) && !hello.contains("ismaster"));
    assert_eq!((count("isMaster"), count("hello")), (old + 1, new + 1));
}

/// A version is asked of clients, not of the members, who would lose each other by it.
#[test]
fn members_need_no_api_version_where_clients_do() {
    let rig = Rig::of(150, 3);
    let p = rig.primary();
    for i in 0..3 {
        rig.admin(i, doc! { "setParameter": 1, "requireApiVersion": true });
    }
    rig.wait_ms(15_000);
    assert_eq!(code(&rig.ask(p, insert(1, majority()))), 498_870);
    let mut versioned = insert(2, w(3));
    versioned.push("apiVersion", "1");
    rig.ok(p, versioned);
    for i in 0..3 {
        let mut hello = doc! { "hello": 1, "$db": "admin" };
        hello.push("apiVersion", "1");
        let reply = rig.ok(i, hello);
        assert_eq!(at(&reply, "isWritablePrimary").is_some_and(Bson::is_truthy), i == p, "{reply:?}");
    }
}
