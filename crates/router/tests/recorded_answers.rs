//! Every recorded answer of a real server (`tests/differential/golden`), asked of a router in front of a cluster:
//! it answers as one set does, or `tests/differential/routed.json` and `sharded.json` say why not.
//!
//! `GOLDENS_STEP=n` asks only every nth case, `GOLDENS_TOPICS=a,b` those topics whose names begin so. Without them a part
//! is asked that is big enough to meet every topic.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use pando_bson::doc;
use pando_testkit::goldens::{Explained, Report, Setups, Way, run_topic, topics};
use pando_testserver::{Cluster, pause, run};
use std::sync::Mutex;

/// Every how manyth case is asked unless somebody says otherwise.
const STEP: usize = 120;

fn asked(topic: &str) -> bool {
    match std::env::var("GOLDENS_TOPICS") {
        Ok(wanted) => wanted.split(',').any(|w| topic.starts_with(w)),
        Err(_) => true,
    }
}

fn replay(port: u16, step: usize, way: Way, left: &Mutex<Vec<String>>, explained: &Explained) -> Vec<Report> {
    let setups = Setups::read();
    let host_port = format!("127.0.0.1:{port}");
    let next = || left.lock().unwrap().pop();
    std::iter::from_fn(next)
        .map(|topic| run_topic(&host_port, &topic, step, &setups, explained, way))
        .collect()
}

/// One cluster, one client.
async fn replay_on_a_cluster(way: Way, files: &'static [&'static str]) -> Vec<Report> {
    let step = std::env::var("GOLDENS_STEP").ok().and_then(|n| n.parse().ok()).unwrap_or(STEP);
    let cluster = Cluster::of(2, 1).await;
    let mut c = cluster.router(0).await;
    for db in ["df", "df2", "df_other"] {
        c.ok(doc! { "enableSharding": db, "primaryShard": "s0", "$db": "admin" }).await;
    }
    let port = cluster.router_port(0);
    let asking = std::thread::spawn(move || {
        let left = Mutex::new(topics().into_iter().filter(|t| asked(t)).collect());
        replay(port, step, way, &left, &Explained::read(files))
    });
    while !asking.is_finished() {
        pause(20).await;
    }
    let reports = asking.join().unwrap();
    cluster.shut_down().await;
    reports
}

fn judge(reports: &[Report]) {
    let sum = |of: fn(&Report) -> usize| reports.iter().map(of).sum::<usize>();
    let differ: Vec<String> = reports
        .iter()
        .flat_map(|r| &r.unexplained)
        .map(|d| format!("{} {:?}\n  want {:.600}\n  got  {:.600}", d.id, d.kind, d.want, d.got))
        .collect();
    println!(
        "{} cases, {} left out, {} differ in text only, {} explained, {} differ",
        sum(|r| r.cases),
        sum(|r| r.left_out),
        sum(|r| r.messages.len()),
        sum(|r| r.explained.len()),
        differ.len()
    );
    if std::env::var("GOLDENS_TEXTS").is_ok() {
        for d in reports.iter().flat_map(|r| &r.messages) {
            println!("{} {:?}\n  want {:.600}\n  got  {:.600}", d.id, d.kind, d.want, d.got);
        }
    }
    assert!(differ.is_empty(), "{} cases differ:\n{}", differ.len(), differ.join("\n"));
}

#[test]
fn a_router_answers_as_one_set_does() {
    run(async { judge(&replay_on_a_cluster(Way::Router, &["explained.json", "routed.json"]).await) });
}

#[test]
fn collections_on_two_shards_answer_as_on_one_set() {
    run(async {
        judge(&replay_on_a_cluster(Way::Sharded, &["explained.json", "routed.json", "sharded.json"]).await)
    });
}
