//! Views: documents in `<db>.system.views`, parsed into the catalog whenever that collection changes.

use crate::Catalog;
use crate::schema::collection::{Collection, View};
use crate::schema::names::SYSTEM_VIEWS;
use crate::schema::options::CollectionOptions;
use crate::schema::snapshot::{CatalogSnapshot, Named};
use crate::write::observer::{Defined, Deleted, Inserted, OpObserver, Updated};
use crate::write::op::WriteOp;
use crate::write::unit::WriteUnit;
use pando_base::redaction::WithCode;
use pando_base::{Error, ErrorCode, Namespace, Result, limits};
use pando_bson::{ArrayBuilder, DocBuf, DocBuilder, RawDoc};
use pando_storage::{Dir, ReadAt};
use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

/// What a view amounts to: one pipeline on a collection.
#[derive(Clone, Debug)]
pub struct ResolvedView {
    pub ns: Namespace,
    /// An array of stages, as bytes.
    pub pipeline: DocBuf,
    /// Full form; `None` is the simple collation.
    pub collation: Option<DocBuf>,
}

impl CatalogSnapshot {
    /// Follows views down to the collection they stand on. `None` when `ns` is not a view.
    pub fn resolve_view(&self, ns: &Namespace) -> Result<Option<ResolvedView>> {
        let Some(view) = self.view(ns) else { return Ok(None) };
        let collation = view.collation.clone();
        let mut stack: Vec<&Arc<View>> = vec![view];
        while let Some(below) = stack.last().and_then(|v| self.view(&v.on)) {
            // A view that may be defined, as the last of so many, cannot be read for all that.
            if stack.len() + 1 >= limits::VIEW_DEPTH_MAX {
                return Err(Error::new(
                    ErrorCode::ViewDepthLimitExceeded,
                    format!(
                        "View depth too deep or view cycle detected; maximum depth is {}",
                        limits::VIEW_DEPTH_MAX
                    ),
                ));
            }
            stack.push(below);
        }
        let mut pipeline = ArrayBuilder::new();
        for v in stack.iter().rev() {
            for stage in v.pipeline.iter() {
                pipeline.value(stage.value());
            }
        }
        if pipeline.byte_len() > limits::VIEW_PIPELINE_BYTES_MAX {
            return Err(Error::new(
                ErrorCode::ViewPipelineMaxSizeExceeded,
                "View pipeline exceeds maximum size; maximum size is 16777216",
            ));
        }
        let ns = stack.last().map_or_else(|| ns.clone(), |v| v.on.clone());
        Ok(Some(ResolvedView { ns, pipeline: pipeline.finish(), collation }))
    }
}

/// Checks everything about a definition.
pub(crate) fn check(snap: &CatalogSnapshot, view: &View) -> Result<()> {
    check_pipeline(view)?;
    check_graph(snap, view)
}

/// Error when no view may stand on what has this name.
pub(crate) fn check_target(on: &str) -> Result<()> {
    match on.contains('$') {
        false => Ok(()),
        true => Err(Error::new(ErrorCode::InvalidNamespace, format!("invalid name for 'viewOn': {on}"))),
    }
}

/// Checks a view definition against the views below it (those it stands on and those its pipeline joins) and above it: all
/// have one collation, there is no cycle, and no chain through the view is too long.
pub(crate) fn check_graph(snap: &CatalogSnapshot, view: &View) -> Result<()> {
    let others = Others::of(snap, view);
    check_collations(snap, view, &others)?;
    check_cycles(snap, view)?;
    let levels = levels_below(snap, view) + 1 + others.levels_above(view);
    if levels > limits::VIEW_DEPTH_MAX {
        return Err(Error::new(
            ErrorCode::ViewDepthLimitExceeded,
            format!("View depth limit exceeded; maximum depth is {}", limits::VIEW_DEPTH_MAX),
        ));
    }
    Ok(())
}

/// The other views of a view's database, each with what it reads.
struct Others(Vec<(Arc<View>, BTreeSet<Namespace>)>);

impl Others {
    fn of(snap: &CatalogSnapshot, view: &View) -> Others {
        let others = snap.views(view.ns.db()).into_iter().filter(|v| v.ns != view.ns);
        Others(others.map(|v| (v.clone(), below(&v).collect())).collect())
    }
    /// Views one upon the other, above `view`, in the longest chain of them.
    fn levels_above(&self, view: &View) -> usize {
        levels(BTreeSet::from([view.ns.clone()]), |level| {
            let reads = self.0.iter().filter(|(_, reads)| !reads.is_disjoint(level));
            reads.map(|(v, _)| v.ns.clone()).collect()
        })
    }
}

