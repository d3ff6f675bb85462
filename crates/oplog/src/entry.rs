//! One log entry as BSON, in MongoDB's field order:
//! `lsid, txnNumber, op, ns, ui, fromMigrate, o, o2, needsRetryImage, rid, pre, image, stmtId,
//! ts, t, v, wall, prevOpTime` (R-OPLOG-2).
//!
//! Entries are written straight into a buffer ([`Entry::append_to`]) and read in place ([`EntryView`]);
//! no tree is built on either side. The timestamp may be filled in late ([`set_timestamp`]), so that the
//! log's slot is open for as short a time as possible.
//!
//! `rid` is the record id of the document. Replaying an entry puts the same record under the same id again, so a
//! replay over tables that stand at different timestamps is exact, and members of a set agree on record ids.
//! `pre` is the document as it was, in collections that keep images for change streams. `image` is what a retried
//! findAndModify returns, where the entry does not say it otherwise. MongoDB's entries have no such fields, so only
//! members get to see them ([`for_clients`]).

use pando_base::{Error, Millis, OpTime, Result, Term, Timestamp, Uuid};
use pando_bson::{ArrayBuilder, DocBuf, DocBuilder, Elem, ElementType, RawDoc, Value};

/// What an entry does (R-OPLOG-3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpType {
    Insert,
    Update,
    Delete,
    Command,
    Noop,
}

impl OpType {
    pub fn as_str(self) -> &'static str {
        match self {
            OpType::Insert => "i",
            OpType::Update => "u",
            OpType::Delete => "d",
            OpType::Command => "c",
            OpType::Noop => "n",
        }
    }
    pub fn parse(s: &str) -> Option<OpType> {
        Some(match s {
            "i" => OpType::Insert,
            "u" => OpType::Update,
            "d" => OpType::Delete,
            "c" => OpType::Command,
            "n" => OpType::Noop,
            _ => return None,
        })
    }
}

/// Which state of its document a retried findAndModify returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ImageKind {
    Pre,
    Post,
}

impl ImageKind {
    pub fn as_str(self) -> &'static str {
        match self {
            ImageKind::Pre => "preImage",
            ImageKind::Post => "postImage",
        }
    }
    pub fn parse(s: &str) -> Option<ImageKind> {
        [ImageKind::Pre, ImageKind::Post].into_iter().find(|kind| kind.as_str() == s)
    }
}

/// What the entry keeps for a retried findAndModify.
#[derive(Clone, Copy, Debug)]
pub struct RetryImage<'a> {
    pub kind: ImageKind,
    /// `None` where `pre` or `o` is that document.
    pub doc: Option<&'a RawDoc>,
}

/// Field of `o` in entries that tell what a session has done on another shard.
pub const MOVED_HISTORY: &str = "$sessionMigrateInfo";
/// Statement of a session of which more was carried out than anybody knows.
pub const INCOMPLETE_HISTORY_STMT: i32 = -1;

/// The logical session part of a retryable write.
#[derive(Clone, Copy, Debug)]
pub struct Session<'a> {
    pub lsid: &'a RawDoc,
    pub txn_number: i64,
    /// The statements of the command that this entry carries out.
    pub stmt_ids: &'a [i32],
    /// The session's previous entry for the same `txn_number`; [`OpTime::NULL`] for the first.
    pub prev: OpTime,
}

/// `o2`: which document (or which old state) the entry is about.
#[derive(Clone, Copy, Debug)]
pub enum Identity<'a> {
    None,
    /// A document key made of `_id` only.
    Id(Elem<'a>),
    Doc(&'a RawDoc),
}

/// The parts of an entry that is about to be written.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    pub session: Option<Session<'a>>,
    pub operation: Operation<'a>,
    pub term: Term,
    pub wall: Millis,
}

