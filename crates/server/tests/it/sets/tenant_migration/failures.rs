//! Primaries of both sets that end while a tenant moves, at each of their steps; and a migration that is called off there.

use super::moves::write_until_told;
use super::*;
use pando_testserver::{run, spawn};
use std::sync::Arc;

/// The migration goes on with the next primary, wherever the last one ended.
async fn ends_before(of: usize, n: usize, kill: bool) -> bool {
    let mut two = Two::start().await;
    two.client(DONOR).await.ok(put("acme_db", -1)).await;
    let p = two.primary(of).await;
    two.set.hang_at(p, n).await;
    let before = two.set.entered(p);
    let task = {
        let mut c = two.client(DONOR).await;
        let start = two.start_command(1, "acme");
        spawn(async move { c.try_run(start).await.unwrap_or_default() })
    };
    let mut hangs = false;
    for _ in 0..150 {
        hangs = two.set.entered(p) > before;
        if hangs {
            break;
        }
        pause(10).await;
    }
    if hangs && kill {
        two.set.kill(p).await;
    } else if hangs {
        let mut down = doc! { "replSetStepDown": 30, "force": true };
        down.push("$db", "admin");
        let mut c = two.set.connect(p).await;
        let down = spawn(async move { c.try_run(down).await });
        pause(200).await;
        two.set.fail_point(p, "hangBeforeWorkflowAction", false).await;
        let _ = down.await;
    } else {
        two.set.fail_point(p, "hangBeforeWorkflowAction", false).await;
    }
    let two = Arc::new(two);
    let writer = {
        let two = two.clone();
        spawn(async move { write_until_told(&two, 0).await })
    };
    let reply = two.migrate(1, "acme").await;
    let what = format!("{} {n}", SETS[of]);
    assert_eq!(reply.get("state"), Some(&"committed".into()), "{what}: {reply:?}");
    let (mut acked, told) = writer.await.expect("it ends");
    let mut two = Arc::into_inner(two).expect("all have ended");
    assert_eq!(code(&told), 321, "{what}: {told:?}");
    let _ = task.await;
    acked.push(-1);
    let there = two.ids(RECIPIENT, "acme_db").await;
    assert!(acked.iter().all(|id| there.contains(id)), "{what}: {acked:?} {there:?}");
    if hangs && kill {
        two.set.restart(p).await;
    }
    two.client(RECIPIENT).await.ok(put("acme_db", -2)).await;
    two.client(DONOR).await.ok(put("other_db", 1)).await;
    assert_eq!(code(&two.client(DONOR).await.run(look("acme_db")).await), 321);
    two.forget(1).await;
    two.done().await;
    hangs
}

/// How many steps each side has before the decision is known.
const STEPS: [usize; 2] = [14, 14];

#[test]
fn a_migration_goes_on_when_the_donors_primary_is_killed() {
    run(async {
        let mut hung = 0;
        for n in 0..STEPS[DONOR] {
            hung += usize::from(ends_before(DONOR, n, true).await);
        }
        assert!(hung > 8, "{hung}");
    });
}
#[test]
fn a_migration_goes_on_when_the_recipients_primary_is_killed() {
    run(async {
        let mut hung = 0;
        for n in 0..STEPS[RECIPIENT] {
            hung += usize::from(ends_before(RECIPIENT, n, true).await);
        }
        assert!(hung > 8, "{hung}");
    });
}
#[test]
fn a_migration_goes_on_when_a_primary_steps_down() {
    run(async {
        for n in [1, 3, 5, 7, 9] {
            ends_before(DONOR, n, false).await;
            ends_before(RECIPIENT, n, false).await;
        }
    });
}

/// Whatever was copied goes, and the tenant stays, or it was too late.
async fn called_off_at(n: usize) -> Option<bool> {
    let two = Two::start().await;
    two.client(DONOR).await.ok(put("acme_db", 1)).await;
    let p = two.primary(DONOR).await;
    two.set.hang_at(p, n).await;
    let before = two.set.entered(p);
    let task = {
        let mut c = two.set.connect(p).await;
        let start = two.start_command(1, "acme");
        spawn(async move { c.run(start).await })
    };
    let mut hangs = false;
    for _ in 0..150 {
        hangs = two.set.entered(p) > before;
        if hangs {
            break;
        }
        pause(10).await;
    }
    let abort = {
        let mut c = two.set.connect(p).await;
        spawn(async move { c.run(of_migration("donorAbortMigration", 1)).await })
    };
    pause(100).await;
    two.set.fail_point(p, "hangBeforeWorkflowAction", false).await;
    let aborted = abort.await.expect("it ends");
    let _ = task.await;
    let end = two.migrate(1, "acme").await;
    let stays = end.get("state") == Some(&"aborted".into());
    assert!(if stays { is(&aborted, "ok") } else { code(&aborted) == 321 }, "{n}: {end:?} {aborted:?}");
    two.forget(1).await;
    two.until_gone(1).await;
    let (here, there) = (two.databases(DONOR).await, two.databases(RECIPIENT).await);
    let owner = if stays { DONOR } else { RECIPIENT };
    assert_eq!([here.len(), there.len()][owner], 1, "{n}: {here:?} {there:?}");
    assert_eq!([here.len(), there.len()][1 - owner], 0, "{n}: {here:?} {there:?}");
    two.client(owner).await.ok(put("acme_db", 2)).await;
    assert_eq!(two.ids(owner, "acme_db").await, [1, 2], "{n}");
    two.done().await;
    hangs.then_some(stays)
}

#[test]
fn a_migration_that_is_called_off_leaves_nothing_behind() {
    run(async {
        let mut stays = 0;
        for n in 0..STEPS[DONOR] {
            stays += usize::from(called_off_at(n).await == Some(true));
        }
        assert!(stays > 5, "{stays}");
    });
}
