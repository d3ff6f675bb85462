//! The drivers' own cases for discovery and server selection, where they are at hand:
//! `SDAM_SPECS=<a pymongo source's test folder> cargo test -p pando-monitor --test specs -- --ignored --nocapture`

#![allow(clippy::unwrap_used)]

use pando_base::ErrorCode;
use pando_bson::owned::{Bson, Document};
use pando_bson::{DocBuf, DocBuilder, extjson};
use pando_monitor::select::Criteria;
use pando_monitor::{CallError, Hello, Member, MemberKind, Mode, ReadPreference, Set, TopologyVersion, What};
use std::path::{Path, PathBuf};

fn files(folder: &str) -> Vec<(PathBuf, Document)> {
    let root = std::env::var("SDAM_SPECS").expect("SDAM_SPECS names the folder");
    let mut out = Vec::new();
    let mut folders = vec![Path::new(&root).join(folder)];
    while let Some(f) = folders.pop() {
        for e in std::fs::read_dir(&f).unwrap() {
            let path = e.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "json") {
                let text = std::fs::read_to_string(&path).unwrap();
                out.push((path, extjson::parse(&text).unwrap()));
            }
        }
    }
    out.sort_by(|a, b| a.0.cmp(&b.0));
    out
}
fn raw(d: &Document) -> DocBuf {
    let mut out = DocBuilder::new();
    out.document(d);
    out.finish()
}
fn docs<'a>(d: &'a Document, name: &str) -> Vec<&'a Document> {
    let all = d.get(name).and_then(Bson::as_array).unwrap_or_default();
    all.iter().filter_map(Bson::as_doc).collect()
}
fn text<'a>(d: &'a Document, name: &str) -> Option<&'a str> {
    d.get(name).and_then(Bson::as_str)
}

fn kind_name(kind: MemberKind) -> &'static str {
    match kind {
        MemberKind::Unknown => "Unknown",
        MemberKind::Primary => "RSPrimary",
        MemberKind::Secondary => "RSSecondary",
        MemberKind::Arbiter => "RSArbiter",
        MemberKind::Other => "RSOther",
        MemberKind::Ghost => "RSGhost",
        MemberKind::Standalone => "Standalone",
        MemberKind::Router => "Mongos",
    }
}

/// `mongodb://a,b:27018/?replicaSet=rs` as a set, if it is one.
fn set_of(uri: &str) -> Option<Set> {
    let (hosts, options) = uri.strip_prefix("mongodb://")?.split_once('/')?;
    let name = options.split(['?', '&']).find_map(|o| o.strip_prefix("replicaSet="))?;
    if options.contains("directConnection=true") || options.contains("loadBalanced") {
        return None;
    }
    let host = |h: &str| {
        if h.contains("]:") || (h.contains(':') && !h.contains('[')) {
            h.to_owned()
        } else {
            format!("{h}:27017")
        }
    };
    let hosts: Vec<String> = hosts.split(',').map(host).collect();
    Some(Set::new(name, hosts.iter().map(String::as_str)))
}

fn call_error(e: &Document, set: &Set) -> (String, CallError) {
    let host = text(e, "address").unwrap().to_owned();
    let generation = e.get("generation").and_then(Bson::as_i64);
    let response = e.get("response").and_then(Bson::as_doc);
    let what = match text(e, "type").unwrap() {
        "network" => What::Network,
        "timeout" => What::Timeout,
        _ => {
            let r = response.unwrap();
            let failed = r.get("ok").is_some_and(|ok| !ok.is_truthy());
            What::Code(ErrorCode(if failed {
                r.get("code").and_then(Bson::as_i64).unwrap_or(0) as i32
            } else {
                0
            }))
        }
    };
    let topology_version = response.and_then(|r| r.get("topologyVersion")).and_then(Bson::as_doc);
    let known = set.members.get(&host).map_or(0, |m| m.generation);
    let error = CallError {
        what,
        generation: generation.map_or(known, |g| g as u64),
        was_connected: text(e, "when") == Some("afterHandshakeCompletes"),
        topology_version: topology_version.and_then(|d| TopologyVersion::parse(&raw(d))),
    };
    (host, error)
}

