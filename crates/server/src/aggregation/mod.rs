//! Aggregations: from the arguments to a cursor.
//!
//! ```text
//! names: collection, view (its pipeline comes first) or none ─► Pipeline ─► what a find plan can do is planned
//! as a find, the remaining stages pull from it
//! ```

pub(crate) mod collection_stats;
pub(crate) mod for_merge;
pub(crate) mod foreign_collections;
pub(crate) mod sources;
pub(crate) mod writing;

use crate::change_stream::{self, ChangeStreams};
use crate::cursors::body::CursorBody;
use crate::cursors::pipeline::{ERROR_CONTEXT, Feed, PipelineCursor};
use crate::cursors::query::QueryCursor;
use crate::read::Reads;
use crate::sessions::LogicalSessions;
use crate::statistics::operations::Operations;
use collection_stats::CollectionStatsStages;
use foreign_collections::ForeignCollections;
use pando_access::{Acquisition, Below, Collection, ResolvedView, View, is_a_view};
use pando_base::{Error, ErrorCode, Namespace, Result};
use pando_bson::{ArrayBuilder, DocBuf, DocBuilder, RawDoc};
use pando_command::OpCtx;
use pando_query::QueryCtx;
use pando_query::collation::Collation;
use pando_query::ctx::TextIndex;
use pando_query::matcher::Matcher;
use pando_query::plan::{Hint, Query};
use pando_query::source::Source;
use pando_query::stage::{
    Glance, NOT_FIRST, NOT_LAST, Pipeline, PipelineSource, RunEnv, Sink, check_first_stage,
    check_in_transaction, check_places, first_stage, involved, place_of_first,
};
use pando_query::timeseries::{TimeSeries, key_on_buckets};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What an aggregation is about.
pub(crate) struct AggSpec<'a> {
    /// As the client named it; `db.$cmd.aggregate` without a collection.
    pub(crate) ns: Namespace,
    /// An array of stages.
    pub(crate) pipeline: Cow<'a, RawDoc>,
    pub(crate) collation: Option<&'a RawDoc>,
    pub(crate) let_vars: Option<&'a RawDoc>,
    pub(crate) hint: Option<Hint>,
    pub(crate) allow_disk_use: Option<bool>,
    /// A router merges the rows with those of other shards (`needsMerge`).
    pub(crate) for_merge: bool,
    /// What the pipeline may contain.
    pub(crate) seen: Glance,
}

/// Names resolved, stages compiled.
pub(crate) struct Aggregation {
    /// Where the documents are.
    pub(crate) coll: Option<Acquisition>,
    pub(crate) below: Namespace,
    pub(crate) view: Option<ResolvedView>,
    /// The whole pipeline as an array: the view's stages, then the client's.
    pub(crate) raw: DocBuf,
    pipeline: Pipeline,
    q: QueryCtx,
    hint: Option<Hint>,
    allow_disk_use: Option<bool>,
    for_merge: bool,
}

/// The name a pipeline without a collection goes by.
pub(crate) fn collectionless(db: &str) -> Namespace {
    Namespace::unchecked(db, "$cmd.aggregate")
}

/// What is wrong with a pipeline is told behind what is wrong with the targets of its sinks: places of stages, the variables of a
/// `$merge`, and all that is looked at once stages are parsed.
fn is_behind_targets(e: &Error) -> bool {
    matches!(e.code.0, NOT_FIRST | NOT_LAST | 31441 | 51047 | 40600 | 51199 | 51273 | 40218 | 40603)
        || ["Failed to optimize", "cannot use sortKey"].iter().any(|text| e.message.starts_with(text))
}

/// A change stream is asked for, wherever it stands.
pub(crate) fn watches(pipeline: &RawDoc) -> bool {
    let is_watch = |stage: &RawDoc| stage.first().is_some_and(|e| e.name_bytes() == b"$changeStream");
    pipeline.iter().any(|s| s.value().as_doc().is_some_and(is_watch))
}

/// 40602: the stages of a view come before those of the client.
fn only_first(pipeline: &RawDoc) -> Error {
    let first = pipeline.iter().next();
    let name = first.and_then(|e| e.value().as_doc()?.first()).map_or("", |e| e.name());
    Error::location(NOT_FIRST, format!("{name} is only valid as the first stage in a pipeline"))
}

