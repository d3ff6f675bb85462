//! A member that came back from a backup votes when it holds what the set does.

use crate::sets::words::*;
use pando_bson::{Bson, doc};
use pando_testserver::{Client, Set, is, run};

/// Asks for a vote as a member with the newest data would.
async fn votes(c: &mut Client, term: i64) -> bool {
    let ask = doc! {
        "replSetRequestVotes": 1, "setName": "rs", "dryRun": false, "term": term, "candidateIndex": 0,
        "configVersion": 1, "configTerm": 1_000_i64,
        "lastAppliedOpTime": { "ts": pando_base::Timestamp::new(4_000_000_000, 1), "t": term - 1 },
        "$db": "admin"
    };
    let reply = c.run(ask).await;
    is(&reply, "voteGranted")
}

#[test]
fn a_restored_member_gives_no_vote_until_it_has_caught_up() {
    run(async {
        let mut set = Set::of(3).await;
        let p = set.primary().await;
        let mut c = set.connect(p).await;
        let mut insert = doc! { "insert": "c", "documents": [{ "_id": 1 }] };
        insert.push("writeConcern", doc! { "w": 3 });
        c.ok(insert).await;
        let restored = set.secondaries().await[0];
        let others: Vec<usize> = (0..3).filter(|i| *i != restored).collect();
        set.server(restored).access.maintenance().note_restored().unwrap();
        for i in [restored, others[0], others[1]] {
            set.stop(i).await;
        }
        set.restart(restored).await;
        assert!(!votes(&mut set.connect(restored).await, 50).await, "nobody knows whom it voted for");
        for i in &others {
            set.restart(*i).await;
        }
        set.until("it has caught up", async |set| {
            !set.server(restored).access.maintenance().is_restored().unwrap()
        })
        .await;
        let mut c = set.connect(restored).await;
        let vote = doc! { "find": "replset.election", "$db": "local" };
        let term = c.all(anywhere(vote)).await[0].get("term").and_then(Bson::as_i64).unwrap();
        assert!(term > 1 && !votes(&mut c, term).await, "not in a term in which it may have voted");
        set.shut_down().await;
    });
}
