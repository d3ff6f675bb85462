//! What the database may hold: for every key the states it went through, and from which on they are durable.
//!
//! Each client writes keys of its own, one command at a time, so a key's states form a line. A state is
//! *acknowledged* when the reply came, and *durable* when a reply to `j: true` or `w: "majority"` came — for the
//! write itself or for any write that was sent after the acknowledgement, since the log is durable in order.
//! After a crash a key must be found in one of its states from the last durable one on.

use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};
use std::collections::BTreeMap;

/// A collection and an `_id`.
pub(super) type KeyName = (&'static str, i64);

/// A document of the workload.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Row {
    pub(super) owner: i64,
    pub(super) c: i64,
    pub(super) v: i64,
    pub(super) tags: Vec<i64>,
    pub(super) s: Option<String>,
}

impl Row {
    pub(super) fn to_doc(&self, id: i64) -> DocBuf {
        let mut b = DocBuilder::new();
        b.i64("_id", id).i64("owner", self.owner).i64("c", self.c).i64("v", self.v);
        b.array("tags", |a| {
            for t in &self.tags {
                a.value(Value::Int64(*t));
            }
        });
        if let Some(s) = &self.s {
            b.str("s", s);
        }
        b.finish()
    }
    /// Reads a document back; anything unexpected in it is an error.
    pub(super) fn read(doc: &RawDoc) -> Result<(i64, Row), String> {
        let bad = || format!("malformed document {doc}");
        let (mut id, mut row) = (None, Row::default());
        for e in doc {
            match (e.name(), e.value()) {
                ("_id", Value::Int64(n)) => id = Some(n),
                ("owner", Value::Int64(n)) => row.owner = n,
                ("c", Value::Int64(n)) => row.c = n,
                ("v", Value::Int64(n)) => row.v = n,
                ("s", Value::String(s)) => row.s = Some(s.to_owned()),
                ("tags", Value::Array(a)) => {
                    let tags: Option<Vec<i64>> = a.iter().map(|t| t.value().as_i64()).collect();
                    row.tags = tags.ok_or_else(bad)?;
                }
                _ => return Err(bad()),
            }
        }
        Ok((id.ok_or_else(bad)?, row))
    }
}

#[derive(Clone, Debug)]
struct Version {
    /// `None` = no such document.
    row: Option<Row>,
    /// Position in the order of acknowledgements.
    acked: Option<u64>,
    durable: bool,
    /// Which [`Pending`] it belongs to.
    write: u64,
}

/// States of one key, oldest first; the first is durable.
#[derive(Clone, Debug)]
struct Key {
    versions: Vec<Version>,
}

impl Default for Key {
    fn default() -> Key {
        Key { versions: vec![Version { row: None, acked: Some(0), durable: true, write: 0 }] }
    }
}

/// A write between its sending and its acknowledgement.
#[derive(Debug)]
pub(super) struct Pending {
    keys: Vec<KeyName>,
    number: u64,
    /// Acknowledgements before it was sent.
    after: u64,
}

#[derive(Default)]
pub(super) struct Model {
    keys: BTreeMap<KeyName, Key>,
    begun: u64,
    acks: u64,
    /// Acknowledgements up to here are durable.
    durable: u64,
}

impl Model {
    /// The state a key is in for its owner (no write of it may be pending).
    pub(super) fn get(&self, key: KeyName) -> Option<&Row> {
        self.keys.get(&key).and_then(|k| k.versions.last()).and_then(|v| v.row.as_ref())
    }
    /// All present documents of an owner in a collection.
    pub(super) fn of_owner(&self, coll: &str, owner: i64) -> Vec<(i64, Row)> {
        let rows = self.keys.iter().filter(|((c, _), _)| *c == coll);
        rows.filter_map(|((_, id), k)| Some((*id, k.versions.last()?.row.clone()?)))
            .filter(|(_, row)| row.owner == owner)
            .collect()
    }
    pub(super) fn acks(&self) -> u64 {
        self.acks
    }
    /// A command with these outcomes is about to be sent.
    pub(super) fn begin(&mut self, writes: Vec<(KeyName, Option<Row>)>) -> Pending {
        self.begun += 1;
        let number = self.begun;
        let keys = writes.iter().map(|(k, _)| *k).collect();
        for (key, row) in writes {
            let version = Version { row, acked: None, durable: false, write: number };
            self.keys.entry(key).or_default().versions.push(version);
        }
        Pending { keys, number, after: self.acks }
    }
    /// It was acknowledged, `durable` if the write concern promises that.
    pub(super) fn acknowledge(&mut self, pending: Pending, durable: bool) {
        self.acks += 1;
        let number = self.acks;
        for key in pending.keys {
            let versions = self.keys.get_mut(&key).into_iter().flat_map(|k| &mut k.versions);
            // Not always the last: a write without a reply is known to be done only by the next one's.
            for v in versions.filter(|v| v.write == pending.number) {
                v.acked = Some(number);
                v.durable = durable;
            }
        }
        if durable {
            self.durable = self.durable.max(pending.after);
        }
    }
    /// Everything acknowledged is durable: a clean shutdown.
    pub(super) fn all_durable(&mut self) {
        self.durable = self.acks;
    }