fn check_outcome(set: &Set, outcome: &Document) -> Result<(), String> {
    let servers = outcome.get("servers").and_then(Bson::as_doc).unwrap();
    let expected: Vec<&str> = servers.iter().map(|(host, _)| host).collect();
    let mut hosts: Vec<&str> = set.members.keys().map(String::as_str).collect();
    let mut sorted = expected.clone();
    sorted.sort_unstable();
    hosts.sort_unstable();
    if hosts != sorted {
        return Err(format!("members {hosts:?}, wanted {sorted:?}"));
    }
    for (host, want) in servers.iter() {
        let (want, m) = (want.as_doc().unwrap(), &set.members[host]);
        let kind = kind_name(m.kind);
        let wanted = text(want, "type").unwrap();
        if kind != wanted && !(wanted == "PossiblePrimary" && m.may_be_primary) {
            return Err(format!("{host} is {kind}, wanted {wanted}"));
        }
        if let Some(pool) = want.get("pool").and_then(Bson::as_doc) {
            let generation = pool.get("generation").and_then(Bson::as_i64).unwrap();
            if generation != m.generation as i64 {
                return Err(format!("generation {} of {host}, wanted {generation}", m.generation));
            }
        }
        if let Some(version) = want.get("topologyVersion").filter(|v| v.as_doc().is_some()) {
            let version = TopologyVersion::parse(&raw(version.as_doc().unwrap()));
            if m.topology_version != version {
                return Err(format!(
                    "topologyVersion {:?} of {host}, wanted {version:?}",
                    m.topology_version
                ));
            }
        }
    }
    let kind = if set.primary().is_some() { "ReplicaSetWithPrimary" } else { "ReplicaSetNoPrimary" };
    let wanted = text(outcome, "topologyType").unwrap();
    if kind != wanted { Err(format!("{kind}, wanted {wanted}")) } else { Ok(()) }
}

fn play(set: &mut Set, case: &Document) -> Result<(), String> {
    for (i, phase) in docs(case, "phases").into_iter().enumerate() {
        for one in phase.get("responses").and_then(Bson::as_array).unwrap_or_default() {
            let pair = one.as_array().unwrap();
            let (host, reply) = (pair[0].as_str().unwrap(), pair[1].as_doc().unwrap());
            if reply.is_empty() {
                // A probe that failed; whoever was known has its connections given up.
                let e = CallError {
                    what: What::Network,
                    generation: u64::MAX,
                    was_connected: true,
                    topology_version: None,
                };
                set.failed(host, &e);
            } else {
                set.heard(host, &Hello::parse(&raw(reply)), i as i64);
            }
        }
        for e in docs(phase, "applicationErrors") {
            let (host, e) = call_error(e, set);
            set.failed(&host, &e);
        }
        if let Some(outcome) = phase.get("outcome").and_then(Bson::as_doc) {
            check_outcome(set, outcome).map_err(|e| format!("phase {i}: {e}"))?;
        }
    }
    Ok(())
}

#[test]
#[ignore = "needs SDAM_SPECS"]
fn discovery() {
    let (mut passed, mut failed) = (0, Vec::new());
    for folder in ["discovery_and_monitoring/rs", "discovery_and_monitoring/errors"] {
        for (path, case) in files(folder) {
            let Some(mut set) = text(&case, "uri").and_then(set_of) else { continue };
            match play(&mut set, &case) {
                Ok(()) => passed += 1,
                Err(e) => failed.push(format!("{}: {e}", path.file_name().unwrap().display())),
            }
        }
    }
    println!("{passed} passed, {} failed\n{}", failed.len(), failed.join("\n"));
    assert!(failed.is_empty() && passed > 100);
}

fn number(d: &Document, name: &str) -> Option<i64> {
    d.get(name).and_then(Bson::as_i64)
}
fn tags(d: &Document) -> std::collections::BTreeMap<String, String> {
    d.iter().filter_map(|(k, v)| Some((k.to_owned(), v.as_str()?.to_owned()))).collect()
}

