//! Single documents of the `local` database and settings of the server itself.

use crate::Server;
use crate::feature_version::{FEATURE_VERSION, FeatureVersion};
use crate::rw_defaults::ClusterWide;
use crate::writes::ByCtx;
use pando_access::LogAs;
use pando_base::{Error, ErrorCode, Lsid, Namespace, OpTime, Result, limits};
use pando_bson::{DocBuilder, Elem, RawDoc, Value, values_equal};
use pando_command::OpCtx;
use pando_env::Component;
use pando_oplog::entry::{EntryView, OpType};
use pando_oplog::session::lsid_of;
use pando_session::retryable::{Done, Image, Kind};
use pando_session::transaction::Outcome;
use std::ops::Bound;

impl Server {
    /// Inserts `doc` or replaces the one with its `_id`, in any collection.
    pub(crate) async fn put_by_id(&self, ctx: &OpCtx, ns: &Namespace, doc: &RawDoc) -> Result<()> {
        let last = self.internal.put(&ByCtx(ctx), ns, doc).await?;
        self.wrote(ctx, last);
        Ok(())
    }

    /// Removes the document with this `_id`, if there is one.
    pub(crate) async fn remove_by_id(&self, ctx: &OpCtx, ns: &Namespace, id: Elem<'_>) -> Result<()> {
        let mut key = DocBuilder::new();
        key.elem(id);
        if let Some(last) = self.internal.remove(&ByCtx(ctx), ns, &key.finish()).await? {
            self.wrote(ctx, last);
        }
        Ok(())
    }
    /// Applies an oplog entry's `diff` to the document with this `_id`, or to one that has nothing else.
    pub(crate) async fn patch_by_id(
        &self,
        ctx: &OpCtx,
        ns: &Namespace,
        id: Elem<'_>,
        diff: &RawDoc,
    ) -> Result<()> {
        let mut key = DocBuilder::new();
        key.elem(id);
        let key = key.finish();
        let interrupt = ByCtx(ctx);
        let changed = self.internal.change(&interrupt, ns, &key, LogAs::Replacement, |old| {
            let new = pando_oplog::diff::apply(old.unwrap_or(&key), diff)?;
            check_same_id(id, &new)?;
            Ok(Some(new))
        });
        if let Some(last) = changed.await? {
            self.wrote(ctx, last);
        }
        Ok(())
    }

    /// Reads back what `setDefaultRWConcern` and `setFeatureCompatibilityVersion` stored.
    pub(crate) fn restore_settings(&self) -> Result<()> {
        let stored = self.internal.named(&settings_ns(), RW_DEFAULTS)?;
        let mut v = stored.map_or_else(ClusterWide::default, |doc| ClusterWide::from_doc(&doc));
        v.local_wall_ms = self.env.clock.wall_ms();
        self.rw_defaults.set(v);
        let stored = self.internal.named(&versions_ns(), FEATURE_VERSION)?;
        self.set_feature_version(stored.and_then(|d| FeatureVersion::from_doc(&d)).unwrap_or_default());
        self.restore_user_writes()?;
        self.restore_cluster_parameters()
    }
    pub(crate) async fn save_rw_defaults(&self, ctx: &OpCtx, v: &ClusterWide) -> Result<()> {
        self.put_by_id(ctx, &settings_ns(), &v.to_doc(RW_DEFAULTS)).await
    }

    /// Rebuilds the table of carried-out retryable writes from what was kept of it, and from all that the oplog says since.
    /// Without the former from as much of the oplog as sessions live; what is older is refused when it is asked for.
    pub(crate) fn restore_retryable_writes(&self) -> Result<()> {
        let now = self.env.clock.mono();
        let oldest = self.env.clock.wall_ms() - limits::RETRY_RESTORE_AGE_MS;
        let kept = self.kept_sessions()?;
        let known = kept.as_ref().map(|(kept, _)| kept.upto.ts);
        let mut cursor = self.storage.log().read(Bound::Unbounded, true);
        let mut read = 0u64;
        while let Some((_, bytes)) = cursor.next()?.filter(|(ts, _)| Some(*ts) > known) {
            let e = EntryView::parse(RawDoc::trusted(&bytes))?;
            if known.is_none() && e.wall < oldest {
                break;
            }
            read += 1;
            if let Some((id, number, outcome)) = transaction_of(&e) {
                self.retryable.learn(id, number, outcome, e.op_time(), now);
                continue;
            }
            let Some((id, txn_number, stmts)) = statements_of(&e) else { continue };
            let Some(done) = done_of(&e) else { continue };
            self.retryable.restore(id, txn_number, &stmts, &done, prev_of(&e), now);
        }
        let sessions = kept.as_ref().map_or(0, |(kept, _)| kept.sessions.len());
        for (doc, upto) in kept.iter().flat_map(|(kept, upto)| kept.sessions.iter().map(move |d| (d, *upto)))
        {
            self.retryable.restore_kept(doc, upto, now);
        }
        self.retryable.end_restore();
        self.env.log.info(Component::Recovery, 9100032, "What sessions have done is known again", |a| {
            a.u64("entriesRead", read).u64("sessionsKept", sessions as u64);
        });
        self.sessions_known.set();
        self.note_sessions_known()
    }
}

