//! `applyOps`: entries of an oplog, carried out here as new writes (`mongorestore --oplogReplay` sends them).
//!
//! ```text
//!   i   the document is put in the place of the one with its _id     d   the one with this _id goes, if there is one
//!   u   a replacement is put; modifiers and diffs change the old     c   the command of that name, as a client's
//!       document, or an empty one with the _id of `o2`               n   nothing
//! ```
//! Whoever replays a log sends entries that may have been carried out already: nothing of it is a mistake twice, and what is
//! missing is missing because a later entry removed it. Entries are carried out one by one, not as one unit (as since
//! MongoDB 7.0); the first that fails ends the command.

use super::create;
use super::prelude::*;
use pando_access::ByCtx;
use pando_access::LogAs;
use pando_access::check_id;
use pando_base::Uuid;
use pando_bson::Elem;
use pando_bson::shape::{Field, Shape, check_fields};
use pando_bson::values_equal;
use pando_command::reply::Encoded;
use pando_env::BoxFuture;
use pando_query::matcher::Matcher;

/// Fields of an entry, whether or not they matter here.
const ENTRY: &[Field] = &[
    Field::required("op", Shape::String),
    Field::required("ns", Shape::String),
    Field::optional("ui", Shape::Uuid),
    Field::optional("fromMigrate", Shape::Bool),
    Field::required("o", Shape::Object),
    Field::optional("o2", Shape::Object),
    Field::optional("ts", Shape::Timestamp),
    Field::optional("t", Shape::Long),
    Field::optional("v", Shape::Long),
    Field::optional("h", Shape::Long),
    Field::optional("wall", Shape::Date),
    Field::optional("b", Shape::Bool),
    Field::optional("lsid", Shape::Object),
    Field::optional("txnNumber", Shape::Long),
    Field::optional("stmtId", Shape::Any),
    Field::optional("prevOpTime", Shape::Object),
    Field::optional("preImageOpTime", Shape::Object),
    Field::optional("postImageOpTime", Shape::Object),
    Field::optional("needsRetryImage", Shape::String),
    Field::optional("destinedRecipient", Shape::String),
];

/// Commands that an entry may name, and the errors that say "it is so already".
const COMMANDS: &[(&str, &[ErrorCode])] = &[
    ("create", &[ErrorCode::NamespaceExists]),
    ("drop", &[ErrorCode::NamespaceNotFound]),
    ("dropDatabase", &[ErrorCode::NamespaceNotFound]),
    ("dropIndexes", &[ErrorCode::NamespaceNotFound, ErrorCode::IndexNotFound]),
    ("deleteIndexes", &[ErrorCode::NamespaceNotFound, ErrorCode::IndexNotFound]),
    ("renameCollection", &[ErrorCode::NamespaceNotFound, ErrorCode::NamespaceExists]),
    ("collMod", &[ErrorCode::NamespaceNotFound, ErrorCode::IndexNotFound]),
];
/// Entries that only members carry out.
const NOT_HERE: &[&str] = &[
    "createIndexes",
    "startIndexBuild",
    "commitIndexBuild",
    "abortIndexBuild",
    "commitTransaction",
    "abortTransaction",
];

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    match req.body.get("oplogApplicationMode") {
        None | Some(Value::String(_)) => {}
        Some(v) => {
            let e = pando_command::concern::had_wrong_type("oplogApplicationMode", "string", &v);
            return Err(e.context("Could not parse out oplogApplicationMode"));
        }
    }
    for (name, shape) in [
        ("alwaysUpsert", Shape::Bool),
        ("allowAtomic", Shape::Bool),
        ("preCondition", Shape::List(&Shape::Object)),
    ] {
        if let Some(v) = req.body.get(name) {
            shape.check(&format!("applyOps.{name}"), &v).map_err(|e| {
                Error::new(
                    e.code,
                    format!("Failed to parse applyOps command: {} :: caused by :: {}", req.body, e.message),
                )
            })?;
        }
    }
    if let Some(mode) = req.body.get("oplogApplicationMode").and_then(|v| v.as_str())
        && !matches!(mode, "InitialSync" | "Recovering" | "Secondary" | "ApplyOps")
    {
        return Err(Error::failed_to_parse(format!(
            "Could not parse oplogApplicationMode :: caused by :: Invalid oplog application mode provided: {mode}"
        )));
    }
    let list = req.first().value();
    check_entries(&list)?;
    if let Some(Value::Array(conditions)) = req.body.get("preCondition") {
        for condition in conditions.iter().filter_map(|e| e.value().as_doc()) {
            check_precondition(server, ctx, condition).await?;
        }
    }
    let upsert = req.body.get("alwaysUpsert").and_then(|v| v.as_bool()).unwrap_or(true);
    apply_all(server, ctx, list, upsert).await
}

