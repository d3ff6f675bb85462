//! Whoever reaches the port of a member and speaks as one: numbers at their extremes, and from elsewhere.

use pando_bson::{Bson, Document, doc};
use pando_sim::rig::{Rig, words::*};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const EXTREMES: [i64; 11] =
    [i64::MIN, i64::MIN + 1, -(1 << 53), -2, -1, 0, 1, 1 << 31, 1 << 53, 1 << 62, i64::MAX];

fn vote(term: i64, config: (i64, i64), at: Document) -> Document {
    doc! { "replSetRequestVotes": 1, "setName": "rs0", "dryRun": false, "term": term, "candidateIndex": 1i64,
    "configVersion": config.0, "configTerm": config.1, "lastAppliedOpTime": at, "$db": "admin" }
}
fn far_away() -> Document {
    doc! { "ts": pando_base::Timestamp::new(u32::MAX, 1), "t": 1i64 }
}
fn config_id(rig: &Rig, i: usize) -> (i64, i64) {
    let config = rig.admin(i, doc! { "replSetGetConfig": 1 });
    (number(&config, "config.version"), number(&config, "config.term"))
}

/// One command of each kind with `n` wherever a number may stand.
fn commands(n: i64) -> Vec<Document> {
    let time = || doc! { "ts": pando_base::Timestamp(n as u64), "t": n };
    let date = || Bson::DateTime(n);
    let mut position = doc! { "durableOpTime": time(), "appliedOpTime": time(), "memberId": n, "cfgver": n };
    position.push("durableWallTime", date());
    position.push("appliedWallTime", date());
    let metadata = doc! { "term": n, "lastOpCommitted": time(), "lastOpVisible": time(), "configVersion": n,
    "configTerm": n, "syncSourceIndex": n, "isPrimary": true };
    let update = |p: Document| {
        let mut d = doc! { "replSetUpdatePosition": 1 };
        d.push("optimes", vec![Bson::from(p)]);
        d.push("$replData", metadata.clone());
        d
    };
    let settings = [
        "heartbeatTimeoutSecs",
        "heartbeatIntervalMillis",
        "electionTimeoutMillis",
        "catchUpTimeoutMillis",
        "catchUpTakeoverDelayMillis",
    ];
    let mut all = vec![
        vote(n, (n, n), time()),
        vote(n, (1, 1), far_away()),
        doc! { "replSetHeartbeat": "rs0", "configVersion": n, "configTerm": n, "hbv": n, "from": "", "fromId": n,
        "term": n, "primaryId": n, "lostPrimary": n, "lostPrimaryTerm": n },
        update(position),
        doc! { "replSetStepDown": n },
        doc! { "replSetStepDown": n, "force": true, "secondaryCatchUpPeriodSecs": n },
        doc! { "replSetStepDown": i64::MAX / 1000, "force": true, "secondaryCatchUpPeriodSecs": 0 },
        doc! { "replSetFreeze": n },
        doc! { "replSetMaintenance": n },
        doc! { "replSetMaintenance": 0 },
        doc! { "replSetGetRBID": n },
        doc! { "replSetAbortPrimaryCatchUp": n },
        doc! { "replSetSyncFrom": format!("a:{n}") },
        doc! { "replSetResizeOplog": 1, "size": n },
        doc! { "replSetResizeOplog": 1, "minRetentionHours": n },
        doc! { "replSetStepUp": n, "skipDryRun": n },
        doc! { "replSetGetConfig": n, "commitmentStatus": n },
        doc! { "replSetGetStatus": n, "initialSync": n },
    ];
    for name in settings {
        let mut s = Document::new();
        s.push(name, n);
        let config =
            doc! { "_id": "rs0", "version": 9, "term": n, "members": [{ "_id": 0, "host": "elsewhere:1" }] };
        for command in ["replSetInitiate", "replSetReconfig"] {
            let mut config = config.clone();
            config.push("settings", s.clone());
            let mut d = Document::new();
            d.push(command, config);
            all.push(d);
        }
    }
    for d in &mut all {
        d.set("$db", "admin");
    }
    all
}

#[test]
fn numbers_at_their_extremes_end_neither_a_member_nor_elections() {
    let rig = Rig::unnamed(301, 3);
    let all = |rig: &Rig| {
        for n in EXTREMES {
            for command in commands(n) {
                for i in 0..3 {
                    let reply = rig.ask(i, command.clone());
                    assert!(reply.contains("ok"), "{command:?}\n{reply:?}");
                }
            }
        }
    };
    all(&rig);
    let rig = rig.initiated(&vec![Document::new(); 3], Document::new());
    let p = rig.primary();
    rig.ok(p, insert(1, w(3)));
    all(&rig);
    for i in 0..3 {
        assert!(rig.nodes[i].exit().is_none(), "member {i} has ended");
        rig.ask(i, doc! { "replSetFreeze": 0, "$db": "admin" });
    }
    // Elections are as possible as ever, also after everybody has forgotten what was not written.
    let mut rig = rig;
    for i in 0..3 {
        rig.nodes[i].lose_power();
        rig.nodes[i].boot();
    }
    let p = rig.primary();
    rig.until("a write", |rig| {
        rig.ask(rig.primary_now().unwrap_or(p), insert(2, w(3))).get("ok").is_some_and(Bson::is_truthy)
    });
    assert!(number(&rig.status(p), "term") < 1 << 62);
}