/// The same below it.
fn levels_below(snap: &CatalogSnapshot, view: &View) -> usize {
    let views = |names: &mut dyn Iterator<Item = Namespace>| -> BTreeSet<Namespace> {
        names.filter(|ns| snap.view(ns).is_some()).collect()
    };
    let first = views(&mut below(view));
    match first.is_empty() {
        true => 0,
        false => {
            1 + levels(first, |l| views(&mut l.iter().filter_map(|ns| snap.view(ns)).flat_map(|v| below(v))))
        }
    }
}

/// How often `next` leads to something; more than enough to be too much ends it.
fn levels(first: BTreeSet<Namespace>, next: impl Fn(&BTreeSet<Namespace>) -> BTreeSet<Namespace>) -> usize {
    let levels = std::iter::successors(Some(first), |l| Some(next(l)).filter(|next| !next.is_empty()));
    levels.skip(1).take(limits::VIEW_DEPTH_MAX).count()
}

fn check_collations(snap: &CatalogSnapshot, view: &View, others: &Others) -> Result<()> {
    let conflict = |text| Err(Error::new(ErrorCode::OptionNotSupportedOnView, text));
    for v in below(view).filter(|ns| *ns != view.ns).filter_map(|ns| snap.view(&ns)) {
        if v.collation != view.collation {
            return conflict(format!("View {} has conflicting collation with view {}", view.ns, v.ns));
        }
    }
    for (v, reads) in &others.0 {
        if v.collation != view.collation && reads.contains(&view.ns) {
            let text = "has a collation that does not match the collation of view";
            return conflict(format!("View {} {text} {}", view.ns, v.ns));
        }
    }
    Ok(())
}

fn check_cycles(snap: &CatalogSnapshot, view: &View) -> Result<()> {
    let mut seen = BTreeSet::new();
    let mut open: Vec<Vec<Namespace>> = below(view).map(|ns| vec![view.ns.clone(), ns]).collect();
    open.reverse();
    while let Some(mut path) = open.pop() {
        let Some(last) = path.last().cloned() else { continue };
        if last == view.ns {
            // MongoDB names the view at both ends and what follows the first.
            path.push(path[1].clone());
            let names: Vec<String> = path.iter().map(Namespace::to_string).collect();
            return Err(Error::new(
                ErrorCode::GraphContainsCycle,
                format!("View cycle detected: {}", names.join(" => ")),
            ));
        }
        if let Some(v) = snap.view(&last)
            && seen.insert(last)
        {
            open.extend(below(v).map(|ns| path.iter().cloned().chain([ns]).collect::<Vec<_>>()));
        }
    }
    Ok(())
}

/// What a view reads: the collection or view it stands on first.
fn below(view: &View) -> impl Iterator<Item = Namespace> + '_ {
    let mut joined = BTreeSet::new();
    pando_query::stage::involved(&view.pipeline, &mut joined);
    let joined = joined.into_iter().map(|name| Namespace::unchecked(view.ns.db(), name));
    std::iter::once(view.on.clone()).chain(joined)
}

/// Stages that make documents of their own, for a database and not for a collection.
const OF_DATABASES: [&str; 3] = ["$currentOp", "$listLocalSessions", "$documents"];

/// Stages that a view may not have: they write, or stand on something else than a collection.
fn check_pipeline(view: &View) -> Result<()> {
    let invalid = |code, why: String| {
        let text = format!("Invalid pipeline for view {} :: caused by :: {why}", view.ns);
        Err(Error::new(code, text))
    };
    for (i, stage) in view.pipeline.iter().enumerate() {
        let name = stage.value().as_doc().and_then(|d| d.first()).map_or("", |e| e.name());
        if name == "$changeStream" {
            let why = "$changeStream cannot be used in a view definition".to_owned();
            return invalid(ErrorCode::OptionNotSupportedOnView, why);
        }
        if OF_DATABASES.contains(&name) {
            let admin = if name == "$currentOp" { "the 'admin'" } else { "a" };
            let why = format!("{name} must be run against {admin} database with {{aggregate: 1}}");
            return invalid(ErrorCode::InvalidNamespace, why);
        }
        if matches!(name, "$out" | "$merge") {
            return Err(Error::new(
                ErrorCode::OptionNotSupportedOnView,
                format!(
                    "Invalid pipeline for view {ns} :: caused by :: The aggregation stage {name} in location {i} of the \
                     pipeline cannot be used in the view definition of {ns} because it writes to disk",
                    ns = view.ns
                ),
            ));
        }
    }
    pando_query::stage::Pipeline::check_definition(&view.pipeline).map_err(|e| match e.code.0 {
        // A stage that there is not is none of a view's.
        40324 => e,
        _ => e.context(format_args!("Invalid pipeline for view {}", view.ns)),
    })
}