/// `{ns, q, res}`: the first document that `q` finds must match `res` (2).
async fn check_precondition(server: &Server, ctx: &OpCtx, condition: &RawDoc) -> Result<()> {
    let text = |name: &str| condition.get(name).and_then(|v| v.as_str()).unwrap_or_default();
    let part = |name: &str| condition.get(name).and_then(|v| v.as_doc()).unwrap_or(RawDoc::empty());
    let (db, coll) = text("ns").split_once('.').unwrap_or((text("ns"), ""));
    let ns = Namespace::new(db, coll)?;
    let mut find = DocBuilder::new();
    find.str("find", ns.coll()).raw_doc("filter", part("q")).i32("limit", 1).bool("singleBatch", true);
    let reply = call(server, ctx, "find", ns.db(), &find.finish()).await?;
    let reply = Encoded { buf: reply.body.into_buffer() };
    let found = reply.doc().get_path("cursor.firstBatch").and_then(|v| v.as_array()).and_then(RawDoc::first);
    let found = found.and_then(|e| e.value().as_doc()).unwrap_or(RawDoc::empty());
    let wanted = Matcher::parse(part("res"), &server.crud.reads.query_ctx(ctx, None, None, None)?)?;
    if wanted.matches(found)? {
        return Ok(());
    }
    let mut told = DocBuilder::new();
    told.raw_doc("got", found).raw_doc("whatFailed", condition);
    Err(Error::bad_value("preCondition failed").with_extra(told.finish().into_bytes()))
}

/// The form of all entries.
fn check_entries(list: &Value<'_>) -> Result<()> {
    let Value::Array(entries) = list else { return Err(expected("applyOps", "array", list)) };
    entries.iter().enumerate().try_for_each(|(i, e)| check_form(i, &e.value()))
}

/// `upsert`: an update of what is not there inserts it.
fn apply_all<'a>(
    server: &'a Server,
    ctx: &'a OpCtx,
    list: Value<'a>,
    upsert: bool,
) -> BoxFuture<'a, Result<Reply>> {
    Box::pin(async move {
        check_entries(&list)?;
        let list = list.as_array().unwrap_or(RawDoc::empty());
        let (mut results, mut failure) = (Vec::new(), None);
        for e in list {
            ctx.check_interrupt()?;
            let Value::Document(entry) = e.value() else { continue };
            if entry.get("op").and_then(|v| v.as_str()) == Some("n") {
                continue;
            }
            let done = apply(server, ctx, entry, upsert).await;
            results.push(done.is_ok());
            if let Err(e) = done {
                failure = Some(e);
                break;
            }
        }
        let mut told = DocBuilder::new();
        told.i32("applied", results.len() as i32);
        told.array("results", |a| {
            for ok in &results {
                a.value(Value::Boolean(*ok));
            }
        });
        match failure {
            None => {
                let mut r = Reply::new();
                r.body.elems_of(&told.finish());
                Ok(r)
            }
            Some(e) => Err(e.with_extra(told.finish().into_bytes())),
        }
    })
}

fn expected(field: &str, kind: &str, v: &Value<'_>) -> Error {
    Error::type_mismatch(format!("Wrong type for '{field}'. Expected a {kind}, got a {}.", v.type_name()))
}

