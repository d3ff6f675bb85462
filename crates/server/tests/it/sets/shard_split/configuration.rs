//! Hidden members of a set leave it for one of their own (SV-SPLIT-9..12).

use crate::sets::words::*;
use pando_bson::{Bson, Document, doc};
use pando_server::Config;
use pando_testserver::{Set, is, run};

const STAY: [usize; 3] = [0, 1, 2];
const LEAVE: [usize; 3] = [3, 4, 5];

fn nameless(c: &mut Config) {
    (c.repl_set, c.serverless) = (None, true);
}
fn name(hello: &Document) -> &str {
    hello.get("setName").and_then(Bson::as_str).unwrap_or_default()
}
/// The first member of these that takes writes.
async fn primary_of(set: &Set, members: [usize; 3]) -> usize {
    set.until("a primary", async |set| {
        for i in members {
            if is(&set.hello(i).await, "isWritablePrimary") {
                return true;
            }
        }
        false
    })
    .await;
    for i in members {
        if is(&set.hello(i).await, "isWritablePrimary") {
            return i;
        }
    }
    panic!("the primary is gone");
}
/// Six members, three of which may leave; the donor's primary has written documents 1 and 2, that everybody has.
async fn six() -> (Set, usize) {
    let recipient =
        |i: i32| doc! { "votes": 0, "priority": 0, "hidden": true, "tags": { "split": format!("v{i}") } };
    let stays = || doc! {};
    let members = [stays(), stays(), stays(), recipient(3), recipient(4), recipient(5)];
    let set = Set::configured_as(&members, nameless).await;
    let p = primary_of(&set, STAY).await;
    let mut c = set.connect(p).await;
    c.ok(insert(1, doc! { "w": 6, "wtimeout": 30_000 })).await;
    c.ok(insert(2, doc! { "w": 6, "wtimeout": 30_000 })).await;
    (set, p)
}
async fn split(set: &Set, p: usize) {
    set.server(p).replication.install_split_config("split", "recipient", None).await.expect("a split");
}
async fn all_left(set: &Set) {
    set.until("all have left", async |set| {
        for i in LEAVE {
            if name(&set.hello(i).await) != "recipient" {
                return false;
            }
        }
        true
    })
    .await;
}
/// As the donor does: until it leads.
async fn step_up(set: &Set, i: usize) {
    set.until("it leads", async |set| {
        let _ =
            set.connect(i).await.run(doc! { "replSetStepUp": 1, "skipDryRun": true, "$db": "admin" }).await;
        is(&set.hello(i).await, "isWritablePrimary")
    })
    .await;
}
async fn counts(set: &Set, members: [usize; 3], n: i64) {
    set.until("everybody has all of it", async |set| {
        for i in members {
            if count(&mut set.connect(i).await).await != n {
                return false;
            }
        }
        true
    })
    .await;
}

#[test]
fn hidden_members_leave_for_a_set_of_their_own_and_both_take_writes() {
    run(async {
        let (mut set, p) = six().await;
        assert_eq!(set.server(p).replication.check_split("split", "recipient").expect("hosts").len(), 3);
        split(&set, p).await;
        assert!(set.server(p).replication.is_split_for("recipient").is_some());
        all_left(&set).await;
        for i in LEAVE {
            let hello = set.hello(i).await;
            assert!(is(&hello, "secondary") && at(&hello, "lastWrite.opTime.ts").is_some(), "{hello:?}");
            assert_eq!((hello.get("primary"), count(&mut set.connect(i).await).await), (None, 2));
        }
        // Whoever is behind its majority reads nothing, whoever asks under the old name is a stranger.
        let stranger = doc! {
            "replSetHeartbeat": "rs", "configVersion": 9, "configTerm": 1, "from": set.host(0), "fromId": 0, "term": 1,
            "$db": "admin"
        };
        let refused = set.connect(3).await.run(stranger).await;
        assert_eq!(code(&refused), 108, "{refused:?}");

        step_up(&set, 4).await;
        let mut spare = set.connect(4).await;
        spare.ok(insert(3, majority())).await;
        let mut donor = set.connect(primary_of(&set, STAY).await).await;
        donor.ok(insert(4, majority())).await;
        donor.ok(insert(5, majority())).await;
        counts(&set, STAY, 4).await;
        counts(&set, LEAVE, 3).await;
        let read = doc! { "count": "c", "readConcern": { "level": "majority" } };
        set.until("it is committed", async |set| {
            number(&set.connect(5).await.run(anywhere(read.clone())).await, "n") == 3
        })
        .await;

        // What is on disk says which set it is.
        for i in LEAVE {
            set.kill(i).await;
        }
        for i in LEAVE {
            set.restart(i).await;
        }
        for i in LEAVE {
            assert_eq!(name(&set.hello(i).await), "recipient");
        }
        let at = primary_of(&set, LEAVE).await;
        set.connect(at).await.ok(insert(6, majority())).await;
        counts(&set, LEAVE, 4).await;
        counts(&set, STAY, 4).await;

        // A user cannot bring a split; what this one has left goes with the next configuration of a user, who may send it back.
        let p = primary_of(&set, STAY).await;
        let mut config = set.current(p).await;
        config.set("version", number(&config, "version") + 1);
        let mut c = set.connect(p).await;
        let mut other = config.clone();
        let Some(Bson::Document(mut recipient)) = other.remove("recipientConfig") else {
            panic!("{config:?}")
        };
        recipient.set("version", number(&recipient, "version") + 1);
        other.push("recipientConfig", recipient);
        let refused = c.run(doc! { "replSetReconfig": other, "$db": "admin" }).await;
        assert_eq!(code(&refused), 93, "{refused:?}");
        c.ok(doc! { "replSetReconfig": config, "$db": "admin" }).await;
        assert!(set.current(p).await.get("recipientConfig").is_none());
        c.ok(insert(7, majority())).await;
        set.shut_down().await;
    });
}

#[test]
fn a_member_that_was_down_leaves_when_it_comes_back() {
    run(async {
        let (mut set, p) = six().await;
        set.kill(5).await;
        split(&set, p).await;
        set.until("two have left", async |set| {
            name(&set.hello(3).await) == "recipient" && name(&set.hello(4).await) == "recipient"
        })
        .await;
        step_up(&set, 3).await;
        set.connect(3).await.ok(insert(3, majority())).await;
        set.restart(5).await;
        all_left(&set).await;
        counts(&set, LEAVE, 3).await;
        set.connect(primary_of(&set, STAY).await).await.ok(insert(4, majority())).await;
        counts(&set, STAY, 3).await;
        set.shut_down().await;
    });
}
