//! The feature version of a whole cluster.

use super::{Bench, command, start};
use pando_bson::{Bson, Document, doc};
use pando_testserver::{Client, run};

fn to(version: &str) -> Document {
    let mut command = command("setFeatureCompatibilityVersion", version, None);
    command.push("confirm", true);
    command
}
/// `version`, and where it is going.
async fn shown(c: &mut Client) -> Document {
    let mut reply = c.admin(doc! { "getParameter": 1, "featureCompatibilityVersion": 1 }).await;
    match reply.remove("featureCompatibilityVersion") {
        Some(Bson::Document(d)) => d,
        other => panic!("{other:?}"),
    }
}

impl Bench {
    async fn check_all_are(&self, version: &Document) {
        assert_eq!(&shown(&mut self.primary().await).await, version);
        for i in 0..self.shards.len() {
            assert_eq!(&shown(&mut self.shard(i).await).await, version, "s{i}");
        }
    }
}

#[test]
fn all_nodes_of_a_cluster_change_their_version_whatever_the_config_servers_primary_does_before_each_step() {
    run(async {
        let mut b = Bench::of(2).await;
        let versions = ["6.0", "7.0"];
        b.every_step(versions.map(to), async |b, i| b.check_all_are(&doc! { "version": versions[i] }).await)
            .await;
        b.shut_down().await;
    });
}

#[test]
fn a_change_that_is_cut_off_is_taken_up_and_a_version_that_cannot_be_is_begun_nowhere() {
    run(async {
        let mut b = Bench::of(2).await;
        let mut c = b.primary().await;
        assert_eq!(c.err(to("5.0")).await.0, 4_926_900);
        let unconfirmed = command("setFeatureCompatibilityVersion", "6.0", None);
        assert_eq!(c.err(unconfirmed).await.0, 7_369_100);
        let phase = |mut c: Document| {
            c.push("phase", "start");
            c
        };
        assert_eq!(c.err(phase(to("6.0"))).await.0, 5_563_600);
        let mut shard = b.shard(1).await;
        assert_eq!(shard.err(phase(to("6.0"))).await.0, 5_563_500);
        b.check_all_are(&doc! { "version": "7.0" }).await;
        // A shard stops between its phases: nobody is at the end, and nobody is where it was.
        shard.admin(doc! { "configureFailPoint": "failDowngrading", "mode": "alwaysOn" }).await;
        assert_eq!(c.err(to("6.0")).await.0, 549_181);
        let between = doc! { "version": "6.0", "targetVersion": "6.0", "previousVersion": "7.0" };
        assert_eq!(shown(&mut b.primary().await).await, between);
        assert_eq!(shown(&mut shard).await, between);
        assert_eq!(c.err(to("6.3")).await.0, 5_147_403);
        shard.admin(doc! { "configureFailPoint": "failDowngrading", "mode": "off" }).await;
        c.ok(to("6.0")).await;
        b.check_all_are(&doc! { "version": "6.0" }).await;
        // One that is added is what the others are.
        b.shards.push(start("s2").await);
        b.add(2).await;
        b.check_all_are(&doc! { "version": "6.0" }).await;
        c.ok(to("7.0")).await;
        c.ok(to("7.0")).await;
        b.check_all_are(&doc! { "version": "7.0" }).await;
        // What comes late has no effect.
        let late = |phase: &str| {
            let mut c = to("6.0");
            c.push("fromConfigServer", true);
            c.push("phase", phase);
            c.push("changeTimestamp", pando_base::Timestamp::new(1, 1));
            c
        };
        for phase in ["start", "complete"] {
            assert_eq!(shard.err(late(phase)).await.0, 225);
        }
        b.check_all_are(&doc! { "version": "7.0" }).await;
        b.shut_down().await;
    });
}
