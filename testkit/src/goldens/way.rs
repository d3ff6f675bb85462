//! How a case reaches its collections: one set, a router in front of one shard's collections, a router in front of
//! collections that lie on several shards.

use super::Case;
use pando_bson::{Bson, Document};

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

impl Way {
    /// What a router does not have: the databases of a node's own.
    pub(super) fn leaves_out(self, case: &Case) -> bool {
        self != Way::Set && case.db == "local"
    }

    /// Commands that routers do not know (59), or that this one does not carry out (115): each refusal names its command.
    pub(super) fn has_no(self, case: &Case, code: &str, text: &str) -> bool {
        let name = case.cmd.iter().next().map_or("", |(name, _)| name);
        let unknown = code.contains("\"59\"") && text.contains(&format!("no such command: '{name}'"));
        let refused =
            code.contains("\"115\"") && text.contains(&format!("The {name} command is not supported by"));
        self != Way::Set && (unknown || refused)
    }

    /// A router makes replies of its own: their fields come in another order, some are added, and what one shard said is in `raw`.
    pub(super) fn settled(self, reply: Document) -> Document {
        if self == Way::Set {
            return reply;
        }
        let mut fields: Vec<(String, Bson)> = Vec::new();
        for (name, v) in reply.iter() {
            match v.as_doc().map(|raw| raw.iter().filter_map(|(_, v)| v.as_doc()).next()) {
                Some(Some(first)) if name == "raw" && reply.get("errmsg").is_none() => {
                    fields.extend(first.iter().map(|(k, v)| (k.to_owned(), v.clone())));
                }
                _ if ADDED.contains(&name) => {}
                _ => fields.push((name.to_owned(), v.clone())),
            }
        }
        if reply.get("errmsg").is_some() {
            return Document::from(fields);
        }
        fields.sort_by(|a, b| a.0.cmp(&b.0));
        fields.dedup_by(|a, b| a.0 == b.0);
        Document::from(fields)
    }

    /// The index that a hashed key brings along.
    pub(super) fn is_of_its_own(self, row: &Bson) -> bool {
        let name = row.as_doc().and_then(|d| d.get("name")).and_then(Bson::as_str);
        self == Way::Sharded && name == Some("_id_hashed")
    }

    /// Documents of several shards come in no order of their own, and equal sort keys say nothing about it.
    pub(super) fn same_rows(self, a: Option<&[String]>, b: Option<&[String]>) -> bool {
        let sorted = |rows: Option<&[String]>| {
            rows.map(|rows| {
                let mut rows = rows.to_vec();
                rows.sort();
                rows
            })
        };
        a == b || (self == Way::Sharded && sorted(a) == sorted(b))
    }
}