fn member(d: &Document) -> Member {
    let mut hello = Hello::parse(&DocBuilder::new().finish());
    hello.kind = match text(d, "type").unwrap() {
        "RSPrimary" => MemberKind::Primary,
        "RSSecondary" => MemberKind::Secondary,
        "RSArbiter" => MemberKind::Arbiter,
        "RSOther" => MemberKind::Other,
        "RSGhost" => MemberKind::Ghost,
        _ => MemberKind::Unknown,
    };
    hello.tags = d.get("tags").and_then(Bson::as_doc).map(tags).unwrap_or_default();
    hello.last_write_ms = d.get("lastWrite").and_then(Bson::as_doc).and_then(|w| number(w, "lastWriteDate"));
    let one = Set::new("rs", ["h"]);
    let mut one = Set { members: one.members, ..Set::new("rs", []) };
    hello.set_name = Some("rs".to_owned());
    // Straight into the member, so that no rule of discovery has a say.
    let m = one.members.get_mut("h").unwrap();
    m.kind = hello.kind;
    (m.tags, m.last_write_ms, m.heard) =
        (hello.tags, hello.last_write_ms, number(d, "lastUpdateTime").unwrap_or(0));
    m.round_trip_us = d.get("avg_rtt_ms").and_then(Bson::as_f64).map(|ms| (ms * 1000.0) as i64);
    m.clone()
}

fn addresses<'a>(case: &'a Document, name: &str) -> Vec<&'a str> {
    let mut out: Vec<&str> = docs(case, name).iter().filter_map(|s| text(s, "address")).collect();
    out.sort_unstable();
    out
}

#[test]
#[ignore = "needs SDAM_SPECS"]
fn selection() {
    let (mut passed, mut failed) = (0, Vec::new());
    for folder in ["server_selection/server_selection", "max_staleness"] {
        for (path, case) in files(folder) {
            let topology = case.get("topology_description").and_then(Bson::as_doc).unwrap();
            let is_set = text(topology, "type").is_some_and(|t| t.starts_with("ReplicaSet"));
            if !is_set || case.get("error").is_some() {
                continue;
            }
            let mut set = Set::new("rs", []);
            for s in docs(topology, "servers") {
                set.members.insert(text(s, "address").unwrap().to_owned(), member(s));
            }
            let p = case.get("read_preference").and_then(Bson::as_doc);
            let mode = p.and_then(|p| text(p, "mode")).unwrap_or("Primary");
            let mode = mode[..1].to_lowercase() + &mode[1..];
            let tag_sets = p.map(|p| docs(p, "tag_sets").into_iter().map(tags).collect()).unwrap_or_default();
            let secs = p.and_then(|p| number(p, "maxStalenessSeconds")).filter(|s| *s > 0);
            let preference = match text(&case, "operation") {
                Some("write") => ReadPreference::default(),
                _ => ReadPreference {
                    mode: Mode::from_name(&mode).unwrap(),
                    tag_sets,
                    max_staleness_ms: secs.map(|s| s * 1000),
                },
            };
            let mut c = Criteria::of(preference);
            c.avoid = addresses(&case, "deprioritized_servers").into_iter().map(str::to_owned).collect();
            let heartbeat = number(&case, "heartbeatFrequencyMS").unwrap_or(10_000);
            let mut suitable = set.suitable(&c, heartbeat);
            let mut near = set.in_window(&suitable, 15_000);
            suitable.sort_unstable();
            near.sort_unstable();
            let wanted = (addresses(&case, "suitable_servers"), addresses(&case, "in_latency_window"));
            // Which ones a call that avoids some may take is said of those that are left.
            if near == wanted.1 && (suitable == wanted.0 || !c.avoid.is_empty()) {
                passed += 1;
            } else {
                failed.push(format!("{}: {suitable:?} {near:?}, wanted {wanted:?}", path.display()));
            }
        }
    }
    println!("{passed} passed, {} failed\n{}", failed.len(), failed.join("\n"));
    assert!(failed.is_empty() && passed > 50);
}
