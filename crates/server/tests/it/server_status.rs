//! Every path of `serverStatus`, in its order and with its BSON type, as a standalone server, a primary and a secondary tell it.
//! `BLESS=1 cargo test -p pando-server --test it server_status::` writes the lists anew.

use pando_bson::{Binary, Bson, Document, doc};
use pando_testserver::{Client, Set, World, run};
use std::fmt::Write;

/// What lies below is there only once something happened, and how much happens at a start is chance.
const OPEN: [&str; 3] = ["locks", "$clusterTime", "repl.hosts"];

fn list(into: &mut String, above: &str, d: &Document) {
    for (name, value) in d.iter() {
        let path = if above.is_empty() { name.to_owned() } else { format!("{above}.{name}") };
        let kind = match value {
            Bson::Document(inner) if !OPEN.contains(&path.as_str()) => {
                list(into, &path, inner);
                if inner.iter().next().is_some() {
                    continue;
                }
                "empty document"
            }
            other => kind(other),
        };
        writeln!(into, "{path}: {kind}").expect("a string takes it");
    }
}

fn kind(value: &Bson) -> &'static str {
    match value {
        Bson::Document(_) => "document",
        Bson::Array(_) => "array",
        Bson::Double(_) => "double",
        Bson::String(_) => "string",
        Bson::Boolean(_) => "bool",
        Bson::DateTime(_) => "date",
        Bson::Int32(_) => "int",
        Bson::Int64(_) => "long",
        Bson::Timestamp(_) => "timestamp",
        Bson::ObjectId(_) => "objectId",
        other => panic!("a type that serverStatus has nowhere: {other:?}"),
    }
}

async fn status(c: &mut Client) -> Document {
    c.ok(doc! { "serverStatus": 1, "$db": "admin" }).await
}

fn compare(role: &str, status: &Document) {
    let mut now = String::new();
    list(&mut now, "", status);
    let file = format!("{}/tests/recorded/server_status_{role}.txt", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("BLESS").is_some() {
        return std::fs::write(file, now).expect("the list can be written");
    }
    let recorded = std::fs::read_to_string(file).expect("a list");
    let (now, recorded): (Vec<&str>, Vec<&str>) = (now.lines().collect(), recorded.lines().collect());
    let lost: Vec<_> = recorded.iter().filter(|line| !now.contains(line)).collect();
    let new: Vec<_> = now.iter().filter(|line| !recorded.contains(line)).collect();
    assert!(lost.is_empty() && new.is_empty(), "{role}: lost {lost:#?}, new {new:#?}");
    let moved = now.iter().zip(&recorded).find(|(a, b)| a != b);
    assert_eq!(moved, None, "{role}: the order is another");
}

#[test]
fn a_standalone_server_tells_the_recorded_paths() {
    run(async {
        let world = World::new();
        let server = world.start_standalone().await;
        let mut c = server.connect().await;
        compare("standalone", &status(&mut c).await);
        server.shut_down().await;
    });
}

async fn commit_a_transaction(c: &mut Client) {
    let id = Bson::Binary(Binary { subtype: 4, bytes: vec![1; 16] });
    for (name, value) in [("insert", "c"), ("commitTransaction", "")] {
        let mut command = Document::new();
        if name == "insert" {
            command.push(name, value);
            command.push("documents", vec![Bson::from(doc! { "_id": 1 })]);
            command.push("startTransaction", true);
        } else {
            command.push(name, 1);
            command.push("$db", "admin");
        }
        command.push("lsid", doc! { "id": id.clone() });
        command.push("txnNumber", 1i64);
        command.push("autocommit", false);
        c.ok(command).await;
    }
}

#[test]
fn a_primary_and_a_secondary_tell_the_recorded_paths() {
    run(async {
        let set = Set::of(2).await;
        let primary = set.primary().await;
        let mut c = set.connect(primary).await;
        c.ok(doc! { "create": "c" }).await;
        commit_a_transaction(&mut c).await;
        compare("primary", &status(&mut c).await);
        let mut c = set.connect(1 - primary).await;
        compare("secondary", &status(&mut c).await);
        set.shut_down().await;
    });
}

#[test]
fn sections_can_be_left_out() {
    run(async {
        let world = World::new();
        let server = world.start_standalone().await;
        let mut c = server.connect().await;
        let whole = status(&mut c).await;
        let some = c
            .admin(doc! { "serverStatus": 1, "metrics": 0, "opcounters": false, "locks": 1, "mem": 2 })
            .await;
        let names = |d: &Document| d.iter().map(|(name, _)| name.to_owned()).collect::<Vec<_>>();
        let mut wanted = names(&whole);
        wanted.retain(|name| name != "metrics" && name != "opcounters");
        assert_eq!(names(&some), wanted);
        server.shut_down().await;
    });
}

fn at<'a>(d: &'a Document, path: &[&str]) -> Option<&'a Bson> {
    let (last, above) = path.split_last()?;
    above.iter().try_fold(d, |d, name| d.get(name)?.as_doc())?.get(last)
}

