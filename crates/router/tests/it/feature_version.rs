//! The feature version of a cluster, as it is set through a router (SYS-264).

#![allow(clippy::unwrap_used)]

use pando_bson::{Bson, Document, doc};
use pando_testserver::{Client, Cluster, run};

async fn version(c: &mut Client) -> Option<String> {
    let shown = c.admin(doc! { "getParameter": 1, "featureCompatibilityVersion": 1 }).await;
    let shown = shown.get("featureCompatibilityVersion").and_then(Bson::as_doc)?;
    match shown.iter().count() {
        1 => shown.get("version").and_then(Bson::as_str).map(str::to_owned),
        _ => Some(format!("{shown:?}")),
    }
}
fn to(version: &str) -> Document {
    doc! { "setFeatureCompatibilityVersion": version, "confirm": true, "$db": "admin" }
}

#[test]
fn the_feature_version_is_one_for_the_whole_cluster() {
    run(async {
        let mut cluster = Cluster::of(2, 1).await;
        let mut c = cluster.router(0).await;
        assert_eq!(c.err(to("5.0")).await.0, 4_926_900);
        assert_eq!(
            c.err(doc! { "setFeatureCompatibilityVersion": "6.0", "$db": "admin" }).await.0,
            7_369_100
        );
        for wanted in ["6.0", "7.0", "6.0"] {
            c.ok(to(wanted)).await;
            let mut all = vec![cluster.config_server().await];
            for i in 0..2 {
                all.push(cluster.shard(i).await);
            }
            for mut node in all {
                assert_eq!(version(&mut node).await.as_deref(), Some(wanted));
            }
        }
        let i = cluster.start_shard(None).await;
        c.ok(doc! { "addShard": cluster.shard_host(i), "$db": "admin" }).await;
        assert_eq!(version(&mut cluster.shard(i).await).await.as_deref(), Some("6.0"));
        cluster.restart_shard(0).await;
        cluster.restart_config_server().await;
        assert_eq!(version(&mut cluster.shard(0).await).await.as_deref(), Some("6.0"));
        assert_eq!(version(&mut cluster.config_server().await).await.as_deref(), Some("6.0"));
        cluster.shut_down().await;
    });
}