/// What is done to what: an entry's own, or one of an `applyOps` entry.
#[derive(Clone, Copy, Debug)]
pub struct Operation<'a> {
    pub op: OpType,
    pub ns: &'a str,
    pub ui: Option<Uuid>,
    pub from_migrate: bool,
    pub o: Object<'a>,
    pub o2: Identity<'a>,
    /// Record id; `None` for commands and for collections whose record ids derive from `_id`.
    pub rid: Option<i64>,
    /// The document before, where change streams may ask for it.
    pub pre: Option<&'a RawDoc>,
    pub image: Option<RetryImage<'a>>,
}

/// `o`: the content.
#[derive(Clone, Copy, Debug)]
pub enum Object<'a> {
    Doc(&'a RawDoc),
    /// A document key made of `_id` only (deletes).
    Id(Elem<'a>),
}

impl Entry<'_> {
    /// Appends the entry to `buf` with timestamp `ts`; returns where the eight bytes of `ts` lie in `buf`.
    pub fn append_to(&self, buf: &mut Vec<u8>, ts: Timestamp) -> usize {
        let mut b = DocBuilder::append_to(std::mem::take(buf));
        if let Some(s) = &self.session {
            b.raw_doc("lsid", s.lsid);
            b.i64("txnNumber", s.txn_number);
        }
        self.operation.append_to(&mut b);
        match self.session.map(|s| s.stmt_ids) {
            Some([one]) => {
                b.i32("stmtId", *one);
            }
            Some(ids @ [_, _, ..]) => {
                b.array("stmtId", |a: &mut ArrayBuilder| {
                    for id in ids {
                        a.value(Value::Int32(*id));
                    }
                });
            }
            _ => {}
        }
        b.timestamp("ts", ts);
        let ts_at = b.buffer_len() - 8;
        b.i64("t", self.term);
        b.i64("v", 2);
        b.date("wall", self.wall);
        if let Some(s) = &self.session {
            b.doc("prevOpTime", |p| {
                p.timestamp("ts", s.prev.ts);
                p.i64("t", s.prev.t);
            });
        }
        *buf = b.into_buffer();
        ts_at
    }
}

impl Operation<'_> {
    pub fn append_to(&self, b: &mut DocBuilder) {
        b.str("op", self.op.as_str());
        b.str("ns", self.ns);
        if let Some(ui) = &self.ui {
            b.uuid("ui", &ui.0);
        }
        if self.from_migrate {
            b.bool("fromMigrate", true);
        }
        match self.o {
            Object::Doc(doc) => b.raw_doc("o", doc),
            Object::Id(id) => b.doc("o", |o| {
                o.elem(id);
            }),
        };
        match self.o2 {
            Identity::None => {}
            Identity::Doc(doc) => {
                b.raw_doc("o2", doc);
            }
            Identity::Id(id) => {
                b.doc("o2", |o| {
                    o.elem(id);
                });
            }
        }
        if let Some(image) = &self.image {
            b.str("needsRetryImage", image.kind.as_str());
        }
        if let Some(rid) = self.rid {
            b.i64("rid", rid);
        }
        if let Some(pre) = self.pre {
            b.raw_doc("pre", pre);
        }
        if let Some(doc) = self.image.and_then(|image| image.doc) {
            b.raw_doc("image", doc);
        }
    }
}

/// An entry of a transaction: a command on `admin.$cmd` that points back to the one before.
#[derive(Clone, Copy, Debug)]
pub struct Chain<'a> {
    pub lsid: &'a RawDoc,
    pub txn_number: i64,
    /// [`OpTime::NULL`] for the first.
    pub prev: OpTime,
}

impl Chain<'_> {
    pub fn append_to(&self, buf: &mut Vec<u8>, o: &RawDoc, ts: Timestamp, term: Term, wall: Millis) {
        let mut b = DocBuilder::append_to(std::mem::take(buf));
        b.raw_doc("lsid", self.lsid);
        b.i64("txnNumber", self.txn_number);
        b.str("op", OpType::Command.as_str());
        b.str("ns", "admin.$cmd");
        b.raw_doc("o", o);
        b.timestamp("ts", ts);
        b.i64("t", term);
        b.i64("v", 2);
        b.date("wall", wall);
        b.doc("prevOpTime", |p| {
            p.timestamp("ts", self.prev.ts);
            p.i64("t", self.prev.t);
        });
        *buf = b.into_buffer();
    }
}