/// What is looked at in all entries before the first is carried out.
fn check_form(i: usize, v: &Value<'_>) -> Result<()> {
    let refuse = |text: String| Err(Error::new(ErrorCode::IllegalOperation, text));
    let Value::Document(entry) = v else { return Err(expected(&i.to_string(), "object", v)) };
    let op = match entry.get("op") {
        Some(Value::String(op)) => op,
        Some(v) => return Err(expected("op", "string", &v)),
        None => {
            let text = "Wrong type for ''. Expected a string, got a missing.";
            return Err(Error::new(ErrorCode::NoSuchKey, text));
        }
    };
    if op.is_empty() {
        return refuse(format!("\"op\" field value cannot be empty: {i}"));
    }
    match entry.get("ns") {
        None => return refuse(format!("op does not contain required \"ns\" field: {i}")),
        Some(Value::String("")) if op != "n" => {
            return refuse(format!("\"ns\" field value cannot be empty when op type is not 'n': {i}"));
        }
        Some(Value::String(_)) => {}
        Some(v) => return refuse(format!("\"ns\" field is not a string: {i} ({})", v.type_name())),
    }
    if op == "c"
        && let Some(Value::Document(o)) = entry.get("o")
    {
        let name = o.first().map_or("", |e| e.name());
        let known =
            COMMANDS.iter().any(|(n, _)| *n == name) || NOT_HERE.contains(&name) || name == "applyOps";
        if !known {
            return Err(Error::bad_value(format!(
                "Unknown oplog entry command type: {name} Object field: {o}"
            )));
        }
    }
    Ok(())
}

/// One entry.
async fn apply(server: &Server, ctx: &OpCtx, entry: &RawDoc, upsert: bool) -> Result<()> {
    let text = |name: &str| entry.get(name).and_then(|v| v.as_str()).unwrap_or_default();
    let (op, full) = (text("op"), text("ns"));
    if !matches!(op, "i" | "u" | "d" | "c") {
        return Err(Error::bad_value(format!(
            "Enumeration value '{op}' for field 'OplogEntryBase.op' is not a valid value."
        )));
    }
    check_fields(ENTRY, "OplogEntryBase", entry)?;
    let Some(Value::Document(o)) = entry.get("o") else { return Ok(()) };
    if op == "c" {
        let db = full.split_once('.').map_or(full, |(db, _)| db);
        Namespace::new(db, "$cmd")?;
        return command(server, ctx, db, entry, o, upsert).await;
    }
    let Some((db, coll)) = full.split_once('.').filter(|(db, coll)| !db.is_empty() && !coll.is_empty())
    else {
        return Err(Error::new(ErrorCode::InvalidNamespace, format!("invalid ns: {full}")));
    };
    let mut ns = Namespace::new(db, coll)?;
    if coll == SYSTEM_VIEWS {
        return define_view(server, ctx, op, entry, o).await;
    }
    // A view is refused here, whatever is to be done with it.
    if server.access.collection(ctx, &ns)?.is_none() && op != "d" {
        return Err(Error::new(
            ErrorCode::NamespaceNotFound,
            format!("cannot apply insert or update operation on a non-existent namespace {ns}: {entry}"),
        ));
    }
    if let Some(uuid) = uuid_of(entry) {
        ns = server.access.name_of(uuid).ok_or_else(|| {
            let text = format!("Failed to apply operation due to missing collection ({uuid}): {entry}");
            Error::new(ErrorCode::NamespaceNotFound, text)
        })?;
    }
    if server.access.collection(ctx, &ns)?.is_none() {
        return Ok(());
    }
    pando_access::check_writable(&ns)?;
    server.upkeep.admission.before_write(ctx).await?;
    match op {
        "i" => {
            check_id(named(o, entry, "insert")?)?;
            put(server, ctx, &ns, o).await
        }
        "d" => {
            let mut key = DocBuilder::new();
            key.elem(named(o, entry, "delete")?);
            if let Some(last) =
                server.access.internal_collections().remove(&ByCtx(ctx), &ns, &key.finish()).await?
            {
                ctx.wrote(last);
            }
            Ok(())
        }
        _ => {
            if !upsert {
                check_is_there(server, ctx, &ns, entry, o).await?;
            }
            update(server, ctx, &ns, entry, o).await
        }
    }
}