/// Also with timeouts that no clock can be added to.
#[test]
fn a_set_with_endless_timeouts_lives() {
    let ever = i64::MAX;
    let settings = doc! { "heartbeatTimeoutSecs": ever, "catchUpTimeoutMillis": ever, "catchUpTakeoverDelayMillis": ever };
    let rig = Rig::with(302, &vec![Document::new(); 3], settings);
    let p = rig.primary();
    rig.ok(p, insert(1, w(3)));
    let config = rig.admin(p, doc! { "replSetGetConfig": 1 });
    assert_eq!(number(&config, "config.settings.heartbeatTimeoutSecs"), ever);
    rig.admin(p, doc! { "replSetStepDown": 9_000_000_000_000_000i64, "force": true });
    rig.until("another primary", |rig| rig.primary_now().is_some_and(|now| now != p));
}

#[test]
fn members_commands_are_taken_from_members_addresses_only() {
    let rig = Rig::unnamed(303, 3);
    // A node without a configuration fetches one only from where the question comes from.
    let offer = |rig: &Rig| {
        doc! { "replSetHeartbeat": "rs0", "configVersion": 7, "configTerm": 7i64, "hbv": 1,
        "from": rig.nodes[0].addr(), "fromId": 0, "term": 7i64, "primaryId": 0, "$db": "admin" }
    };
    let refused = rig.ask_as_stranger(1, offer(&rig));
    assert_eq!(code(&refused), 13, "{refused:?}");
    let rig = rig.initiated(&vec![Document::new(); 3], Document::new());
    let p = rig.primary();
    rig.ok(p, insert(1, w(3)));
    let (term, id) = (number(&rig.status(p), "term"), config_id(&rig, p));
    let update = doc! { "replSetUpdatePosition": 1, "optimes": [], "$db": "admin",
    "$replData": { "term": term + 1 } };
    for i in 0..3 {
        for command in [offer(&rig), vote(term + 1, id, far_away()), update.clone()] {
            let refused = rig.ask_as_stranger(i, command);
            assert_eq!(code(&refused), 13, "{refused:?}");
        }
    }
    assert_eq!((rig.primary(), number(&rig.status(p), "term")), (p, term));
    // However often he asks, the log has one line a minute of him.
    let told = |rig: &Rig| {
        let status = rig.admin(p, doc! { "serverStatus": 1 });
        let of = |name: &str| number(&status, &format!("metrics.repl.refusedMembers.{name}"));
        (of("count"), of("untold"), of("addresses"))
    };
    let before = told(&rig);
    (0..50).for_each(|_| drop(rig.ask_as_stranger(p, vote(term + 1, id, far_away()))));
    let after = told(&rig);
    assert_eq!((after.0 - before.0, after.2), (50, 1));
    assert!(after.1 - before.1 >= 49, "{before:?} {after:?}");
    // What everybody may ask is answered, and where members' addresses are translated, so is the rest.
    assert!(rig.ask_as_stranger(p, doc! { "_isSelf": 1, "$db": "admin" }).contains("id"));
    let s = rig.others(p)[0];
    rig.admin(s, doc! { "setParameter": 1, "membersOnlyFromTheirAddresses": false });
    let granted = rig.ask_as_stranger(s, vote(term + 1, id, far_away()));
    assert!(granted.get("voteGranted").is_some_and(Bson::is_truthy), "{granted:?}");
}

#[test]
fn a_message_that_does_not_go_on_ends_its_connection() {
    let rig = Rig::of(304, 1);
    let (env, addr) = (rig.env().clone(), rig.nodes[0].addr());
    let ended: Arc<Mutex<Vec<Duration>>> = Arc::default();
    for sent in [1usize, 16, 300_000] {
        let (env, addr, ended) = (env.clone(), addr.clone(), ended.clone());
        rig.spawn(async move {
            let mut stream = env.net.connect(addr).await.unwrap();
            let mut message = 40_000_000i32.to_le_bytes().to_vec();
            message.extend([0, 0, 0, 0, 0, 0, 0, 0, 0xdd, 7, 0, 0]);
            message.resize(sent.max(16), 0);
            stream.write_all(&message[..sent]).await.unwrap();
            let from = env.clock.mono();
            assert_eq!(stream.read(&mut Vec::new(), 100).await.unwrap_or(0), 0);
            ended.lock().unwrap().push(env.clock.mono() - from);
        });
    }
    rig.wait_ms(29_000);
    assert!(ended.lock().unwrap().is_empty());
    rig.wait_ms(3_000);
    assert_eq!(ended.lock().unwrap().len(), 3);
    // Others are served all the time, and what was promised for those is free again.
    rig.ok(0, insert(1, w(1)));
    let server = rig.nodes[0].server().expect("a running member");
    assert_eq!(server.instance.unfinished.used(), 0);
}
