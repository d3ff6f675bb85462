//! How a case reaches its collections: one set, a router in front of one shard's collections, a router in front of
//! collections that lie on several shards.

use super::{Case, order};
use pando_bson::{Bson, Document};
use std::collections::BTreeSet;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// As the answers were recorded.
    Set,
    /// A router; every collection lies on the database's primary shard.
    Router,
    /// A router; what a case fills itself is sharded beforehand by `{_id: "hashed"}`.
    Sharded,
}

/// What a router adds to the reply of a shard.
const ADDED: [&str; 3] = ["raw", "sharded", "primary"];
/// What members say of themselves and of their set, and of the file system that their data is on.
const OF_MEMBERS: [&str; 11] = [
    "hosts",
    "lastWrite",
    "me",
    "readOnly",
    "secondary",
    "setName",
    "setVersion",
    "primary",
    "fsTotalSize",
    "fsUsedSize",
    "electionId",
];
/// Says of a router that it is one.
const OF_ROUTERS: [&str; 1] = ["msg"];
/// What a router does not hand on of what a shard says of a drop.
const DROPPED: [&str; 2] = ["nIndexesWas", "ns"];
/// Of collections with a hashed key, which have one index more.
const COUNTED: [&str; 3] = ["numIndexesBefore", "numIndexesAfter", "nindexes"];
/// What sums over shards lack.
const OF_ONE: [&str; 1] = ["estimate"];

/// What one of several shards said: of a database the first that has any of it.
fn of_one_who_has_it(raw: &Document) -> Option<&Document> {
    let has_any = |d: &&Document| d.get("collections").and_then(Bson::as_i64).is_some_and(|n| n > 0);
    let all = || raw.iter().filter_map(|(_, v)| v.as_doc());
    all().find(has_any).or_else(|| all().next())
}

impl Way {
    /// What a router does not have: the databases of a node's own.
    pub(super) fn leaves_out(self, case: &Case) -> bool {
        let unique = || case.pre.iter().chain([&case.cmd]).any(keeps_different);
        self != Way::Set && case.db == "local" || self == Way::Sharded && unique()
    }

    /// Commands that routers do not know (59), or that this one does not carry out (115): each refusal names its command. The same of
    /// a `findAndModify` that names no shard key, and of `$out` into a sharded collection: routers of release 6.0 have none such.
    pub(super) fn has_no(self, case: &Case, code: &str, text: &str) -> bool {
        let name = case.cmd.iter().next().map_or("", |(name, _)| name);
        let unknown = code.contains("\"59\"") && text.contains(&format!("no such command: '{name}'"));
        // It may be the config servers that would have to carry it out.
        let by_config = format!("The _configsvr{}{} command", name[..1].to_uppercase(), &name[1..]);
        let refused = code.contains("\"115\"")
            && (text.contains(&format!("The {name} command is not supported by"))
                || text.contains(&by_config));
        let unkeyed = code.contains("\"61\"") && text.contains("must contain the shard key");
        let taken = code.contains("\"28769\"") && text.contains("so it can't be used for $out");
        self != Way::Set && (unknown || refused || unkeyed || taken)
    }

    /// A router makes replies of its own: their fields come in another order, some are added, and what one shard said is in `raw`.
    pub(super) fn settled(self, reply: Document) -> Document {
        if self == Way::Set {
            return reply;
        }
        let mut fields: Vec<(String, Bson)> = Vec::new();
        for (name, v) in reply.iter() {
            match v.as_doc().map(of_one_who_has_it) {
                Some(Some(first)) if name == "raw" && reply.get("errmsg").is_none() => {
                    fields.extend(first.iter().map(|(k, v)| (k.to_owned(), v.clone())));
                }
                _ if ADDED.contains(&name) || DROPPED.contains(&name) => {}
                _ if OF_MEMBERS.contains(&name) || OF_ROUTERS.contains(&name) => {}
                _ if name == "databases" => fields.push((name.to_owned(), without_shards(v))),
                _ => fields.push((name.to_owned(), v.clone())),
            }
        }
        if reply.get("errmsg").is_some() {
            return Document::from(fields);
        }
        let is_of_one = |name: &str| COUNTED.contains(&name) || OF_ONE.contains(&name);
        fields.retain(|(name, _)| self == Way::Router || !is_of_one(name));
        fields.sort_by(|a, b| a.0.cmp(&b.0));
        fields.dedup_by(|a, b| a.0 == b.0);
        Document::from(fields)
    }

