//! Every recorded answer of a real server (`tests/differential/golden`), asked of a router in front of a cluster:
//! it answers as one set does, or `tests/differential/routed.json` and `sharded.json` say why not.
//!
//! `GOLDENS_STEP=n` asks only every nth case, `GOLDENS_TOPICS=a,b` those topics whose names begin so. Without them a part
//! is asked that is big enough to meet every topic. `GOLDENS_REPORT=file` writes each difference there, also those that are explained and
//! those in texts only, a line of tabs: way, id, kind, why it is none, wanted, got.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use pando_bson::doc;
use pando_testkit::goldens::{Explained, Report, Setups, Way, run_topic, topics};
use pando_testserver::{Cluster, pause, run};
use std::io::Write as _;
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

/// Each difference, for whoever goes through them.
fn write_report(way: Way, reports: &[Report]) {
    let Ok(path) = std::env::var("GOLDENS_REPORT") else { return };
    let mut file = std::fs::File::options().append(true).create(true).open(path).unwrap();
    for r in reports {
        for (accepted, list) in [("explained", &r.explained), ("text", &r.messages), ("", &r.unexplained)] {
            for d in list {
                writeln!(file, "{way:?}\t{}\t{}\t{accepted}\t{}\t{}", d.id, d.kind.name(), d.want, d.got)
                    .unwrap();
            }
        }
    }
}

fn judge(way: Way, reports: &[Report]) {
    write_report(way, reports);
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
    assert!(differ.is_empty(), "{} cases differ:\n{}", differ.len(), differ.join("\n"));
}

#[test]
fn a_router_answers_as_one_set_does() {
    run(async {
        judge(Way::Router, &replay_on_a_cluster(Way::Router, &["explained.json", "routed.json"]).await)
    });
}

#[test]
fn collections_on_two_shards_answer_as_on_one_set() {
    run(async {
        judge(
            Way::Sharded,
            &replay_on_a_cluster(Way::Sharded, &["explained.json", "routed.json", "sharded.json"]).await,
        )
    });
}
