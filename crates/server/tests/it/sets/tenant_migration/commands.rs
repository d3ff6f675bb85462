//! What the commands of migrations refuse, and what they say.

use super::*;
use pando_testserver::run;

#[test]
fn what_is_no_migration_is_refused_and_changes_nothing() {
    run(async {
        let two = Two::start().await;
        let mut c = two.client(DONOR).await;
        let with = |name: &str, value: Bson| {
            let mut d = two.start_command(1, "acme");
            d.remove(name);
            d.push(name, value);
            d
        };
        let mut nothing = two.start_command(1, "acme");
        nothing.remove("migrationId");
        for (command, expected) in [
            (nothing, 40414),
            (with("tenantId", "".into()), 72),
            (with("tenantId", "a_b".into()), 2),
            (with("tenantId", "config".into()), 2),
            (with("tenantId", 5.into()), 14),
            (with("recipientConnectionString", "nowhere".into()), 9),
            (with("recipientConnectionString", "r/".into()), 9),
            (with("protocol", "by hand".into()), 2),
            (with("protocol", "shard merge".into()), 72),
            (with("readPreference", doc! { "mode": "nearest" }.into()), 115),
            (with("what", 1.into()), 40415),
        ] {
            let reply = c.run(command.clone()).await;
            assert_eq!(code(&reply), expected, "{command:?}: {reply:?}");
        }
        for command in ["donorAbortMigration", "donorForgetMigration"] {
            assert_eq!(code(&c.run(of_migration(command, 9)).await), 327, "{command}");
        }
        assert!(two.state(DONOR, 1).await.is_none());
        // To itself: it is begun, and comes to nothing.
        let mut itself = two.start_command(2, "acme");
        itself.remove("recipientConnectionString");
        itself.push("recipientConnectionString", two.connection(DONOR));
        let reply = two.client(DONOR).await.run(itself).await;
        assert_eq!(reply.get("state"), Some(&"aborted".into()), "{reply:?}");
        assert_eq!(at(&reply, "abortReason.code"), Some(&2.into()), "{reply:?}");
        two.forget(2).await;
        // To a set that takes no tenants: it has nothing to forget, and this one goes on.
        let other = Set::of(1).await;
        let mut elsewhere = two.start_command(3, "acme");
        elsewhere.remove("recipientConnectionString");
        elsewhere.push("recipientConnectionString", format!("rs/{}", other.host(0)));
        let reply = two.until_decided(elsewhere).await;
        assert_eq!(reply.get("state"), Some(&"aborted".into()), "{reply:?}");
        assert_eq!(at(&reply, "abortReason.code"), Some(&115.into()), "{reply:?}");
        two.forget(3).await;
        two.moved(4, "acme").await;
        other.shut_down().await;
        two.done().await;
    });
}

#[test]
fn who_asks_for_the_same_joins_and_who_asks_for_something_else_is_refused() {
    run(async {
        let two = Two::start().await;
        two.client(DONOR).await.ok(put("acme_db", 1)).await;
        two.moved(1, "acme").await;
        two.moved(1, "acme").await;
        let reply = two.client(DONOR).await.run(two.start_command(1, "other")).await;
        assert_eq!(code(&reply), 117, "{reply:?}");
        let reply = two.client(DONOR).await.run(two.start_command(2, "acme")).await;
        assert_eq!(code(&reply), 117, "{reply:?}");
        let mut split = doc! { "commitShardSplit": 1, "migrationId": uuid(3), "tenantIds": ["zeta"] };
        split.push("recipientSetName", "new");
        split.push("recipientTagName", "tag");
        let reply = two
            .client(DONOR)
            .await
            .run({
                split.push("$db", "admin");
                split
            })
            .await;
        assert_eq!(code(&reply), 385, "{reply:?}");
        let reply = two.client(DONOR).await.run(of_migration("donorAbortMigration", 1)).await;
        assert_eq!(code(&reply), 321, "{reply:?}");
        let status = two.client(DONOR).await.admin(doc! { "serverStatus": 1 }).await;
        assert_eq!(number(&status, "tenantMigrations.totalMigrationDonationsCommitted"), 1);
        let status = two.client(RECIPIENT).await.admin(doc! { "serverStatus": 1 }).await;
        assert_eq!(number(&status, "tenantMigrations.totalSuccessfulMigrationsReceived"), 1);
        two.forget(1).await;
        two.done().await;
    });
}