/// A view from the options of `create`.
pub(crate) fn from_options(ns: &Namespace, options: &CollectionOptions) -> Result<View> {
    let def = options.view.as_ref().ok_or_else(|| Error::internal("options without a view"))?;
    let collation = match &options.collation {
        Some(c) => pando_index::full_collation(c)?,
        None => None,
    };
    let view = View {
        ns: ns.clone(),
        on: Namespace::unchecked(ns.db(), &def.view_on),
        pipeline: def.pipeline.clone(),
        collation,
    };
    check_pipeline(&view)?;
    Ok(view)
}

/// The document in `system.views`.
pub(crate) fn to_doc(view: &View) -> DocBuf {
    let mut b = DocBuilder::new();
    b.str("_id", view.ns.as_str());
    b.str("viewOn", view.on.coll());
    b.raw_array("pipeline", &view.pipeline);
    if let Some(c) = &view.collation {
        b.raw_doc("collation", c);
    }
    b.finish()
}

fn from_doc(doc: &RawDoc) -> Option<View> {
    let (db, name) = doc.get("_id")?.as_str()?.split_once('.')?;
    Some(View {
        ns: Namespace::unchecked(db, name),
        on: Namespace::unchecked(db, doc.get("viewOn")?.as_str()?),
        pipeline: doc.get("pipeline")?.as_array()?.to_buf(),
        collation: doc.get("collation").and_then(|v| v.as_doc()).map(|d| d.to_buf()),
    })
}

impl Catalog {
    /// Reads a database's views again.
    pub(crate) fn reload_views(&self, db: &str, at: ReadAt) -> Result<()> {
        let mut views = Vec::new();
        if let Some(coll) = self.lookup(&Namespace::unchecked(db, SYSTEM_VIEWS)) {
            let txn = self.storage().begin(at)?;
            let mut cursor = txn.scan(coll.records, Bound::Unbounded, Bound::Unbounded, Dir::Forward)?;
            while let Some((_, doc)) = cursor.next()? {
                views.extend(from_doc(RawDoc::trusted(&doc)));
            }
        }
        self.publish(|s| {
            for old in s.views(db) {
                s.remove_view(&old.ns);
            }
            for view in views {
                if s.collection(&view.ns).is_none() {
                    s.put(Named::View(Arc::new(view)));
                }
            }
        });
        Ok(())
    }
}

/// Keeps the parsed views in step with `system.views`.
pub(crate) struct ViewReloader;

impl ViewReloader {
    fn changed(unit: &mut WriteUnit, coll: &Collection) {
        if coll.ns.coll() == SYSTEM_VIEWS {
            let (catalog, db) = (unit.catalog.clone(), coll.ns.db().to_owned());
            let at = if unit.is_applying() { ReadAt::Applied } else { ReadAt::Latest };
            unit.after_commit(move |_| {
                if let Err(e) = catalog.reload_views(&db, at) {
                    use pando_env::log::Component;
                    catalog.env().log.error(Component::Storage, 20326, "Could not load view catalog", |a| {
                        a.str("db", &db);
                        a.data("error", &WithCode(&e));
                    });
                }
            });
        }
    }
}

impl OpObserver for ViewReloader {
    fn inserted(&self, unit: &mut WriteUnit, _op: &WriteOp<'_>, e: &Inserted<'_>) -> Result<()> {
        Self::changed(unit, e.coll);
        Ok(())
    }
    fn updated(&self, unit: &mut WriteUnit, _op: &WriteOp<'_>, e: &Updated<'_>) -> Result<()> {
        Self::changed(unit, e.coll);
        Ok(())
    }
    fn deleted(&self, unit: &mut WriteUnit, _op: &WriteOp<'_>, e: &Deleted<'_>) -> Result<()> {
        Self::changed(unit, e.coll);
        Ok(())
    }
    fn defined(&self, unit: &mut WriteUnit, e: &Defined<'_>) -> Result<()> {
        match e {
            Defined::Dropped { coll } => Self::changed(unit, coll),
            Defined::Renamed { from, .. } => Self::changed(unit, from),
            _ => {}
        }
        Ok(())
    }
}