    /// The index that a hashed key brings along.
    pub(super) fn is_of_its_own(self, row: &Bson) -> bool {
        let name = row.as_doc().and_then(|d| d.get("name")).and_then(Bson::as_str);
        self == Way::Sharded && name == Some("_id_hashed")
    }

    /// Documents of several shards come in no order of their own, and equal sort keys say nothing about it; different ones do. Where a
    /// case takes some of them and no order says which, they have to be some of those that there are (`all`).
    pub(super) fn same_rows(self, asked: Asked<'_>, want: Option<&[String]>, got: Option<&[String]>) -> bool {
        if self != Way::Sharded || want == got {
            return want == got;
        }
        let (Some(want), Some(got)) = (want, got) else { return false };
        let cut = takes_some(asked.cmd, asked.raw);
        let fields = order::without_order(asked.cmd);
        let covered = order::is_covered(asked.cmd);
        let loose = |rows: &[String]| -> Vec<String> {
            let rows: Vec<String> = match covered {
                true => rows.iter().map(|row| order::as_documents(row)).collect(),
                false => rows.to_vec(),
            };
            rows.iter()
                .map(|row| if fields.is_empty() { row.clone() } else { order::loosened(row, &fields) })
                .collect()
        };
        let (want, got) = (loose(want), loose(got));
        if asked.behind.is_some_and(|cmd| takes_some(cmd, asked.raw)) {
            return want.len() == got.len();
        }
        // Rows that are sorted by their text say nothing of their order.
        if let Some(parts) = order::sorted_by(asked.cmd).filter(|_| !asked.unordered) {
            return order::same_but_for_equals(&want, &got, &parts, cuts(asked.cmd, asked.raw));
        }
        let sorted = |rows: &[String]| {
            let mut rows = rows.to_vec();
            rows.sort();
            rows
        };
        sorted(&want) == sorted(&got)
            || (cut && want.len() == got.len() && are_some_of(asked.all, &want, &got))
    }

    /// Whether a cursor stays. One over several shards may know at once that there is nothing more.
    pub(super) fn same_end(self, want: Option<bool>, got: Option<bool>) -> bool {
        want == got || (self == Way::Sharded && (want, got) == (Some(true), Some(false)))
    }

    /// A reply that is no cursor. Of equal values of different types the one is told that is met first.
    pub(super) fn same_reply(self, asked: Asked<'_>, want: Option<&str>, got: Option<&str>) -> bool {
        let (true, Some(want), Some(got)) =
            (self == Way::Sharded && asked.cmd.get("distinct").is_some(), want, got)
        else {
            return want == got;
        };
        match (order::values(want), order::values(got)) {
            (Some(want), Some(got)) => order::by_value(&want) == order::by_value(&got),
            _ => want == got,
        }
    }

    /// What is left of a collection after a write.
    pub(super) fn same_contents(self, asked: Asked<'_>, want: &[String], got: Option<&[String]>) -> bool {
        let Some(got) = got else { return false };
        let sorted = |rows: &[String]| {
            let mut rows = rows.to_vec();
            rows.sort();
            rows
        };
        match self {
            Way::Sharded => {
                sorted(want) == sorted(got) || (want.len() == got.len() && takes_some(asked.cmd, asked.raw))
            }
            _ => want == got,
        }
    }
}

