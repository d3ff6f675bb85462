//! A member takes the office over from a primary that works.

use pando_bson::{Bson, Document, doc};
use pando_sim::rig::{Rig, words::*};

fn reason(rig: &Rig, i: usize) -> Option<String> {
    let status = rig.status(i);
    Some(at(&status, "electionCandidateMetrics.lastElectionReason")?.as_str()?.to_owned())
}

/// The member with the highest priority was away, comes back behind, catches up, and takes over.
#[test]
fn the_member_of_highest_priority_takes_over_once_it_has_caught_up() {
    let members = [Document::new(), Document::new(), doc! { "priority": 5 }];
    let mut rig = Rig::with(311, &members, Document::new());
    rig.until("the preferred primary", |rig| rig.is_primary(2));
    rig.ok(2, insert(1, w(3)));
    rig.nodes[2].kill();
    rig.until("another primary", |rig| rig.primary_now().is_some());
    let p = rig.primary();
    for i in 2..30 {
        rig.ok(p, insert(i, w(2)));
    }
    super::initial_sync::hang(&rig, p, "stopReplProducer", false);
    rig.nodes[2].boot();
    rig.until("the takeover", |rig| rig.is_primary(2));
    assert_eq!(reason(&rig, 2).as_deref(), Some("priorityTakeover"));
    // Nothing that the other one had acknowledged is gone.
    rig.ok(2, insert(30, majority()));
    assert_eq!(ids(&rig.ok(2, find("majority"))), (1..=30).collect::<Vec<i64>>());
    rig.until("one primary", |rig| rig.hello(p).get("secondary").is_some_and(Bson::is_truthy));
}