/// Inserts `doc` or replaces the one with its `_id`, in any collection.
async fn put(server: &Server, ctx: &OpCtx, ns: &Namespace, doc: &RawDoc) -> Result<()> {
    ctx.wrote(server.access.internal_collections().put(&ByCtx(ctx), ns, doc).await?);
    Ok(())
}

/// 218 when the document of an update is not there.
async fn check_is_there(
    server: &Server,
    ctx: &OpCtx,
    ns: &Namespace,
    entry: &RawDoc,
    o: &RawDoc,
) -> Result<()> {
    let o2 = entry.get("o2").and_then(|v| v.as_doc()).unwrap_or(RawDoc::empty());
    let id = named(o2, entry, "update")?;
    let mut count = DocBuilder::new();
    count.str("count", ns.coll());
    count.doc("query", |q| {
        q.doc("_id", |is| {
            is.value("$eq", id.value());
        });
    });
    let reply = call(server, ctx, "count", ns.db(), &count.finish()).await?;
    let reply = Encoded { buf: reply.body.into_buffer() };
    if reply.doc().get("n").and_then(|v| v.as_i64()) == Some(0) {
        let kind = if o.elem("_id").is_some() { "non-mod" } else { "mod" };
        let text = format!("Update of {kind} failed: {{ oplogEntry: {entry} }}");
        return Err(Error::new(ErrorCode::UpdateOperationFailed, text));
    }
    Ok(())
}

const SYSTEM_VIEWS: &str = "system.views";

/// An entry about a definition of a view: `{_id: "db.view", viewOn, pipeline, collation}`.
async fn define_view(server: &Server, ctx: &OpCtx, op: &str, entry: &RawDoc, o: &RawDoc) -> Result<()> {
    let key = if op == "u" { entry.get("o2").and_then(|v| v.as_doc()).unwrap_or(o) } else { o };
    let full = named(key, entry, "view")?.value().as_str().unwrap_or_default();
    let (db, view) = full.split_once('.').unwrap_or((full, ""));
    let ns = Namespace::new(db, view)?;
    let mut body = DocBuilder::new();
    if op == "d" {
        body.str("drop", ns.coll());
        return match call(server, ctx, "drop", ns.db(), &body.finish()).await {
            Err(e) if e.code == ErrorCode::NamespaceNotFound => Ok(()),
            done => done.map(drop),
        };
    }
    let exists = server.access.definitions().is_view(&ns);
    let command = if exists { "collMod" } else { "create" };
    body.str(command, ns.coll());
    for e in
        o.iter().filter(|e| matches!(e.name(), "viewOn" | "pipeline") || (!exists && e.name() == "collation"))
    {
        body.elem(e);
    }
    call(server, ctx, command, ns.db(), &body.finish()).await.map(drop)
}

/// The `_id` that says which document is meant.
fn named<'a>(doc: &'a RawDoc, entry: &RawDoc, what: &str) -> Result<pando_bson::Elem<'a>> {
    doc.elem("_id").ok_or_else(|| {
        let text = format!("Failed to apply {what} due to missing _id: {{ oplogEntry: {entry} }}");
        Error::new(ErrorCode::NoSuchKey, text)
    })
}