/// First stages outside Stable API version 1 (323), among the stages of a view, which are not parsed.
pub(crate) fn check_stable_pipeline(stages: &RawDoc) -> Result<()> {
    const SOURCES: &[&str] =
        &["$indexStats", "$listLocalSessions", "$listSessions", "$planCacheStats", "$currentOp"];
    let first = stages.first().and_then(|s| s.value().as_doc()).and_then(RawDoc::first);
    match first.filter(|stage| SOURCES.contains(&stage.name())) {
        Some(stage) => Err(Error::new(
            ErrorCode::APIStrictError,
            format!("{} is not allowed with 'apiStrict: true' in API Version 1", stage.name()),
        )),
        None => Ok(()),
    }
}

/// 167 when `given` is not the view's own collation. The view of a time series takes any, as a collection does.
fn check_view_collation(given: &RawDoc, view: &ResolvedView, is_series: bool) -> Result<()> {
    let own = view.collation.as_deref().map(Collation::stored).transpose()?.flatten();
    if Collation::parse(given)? == own || is_series {
        return Ok(());
    }
    Err(Error::new(ErrorCode::OptionNotSupportedOnView, "Cannot override a view's default collation"))
}

/// What aggregations are carried out with.
pub(crate) struct Aggregations {
    pub(crate) reads: Arc<Reads>,
    pub(crate) sessions: Arc<LogicalSessions>,
    pub(crate) operations: Arc<Operations>,
    pub(crate) change_streams: Arc<ChangeStreams>,
    pub(crate) about: Arc<CollectionStatsStages>,
}

impl Aggregations {
    /// Resolves names and compiles stages.
    pub(crate) fn prepare(&self, ctx: &OpCtx, spec: AggSpec<'_>) -> Result<Aggregation> {
        let at = self.reads.at(self.reads.point(ctx));
        let found = match first_stage(&spec.pipeline) {
            "$collStats" => self.reads.access.read_itself(ctx, &spec.ns, at)?,
            _ => self.reads.access.read_below(ctx, &spec.ns, at)?,
        };
        let Below { coll, ns: below, view } = found;
        let (named, view) = view.unzip();
        let is_series = view.is_some() && coll.as_ref().is_some_and(|c| c.options.time_series.is_some());
        if let Some(v) = &view {
            if spec.seen.watches && watches(&spec.pipeline) {
                return Err(named.map_or_else(|| on_view(&spec.ns), |v| is_a_view(&v)));
            }
            spec.collation.map(Collation::parse).transpose()?;
            // What is known of the view itself is no matter of collations.
            match spec.collation {
                Some(given) if first_stage(&spec.pipeline) != "$collStats" => {
                    check_view_collation(given, v, is_series)?;
                }
                _ => {}
            }
        }
        let q = self.ctx_of(ctx, coll.as_deref(), view.as_ref(), is_series, &spec)?;
        // What a transaction does not go with is told before.
        if spec.seen.is_about_processes && !ctx.in_txn() {
            check_places(&spec.ns, &spec.pipeline, &q)?;
        }
        let parse = match view {
            Some(_) => Pipeline::parse_on_view,
            None if spec.for_merge => Pipeline::parse_forwarded,
            None => Pipeline::parse,
        };
        let pipeline = parse(&spec.pipeline, &q);
        // Who does not write leaves it to the primary.
        if spec.seen.writes
            && self.reads.replication.member.accepts_writes()
            && pipeline.as_ref().err().is_none_or(is_behind_targets)
        {
            writing::check_targets(&self.reads.access, spec.ns.db(), &spec.pipeline, &q)?;
        }
        // What is only known once stages are optimized comes behind that.
        if pipeline.as_ref().map_or_else(|e| e.message.starts_with("Failed to optimize"), |_| true) {
            self.check_collations(ctx, &spec, pipeline.as_ref().ok().and_then(Pipeline::sink), &q)?;
        }
        let pipeline = pipeline.map_err(|e| place_of_first(&spec.ns, &spec.pipeline, e))?;
        if let (Some(v), PipelineSource::Documents(_)) = (&view, pipeline.source())
            && !v.pipeline.is_empty()
        {
            return Err(only_first(&spec.pipeline));
        }
        check_stages(ctx, &spec, pipeline.source())?;
        let meant =
            view.as_ref().map(|v| OnView::of(&spec, pipeline.source(), v, named, is_series)).transpose()?;
        let AggSpec { ns, pipeline: raw, hint, allow_disk_use, for_merge, .. } = spec;
        let raw = raw.into_owned();
        let agg = Aggregation { coll, below, view, raw, pipeline, q, hint, allow_disk_use, for_merge };
        match meant {
            None | Some(OnView::Series) => Ok(agg),
            Some(OnView::SeriesItself) => Ok(Aggregation { below: ns, ..agg }),
            Some(OnView::Itself) => Ok(Aggregation { coll: None, below: ns, view: None, ..agg }),
            Some(OnView::Below) => agg.behind_view(),
        }
    }

