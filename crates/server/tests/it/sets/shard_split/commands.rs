//! The three commands: what they refuse, and a split that is called off.

use super::*;
use pando_testserver::run;

#[test]
fn what_cannot_be_split_so_is_told_and_nothing_is_left() {
    run(async {
        let d = Donor::start().await;
        let without = |name: &str| {
            let mut command = Document::new();
            for (field, value) in split(1, &["acme"]).iter().filter(|(field, _)| *field != name) {
                command.push(field, value.clone());
            }
            command
        };
        for name in ["migrationId", "tenantIds", "recipientTagName", "recipientSetName"] {
            assert_eq!(code(&d.ask(without(name)).await), 40414, "{name}");
        }
        let with = |name: &str, value: Bson| {
            let mut command = split(1, &["acme"]);
            command.set(name, value);
            command
        };
        for (name, value, expected) in [
            ("migrationId", "x".into(), 14),
            ("tenantIds", "acme".into(), 14),
            ("tenantIds", Bson::Array(vec![1.into()]), 14),
            ("tenantIds", Bson::Array(vec!["a_b".into()]), 2),
            ("tenantIds", Bson::Array(vec!["a".into(), "a".into()]), 2),
            ("recipientTagName", "".into(), 2),
            ("recipientSetName", "".into(), 2),
            ("unknown", 1.into(), 40415),
        ] {
            let reply = d.ask(with(name, value.clone())).await;
            assert_eq!(code(&reply), expected, "{name} {value:?} {reply:?}");
        }
        for command in ["abortShardSplit", "forgetShardSplit"] {
            let mut bare = Document::new();
            bare.push(command, 1);
            bare.push("$db", "admin");
            assert_eq!(code(&d.ask(bare).await), 40414, "{command}");
        }
        // A document is left of what could not begin: its id is used up, and its tenants are its until it is forgotten.
        for (id, name, value, tenant) in
            [(2, "recipientTagName", "nobody", "acme"), (3, "recipientSetName", DONOR, "beta")]
        {
            let mut command = split(id, &[tenant]);
            command.set(name, value);
            let reply = d.ask(command).await;
            assert_eq!(code(&reply), 125, "{name} {reply:?}");
            let state = d.state(d.primary().await, id).await.expect("a document");
            assert_eq!(state.get("state"), Some(&"aborted".into()), "{state:?}");
        }
        d.client().await.ok(put("acme_db", 1)).await;
        // A member that votes cannot leave.
        let mut config = d.set.current(d.primary().await).await;
        let version = number(&config, "version");
        config.set("version", version + 1);
        let mut members = at(&config, "members").and_then(Bson::as_array).expect("members").to_vec();
        if let Bson::Document(m) = &mut members[5] {
            m.set("votes", 1);
        }
        config.set("members", members);
        let p = d.primary().await;
        let mut reconfig = doc! { "replSetReconfig": config };
        reconfig.push("$db", "admin");
        d.set.connect(p).await.ok(reconfig).await;
        assert_eq!(code(&d.split(4, &["acme"]).await), 117);
        let reply = d.split(4, &["zeta"]).await;
        assert_eq!(code(&reply), 125, "{reply:?}");
        d.done().await;
    });
}

#[test]
fn a_node_without_serverless_and_one_that_is_no_primary_refuse() {
    run(async {
        let set = Set::of(1).await;
        let mut c = set.connect(0).await;
        for command in [split(1, &["a"]), of_split("abortShardSplit", 1), of_split("forgetShardSplit", 1)] {
            assert_eq!(code(&c.run(command).await), 115);
        }
        set.shut_down().await;
    });
}

