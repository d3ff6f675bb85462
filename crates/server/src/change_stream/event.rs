//! One log entry as the events that a stream shows of it: none, one, or many when it is a transaction.

use super::pending::Pending;
use super::scope::{Scope, Watched};
use super::unfolding::{Unfolding, Wants};
use super::{ChangeStreams, description};
use pando_base::{Error, ErrorCode, Millis, Result, Timestamp, Uuid, limits};
use pando_bson::{DocBuf, DocBuilder, Elem, RawDoc};
use pando_oplog::entry::{EntryView, OpType};
use pando_query::change_stream::{BeforeChange, FullDocument, Place, Spec, Token};
use pando_storage::Bytes;

#[derive(Debug)]
pub(super) struct Event {
    pub(super) token: Token,
    pub(super) doc: DocBuf,
    /// The stream ends behind it.
    pub(super) ends: bool,
}

/// When and in which transaction an operation happened.
#[derive(Clone, Copy)]
struct At<'a> {
    time: Timestamp,
    wall: Millis,
    index: i32,
    /// The entry that names the session, of an operation in a transaction.
    txn: Option<&'a RawDoc>,
}

/// Makes events for one stream.
pub(super) struct Maker<'a> {
    pub(super) streams: &'a ChangeStreams,
    pub(super) spec: &'a Spec,
    pub(super) scope: &'a Scope,
    pub(super) out: &'a mut Pending,
}

fn only(id: Elem<'_>) -> DocBuf {
    let mut key = DocBuilder::new();
    key.elem(id);
    key.finish()
}

fn namespace(b: &mut DocBuilder, name: &str, ns: &str) {
    let (db, coll) = ns.split_once('.').unwrap_or((ns, ""));
    b.doc(name, |d| {
        d.str("db", db);
        if !coll.is_empty() {
            d.str("coll", coll);
        }
    });
}