    /// 167 where a view that is read or written besides has another collation.
    fn check_collations(
        &self,
        ctx: &OpCtx,
        spec: &AggSpec<'_>,
        sink: Option<&Sink>,
        q: &QueryCtx,
    ) -> Result<()> {
        let (db, mut names) = (spec.ns.db(), BTreeSet::new());
        if spec.seen.reads_others {
            involved(&spec.pipeline, &mut names);
        }
        for ns in names.iter().filter_map(|name| Namespace::new(db, name).ok()) {
            self.reads.access.check_beside(ctx, &ns)?;
        }
        names.extend(sink.and_then(|sink| sink.target_in(db)));
        if names.is_empty() {
            return Ok(());
        }
        let beside = self.reads.access.beside(ctx);
        for name in names {
            // What cannot be resolved is told where it is read.
            let view = Namespace::new(db, name).ok().and_then(|ns| beside.view(&ns).ok().flatten());
            let Some(view) = view else { continue };
            if view.collation.as_deref().map(Collation::stored).transpose()?.flatten() != q.collation {
                return Err(Error::new(
                    ErrorCode::OptionNotSupportedOnView,
                    format!("Cannot override a view's default collation{db}.{name}"),
                ));
            }
        }
        Ok(())
    }

    /// What the stages see beside documents.
    fn ctx_of(
        &self,
        ctx: &OpCtx,
        coll: Option<&Collection>,
        view: Option<&ResolvedView>,
        is_series: bool,
        spec: &AggSpec<'_>,
    ) -> Result<QueryCtx> {
        let mut simple = DocBuilder::new();
        simple.str("locale", "simple");
        let simple = simple.finish();
        let collation = match view {
            Some(_) if is_series && spec.collation.is_some() => spec.collation,
            // A view does not inherit the collation of what is below.
            Some(v) => Some(v.collation.as_deref().unwrap_or(&simple)),
            None => spec.collation,
        };
        let mut q = self.reads.query_ctx(ctx, coll, collation, spec.let_vars)?;
        Arc::make_mut(&mut q.vars).db = spec.ns.db().to_owned();
        // Stages may be about other collections.
        q.text_index = TextIndex::Unknown;
        Ok(q)
    }

    /// Plans and opens an aggregation. Nothing is read yet, except for sources whose documents are at hand.
    pub(crate) fn open(
        &self,
        ctx: &OpCtx,
        agg: Aggregation,
    ) -> Result<(CursorBody, Option<Box<dyn Source>>)> {
        let docs = self.documents(ctx, &agg)?;
        let Aggregation { coll, below, mut pipeline, q, hint, allow_disk_use, for_merge, .. } = agg;
        let others = ForeignCollections::new(&self.reads, self.about.clone(), ctx, self.reads.point(ctx));
        let spill = self.reads.resources(allow_disk_use).spill;
        let env = RunEnv { spill, collections: Some(others.clone()) };
        if let PipelineSource::ChangeStream(spec) = pipeline.source() {
            let spec = spec.clone();
            let stream = self.change_streams.open(ctx, &below, &spec, pipeline, &env)?.one_of_many(for_merge);
            return Ok((CursorBody::ChangeStream(Box::new(stream)), None));
        }
        let (from, source) = match (docs, coll) {
            (Some(docs), _) => (Feed::Docs(docs.into_iter()), None),
            (None, None) => {
                pipeline.check_text_without_collection(&below)?;
                pipeline.needs_collection(below.as_str())?;
                (Feed::Docs(Vec::new().into_iter()), None)
            }
            (None, Some(coll)) => {
                let find = pipeline.take_find();
                let mut query = find.into_query(coll.ns.as_str(), &coll.info, &q, hint)?;
                pipeline.order_buckets(&mut query, &coll.info)?;
                let (scan, source) = self.reads.open_scan(ctx, &coll, query, allow_disk_use)?;
                if pipeline.is_empty() && !for_merge {
                    let cursor = QueryCursor::new(scan, ERROR_CONTEXT);
                    return Ok((CursorBody::Query(Box::new(cursor)), Some(source)));
                }
                (Feed::Plan(Box::new(scan)), Some(source))
            }
        };
        let runner = pipeline.start(&env)?;
        Ok((
            CursorBody::Pipeline(Box::new(PipelineCursor::new(runner, from, others).for_merge(for_merge))),
            source,
        ))
    }