/// Fills in the timestamp of an entry whose [`Entry::append_to`] returned `ts_at`.
pub fn set_timestamp(buf: &mut [u8], ts_at: usize, ts: Timestamp) {
    if let Some(slot) = buf.get_mut(ts_at..ts_at + 8) {
        slot.copy_from_slice(&ts.0.to_le_bytes());
    }
}

/// An entry read in place.
#[derive(Clone, Copy, Debug)]
pub struct EntryView<'a> {
    pub doc: &'a RawDoc,
    pub op: OpType,
    pub ns: &'a str,
    pub ui: Option<Uuid>,
    pub o: &'a RawDoc,
    /// `o` is an array: several documents inserted by one entry.
    pub o_is_array: bool,
    pub o2: Option<&'a RawDoc>,
    pub rid: Option<i64>,
    pub pre: Option<&'a RawDoc>,
    pub needs_image: Option<ImageKind>,
    pub image: Option<&'a RawDoc>,
    pub lsid: Option<&'a RawDoc>,
    pub txn_number: Option<i64>,
    /// One statement's number, or an array of them.
    pub stmt_id: Option<Value<'a>>,
    pub ts: Timestamp,
    pub term: Term,
    pub wall: Millis,
}

impl<'a> EntryView<'a> {
    /// Reads the fields every entry has; the others are in [`EntryView::doc`].
    pub fn parse(doc: &'a RawDoc) -> Result<EntryView<'a>> {
        let view = EntryView::parse_any(doc)?;
        if view.ts.is_zero() { Err(malformed(doc)) } else { Ok(view) }
    }
    /// The operations of an `applyOps` entry, each with the entry's own time (R-OPLOG-4).
    pub fn inner(&self) -> Option<impl Iterator<Item = Result<EntryView<'a>>>> {
        let outer = *self;
        Some(self.operations()?.iter().map(move |op| outer.operation(op)))
    }
    /// The array of an `applyOps` entry.
    pub fn operations(&self) -> Option<&'a RawDoc> {
        let first = self.command()?;
        (first.name_bytes() == b"applyOps").then(|| first.value().as_array())?
    }
    /// One element of it.
    pub fn operation(&self, op: Elem<'a>) -> Result<EntryView<'a>> {
        let doc = op.value().as_doc().ok_or_else(|| malformed(self.doc))?;
        EntryView::parse_operation(doc, self.op_time(), self.wall)
    }
    /// One operation of an entry made at this time.
    pub fn parse_operation(doc: &'a RawDoc, at: OpTime, wall: Millis) -> Result<EntryView<'a>> {
        Ok(EntryView { ts: at.ts, term: at.t, wall, ..EntryView::parse_any(doc)? })
    }
    fn parse_any(doc: &'a RawDoc) -> Result<EntryView<'a>> {
        let mut view = EntryView {
            doc,
            op: OpType::Noop,
            ns: "",
            ui: None,
            o: RawDoc::empty(),
            o_is_array: false,
            o2: None,
            rid: None,
            pre: None,
            needs_image: None,
            image: None,
            lsid: None,
            txn_number: None,
            stmt_id: None,
            ts: Timestamp::ZERO,
            term: -1,
            wall: 0,
        };
        let (mut op, mut o) = (None, None);
        for e in doc {
            match (e.name_bytes(), e.value()) {
                (b"op", Value::String(s)) => op = OpType::parse(s),
                (b"ns", Value::String(s)) => view.ns = s,
                (b"ui", Value::Binary { bytes, .. }) => view.ui = Uuid::from_slice(bytes),
                (b"o", Value::Document(d)) => o = Some(d),
                (b"o", Value::Array(a)) => (o, view.o_is_array) = (Some(a), true),
                (b"o2", Value::Document(d)) => view.o2 = Some(d),
                (b"rid", Value::Int64(rid)) => view.rid = Some(rid),
                (b"pre", Value::Document(pre)) => view.pre = Some(pre),
                (b"needsRetryImage", Value::String(kind)) => view.needs_image = ImageKind::parse(kind),
                (b"image", Value::Document(image)) => view.image = Some(image),
                (b"lsid", Value::Document(lsid)) => view.lsid = Some(lsid),
                (b"txnNumber", Value::Int64(n)) => view.txn_number = Some(n),
                (b"stmtId", ids) => view.stmt_id = Some(ids),
                (b"ts", Value::Timestamp(ts)) => view.ts = ts,
                (b"t", v) if v.as_i64().is_some() => view.term = v.as_i64().unwrap_or(-1),
                (b"wall", Value::DateTime(ms)) => view.wall = ms,
                _ => {}
            }
        }
        match (op, o) {
            (Some(op), Some(o)) => {
                view.op = op;
                view.o = o;
                Ok(view)
            }
            _ => Err(malformed(doc)),
        }
    }
    pub fn op_time(&self) -> OpTime {
        OpTime::new(self.ts, self.term)
    }
    /// What a statement did that was carried out by another shard: `o2` of an entry that came with a range (SH-MIG-8), with this
    /// entry's time. `None` for all other entries, and where the other shard did not know any more what it had done.
    pub fn moved_statement(&self) -> Option<EntryView<'a>> {
        if self.op != OpType::Noop || !self.is_moved_history() {
            return None;
        }
        EntryView::parse_operation(self.o2?, self.op_time(), self.wall).ok()
    }
    /// Whether it tells what a session has done on another shard.
    pub fn is_moved_history(&self) -> bool {
        self.op == OpType::Noop && self.o.first().is_some_and(|e| e.name_bytes() == MOVED_HISTORY.as_bytes())
    }
    /// The `_id` of the document an `i`, `u` or `d` entry is about.
    pub fn document_id(&self) -> Option<Elem<'a>> {
        match self.op {
            OpType::Update => self.o2?.elem("_id"),
            _ => self.o.elem("_id"),
        }
    }
    /// Name and argument of a `c` entry (`{drop: "c"}` gives `("drop", "c")`).
    pub fn command(&self) -> Option<Elem<'a>> {
        self.o.first()
    }
    /// The `$v: 2` difference of a `u` entry, or `None` when `o` is a whole replacement document.
    pub fn diff(&self) -> Option<&'a RawDoc> {
        let version = self.o.first()?;
        if version.name_bytes() != b"$v" || version.value().as_i64() != Some(2) {
            return None;
        }
        self.o.get("diff")?.as_doc()
    }
}