impl Maker<'_> {
    /// A transaction is given back, for [`Maker::operations`].
    pub(super) fn entry(&mut self, entry: Bytes) -> Result<Option<Unfolding>> {
        let e = EntryView::parse(RawDoc::trusted(&entry))?;
        match e.op {
            OpType::Noop => return Ok(None),
            OpType::Command => match e.command().map(|c| c.name()) {
                Some("applyOps") => {
                    let is_set = |name: &str| e.o.get(name).is_some_and(|v| v.is_truthy());
                    let undecided = is_set("partialTxn") || is_set("prepare");
                    if undecided || e.txn_number.is_none() {
                        return Ok(None);
                    }
                    return Unfolding::new(self.streams.storage.log(), entry).map(Some);
                }
                Some("commitTransaction") if e.txn_number.is_some() => {
                    return Unfolding::new(self.streams.storage.log(), entry).map(Some);
                }
                Some("commitTransaction") => return Ok(None),
                _ => {}
            },
            _ => {}
        }
        self.operation(&e, At { time: e.ts, wall: e.wall, index: 0, txn: None })?;
        Ok(None)
    }

    /// The next operations of a transaction; `false` when there are no more.
    pub(super) fn operations(&mut self, of: &mut Unfolding) -> Result<bool> {
        let last = of.last().clone();
        let last = EntryView::parse(RawDoc::trusted(&last))?;
        let mut left = limits::CHANGE_STREAM_STEP_OPS;
        of.step(self.streams.storage.log(), |op, index| {
            self.operation(op, At { time: last.ts, wall: last.wall, index, txn: Some(last.doc) })?;
            left -= 1;
            Ok(if left == 0 || self.out.is_full() { Wants::Pause } else { Wants::More })
        })
    }

    fn operation(&mut self, e: &EntryView<'_>, at: At<'_>) -> Result<()> {
        let is_moved = || e.doc.get("fromMigrate").is_some_and(|v| v.is_truthy());
        match e.op {
            OpType::Noop => Ok(()),
            // What moves between shards, or is done to a part of what another shard tells of.
            _ if !self.spec.migrations && is_moved() => Ok(()),
            OpType::Command => self.command(e, at),
            OpType::Insert | OpType::Update | OpType::Delete => self.document(e, at),
        }
    }

    fn document(&mut self, e: &EntryView<'_>, at: At<'_>) -> Result<()> {
        if !self.scope.has(e.ns) {
            return match self.spec.expanded && e.ns.ends_with(".system.views") {
                true => self.view(e, at),
                false => Ok(()),
            };
        }
        if e.o_is_array {
            let docs = e.o.iter().filter_map(|d| d.value().as_doc());
            return docs.enumerate().try_for_each(|(i, o)| {
                let at = At { index: at.index + i as i32, ..at };
                self.document(&EntryView { o, o_is_array: false, o2: None, ..*e }, at)
            });
        }
        let Some(id) = e.document_id() else { return Ok(()) };
        let key = match (e.op, e.o2) {
            // Of a sharded collection with its shard key.
            (OpType::Delete, _) => e.o.to_buf(),
            (_, Some(key)) => key.to_buf(),
            (_, None) => only(id),
        };
        let diff = e.diff().filter(|_| e.op == OpType::Update);
        let kind = match (e.op, diff) {
            (OpType::Insert, _) => "insert",
            (OpType::Delete, _) => "delete",
            (_, Some(_)) => "update",
            (_, None) => "replace",
        };
        let full = match (kind, diff) {
            ("delete", _) => None,
            (_, None) => Some(Full::Entry(e.o)),
            (_, Some(_)) => self.after_update(e, id, &at)?,
        };
        let token = self.token(&at, e.ui, Some(&key), false);
        let mut b = self.begin(&token, kind, &at, e.ui);
        match &full {
            Some(Full::Entry(doc)) => drop(b.raw_doc("fullDocument", doc)),
            Some(Full::Found(doc)) => drop(b.raw_doc("fullDocument", doc)),
            Some(Full::Gone) => drop(b.null("fullDocument")),
            None => {}
        }
        namespace(&mut b, "ns", e.ns);
        b.raw_doc("documentKey", &key);
        if let Some(diff) = diff {
            b.raw_doc("updateDescription", &description::of_diff(diff, self.spec.expanded));
            if self.spec.raw_description {
                b.raw_doc("rawUpdateDescription", diff);
            }
        }
        if kind != "insert" {
            self.before_change(&mut b, kind, e, &at)?;
        }
        self.out.push(Event { token, doc: b.finish(), ends: false });
        Ok(())
    }

    /// `fullDocument` of an update.
    fn after_update<'e>(&self, e: &EntryView<'e>, id: Elem<'_>, at: &At<'_>) -> Result<Option<Full<'e>>> {
        match self.spec.full_document {
            FullDocument::Default => Ok(None),
            FullDocument::UpdateLookup => {
                let found = self.current(e.ui, id)?;
                Ok(Some(found.map_or(Full::Gone, Full::Found)))
            }
            FullDocument::WhenAvailable | FullDocument::Required => match (self.image(e), e.diff()) {
                (Some(pre), Some(diff)) => Ok(Some(Full::Found(pando_oplog::diff::apply(pre, diff)?))),
                _ if self.spec.full_document == FullDocument::WhenAvailable => Ok(Some(Full::Gone)),
                _ => Err(missing_image("post-image for all update events", "update", e, at)),
            },
        }
    }
    /// The document before the change, unless its time is over (`changeStreamOptions`).
    fn image<'e>(&self, e: &EntryView<'e>) -> Option<&'e RawDoc> {
        let options = self.streams.settings.cluster_parameters.change_streams();
        e.pre.filter(|_| !options.hides(e.wall, self.streams.env.clock.wall_ms()))
    }
    fn before_change(&self, b: &mut DocBuilder, kind: &str, e: &EntryView<'_>, at: &At<'_>) -> Result<()> {
        let name = "fullDocumentBeforeChange";
        match (self.spec.before_change, self.image(e)) {
            (BeforeChange::Off, _) => {}
            (_, Some(pre)) => drop(b.raw_doc(name, pre)),
            (BeforeChange::WhenAvailable, None) => drop(b.null(name)),
            (BeforeChange::Required, None) => {
                let which = "pre-image for all update, delete and replace events";
                return Err(missing_image(which, kind, e, at));
            }
        }
        Ok(())
    }
    /// The document as a majority has it by now, if it is still in that very collection.
    fn current(&self, uuid: Option<Uuid>, id: Elem<'_>) -> Result<Option<DocBuf>> {
        let Some(uuid) = uuid else { return Ok(None) };
        self.streams.access.find_id_by_uuid(uuid, id, self.streams.replication.committed())
    }

    fn command(&mut self, e: &EntryView<'_>, at: At<'_>) -> Result<()> {
        let Some(what) = e.command() else { return Ok(()) };
        let db = e.ns.split_once('.').map_or(e.ns, |(db, _)| db);
        let text = |name: &str| e.o.get(name).and_then(|v| v.as_str()).unwrap_or_default();
        let ns = format!("{db}.{}", what.value().as_str().unwrap_or_default());
        match what.name() {
            "drop" if self.scope.has(&ns) => {
                self.definition("drop", &ns, e, &at, None);
                self.end_if(self.scope.is_collection(), &at, e.ui);
            }
            "renameCollection" => {
                let (from, to) = (text("renameCollection"), text("to"));
                if self.scope.has(from) || self.scope.has(to) {
                    self.rename(from, to, e, &at);
                    self.end_if(self.scope.is_collection(), &at, e.ui);
                }
            }
            "dropDatabase" if !self.scope.is_collection() && self.scope.has_database(db) => {
                self.definition("dropDatabase", db, e, &at, None);
                self.end_if(self.scope.is_database(), &at, None);
            }
            name if self.spec.expanded && self.scope.has(&ns) => {
                if let Some((kind, about)) = described(name, e) {
                    self.definition(kind, &ns, e, &at, Some(&about));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Views come and go as documents of `system.views`.
    fn view(&mut self, e: &EntryView<'_>, at: At<'_>) -> Result<()> {
        let id = e.document_id().and_then(|id| id.value().as_str()).unwrap_or_default().to_owned();
        if !matches!(self.scope.watched, Watched::Database(_) | Watched::Cluster) || !self.scope.has(&id) {
            return Ok(());
        }
        let e = EntryView { ui: None, ..*e };
        match e.op {
            OpType::Insert => {
                let mut about = DocBuilder::new();
                for f in e.o.iter().filter(|f| f.name() != "_id") {
                    about.elem(f);
                }
                self.definition("create", &id, &e, &at, Some(&about.finish()));
            }
            OpType::Delete => self.definition("drop", &id, &e, &at, None),
            _ => {}
        }
        Ok(())
    }

    /// A change of a collection or database; `about` is its `operationDescription`.
    fn definition(&mut self, kind: &str, ns: &str, e: &EntryView<'_>, at: &At<'_>, about: Option<&RawDoc>) {
        let key = about.map(|about| {
            let mut b = DocBuilder::new();
            b.str("operationType", kind).raw_doc("operationDescription", about);
            b.finish()
        });
        let token = self.token(at, e.ui, key.as_deref(), false);
        let mut b = self.begin(&token, kind, at, e.ui);
        namespace(&mut b, "ns", ns);
        if let Some(about) = about {
            b.raw_doc("operationDescription", about);
        }
        if let (true, Some(old)) = (kind == "modify", e.o2) {
            let mut state = DocBuilder::new();
            for f in old {
                let name =
                    if f.name() == "collectionOptions_old" { "collectionOptions" } else { "indexOptions" };
                state.value(name, f.value());
            }
            b.raw_doc("stateBeforeChange", &state.finish());
        }
        self.out.push(Event { token, doc: b.finish(), ends: false });
    }
    fn rename(&mut self, from: &str, to: &str, e: &EntryView<'_>, at: &At<'_>) {
        let token = self.token(at, e.ui, None, false);
        let mut b = self.begin(&token, "rename", at, e.ui);
        namespace(&mut b, "ns", from);
        namespace(&mut b, "to", to);
        if self.spec.expanded {
            b.doc("operationDescription", |d| {
                namespace(d, "to", to);
                if let Some(target) = e.o.elem("dropTarget") {
                    d.elem(target);
                }
            });
        }
        self.out.push(Event { token, doc: b.finish(), ends: false });
    }
    fn end_if(&mut self, ends: bool, at: &At<'_>, uuid: Option<Uuid>) {
        if !ends {
            return;
        }
        let token = self.token(at, uuid, None, true);
        let mut b = DocBuilder::new();
        b.raw_doc("_id", token.doc()).str("operationType", "invalidate");
        b.timestamp("clusterTime", at.time).date("wallTime", at.wall);
        self.out.push(Event { token, doc: b.finish(), ends: true });
    }

    fn token(&self, at: &At<'_>, uuid: Option<Uuid>, about: Option<&RawDoc>, invalidates: bool) -> Token {
        Token::of_event(&Place { time: at.time, index: at.index, invalidates, uuid, about })
    }
    fn begin(&self, token: &Token, kind: &str, at: &At<'_>, uuid: Option<Uuid>) -> DocBuilder {
        let mut b = DocBuilder::new();
        b.raw_doc("_id", token.doc()).str("operationType", kind);
        b.timestamp("clusterTime", at.time);
        if let Some(uuid) = uuid.filter(|_| self.spec.expanded) {
            b.uuid("collectionUUID", &uuid.0);
        }
        b.date("wallTime", at.wall);
        for name in ["lsid", "txnNumber"] {
            if let Some(e) = at.txn.and_then(|t| t.elem(name)) {
                b.elem(e);
            }
        }
        b
    }
}

enum Full<'a> {
    Entry(&'a RawDoc),
    Found(DocBuf),
    Gone,
}

/// `operationType` and `operationDescription` of the events that only `showExpandedEvents` shows.
fn described(command: &str, e: &EntryView<'_>) -> Option<(&'static str, DocBuf)> {
    let rest = |b: &mut DocBuilder| {
        for f in e.o.iter().skip(1) {
            b.elem(f);
        }
    };
    let mut b = DocBuilder::new();
    let kind = match command {
        "create" => {
            rest(&mut b);
            "create"
        }
        "collMod" => {
            rest(&mut b);
            "modify"
        }
        "createIndexes" => {
            b.array("indexes", |a| {
                a.doc(rest);
            });
            "createIndexes"
        }
        "commitIndexBuild" => {
            b.elem(e.o.elem("indexes")?);
            "createIndexes"
        }
        "dropIndexes" => {
            b.array("indexes", |a| {
                a.raw_doc(e.o2.unwrap_or(RawDoc::empty()));
            });
            "dropIndexes"
        }
        _ => return None,
    };
    Some((kind, b.finish()))
}

fn missing_image(which: &str, kind: &str, e: &EntryView<'_>, at: &At<'_>) -> Error {
    let image = which.split(' ').next().unwrap_or_default();
    let (db, coll) = e.ns.split_once('.').unwrap_or_default();
    Error::new(
        ErrorCode::NoMatchingDocument,
        format!(
            "Change stream was configured to require a {which}, but the {image} was not found for event: \
             {{operationType: \"{kind}\", ns: {{db: \"{db}\", coll: \"{coll}\"}}, clusterTime: Timestamp({}, {})}}",
            at.time.secs(),
            at.time.inc()
        ),
    )
}