    /// Compares with what is there after a start; states later than what was found are forgotten.
    pub(super) fn settle(
        &mut self,
        found: &BTreeMap<(String, i64), Row>,
        on_durable_disk: bool,
    ) -> Vec<String> {
        let mut problems = Vec::new();
        for (coll, id) in found.keys() {
            if !self.keys.keys().any(|(c, i)| c == coll && i == id) {
                problems.push(format!("{coll} {id} was never written"));
            }
        }
        for ((coll, id), key) in &mut self.keys {
            let actual = found.get(&((*coll).to_owned(), *id));
            let is_durable = |v: &Version| v.durable || v.acked.is_some_and(|n| n <= self.durable);
            let floor = key.versions.iter().rposition(is_durable).unwrap_or(0);
            let at = key.versions.iter().rposition(|v| v.row.as_ref() == actual).filter(|at| *at >= floor);
            let Some(at) = at else {
                problems.push(format!(
                    "{coll} {id}: found {actual:?}, expected one of {:?}",
                    key.versions[floor..].iter().map(|v| &v.row).collect::<Vec<_>>()
                ));
                continue;
            };
            key.versions.truncate(at + 1);
            key.versions.drain(..floor);
            if on_durable_disk && let Some(last) = key.versions.pop() {
                key.versions = vec![Version { durable: true, ..last }];
            }
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const K: KeyName = ("a", 1);

    fn row(v: i64) -> Option<Row> {
        Some(Row { v, ..Row::default() })
    }
    fn found(v: Option<i64>) -> BTreeMap<(String, i64), Row> {
        v.and_then(row).map(|r| (("a".to_owned(), 1), r)).into_iter().collect()
    }
    fn write(m: &mut Model, v: i64, durable: bool) {
        let p = m.begin(vec![(K, row(v))]);
        m.acknowledge(p, durable);
    }

    #[test]
    fn durable_writes_must_be_found_and_later_ones_may() {
        let build = || {
            let mut m = Model::default();
            write(&mut m, 1, false);
            write(&mut m, 2, true);
            write(&mut m, 3, false);
            m.begin(vec![(K, row(4))]);
            m
        };
        for (v, ok) in [(None, false), (Some(1), false), (Some(2), true), (Some(3), true), (Some(4), true)] {
            assert_eq!(build().settle(&found(v), true).is_empty(), ok, "{v:?}");
        }
        let mut m = build();
        m.settle(&found(Some(2)), true);
        assert!(!m.settle(&found(Some(3)), true).is_empty(), "what was lost must not come back");
        assert!(!build().settle(&BTreeMap::from([(("a".to_owned(), 9), Row::default())]), true).is_empty());
    }

    #[test]
    fn a_durable_write_makes_durable_what_was_acknowledged_before_it_was_sent() {
        let other: KeyName = ("a", 2);
        let mut m = Model::default();
        write(&mut m, 1, false);
        let p = m.begin(vec![(other, row(5))]);
        write(&mut m, 2, false);
        m.acknowledge(p, true);
        let with_other = |v| {
            let mut f = found(v);
            f.extend(row(5).map(|r| (("a".to_owned(), 2), r)));
            f
        };
        assert!(m.settle(&with_other(Some(1)), true).is_empty(), "2 was acknowledged too late");
        let mut m2 = Model::default();
        write(&mut m2, 1, false);
        let p = m2.begin(vec![(other, row(5))]);
        m2.acknowledge(p, true);
        assert!(!m2.settle(&with_other(None), true).is_empty());
    }

    #[test]
    fn rows_survive_their_documents() {
        let r = Row { owner: 1, c: 2, v: 3, tags: vec![4, 5], s: Some("x".into()) };
        assert_eq!(Row::read(&r.to_doc(9)), Ok((9, r)));
        assert!(Row::read(&pando_bson::doc! { "_id": 1i64, "zz": 1 }.to_raw()).is_err());
    }
}
