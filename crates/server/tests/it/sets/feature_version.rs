//! The feature compatibility version of a set.

use crate::sets::words::*;
use pando_bson::{Bson, Document, doc};
use pando_testserver::{Set, is, run};

async fn shown(set: &Set, i: usize) -> Document {
    let mut c = set.connect(i).await;
    let mut reply = c.admin(doc! { "getParameter": 1, "featureCompatibilityVersion": 1 }).await;
    match reply.remove("featureCompatibilityVersion") {
        Some(Bson::Document(d)) => d,
        other => panic!("{other:?}"),
    }
}

fn to(version: &str) -> Document {
    doc! { "setFeatureCompatibilityVersion": version, "confirm": true, "$db": "admin" }
}

#[test]
fn a_change_of_the_feature_version_is_seen_by_all_and_taken_up_by_the_next_primary() {
    run(async {
        let set = Set::of(3).await;
        let p = set.primary().await;
        let mut c = set.connect(p).await;
        assert_eq!(shown(&set, p).await, doc! { "version": "7.0" });
        assert_eq!(
            code(&c.run(doc! { "setFeatureCompatibilityVersion": "6.0", "$db": "admin" }).await),
            7_369_100
        );
        set.fail_point(p, "failDowngrading", true).await;
        assert_eq!(code(&c.run(to("6.0")).await), 549_181);
        let half = doc! { "version": "6.0", "targetVersion": "6.0", "previousVersion": "7.0" };
        for i in 0..3 {
            set.until("every member knows", async |set| shown(set, i).await == half).await;
        }
        let found = c.all(doc! { "find": "system.version", "$db": "admin" }).await;
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].get("previousVersion").and_then(Bson::as_str), Some("7.0"));
        assert_eq!(code(&c.run(to("6.3")).await), 5_147_403);
        // The next primary goes on from there.
        let heir = set.secondaries().await[0];
        set.until("an election", async |set| {
            is(&set.connect(heir).await.run(doc! { "replSetStepUp": 1, "$db": "admin" }).await, "ok")
        })
        .await;
        set.until("the office", async |set| is(&set.hello(heir).await, "isWritablePrimary")).await;
        let mut c = set.connect(heir).await;
        let done = c.run(to("6.0")).await;
        assert!(is(&done, "ok"), "{done:?}");
        for i in 0..3 {
            set.until("every member knows", async |set| shown(set, i).await == doc! { "version": "6.0" })
                .await;
        }
        let log = doc! { "find": "oplog.rs", "filter": { "ns": "admin.system.version" }, "$db": "local" };
        assert_eq!(c.all(log).await.len(), 4, "what it was, two phases and the end");
        set.shut_down().await;
    });
}