/// Makes an index that keeps documents different by other fields than the shard key, which sharded collections do not have (67).
fn keeps_different(cmd: &Document) -> bool {
    let indexes =
        cmd.get("createIndexes").and(cmd.get("indexes")).and_then(Bson::as_array).unwrap_or_default();
    indexes.iter().filter_map(Bson::as_doc).any(|index| {
        let unique = index
            .get("unique")
            .is_some_and(|v| matches!(v, Bson::Boolean(true)) || v.as_f64().is_some_and(|n| n != 0.0));
        let first = index
            .get("key")
            .and_then(Bson::as_doc)
            .and_then(|key| key.iter().next().map(|(name, _)| name.to_owned()));
        unique && first.as_deref() != Some("_id")
    })
}

/// A router's list of databases says which shards have each.
fn without_shards(v: &Bson) -> Bson {
    let one = |v: &Bson| match v {
        Bson::Document(d) => {
            let kept =
                d.iter().filter(|(name, _)| *name != "shards").map(|(name, v)| (name.to_owned(), v.clone()));
            Bson::Document(Document::from(kept.collect::<Vec<_>>()))
        }
        v => v.clone(),
    };
    Bson::Array(v.as_array().unwrap_or_default().iter().map(one).collect())
}

/// What was asked, and of which documents.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) cmd: &'a Document,
    pub(super) raw: bool,
    pub(super) unordered: bool,
    pub(super) all: &'a [String],
    /// What was done before: which of several documents it was done to shows in the answer.
    pub(super) behind: Option<&'a Document>,
}

/// Where the rows that are wanted are documents as they are stored, those that came have to be, too, and each once.
fn are_some_of(all: &[String], want: &[String], got: &[String]) -> bool {
    let all: BTreeSet<&String> = all.iter().collect();
    let known = |rows: &[String]| rows.iter().all(|row| all.contains(row));
    let different: BTreeSet<&String> = got.iter().collect();
    !known(want) || (known(got) && different.len() == got.len())
}

/// Whether rows are cut off before or behind those that are given, whatever their order.
fn cuts(cmd: &Document, raw: bool) -> bool {
    let given = |name: &str| is_given(cmd, name);
    let text = format!("{cmd:?}");
    raw || ["limit", "skip", "batchSize"].iter().any(|name| given(name))
        || ["$limit", "$skip"].iter().any(|stage| text.contains(stage))
}

/// A number other than zero.
fn is_given(cmd: &Document, name: &str) -> bool {
    match cmd.get(name) {
        Some(Bson::Decimal128(_)) => true,
        v => v.and_then(Bson::as_f64).is_some_and(|n| n != 0.0),
    }
}

/// Whether a command takes some of the documents that it could, and no order says which.
fn takes_some(cmd: &Document, raw: bool) -> bool {
    let is_given = |name: &str| is_given(cmd, name);
    let text = format!("{cmd:?}");
    if cmd.get("find").is_some() {
        let ordered =
            text.contains("$near") || cmd.get("sort").is_some_and(|s| format!("{s:?}").contains("_id"));
        return (raw || is_given("limit") || is_given("skip") || is_given("batchSize")) && !ordered;
    }
    if cmd.get("aggregate").is_some() {
        let cuts = raw || ["$limit", "$skip", "$sample"].iter().any(|stage| text.contains(stage));
        return cuts && !text.contains("$sort\"") && !text.contains("$geoNear");
    }
    // One of those that match.
    let one = |list: &str, says: &dyn Fn(&Document) -> bool| {
        cmd.get(list).and_then(Bson::as_array).unwrap_or_default().iter().filter_map(Bson::as_doc).any(says)
    };
    one("deletes", &|d| d.get("limit").and_then(Bson::as_i64) == Some(1))
        || one("updates", &|d| !matches!(d.get("multi"), Some(Bson::Boolean(true))))
}