#[test]
fn a_split_that_is_called_off_leaves_everything_as_it_was() {
    run(async {
        let d = Donor::start().await;
        let mut c = d.client().await;
        c.ok(put("acme_db", 1)).await;
        // Blocking, and not split yet.
        let (p, task) = d.held(7).await;
        let waits = {
            let mut c = d.client().await;
            spawn(async move { c.run(put("acme_db", 2)).await })
        };
        pause(50).await;
        let abort = {
            let mut c = d.client().await;
            spawn(async move { c.run(of_split("abortShardSplit", 1)).await })
        };
        pause(100).await;
        assert_eq!(code(&d.ask(of_split("forgetShardSplit", 1)).await), 329);
        let mut config = d.set.current(p).await;
        let version = number(&config, "version");
        config.set("version", version + 1);
        assert_eq!(code(&d.set.reconfig(config, false).await), 117, "while it is undecided");
        d.go_on(p).await;
        assert_eq!(code(&abort.await.expect("it ends")), 0);
        let reply = task.await.expect("it ends");
        assert_eq!((code(&reply), at(&reply, "abortReason.code")), (125, Some(&325.into())), "{reply:?}");
        assert_eq!(code(&waits.await.expect("it ends")), 325);
        c.ok(put("acme_db", 3)).await;
        for i in 0..6 {
            assert_eq!(d.set.hello(i).await.get("setName"), Some(&DONOR.into()));
        }
        assert_eq!(code(&d.split(1, &["acme"]).await), 125, "it is not begun again");
        assert_eq!(code(&d.ask(of_split("forgetShardSplit", 1)).await), 0);
        // Another one may have the tenant now.
        let reply = d.split(2, &["acme"]).await;
        assert_eq!(reply.get("state"), Some(&"committed".into()), "{reply:?}");
        let new = d.new_primary().await;
        assert_eq!(d.set.connect(new).await.all(look("acme_db")).await.len(), 2);
        d.done().await;
    });
}

/// Another split of the same name would find the set made, by members that have gone before its own tenants were blocked.
#[test]
fn a_set_is_made_by_one_split() {
    run(async {
        let d = Donor::start().await;
        let (p, task) = d.held(7).await;
        assert_eq!(code(&d.split(2, &["beta"]).await), 117);
        assert!(d.state(p, 2).await.is_none(), "nothing is left of it");
        d.go_on(p).await;
        assert_eq!(task.await.expect("it ends").get("state"), Some(&"committed".into()));
        assert_eq!(code(&d.split(2, &["beta"]).await), 117);
        d.client().await.ok(put("beta_db", 1)).await;
        d.done().await;
    });
}

/// What the old set knows of other splits comes with its data, and is not the new one's business either.
#[test]
fn a_split_that_was_called_off_is_not_taken_over_by_the_new_set() {
    run(async {
        let d = Donor::start().await;
        assert_eq!(code(&d.ask(of_split("abortShardSplit", 2)).await), 0);
        assert_eq!(d.split(1, &["acme"]).await.get("state"), Some(&"committed".into()));
        let p = d.new_primary().await;
        d.set.until("it is gone", async |_| d.state(p, 2).await.is_none()).await;
        assert!(d.state(d.primary().await, 2).await.is_some());
        d.done().await;
    });
}

#[test]
fn a_split_that_is_called_off_before_it_begins_does_not_begin() {
    run(async {
        let d = Donor::start().await;
        assert_eq!(code(&d.ask(of_split("abortShardSplit", 1)).await), 0);
        assert_eq!(code(&d.split(1, &["acme"]).await), 125);
        assert_eq!(code(&d.ask(of_split("abortShardSplit", 1)).await), 0);
        for i in 0..6 {
            assert_eq!(d.set.hello(i).await.get("setName"), Some(&DONOR.into()));
        }
        d.done().await;
    });
}

#[test]
fn index_builds_of_its_tenants_are_given_up() {
    run(async {
        let d = Donor::start().await;
        let mut c = d.client().await;
        c.ok(put("acme_db", 1)).await;
        c.ok(put("other_db", 1)).await;
        let p = d.primary().await;
        d.set.fail_point(p, "hangAfterStartingIndexBuild", true).await;
        let build = |db: &'static str| {
            let port = d.set.host(p).rsplit(':').next().and_then(|p| p.parse().ok()).expect("a port");
            let index =
                doc! { "createIndexes": "c", "indexes": [{ "key": { "a": 1 }, "name": "a" }], "$db": db };
            spawn(async move { Client::connect(port).await.run(index).await })
        };
        let (acme, other) = (build("acme_db"), build("other_db"));
        pause(300).await;
        let reply = {
            let mut c = d.set.connect(p).await;
            spawn(async move { c.run(split(1, &["acme"])).await })
        };
        let ended = acme.await.expect("it ends");
        assert_eq!(code(&ended), 276, "{ended:?}");
        assert!(!other.is_finished());
        d.set.fail_point(p, "hangAfterStartingIndexBuild", false).await;
        assert_eq!(code(&other.await.expect("it ends")), 0);
        assert_eq!(reply.await.expect("it ends").get("state"), Some(&"committed".into()));
        d.done().await;
    });
}
