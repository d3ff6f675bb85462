//! A copy that the donor cannot go on with: it has another primary, or holds as many tenants still as it may.

use super::*;
use pando_base::limits::TENANT_EXPORTS_MAX;
use pando_testserver::{run, spawn};
use std::sync::Arc;

/// What a copy reads takes so long there.
async fn slow_copies(two: &Two, i: usize, ms: i32) {
    let data = doc! { "failCommands": ["_tenantDocuments"], "failInternalCommands": true, "blockConnection": true, "blockTimeMS": ms };
    let mode = if ms > 0 { "alwaysOn" } else { "off" };
    two.set
        .connect(i)
        .await
        .admin(doc! { "configureFailPoint": "failCommand", "mode": mode, "data": data })
        .await;
}
async fn until_it_copies(two: &Two, id: u8) {
    for _ in 0..1000 {
        if two.state(RECIPIENT, id).await.is_some_and(|d| d.get("copied").is_some()) {
            return;
        }
        pause(10).await;
    }
    panic!("{:?}", two.state(RECIPIENT, id).await);
}

#[test]
fn a_copy_begins_anew_when_the_donor_gets_another_primary() {
    run(async {
        let mut two = Two::start().await;
        two.client(DONOR).await.ok(put("acme_db", 1)).await;
        let p = two.primary(DONOR).await;
        slow_copies(&two, p, 30_000).await;
        let start = two.ask(DONOR, two.start_command(1, "acme")).await;
        assert!(is(&start, "ok"), "{start:?}");
        until_it_copies(&two, 1).await;
        pause(300).await;
        two.set.kill(p).await;
        two.moved(1, "acme").await;
        assert_eq!(two.ids(RECIPIENT, "acme_db").await, [1]);
        two.set.restart(p).await;
        two.forget(1).await;
        two.done().await;
    });
}

#[test]
fn more_tenants_than_are_held_still_at_a_time_wait_for_each_other() {
    run(async {
        let two = Arc::new(Two::start().await);
        let many = TENANT_EXPORTS_MAX as u8 + 3;
        for n in 0..many {
            two.client(DONOR).await.ok(put(&format!("t{n}_db"), 1)).await;
        }
        let p = two.primary(DONOR).await;
        slow_copies(&two, p, 1500).await;
        let all: Vec<_> = (0..many)
            .map(|n| {
                let two = two.clone();
                spawn(async move { two.moved(n + 1, &format!("t{n}")).await })
            })
            .collect();
        for one in all {
            one.await.expect("it ends");
        }
        assert_eq!(two.databases(RECIPIENT).await.len(), usize::from(many));
        Arc::into_inner(two).expect("all have ended").done().await;
    });
}

#[test]
fn what_is_held_still_is_let_go_when_a_migration_is_over() {
    run(async {
        let two = Two::start().await;
        two.client(DONOR).await.ok(put("acme_db", 1)).await;
        let p = two.primary(DONOR).await;
        slow_copies(&two, p, 1500).await;
        for id in 1..=TENANT_EXPORTS_MAX as u8 + 1 {
            let start = two.ask(DONOR, two.start_command(id, "acme")).await;
            assert!(is(&start, "ok"), "{start:?}");
            until_it_copies(&two, id).await;
            pause(100).await;
            two.client(DONOR).await.ok(of_migration("donorAbortMigration", id)).await;
            two.forget(id).await;
        }
        slow_copies(&two, p, 0).await;
        two.moved(100, "acme").await;
        two.done().await;
    });
}

#[test]
fn nothing_is_left_of_a_migrations_progress() {
    run(async {
        let two = Two::start().await;
        for id in [1, 2] {
            two.client(DONOR).await.ok(put(&format!("t{id}_db"), 1)).await;
            two.moved(id, &format!("t{id}")).await;
            two.forget(id).await;
            two.until_gone(id).await;
        }
        let left = two
            .client(RECIPIENT)
            .await
            .all(doc! { "find": "tenantMigrationProgress", "$db": "config" })
            .await;
        assert_eq!(left, [], "who could ask for it");
        two.done().await;
    });
}

/// The donor's primary ends before the `n`-th step behind `donorForgetMigration`, when the recipient has forgotten long ago if it was told.
async fn is_forgotten_in_the_end(n: usize) -> bool {
    let mut two = Two::start().await;
    two.client(DONOR).await.ok(put("acme_db", 1)).await;
    two.moved(1, "acme").await;
    // The recipient has heard of the decision.
    let told = |d: Document| d.get("state") == Some(&"committed".into());
    for _ in 0..500 {
        if two.state(RECIPIENT, 1).await.is_some_and(told) {
            break;
        }
        pause(10).await;
    }
    pause(200).await;
    let p = two.primary(DONOR).await;
    two.set.hang_at(p, n).await;
    let before = two.set.entered(p);
    let task = {
        let mut c = two.client(DONOR).await;
        spawn(async move { c.try_run(of_migration("donorForgetMigration", 1)).await })
    };
    pause(1500).await;
    let hangs = two.set.entered(p) > before;
    two.set.kill(p).await;
    let _ = task.await;
    let reply = two.ask(DONOR, of_migration("donorForgetMigration", 1)).await;
    assert!(is(&reply, "ok") || code(&reply) == 327, "{n}: {reply:?}");
    two.until_gone(1).await;
    assert_eq!(two.ids(RECIPIENT, "acme_db").await, [1]);
    two.set.restart(p).await;
    two.done().await;
    hangs
}

#[test]
fn a_migration_is_forgotten_when_the_donors_primary_ends_behind_the_recipients_document() {
    run(async {
        let mut hung = 0;
        for n in 0..5 {
            hung += usize::from(is_forgotten_in_the_end(n).await);
        }
        assert!(hung > 2, "{hung}");
    });
}