    /// Hands over all results.
    pub(crate) async fn each(
        &self,
        ctx: &OpCtx,
        spec: AggSpec<'_>,
        each: &mut (dyn FnMut(&RawDoc) -> Result<()> + Send),
    ) -> Result<()> {
        let agg = self.prepare(ctx, spec)?;
        let (mut cursor, source) = match self.open(ctx, agg)? {
            (CursorBody::Pipeline(cursor), source) => (*cursor, source),
            (CursorBody::Query(q), source) => (PipelineCursor::passing_on(q.into_scan())?, source),
            (CursorBody::List(_) | CursorBody::Oplog(_) | CursorBody::ChangeStream(_), _) => return Ok(()),
        };
        let mut turn = cursor.begin(&self.reads, ctx, source)?;
        while let Some(row) = cursor.next(&self.reads, ctx, &mut turn).await? {
            each(row.doc())?;
        }
        cursor.end(&self.reads, ctx, false);
        Ok(())
    }

    /// Those of a first stage that has them at hand; `None` when it reads a collection or the log.
    fn documents(&self, ctx: &OpCtx, agg: &Aggregation) -> Result<Option<Vec<DocBuf>>> {
        let known = &self.sessions.cache;
        Ok(match agg.pipeline.source() {
            PipelineSource::ChangeStream(_) | PipelineSource::Collection => None,
            PipelineSource::IndexStats => {
                Some(self.about.index_stats(agg.coll.as_deref(), agg.view.is_some()))
            }
            about @ (PipelineSource::CollStats(_) | PipelineSource::PlanCacheStats) => {
                let found = self.about.documents(&agg.below, agg.coll.as_deref(), about);
                found.map_err(|e| e.context(ERROR_CONTEXT))?
            }
            PipelineSource::CurrentOp(spec) => {
                let rows = self.operations.rows(ctx, sources::wanted_operations(ctx, spec)?);
                Some(match self.about.shard_name().filter(|_| agg.for_merge) {
                    Some(shard) => rows.iter().map(|row| sources::of_shard(row, shard)).collect(),
                    None => rows,
                })
            }
            PipelineSource::LocalSessions(spec) => {
                Some(pando_session::listed(known, ctx, "$listLocalSessions", spec)?)
            }
            PipelineSource::Sessions(spec) => Some(pando_session::listed(known, ctx, "$listSessions", spec)?),
            PipelineSource::Documents(docs) => Some(docs.eval(&agg.q).map_err(|e| e.context(ERROR_CONTEXT))?),
        })
    }
}

/// What an operation may not do with such stages, and where they may not stand.
fn check_stages(ctx: &OpCtx, spec: &AggSpec<'_>, source: &PipelineSource) -> Result<()> {
    if ctx.in_txn() {
        check_in_transaction(&spec.pipeline)?;
    }
    check_first_stage(&spec.ns, &spec.pipeline)?;
    if let PipelineSource::ChangeStream(stream) = source {
        change_stream::check(ctx, &spec.ns, stream, &spec.pipeline)?;
    }
    if ctx.api.strict { source.check_stable() } else { Ok(()) }
}

/// What a pipeline on a view is about.
enum OnView {
    /// What is below it: the view's stages come first.
    Below,
    /// The collection of buckets as its users know it.
    Series,
    /// The same under its own name.
    SeriesItself,
    /// The view's own figures, for which nothing below it is read.
    Itself,
}