async fn update(server: &Server, ctx: &OpCtx, ns: &Namespace, entry: &RawDoc, o: &RawDoc) -> Result<()> {
    let o2 = entry.get("o2").and_then(|v| v.as_doc()).unwrap_or(RawDoc::empty());
    let id = named(o2, entry, "update")?;
    let version = o.get("$v").and_then(|v| v.as_i64());
    if version == Some(2) {
        let Some(Value::Document(diff)) = o.get("diff") else {
            return Err(Error::location(
                4_772_603,
                "Expected `diff` field of type object in a delta oplog entry",
            ));
        };
        return patch_by_id(server, ctx, ns, id, diff).await;
    }
    if let Some(new) = o.elem("_id") {
        check_id(new)?;
        if !values_equal(new.value(), id.value()) {
            return Err(id_was_altered(new));
        }
        return put(server, ctx, ns, o).await;
    }
    if let Some(e) = o.iter().find(|e| !e.name_bytes().starts_with(b"$")) {
        return Err(Error::failed_to_parse(format!(
            "Unknown modifier: {}. Expected a valid update modifier or pipeline-style update specified as an array",
            e.name()
        )));
    }
    let mut body = DocBuilder::new();
    body.str("update", ns.coll());
    body.array("updates", |a| {
        a.doc(|d| {
            // The document with this very _id, also where the _id looks like a condition.
            d.doc("q", |q| {
                q.doc("_id", |is| {
                    is.value("$eq", id.value());
                });
            });
            d.doc("u", |u| {
                for e in o.iter().filter(|e| e.name() != "$v") {
                    u.elem(e);
                }
            });
            d.bool("upsert", true);
        });
    });
    body.bool("bypassDocumentValidation", true);
    let reply = call(server, ctx, "update", ns.db(), &body.finish()).await?;
    let reply = Encoded { buf: reply.body.into_buffer() };
    let Some(Value::Array(errors)) = reply.doc().get("writeErrors") else { return Ok(()) };
    let Some(Value::Document(first)) = errors.first().map(|e| e.value()) else { return Ok(()) };
    let code = first.get("code").and_then(|v| v.as_i64()).unwrap_or(1);
    let text = first.get("errmsg").and_then(|v| v.as_str()).unwrap_or_default();
    Err(Error::new(ErrorCode(code as i32), text.to_owned()))
}

/// A `c` entry. With a UUID it is about that collection, whatever its name is by now.
async fn command(
    server: &Server,
    ctx: &OpCtx,
    db: &str,
    entry: &RawDoc,
    o: &RawDoc,
    upsert: bool,
) -> Result<()> {
    let name = o.first().map_or("", |e| e.name());
    if name == "applyOps" {
        let list = o.first().map_or(Value::Null, |e| e.value());
        return apply_all(server, ctx, list, upsert).await.map(drop);
    }
    // Where views are kept is there as soon as there is a view.
    if name == "create" && o.first().and_then(|e| e.value().as_str()) == Some(SYSTEM_VIEWS) {
        return Ok(());
    }
    let Some((_, expected)) = COMMANDS.iter().find(|(n, _)| *n == name) else {
        let text = format!("The {name} operation is not supported in applyOps mode");
        return Err(Error::new(ErrorCode::CommandNotSupported, text));
    };
    let done = match (name, uuid_of(entry)) {
        ("create", Some(uuid)) => create_as(server, ctx, db, o, uuid).await,
        ("create", None) => {
            create::run_as(server, ctx, request("create", db, o), Some(create::As::Told)).await
        }
        ("drop" | "collMod" | "dropIndexes" | "deleteIndexes", Some(uuid)) => {
            let Some(ns) = server.access.name_of(uuid) else { return Ok(()) };
            let mut body = DocBuilder::new();
            body.str(name, ns.coll());
            o.iter().skip(1).for_each(|e| {
                body.elem(e);
            });
            call(server, ctx, name, ns.db(), &body.finish()).await
        }
        _ => call(server, ctx, name, db, o).await,
    };
    match done {
        Err(e) if expected.contains(&e.code) => Ok(()),
        done => done.map(drop),
    }
}

/// The collection that an entry is about.
fn uuid_of(entry: &RawDoc) -> Option<Uuid> {
    match entry.get("ui") {
        Some(Value::Binary { bytes, .. }) => Uuid::from_slice(bytes),
        _ => None,
    }
}

