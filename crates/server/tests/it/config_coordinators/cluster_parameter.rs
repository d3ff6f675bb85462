//! A parameter is set in a whole cluster.

use super::{Bench, command, number, start};
use pando_bson::{Bson, Document, doc};
use pando_testserver::run;

fn set(seconds: i64) -> Document {
    let mut images = Document::new();
    images.push("preAndPostImages", doc! { "expireAfterSeconds": seconds });
    let mut parameter = Document::new();
    parameter.push("changeStreamOptions", images);
    command("_configsvrSetClusterParameter", parameter, None)
}

impl Bench {
    /// Everybody has the same, since the same time.
    async fn have(&self, seconds: i64) {
        let get = || doc! { "getClusterParameter": "changeStreamOptions", "$db": "admin" };
        let config = self.primary().await.ok(get()).await;
        let list = config.get("clusterParameters").and_then(Bson::as_array).unwrap();
        let images = list[0].as_doc().and_then(|d| d.get("preAndPostImages")?.as_doc());
        assert_eq!(images.map(|d| number(d, "expireAfterSeconds")), Some(seconds), "{config:?}");
        for i in 0..self.shards.len() {
            let shard = self.shard(i).await.ok(get()).await;
            assert_eq!(shard.get("clusterParameters"), config.get("clusterParameters"), "s{i}");
        }
    }
}

#[test]
fn a_parameter_is_the_same_everywhere_whatever_the_config_servers_primary_does_before_each_step() {
    run(async {
        let mut b = Bench::of(2).await;
        b.every_step([set(10), set(20)], async |b, i| b.have(if i == 0 { 10 } else { 20 }).await).await;
        // A set that had its own takes over what the cluster has.
        b.shards.push(start("s2").await);
        let mut own = doc! { "_id": "changeStreamOptions" };
        own.push("clusterParameterTime", pando_base::Timestamp::new(9, 1));
        own.push("preAndPostImages", doc! { "expireAfterSeconds": 30 });
        let mut insert = doc! { "insert": "clusterParameters", "$db": "config" };
        insert.push("documents", vec![Bson::from(own)]);
        b.shard(2).await.ok(insert).await;
        b.add(2).await;
        let now = b.primary().await.ok(doc! { "getClusterParameter": "*", "$db": "admin" }).await;
        let list = now.get("clusterParameters").and_then(Bson::as_array).unwrap();
        let images = list[0].as_doc().and_then(|d| d.get("preAndPostImages")?.as_doc()).unwrap();
        b.have(number(images, "expireAfterSeconds")).await;
        b.shut_down().await;
    });
}

#[test]
fn what_is_no_parameter_is_refused_before_anything_is_begun() {
    run(async {
        let b = Bench::of(1).await;
        let mut c = b.primary().await;
        let wrong = |p: Document| command("_configsvrSetClusterParameter", p, None);
        assert_eq!(c.err(wrong(doc! { "nothing": 1 })).await.0, 20);
        assert_eq!(c.err(wrong(doc! { "changeStreamOptions": 1 })).await.0, 20);
        assert_eq!(c.err(set(-5)).await.0, 2);
        // Neither of one set, nor by a member of a cluster.
        let plain = || doc! { "setClusterParameter": { "changeStreamOptions": 1 }, "$db": "admin" };
        assert_eq!((c.err(plain()).await.0, b.shard(0).await.err(plain()).await.0), (238, 238));
        let direct = |time: bool| {
            let mut d = command("_shardsvrSetClusterParameter", doc! { "changeStreamOptions": 1 }, None);
            if time {
                d.push("clusterParameterTime", pando_base::Timestamp::new(1, 1));
            }
            d
        };
        let mut shard = b.shard(0).await;
        assert_eq!((shard.err(direct(false)).await.0, shard.err(direct(true)).await.0), (40_414, 20));
        b.shut_down().await;
    });
}
