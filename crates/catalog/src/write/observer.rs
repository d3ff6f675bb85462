//! Who is told about writes, inside the same unit (R-OBS-1).
//!
//! The write path calls every observer of the chain in order; the first one writes the log entry. An observer that
//! needs something to happen only if the write really takes place uses [`WriteUnit::after_commit`], which also waits for the
//! decision of a prepared transaction. What becomes of transactions as a whole, and of entries that are rolled back, they are
//! told outside of units.

use crate::schema::collection::Collection;
use crate::schema::sizes::Totals;
use crate::write::op::WriteOp;
pub use crate::write::transaction_event::{
    Ids, Origin, RolledBack, TxnAborted, TxnCommitted, TxnId, TxnPrepared, TxnWrites,
};
use crate::write::unit::WriteUnit;
use pando_base::{Namespace, Result, Uuid};
use pando_bson::{DocBuf, DocBuilder, Elem, RawDoc};
use pando_index::IndexSpec;
use pando_oplog::entry::{Identity, ImageKind, Object, OpType, Operation, RetryImage};

/// A document came in.
pub struct Inserted<'a> {
    pub coll: &'a Collection,
    pub doc: &'a RawDoc,
    pub rid: Option<i64>,
    pub stmt_ids: &'a [i32],
}

/// A document was replaced by another with the same `_id`.
pub struct Updated<'a> {
    pub coll: &'a Collection,
    pub old: &'a RawDoc,
    pub new: &'a RawDoc,
    /// `o` of the entry: `{$v: 2, diff}` or the whole new document.
    pub o: &'a RawDoc,
    pub rid: Option<i64>,
    pub stmt_ids: &'a [i32],
}

/// A document went away.
pub struct Deleted<'a> {
    pub coll: &'a Collection,
    pub old: &'a RawDoc,
    pub rid: Option<i64>,
    pub stmt_ids: &'a [i32],
}

/// A definition changed (R-OPLOG-4).
pub enum Defined<'a> {
    Created {
        coll: &'a Collection,
    },
    Dropped {
        coll: &'a Collection,
    },
    Renamed {
        from: &'a Collection,
        to: &'a Namespace,
        target: Option<&'a Collection>,
        stay_temp: bool,
    },
    DatabaseDropped {
        db: &'a str,
    },
    Modified {
        coll: &'a Collection,
        command: &'a RawDoc,
        old: &'a RawDoc,
    },
    IndexCreated {
        coll: &'a Collection,
        spec: &'a IndexSpec,
    },
    BuildStarted {
        coll: &'a Collection,
        build: Uuid,
        specs: &'a [IndexSpec],
    },
    BuildCommitted {
        coll: &'a Collection,
        build: Uuid,
        specs: &'a [IndexSpec],
    },
    BuildAborted {
        coll: &'a Collection,
        build: Uuid,
        specs: &'a [IndexSpec],
        cause: &'a RawDoc,
    },
    IndexDropped {
        coll: &'a Collection,
        spec: &'a IndexSpec,
    },
    /// It was taken in from another set, with all its documents, under the name `import`.
    Imported {
        coll: &'a Collection,
        import: Uuid,
        totals: Totals,
    },
}

/// Hooks into the write path (R-OBS-2).
pub trait OpObserver: Send + Sync {
    fn inserted(&self, _unit: &mut WriteUnit, _op: &WriteOp<'_>, _event: &Inserted<'_>) -> Result<()> {
        Ok(())
    }
    fn updated(&self, _unit: &mut WriteUnit, _op: &WriteOp<'_>, _event: &Updated<'_>) -> Result<()> {
        Ok(())
    }
    fn deleted(&self, _unit: &mut WriteUnit, _op: &WriteOp<'_>, _event: &Deleted<'_>) -> Result<()> {
        Ok(())
    }
    fn defined(&self, _unit: &mut WriteUnit, _event: &Defined<'_>) -> Result<()> {
        Ok(())
    }

    /// A transaction that commits, or prepares, has its slots of the log; its operations as their entry tells them. An error ends it.
    fn committing(&self, _operations: &[DocBuf]) -> Result<()> {
        Ok(())
    }