impl Server {
    /// Entries of retryable writes came from the primary: this node must know them should it become one.
    pub(crate) fn note_applied_statements(&self, entries: &[EntryView<'_>]) {
        let now = self.env.clock.mono();
        for e in entries {
            if let Some((id, number, outcome)) = transaction_of(e) {
                self.retryable.learn(id, number, outcome, e.op_time(), now);
            } else if let (Some((id, txn_number, stmts)), Some(done)) = (statements_of(e), done_of(e)) {
                self.retryable.applied(id, txn_number, &stmts, &done, now);
            }
        }
    }
}

/// The session's entry before this one.
fn prev_of(e: &EntryView<'_>) -> OpTime {
    let prev = |name: &str| e.doc.get("prevOpTime").and_then(|v| v.as_doc()?.get(name));
    match (prev("ts"), prev("t").and_then(|t| t.as_i64())) {
        (Some(Value::Timestamp(ts)), Some(t)) if !ts.is_zero() => OpTime::new(ts, t),
        _ => OpTime::NULL,
    }
}

/// What a document entry did, for the table of carried-out statements.
fn done_of(e: &EntryView<'_>) -> Option<Done> {
    let kind = match e.op {
        OpType::Insert => Kind::Insert,
        OpType::Update => Kind::Update,
        OpType::Delete => Kind::Delete,
        OpType::Command | OpType::Noop => return None,
    };
    // The `_id` of an inserted document is in the entry, for the few who will ask.
    Some(Done { kind, inserted_id: None, image: e.needs_image.map(Image::in_log), op_time: e.op_time() })
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
pub(crate) fn id_was_altered(id: Elem<'_>) -> Error {
    let text = format!(
        "After applying the update, the (immutable) field '_id' was found to have been altered to {id:#}"
    );
    Error::new(ErrorCode::ImmutableField, text)
}

fn settings_ns() -> Namespace {
    Namespace::unchecked("config", "settings")
}

pub(crate) fn versions_ns() -> Namespace {
    Namespace::unchecked("admin", "system.version")
}

/// `_id` of the document in `config.settings`.
const RW_DEFAULTS: &str = "ReadWriteConcernDefaults";

/// Session, number and outcome of an entry that belongs to a transaction.
fn transaction_of(e: &EntryView<'_>) -> Option<(Lsid, i64, Outcome)> {
    let first = e.command().filter(|_| e.op == OpType::Command)?;
    let is_set = |name: &str| e.o.get(name).is_some_and(|v| v.is_truthy());
    let outcome = match first.name() {
        "applyOps" if is_set("partialTxn") => Outcome::Partial,
        "applyOps" if is_set("prepare") => Outcome::Prepared,
        "applyOps" | "commitTransaction" => Outcome::Committed,
        "abortTransaction" => Outcome::Aborted,
        _ => return None,
    };
    let (id, number) = session_of(e)?;
    Some((id, number, outcome))
}

/// Session and number of an entry.
fn session_of(e: &EntryView<'_>) -> Option<(Lsid, i64)> {
    Some((lsid_of(e.lsid?)?, e.txn_number?))
}

/// Session, number and statements of an entry that belongs to a retryable write.
fn statements_of(e: &EntryView<'_>) -> Option<(Lsid, i64, Vec<i32>)> {
    let (id, number) = session_of(e)?;
    let stmts = match e.stmt_id? {
        Value::Array(ids) => ids.iter().filter_map(|e| e.value().as_i64()).map(|n| n as i32).collect(),
        one => vec![one.as_i64()? as i32],
    };
    Some((id, number, stmts))
}