/// Creates a collection that keeps the UUID it had elsewhere (`mongorestore --preserveUUID`). A collection that has it already gets
/// the name; one that has the name makes way.
async fn create_as(server: &Server, ctx: &OpCtx, db: &str, o: &RawDoc, uuid: Uuid) -> Result<Reply> {
    if uuid == Uuid([0; 16]) {
        let text = format!("Invalid UUID in applyOps create command: {uuid}");
        return Err(Error::new(ErrorCode::InvalidUUID, text));
    }
    if o.get("viewOn").is_some() {
        let mut options = DocBuilder::new();
        o.iter().skip(1).for_each(|e| {
            options.elem(e);
        });
        options.value("uuid", Value::Binary { subtype: 4, bytes: &uuid.0 });
        let text =
            format!("The field 'uuid' is not a valid collection option. Options: {}", options.finish());
        return Err(Error::new(ErrorCode::InvalidOptions, text));
    }
    let ns = Namespace::new(db, o.first().and_then(|e| e.value().as_str()).unwrap_or_default())?;
    let there = server.access.name_of(uuid);
    match &there {
        Some(other) if other.db() != db => {
            return Err(Error::location(40655, format!("Invalid name {ns} for UUID {uuid}")));
        }
        Some(same) if *same == ns => return Ok(Reply::new()),
        _ => {}
    }
    if server.access.definitions().collection(&ns).is_some() {
        let suffix = server.access.maintenance().new_uuid().to_string();
        let aside = Namespace::new(db, &format!("tmp{}.create", suffix.get(..5).unwrap_or_default()))?;
        ctx.wrote(server.access.rename_collection(ctx, &ns, &aside, false).await?);
    }
    match there {
        Some(other) => {
            ctx.wrote(server.access.rename_collection(ctx, &other, &ns, false).await?);
            Ok(Reply::new())
        }
        None => create::run_as(server, ctx, request("create", db, o), Some(create::As::Whole(uuid))).await,
    }
}

/// Another command, as part of this one.
async fn call(server: &Server, ctx: &OpCtx, name: &str, db: &str, body: &RawDoc) -> Result<Reply> {
    let Some((spec, handler)) = server.registry.find(name).and_then(|c| Some((c, c.handler?))) else {
        return Err(Error::new(ErrorCode::CommandNotFound, format!("no such command: '{name}'")));
    };
    handler(server, ctx, request(spec.name, db, body)).await
}

fn request<'a>(name: &'static str, db: &'a str, body: &'a RawDoc) -> Request<'a> {
    Request { name, invoked_as: name, db, body, sequences: &[], exhaust_allowed: false, legacy: false }
}

/// Applies an oplog entry's `diff` to the document with this `_id`, or to one that has nothing else.
async fn patch_by_id(
    server: &Server,
    ctx: &OpCtx,
    ns: &Namespace,
    id: Elem<'_>,
    diff: &RawDoc,
) -> Result<()> {
    let mut key = DocBuilder::new();
    key.elem(id);
    let key = key.finish();
    let interrupt = ByCtx(ctx);
    let internal = server.access.internal_collections();
    let changed = internal.change(&interrupt, ns, &key, LogAs::Replacement, |old| {
        let new = pando_oplog::diff::apply(old.unwrap_or(&key), diff)?;
        check_same_id(id, &new)?;
        Ok(Some(new))
    });
    if let Some(last) = changed.await? {
        ctx.wrote(last);
    }
    Ok(())
}

/// A difference may not make another document of it: rows are found by their `_id`.
fn check_same_id(id: Elem<'_>, new: &RawDoc) -> Result<()> {
    match new.elem("_id") {
        Some(e) if values_equal(e.value(), id.value()) => Ok(()),
        Some(e) => Err(id_was_altered(e)),
        None => {
            Err(Error::new(ErrorCode::ImmutableField, "an update may not remove the (immutable) field '_id'"))
        }
    }
}

/// 66.
fn id_was_altered(id: Elem<'_>) -> Error {
    let text = format!(
        "After applying the update, the (immutable) field '_id' was found to have been altered to {id:#}"
    );
    Error::new(ErrorCode::ImmutableField, text)
}