#[test]
fn a_tenant_that_is_there_already_keeps_what_it_has() {
    run(async {
        let two = Two::start().await;
        two.client(DONOR).await.ok(put("acme_db", 1)).await;
        two.client(RECIPIENT).await.ok(put("acme_other", 7)).await;
        let reply = two.migrate(1, "acme").await;
        assert_eq!(reply.get("state"), Some(&"aborted".into()), "{reply:?}");
        two.forget(1).await;
        two.until_gone(1).await;
        assert_eq!(two.ids(RECIPIENT, "acme_other").await, [7]);
        assert_eq!(two.databases(RECIPIENT).await, ["acme_other"]);
        two.client(DONOR).await.ok(put("acme_db", 2)).await;
        two.client(RECIPIENT).await.ok(put("acme_other", 8)).await;
        two.done().await;
    });
}

#[test]
fn a_set_of_another_name_takes_nobody() {
    run(async {
        let two = Two::start().await;
        two.client(DONOR).await.ok(put("acme_db", 1)).await;
        let mut start = two.start_command(1, "acme");
        start.remove("recipientConnectionString");
        start
            .push("recipientConnectionString", two.connection(RECIPIENT).replacen("recipient/", "other/", 1));
        let reply = loop {
            let reply = two.ask(DONOR, start.clone()).await;
            if reply.get("state") == Some(&"aborted".into()) {
                break reply;
            }
            assert!(is(&reply, "ok"), "{reply:?}");
            pause(20).await;
        };
        assert_eq!(at(&reply, "abortReason.code"), Some(&2.into()), "{reply:?}");
        // It was told that nothing comes of it, and remembers that.
        let told = two.state(RECIPIENT, 1).await;
        assert!(told.is_none_or(|d| d.get("state") == Some(&"aborted".into())));
        assert_eq!(two.databases(RECIPIENT).await, [""; 0]);
        two.client(DONOR).await.ok(put("acme_db", 2)).await;
        two.done().await;
    });
}

#[test]
fn a_recipient_that_nobody_reaches_is_waited_for_until_it_is_called_off() {
    run(async {
        let two = Two::start().await;
        two.client(DONOR).await.ok(put("acme_db", 1)).await;
        let mut start = two.start_command(1, "acme");
        start.remove("recipientConnectionString");
        start.push("recipientConnectionString", "nobody/127.0.0.1:1");
        let reply = two.client(DONOR).await.run(start.clone()).await;
        assert!(is(&reply, "ok"), "{reply:?}");
        pause(500).await;
        two.client(DONOR).await.ok(put("acme_db", 2)).await;
        two.client(DONOR).await.ok(of_migration("donorAbortMigration", 1)).await;
        two.client(DONOR).await.ok(put("acme_db", 3)).await;
        let reply = two.client(DONOR).await.run(start).await;
        assert_eq!(reply.get("state"), Some(&"aborted".into()), "{reply:?}");
        two.done().await;
    });
}

#[test]
fn a_recipient_that_was_told_to_forget_does_not_begin() {
    run(async {
        let two = Two::start().await;
        let forget = {
            let mut d = of_migration("recipientForgetMigration", 1);
            d.push("decision", "aborted");
            d
        };
        // It is remembered for the delay.
        for i in two.members(RECIPIENT) {
            let mut c = two.set.connect(i).await;
            c.admin(doc! { "setParameter": 1, "tenantMigrationGarbageCollectionDelayMS": 60_000 }).await;
        }
        two.client(RECIPIENT).await.ok(forget.clone()).await;
        two.client(RECIPIENT).await.ok(forget).await;
        two.client(DONOR).await.ok(put("acme_db", 1)).await;
        let reply = two.migrate(1, "acme").await;
        assert_eq!(reply.get("state"), Some(&"aborted".into()), "{reply:?}");
        assert_eq!(at(&reply, "abortReason.code"), Some(&325.into()), "{reply:?}");
        two.client(DONOR).await.ok(put("acme_db", 2)).await;
        two.done().await;
    });
}

#[test]
fn a_recipient_that_has_forgotten_says_so_to_a_donor_that_asks_once_more() {
    run(async {
        let two = Two::start().await;
        two.client(DONOR).await.ok(put("acme_db", 1)).await;
        two.moved(1, "acme").await;
        two.forget(1).await;
        two.until_gone(1).await;
        // As the next primary of the donor does when the last one ended before it noted that it was told.
        two.client(RECIPIENT).await.ok(of_migration("_recipientCommitMigration", 1)).await;
        two.client(RECIPIENT).await.ok(of_migration("recipientForgetMigration", 1)).await;
        for i in two.members(RECIPIENT) {
            let find = doc! { "find": "tenantMigrationProgress", "$db": "config" };
            let left = two.set.connect(i).await.all(anywhere(find)).await;
            assert!(left.is_empty(), "what was noted of the way is gone with its document: {left:?}");
        }
        two.done().await;
    });
}
