//! What fetching and batching need to know of an entry, taken in one walk over its fields.

use crate::entry::{EntryView, OpType};
use pando_base::{Error, Millis, OpTime, Result};
use pando_bson::RawDoc;
use pando_bson::hash::hash_value_with;

/// How an entry may be applied beside others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// One document of one collection.
    Document,
    /// Nothing happens.
    Noop,
    /// The writes of a transaction that one entry tells: spread as others are, and seen together with them.
    Writes,
    /// The end of a transaction that several entries tell, or one that prepares: spread, but nothing else runs beside it.
    Spread,
    /// A definition change: nothing else runs beside it (R-APPLY-2).
    Alone,
}

impl Kind {
    pub fn stands_alone(self) -> bool {
        matches!(self, Kind::Alone | Kind::Spread)
    }
}

/// One entry of a fetched batch.
#[derive(Clone, Copy, Debug)]
pub struct Meta {
    /// Where its document lies in the batch's bytes.
    pub at: u32,
    pub len: u32,
    pub op_time: OpTime,
    pub wall: Millis,
    pub kind: Kind,
    /// Writes that it tells.
    pub ops: u32,
    /// Hash of the collection.
    pub coll: u64,
    /// Hash of the collection and the document's `_id`: entries about one document share it.
    pub doc: u64,
    /// Changes a setting of the whole set that members keep in memory.
    pub is_setting: bool,
}

impl Meta {
    /// `at` is the place of `doc` in its batch.
    pub fn of(doc: &RawDoc, at: usize) -> Result<Meta> {
        let e = EntryView::parse(doc)?;
        let (coll, doc_hash) = hashes(&e);
        let (kind, ops) = match e.op {
            OpType::Noop => (Kind::Noop, 1),
            OpType::Command => transaction(&e)?.unwrap_or((Kind::Alone, 1)),
            OpType::Insert if e.o_is_array => (Kind::Alone, 1),
            _ => (Kind::Document, 1),
        };
        let small = |n: usize| u32::try_from(n).map_err(|_| Error::internal("an oplog batch is too large"));
        Ok(Meta {
            at: small(at)?,
            len: small(doc.byte_len())?,
            op_time: e.op_time(),
            wall: e.wall,
            kind,
            ops: small(ops)?,
            coll,
            doc: doc_hash,
            is_setting: matches!(
                e.ns,
                "config.settings"
                    | "config.clusterParameters"
                    | "config.user_writes_critical_sections"
                    | "admin.system.version"
            ),
        })
    }
    pub fn end(&self) -> usize {
        (self.at + self.len) as usize
    }
}

/// Hashes of the collection, and of collection and `_id`, of a write.
pub fn hashes(e: &EntryView<'_>) -> (u64, u64) {
    let coll = match e.ui {
        Some(ui) => {
            let (a, b) = ui.0.split_at(8);
            let word = |b: &[u8]| b.try_into().map_or(0, u64::from_le_bytes);
            word(a) ^ word(b).rotate_left(17)
        }
        None => hash_value_with(pando_bson::Value::String(e.ns), 0, None),
    };
    let writes = matches!(e.op, OpType::Insert | OpType::Update | OpType::Delete) && !e.o_is_array;
    let id = if writes { e.document_id() } else { None };
    (coll, id.map_or(coll, |id| hash_value_with(id.value(), coll, None)))
}

/// How the operations of an entry that ends or prepares a transaction are applied, and how many they are. `None`: not
/// spread, because it is a part that waits for the end, or changes definitions.
fn transaction(e: &EntryView<'_>) -> Result<Option<(Kind, usize)>> {
    let Some(operations) = e.inner() else { return Ok(None) };
    let is_set = |name: &str| e.o.get(name).is_some_and(|v| v.is_truthy());
    if is_set("partialTxn") {
        return Ok(None);
    }
    let mut ops = 0;
    for op in operations {
        if op?.op == OpType::Command {
            return Ok(None);
        }
        ops += 1;
    }
    let all = e.o.get("count").and_then(|n| n.as_i64()).and_then(|n| usize::try_from(n).ok());
    let kind = if is_set("prepare") || all.is_some() { Kind::Spread } else { Kind::Writes };
    Ok(Some((kind, all.unwrap_or(ops).max(1))))
}

/// Bounds of one applier batch (R-APPLY-1).
#[derive(Clone, Copy, Debug)]
pub struct BatchLimits {
    pub ops: usize,
    pub bytes: usize,
}