impl<'a> EntryView<'a> {
    /// What a retried findAndModify returns, when this entry was made by one.
    pub fn retry_image(&self) -> Option<&'a RawDoc> {
        match self.needs_image? {
            ImageKind::Pre => self.image.or(self.pre),
            ImageKind::Post if self.diff().is_none() => self.image.or(Some(self.o)),
            ImageKind::Post => self.image,
        }
    }
}

#[cold]
fn malformed(doc: &RawDoc) -> Error {
    Error::internal(format!("malformed oplog entry: {doc}"))
}

/// The entry as clients read it; `None` when it is that already.
pub fn for_clients(entry: &RawDoc) -> Option<DocBuf> {
    without_own(entry).or_else(|| without_inner(entry))
}

/// Cuts `rid`, `pre` and `image` out, which stand next to each other.
fn without_own(entry: &RawDoc) -> Option<DocBuf> {
    let mut own = ["rid", "pre", "image"].into_iter().filter_map(|name| entry.elem(name));
    let first = own.next()?;
    let last = own.next_back().unwrap_or(first);
    let bytes = entry.as_bytes();
    let at = |data: &[u8]| data.as_ptr().addr() - bytes.as_ptr().addr();
    // Type, name and terminator stand before the value.
    let start = at(first.data()) - (first.name_bytes().len() + 2);
    let end = at(last.data()) + last.data().len();
    let mut out = Vec::with_capacity(bytes.len());
    out.extend_from_slice(&bytes[..start]);
    out.extend_from_slice(&bytes[end..]);
    let len = (out.len() as u32).to_le_bytes();
    out[..4].copy_from_slice(&len);
    Some(DocBuf::from_trusted(out))
}