impl OnView {
    fn of(
        spec: &AggSpec<'_>,
        source: &PipelineSource,
        view: &ResolvedView,
        named: Option<Arc<View>>,
        is_series: bool,
    ) -> Result<OnView> {
        match source {
            PipelineSource::Collection => return Ok(OnView::Below),
            PipelineSource::IndexStats if is_series => return Ok(OnView::Series),
            PipelineSource::CollStats(wanted) if wanted.iter().all(|e| e.name() == "latencyStats") => {
                return Ok(OnView::Itself);
            }
            PipelineSource::CollStats(wanted)
                if is_series
                    && wanted.iter().all(|e| matches!(e.name(), "latencyStats" | "storageStats")) =>
            {
                return Ok(OnView::SeriesItself);
            }
            PipelineSource::IndexStats | PipelineSource::PlanCacheStats | PipelineSource::Documents(_)
                if !view.pipeline.is_empty() =>
            {
                return Err(only_first(&spec.pipeline));
            }
            _ => {}
        }
        let e = named.map_or_else(|| on_view(&spec.ns), |v| is_a_view(&v));
        Err(e.context(ERROR_CONTEXT))
    }
}

impl Aggregation {
    /// The view's stages come before the client's, and a hint means the buckets of a time series.
    fn behind_view(mut self) -> Result<Aggregation> {
        let Some(view) = &self.view else { return Ok(self) };
        self.raw = joined(&view.pipeline, &self.raw);
        self.pipeline = self.parsed()?;
        if let Some(series) = self.coll.as_ref().and_then(|c| c.options.time_series.as_ref()) {
            self.hint = hint_of_read(self.hint, series);
        }
        Ok(self)
    }
    fn parsed(&self) -> Result<Pipeline> {
        let parse = if self.for_merge { Pipeline::parse_forwarded } else { Pipeline::parse };
        parse(&self.raw, &self.q)
    }
    pub(crate) fn take_sink(&mut self) -> Option<Sink> {
        self.pipeline.take_sink()
    }
    pub(crate) fn ctx(&self) -> &QueryCtx {
        &self.q
    }
    /// Events come as long as the client asks.
    pub(crate) fn is_endless(&self) -> bool {
        matches!(self.pipeline.source(), PipelineSource::ChangeStream(_))
    }
    pub(crate) fn reads_collection(&self) -> bool {
        *self.pipeline.source() == PipelineSource::Collection
    }
    /// The find below, and what is above it.
    pub(crate) fn as_query(&self) -> Result<Planned> {
        let mut pipeline = self.parsed()?;
        let find = pipeline.take_find();
        let query = match &self.coll {
            Some(coll) => {
                let mut query = find.into_query(coll.ns.as_str(), &coll.info, &self.q, self.hint.clone())?;
                pipeline.order_buckets(&mut query, &coll.info)?;
                query
            }
            None => {
                let matcher = find.matcher.unwrap_or_else(|| Arc::new(Matcher::all()));
                Query::new(self.below.as_str(), matcher, self.q.clone())
            }
        };
        let first = self.raw.iter().next().and_then(|e| Some(e.value().as_doc()?.to_buf()));
        Ok(Planned {
            query,
            source: first.filter(|_| !self.reads_collection()),
            rest: pipeline.explained(),
            sink: pipeline.take_sink().map(|s| s.shown(self.below.db())),
        })
    }
}

/// An aggregation as explain shows it.
pub(crate) struct Planned {
    pub(crate) query: Query,
    /// A first stage that reads no plan.
    pub(crate) source: Option<DocBuf>,
    /// Stage by stage.
    pub(crate) rest: Vec<Option<DocBuf>>,
    pub(crate) sink: Option<DocBuf>,
}

/// The same in a read, where a pattern that no time series can have is one that this one has not.
fn hint_of_read(hint: Option<Hint>, series: &TimeSeries) -> Option<Hint> {
    hint_on_buckets(hint.clone(), series).unwrap_or(hint)
}

/// A key pattern as users of a time series know it, as its buckets do.
pub(crate) fn hint_on_buckets(hint: Option<Hint>, series: &TimeSeries) -> Result<Option<Hint>> {
    Ok(match hint {
        Some(Hint::Pattern(key)) => {
            // A pattern is not refused by the number of an index's definition.
            let key = key_on_buckets(series, &key)
                .map_err(|e| Error::bad_value(e.message.trim_start_matches("BadValue: ").to_owned()))?;
            Some(Hint::Pattern(key))
        }
        other => other,
    })
}

/// 166.
pub(crate) fn on_view(ns: &Namespace) -> Error {
    Error::new(ErrorCode::CommandNotSupportedOnView, format!("Namespace {ns} is a view, not a collection"))
}

fn joined(a: &RawDoc, b: &RawDoc) -> DocBuf {
    let mut out = ArrayBuilder::new();
    for stage in a.iter().chain(b.iter()) {
        out.value(stage.value());
    }
    out.finish()
}