    /// Whether it is told of `prepared`, `committed` and `aborted`. What nobody wants to know is not put together.
    fn watches_transactions(&self) -> bool {
        false
    }
    fn prepared(&self, _event: &TxnPrepared<'_>) {}
    /// Of an unprepared transaction, too.
    fn committed(&self, _event: &TxnCommitted<'_>) {}
    fn aborted(&self, _event: &TxnAborted<'_>) {}
    fn rolled_back(&self, _event: &RolledBack<'_>) {}
}

/// The main observer: one log entry per write.
#[derive(Debug, Default)]
pub struct LogWriter;

fn id_of(doc: &RawDoc) -> Option<Elem<'_>> {
    match doc.first() {
        Some(e) if e.name_bytes() == b"_id" => Some(e),
        _ => doc.elem("_id"),
    }
}

fn identity(id: Option<Elem<'_>>) -> Identity<'_> {
    id.map_or(Identity::None, Identity::Id)
}

/// Who knows what tells documents of a collection apart beside their `_id`: on a shard, the fields of its shard key.
pub trait DocumentKeys: Send + Sync {
    /// Puts those of a document, as far as it has them, in front of its `_id`; `None` where the `_id` is everything.
    fn key_of(&self, coll: &Collection, doc: &RawDoc, id: Elem<'_>) -> Option<DocBuf>;
}

/// A document's key as entries tell it: of `doc` where a shard key is part of it, and of the `_id`.
fn document_key(unit: &WriteUnit, coll: &Collection, doc: &RawDoc, id: Option<Elem<'_>>) -> Option<DocBuf> {
    unit.catalog.document_keys()?.key_of(coll, doc, id?)
}

/// In the entry it lives as long as change streams can ask for it, on every member.
fn pre_image<'a>(coll: &Collection, old: &'a RawDoc) -> Option<&'a RawDoc> {
    coll.options.change_stream_pre_and_post_images.then_some(old)
}

/// In the entry it goes wherever the entry goes: into a crash, to other members, away with a rollback.
fn retry_image<'a>(
    op: &WriteOp<'_>,
    stmt_ids: &[i32],
    pre: Option<&'a RawDoc>,
    old: &'a RawDoc,
    updated: Option<&Updated<'a>>,
) -> Option<RetryImage<'a>> {
    let kind = op.image.filter(|_| !stmt_ids.is_empty())?;
    let is_diff = |o: &RawDoc| o.first().is_some_and(|e| e.name_bytes() == b"$v");
    let doc = match (kind, updated) {
        (ImageKind::Post, Some(e)) => is_diff(e.o).then_some(e.new),
        _ => pre.is_none().then_some(old),
    };
    Some(RetryImage { kind, doc })
}

impl OpObserver for LogWriter {
    // tour: insert 5/9
    fn inserted(&self, unit: &mut WriteUnit, op: &WriteOp<'_>, e: &Inserted<'_>) -> Result<()> {
        let id = id_of(e.doc);
        let key = document_key(unit, e.coll, e.doc, id);
        let parts = Operation {
            op: OpType::Insert,
            ns: e.coll.ns.as_str(),
            ui: Some(e.coll.uuid),
            from_migrate: false,
            o: Object::Doc(e.doc),
            o2: key.as_deref().map_or(identity(id), Identity::Doc),
            rid: e.rid,
            pre: None,
            image: None,
        };
        unit.log(op, e.stmt_ids, parts)
    }
    fn updated(&self, unit: &mut WriteUnit, op: &WriteOp<'_>, e: &Updated<'_>) -> Result<()> {
        let pre = pre_image(e.coll, e.old);
        // A replacement may write the same number as another type; the key is what it was.
        let id = id_of(e.old);
        let key = document_key(unit, e.coll, e.new, id);
        let parts = Operation {
            op: OpType::Update,
            ns: e.coll.ns.as_str(),
            ui: Some(e.coll.uuid),
            from_migrate: false,
            o: Object::Doc(e.o),
            o2: key.as_deref().map_or(identity(id), Identity::Doc),
            rid: e.rid,
            pre,
            image: retry_image(op, e.stmt_ids, pre, e.old, Some(e)),
        };
        unit.log(op, e.stmt_ids, parts)
    }
    fn deleted(&self, unit: &mut WriteUnit, op: &WriteOp<'_>, e: &Deleted<'_>) -> Result<()> {
        let id = id_of(e.old);
        let key = document_key(unit, e.coll, e.old, id);
        let of_id = id.map_or(Object::Doc(RawDoc::empty()), Object::Id);
        let o = key.as_deref().map_or(of_id, Object::Doc);
        let pre = pre_image(e.coll, e.old);
        let parts = Operation {
            op: OpType::Delete,
            ns: e.coll.ns.as_str(),
            ui: Some(e.coll.uuid),
            from_migrate: false,
            o,
            o2: Identity::None,
            rid: e.rid,
            pre,
            image: retry_image(op, e.stmt_ids, pre, e.old, None),
        };
        unit.log(op, e.stmt_ids, parts)
    }
    fn defined(&self, unit: &mut WriteUnit, e: &Defined<'_>) -> Result<()> {
        let Command { ns, ui, o, o2 } = command(e);
        let parts = Operation {
            op: OpType::Command,
            ns: ns.as_str(),
            ui,
            from_migrate: false,
            o: Object::Doc(&o),
            o2: o2.as_deref().map_or(Identity::None, Identity::Doc),
            rid: None,
            pre: None,
            image: None,
        };
        let from_migrate = unit.is_told_elsewhere();
        unit.log(&WriteOp { from_migrate, ..WriteOp::default() }, &[], parts)
    }
}

/// A definition change as its entry tells it.
struct Command {
    ns: Namespace,
    ui: Option<Uuid>,
    o: DocBuf,
    o2: Option<DocBuf>,
}

fn num_records(coll: &Collection) -> DocBuf {
    let mut b = DocBuilder::new();
    b.i32_or_i64("numRecords", coll.count() as i64);
    b.finish()
}

fn build_doc(command: &str, coll: &Collection, build: Uuid, specs: &[IndexSpec]) -> DocBuilder {
    let mut b = DocBuilder::new();
    b.str(command, coll.ns.coll());
    b.uuid("indexBuildUUID", &build.0);
    b.array("indexes", |a| {
        for spec in specs {
            a.raw_doc(&spec.doc);
        }
    });
    b
}

fn import_doc(coll: &Collection, import: Uuid, totals: Totals) -> DocBuilder {
    let mut b = DocBuilder::new();
    b.str("importCollection", coll.ns.coll());
    b.uuid("import", &import.0);
    b.i64("numRecords", totals.count).i64("dataSize", totals.bytes);
    b.doc("options", |o| coll.options.append_to(o));
    b.array("indexes", |a| {
        for i in &coll.indexes {
            a.raw_doc(&i.spec.doc);
        }
    });
    b
}

fn command(e: &Defined<'_>) -> Command {
    let of = |coll: &Collection, b: DocBuilder, o2: Option<DocBuf>| Command {
        ns: coll.ns.command_ns(),
        ui: Some(coll.uuid),
        o: b.finish(),
        o2,
    };
    let mut b = DocBuilder::new();
    match e {
        Defined::Created { coll } => {
            b.str("create", coll.ns.coll());
            coll.options.append_to(&mut b);
            if let Some(id) = coll.id_index() {
                b.raw_doc("idIndex", &id.spec.doc);
            }
            of(coll, b, None)
        }
        Defined::Dropped { coll } => {
            b.str("drop", coll.ns.coll());
            of(coll, b, Some(num_records(coll)))
        }
        Defined::Renamed { from, to, target, stay_temp } => {
            b.str("renameCollection", from.ns.as_str());
            b.str("to", to.as_str());
            b.bool("stayTemp", *stay_temp);
            if let Some(target) = target {
                b.uuid("dropTarget", &target.uuid.0);
            }
            of(from, b, target.map(num_records))
        }
        Defined::DatabaseDropped { db } => {
            b.i32("dropDatabase", 1);
            Command { ns: Namespace::unchecked(db, "$cmd"), ui: None, o: b.finish(), o2: None }
        }
        Defined::Modified { coll, command, old } => {
            b.elems_of(command);
            of(coll, b, Some(old.to_buf()))
        }
        Defined::IndexCreated { coll, spec } => {
            b.str("createIndexes", coll.ns.coll());
            b.elems_of(&spec.doc);
            of(coll, b, None)
        }
        Defined::BuildStarted { coll, build, specs } => {
            of(coll, build_doc("startIndexBuild", coll, *build, specs), None)
        }
        Defined::BuildCommitted { coll, build, specs } => {
            of(coll, build_doc("commitIndexBuild", coll, *build, specs), None)
        }
        Defined::BuildAborted { coll, build, specs, cause } => {
            let mut b = build_doc("abortIndexBuild", coll, *build, specs);
            b.raw_doc("cause", cause);
            of(coll, b, None)
        }
        Defined::Imported { coll, import, totals } => of(coll, import_doc(coll, *import, *totals), None),
        Defined::IndexDropped { coll, spec } => {
            b.str("dropIndexes", coll.ns.coll());
            b.str("index", &spec.name);
            of(coll, b, Some(spec.doc.clone()))
        }
    }
}