/// Those of a transaction's operations.
fn without_inner(entry: &RawDoc) -> Option<DocBuf> {
    let ops =
        entry.get("o")?.as_doc()?.first().filter(|e| e.name_bytes() == b"applyOps")?.value().as_array()?;
    let mut b = DocBuilder::with_capacity(entry.byte_len());
    for e in entry {
        match (e.name_bytes(), e.value()) {
            (b"o", Value::Document(o)) => b.doc("o", |d| {
                d.array("applyOps", |a: &mut ArrayBuilder| {
                    for op in ops.iter().filter_map(|op| op.value().as_doc()) {
                        match without_own(op) {
                            Some(bare) => a.raw_doc(&bare),
                            None => a.raw_doc(op),
                        };
                    }
                });
                for rest in o.iter().skip(1) {
                    d.elem(rest);
                }
            }),
            _ => b.elem(e),
        };
    }
    Some(b.finish())
}

/// `{$v: 2, diff: <diff>}`: the `o` of a `u` entry that carries a difference.
pub fn diff_object(diff: &RawDoc) -> pando_bson::DocBuf {
    let mut b = DocBuilder::with_capacity(diff.byte_len() + 24);
    b.i32("$v", 2);
    b.raw(ElementType::Document, "diff", diff.as_bytes());
    b.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_bson::{Document, doc};

    fn plain<'a>(op: OpType, o: &'a RawDoc, o2: Identity<'a>) -> Entry<'a> {
        Entry {
            session: None,
            operation: Operation {
                op,
                ns: "db.c",
                ui: Some(Uuid([7; 16])),
                from_migrate: false,
                o: Object::Doc(o),
                o2,
                rid: None,
                pre: None,
                image: None,
            },
            term: 3,
            wall: 1000,
        }
    }

    #[test]
    fn fields_stand_in_mongodbs_order() {
        let o = doc! { "_id": 1, "a": 2 }.to_raw();
        let lsid = doc! { "id": 5 }.to_raw();
        let mut entry = plain(OpType::Insert, &o, o.elem("_id").map_or(Identity::None, Identity::Id));
        entry.session = Some(Session { lsid: &lsid, txn_number: 9, stmt_ids: &[0], prev: OpTime::NULL });
        entry.operation.rid = Some(12);
        let mut buf = Vec::new();
        entry.append_to(&mut buf, Timestamp::new(5, 1));
        assert_eq!(EntryView::parse(RawDoc::trusted(&buf)).unwrap().rid, Some(12));
        let names: Vec<_> = RawDoc::trusted(&buf).iter().map(|e| e.name().to_owned()).collect();
        let expected = [
            "lsid",
            "txnNumber",
            "op",
            "ns",
            "ui",
            "o",
            "o2",
            "rid",
            "stmtId",
            "ts",
            "t",
            "v",
            "wall",
            "prevOpTime",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn clients_read_the_entry_without_the_record_id() {
        let o = doc! { "_id": 1, "rid": 7i64 }.to_raw();
        let mut entry = plain(OpType::Insert, &o, Identity::None);
        let mut bare = Vec::new();
        entry.append_to(&mut bare, Timestamp::new(5, 1));
        entry.operation.rid = Some(12);
        let mut buf = Vec::new();
        entry.append_to(&mut buf, Timestamp::new(5, 1));
        assert_eq!(for_clients(RawDoc::trusted(&buf)).unwrap().as_bytes(), bare);
        assert!(for_clients(RawDoc::trusted(&bare)).is_none());
    }

    #[test]
    fn clients_see_that_an_image_is_kept_and_members_see_the_image() {
        let (o, old) = (doc! { "_id": 1, "b": 2 }.to_raw(), doc! { "_id": 1, "a": 1 }.to_raw());
        let diff = diff_object(&doc! { "i": { "b": 2 } }.to_raw());
        let cases = [
            (&o, ImageKind::Pre, Some(&old), None, Some(&old)),
            (&o, ImageKind::Pre, None, Some(&old), Some(&old)),
            (&o, ImageKind::Post, None, None, Some(&o)),
            (&diff, ImageKind::Post, Some(&o), Some(&old), Some(&o)),
            (&diff, ImageKind::Post, None, Some(&old), None),
        ];
        for (content, kind, image, pre, wanted) in cases {
            let mut entry = plain(OpType::Update, content, Identity::Doc(&o));
            entry.operation.rid = Some(12);
            entry.operation.pre = pre.map(|d| &**d);
            entry.operation.image = Some(RetryImage { kind, doc: image.map(|d| &**d) });
            let mut buf = Vec::new();
            entry.append_to(&mut buf, Timestamp::new(5, 1));
            let view = EntryView::parse(RawDoc::trusted(&buf)).unwrap();
            assert_eq!(view.retry_image(), wanted.map(|d| &**d), "{view:?}");
            let bare = for_clients(RawDoc::trusted(&buf)).unwrap();
            let view = EntryView::parse(&bare).unwrap();
            assert_eq!((view.needs_image, view.image, view.pre, view.rid), (Some(kind), None, None, None));
        }
    }

    #[test]
    fn a_late_timestamp_lands_in_its_entry_only() {
        let o = doc! { "_id": 1 }.to_raw();
        let mut buf = Vec::new();
        let first = plain(OpType::Insert, &o, Identity::None).append_to(&mut buf, Timestamp::ZERO);
        let second_start = buf.len();
        let second = plain(OpType::Noop, &o, Identity::None).append_to(&mut buf, Timestamp::ZERO);
        set_timestamp(&mut buf, first, Timestamp::new(8, 1));
        set_timestamp(&mut buf, second, Timestamp::new(8, 2));
        let a = EntryView::parse(RawDoc::trusted(&buf)).unwrap();
        let b = EntryView::parse(RawDoc::trusted(&buf[second_start..])).unwrap();
        assert_eq!((a.ts, b.ts), (Timestamp::new(8, 1), Timestamp::new(8, 2)));
        assert_eq!((a.op, a.ns, a.term, a.ui), (OpType::Insert, "db.c", 3, Some(Uuid([7; 16]))));
    }

    #[test]
    fn updates_tell_differences_from_replacements() {
        let diff = diff_object(&doc! { "u": { "a": 1 } }.to_raw());
        let key = doc! { "_id": 4 }.to_raw();
        let mut buf = Vec::new();
        plain(OpType::Update, &diff, Identity::Doc(&key)).append_to(&mut buf, Timestamp::new(1, 1));
        let view = EntryView::parse(RawDoc::trusted(&buf)).unwrap();
        assert_eq!(view.diff().map(Document::from), Some(doc! { "u": { "a": 1 } }));
        assert_eq!(view.document_id().and_then(|e| e.value().as_i64()), Some(4));

        let mut buf = Vec::new();
        plain(OpType::Update, &key, Identity::Doc(&key)).append_to(&mut buf, Timestamp::new(1, 1));
        assert!(EntryView::parse(RawDoc::trusted(&buf)).unwrap().diff().is_none());
    }

    #[test]
    fn an_entry_without_operation_is_an_error() {
        let broken = doc! { "ts": Timestamp::new(1, 1), "o": {} }.to_raw();
        assert!(EntryView::parse(&broken).is_err());
    }
}