/// How many of the next entries make one batch, given what the batch holds already: 0 ends it.
///
/// What changes definitions stands alone, so it starts a batch only when that is empty, and ends it.
pub fn batch_prefix(entries: &[Meta], ops: usize, bytes: usize, limits: BatchLimits) -> usize {
    let (mut n, mut ops, mut bytes) = (0, ops, bytes);
    for e in entries {
        if e.kind.stands_alone() {
            return if ops == 0 { 1 } else { n };
        }
        bytes += e.len as usize;
        let more = ops + e.ops as usize;
        if ops > 0 && (more > limits.ops || bytes > limits.bytes) {
            return n;
        }
        ops = more;
        n += 1;
    }
    n
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_base::Timestamp;
    use pando_bson::{Document, doc};

    fn entry(op: &str, o: Document, o2: Option<Document>, ui: u8) -> Meta {
        let mut d = doc! { "op": op, "ns": "db.c" };
        d.push("ui", pando_bson::Bson::Binary(pando_bson::Binary { subtype: 4, bytes: [ui; 16].to_vec() }));
        d.push("o", o);
        if let Some(o2) = o2 {
            d.push("o2", o2);
        }
        d.push("ts", Timestamp::new(1, 1));
        d.push("t", 1i64);
        Meta::of(&d.to_raw(), 0).unwrap()
    }

    #[test]
    fn entries_of_one_document_share_a_hash_whatever_the_numbers_type() {
        let insert = entry("i", doc! { "_id": 5, "a": 1 }, None, 1);
        let update = entry("u", doc! { "$v": 2, "diff": {} }, Some(doc! { "_id": 5.0 }), 1);
        let delete = entry("d", doc! { "_id": 5i64 }, None, 1);
        assert_eq!((insert.doc, insert.doc), (update.doc, delete.doc));
        assert_ne!(insert.doc, entry("d", doc! { "_id": 6 }, None, 1).doc);
        assert_ne!(insert.doc, entry("d", doc! { "_id": 5 }, None, 2).doc);
    }

    fn transaction(ops: Vec<Document>, more: Document) -> Meta {
        let mut o = doc! { "applyOps": ops.into_iter().map(pando_bson::Bson::from).collect::<Vec<_>>() };
        more.iter().for_each(|(name, v)| o.push(name, v.clone()));
        entry("c", o, None, 1)
    }

    #[test]
    fn transactions_share_batches_unless_they_define_prepare_or_end_a_chain() {
        let put = || doc! { "op": "i", "ns": "db.c", "o": { "_id": 5 } };
        let kind = |ops: Vec<Document>, more: Document| {
            let meta = transaction(ops, more);
            (meta.kind, meta.ops)
        };
        assert_eq!(kind(vec![put(), put()], doc! {}), (Kind::Writes, 2));
        assert_eq!(kind(vec![put()], doc! { "prepare": true }), (Kind::Spread, 1));
        assert_eq!(kind(vec![put()], doc! { "count": 9i64 }), (Kind::Spread, 9));
        assert_eq!(kind(vec![put()], doc! { "partialTxn": true }), (Kind::Alone, 1));
        let create = doc! { "op": "c", "ns": "db.$cmd", "o": { "create": "c" } };
        assert_eq!(kind(vec![create, put()], doc! {}), (Kind::Alone, 1));
        let two = transaction(vec![put(), put()], doc! {});
        let limits = BatchLimits { ops: 5, bytes: 10_000 };
        assert_eq!(batch_prefix(&[two; 9], 0, 0, limits), 2);
        assert_eq!(batch_prefix(&[two; 9], 4, 0, limits), 0);
    }

    #[test]
    fn definition_changes_stand_alone_and_bounds_hold() {
        let doc = entry("i", doc! { "_id": 5 }, None, 1);
        let ddl = entry("c", doc! { "drop": "c" }, None, 1);
        let limits = BatchLimits { ops: 3, bytes: 10_000 };
        assert_eq!(batch_prefix(&[doc, doc, ddl, doc], 0, 0, limits), 2);
        assert_eq!(batch_prefix(&[ddl, doc], 0, 0, limits), 1);
        assert_eq!(batch_prefix(&[ddl, doc], 2, 0, limits), 0);
        assert_eq!(batch_prefix(&[doc; 9], 0, 0, limits), 3);
        assert_eq!(batch_prefix(&[doc; 9], 2, 0, limits), 1);
        let tight = BatchLimits { ops: 9, bytes: doc.len as usize };
        assert_eq!(batch_prefix(&[doc; 9], 0, 0, tight), 1);
        assert_eq!(batch_prefix(&[doc; 9], 1, doc.len as usize, tight), 0);
    }
}