/// `(name with labels, kind)` of every sample.
fn samples(text: &str) -> Vec<(String, String)> {
    let (mut of, mut samples) = (("", ""), Vec::new());
    let mut names = Vec::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').expect("a help line");
            assert!(!names.contains(&name), "{name} comes twice");
            assert!(help.len() > 4, "{line}");
            names.push(name);
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            of = rest.split_once(' ').expect("a type");
            assert_eq!(names.last(), Some(&of.0), "help comes before the type");
        } else {
            let (sample, value) = line.rsplit_once(' ').expect("a sample");
            assert_eq!(sample.split('{').next(), Some(of.0), "{line}");
            assert!(value.parse::<f64>().is_ok(), "{line}");
            samples.push((sample.to_owned(), of.1.to_owned()));
        }
    }
    samples
}

#[test]
fn every_metric_has_help_and_a_unit_and_server_status_shows_it() {
    run(async {
        let set = Set::of(2).await;
        let primary = set.primary().await;
        let mut c = set.connect(primary).await;
        c.ok(doc! { "insert": "c", "documents": [{ "_id": 1 }] }).await;
        for i in [primary, 1 - primary] {
            let tree = set.server(i).instance.registry.all();
            assert_eq!(tree.problems(), Vec::<String>::new());
            let shown = status(&mut set.connect(i).await).await;
            let (mut all, mut hidden) = (0, Vec::new());
            tree.for_each(|path, _| {
                all += 1;
                if at(&shown, path).is_none() {
                    hidden.push(path.join("."));
                }
            });
            assert!(all > 500 && hidden.is_empty(), "{all} metrics, not in serverStatus: {hidden:?}");
        }
        set.shut_down().await;
    });
}

#[test]
fn every_metric_has_a_sample_of_its_own_for_prometheus() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        c.ok(doc! { "insert": "c", "documents": [{ "_id": 1 }, { "_id": 2 }] }).await;
        let registry = &server.server.instance.registry;
        let text = pando_metrics::prometheus(registry);
        let samples = samples(&text);
        let mut metrics = 0;
        registry.all().for_each(|_, _| metrics += 1);
        assert_eq!(samples.len(), metrics);
        let mut names: Vec<_> = samples.iter().map(|(name, _)| name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), metrics, "no sample hides another");
        assert!(text.contains("\npandodb_opcounters_insert_total 2\n"), "{text}");
        for wanted in [
            ("pandodb_metrics_commands_total{command=\"insert\"}", "counter"),
            ("pandodb_op_latencies_ops_total{class=\"writes\"}", "counter"),
            ("pandodb_network_compression_compressor_bytes_in_total{compressor=\"zstd\"}", "counter"),
            ("pandodb_connections_current", "gauge"),
            ("pandodb_locks_acquire_count_total{lock=\"Collection\",mode=\"w\"}", "counter"),
        ] {
            assert!(samples.iter().any(|(name, kind)| (&**name, &**kind) == wanted), "{wanted:?} in {text}");
        }
        server.shut_down().await;
    });
}
