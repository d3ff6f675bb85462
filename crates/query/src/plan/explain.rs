//! Plans and their counters as `explain` shows them, with MongoDB's field names and order.
//!
//! [`query_planner`] and [`execution_stats`] make the two sub-documents from an executor whose plan is settled
//! ([`Executor::settle_plan`]) or which has run to its end. A command that is more than a find (count, update,
//! delete) puts its own stage on top with [`Top`].

use super::bound_field::BoundField;
use super::cache::CachedPlan;
use super::interval::{Interval, IntervalList};
use super::node::{DistinctScan, Gives, IxScan, PlanNode, ProjectKind, SortKeySource, TextMatch};
use super::{Query, QueryKind, cache_key, query_shape};
use crate::collation::Collation;
use crate::exec::{Executor, Rejected, StageStats, Trial};
use crate::matcher::{Matcher, Node, Operand};
use crate::sort::SortPattern;
use crate::source::{CollectionInfo, Direction, FieldKind, IndexInfo, IndexKind, RecordId};
use pando_base::Error;
use pando_bson::extjson::to_relaxed;
use pando_bson::keystring::{Directions, KeyReader};
use pando_bson::{Bson, DocBuf, DocBuilder, ElementType, RawDoc, StringOrder};
use std::sync::Arc;

/// A stage that a command puts above the plan, with the fields it shows in plans and in counters.
#[derive(Clone, Debug)]
pub struct Top {
    pub stage: &'static str,
    pub plan_fields: DocBuf,
    pub stats_fields: DocBuf,
    /// Rows that it gives in turn: a `findAndModify` gives the document.
    pub returned: u64,
    /// What a `findAndModify` shows of the document.
    pub projection: Option<DocBuf>,
}

impl Top {
    pub fn new(stage: &'static str) -> Top {
        Top { stage, plan_fields: DocBuf::new(), stats_fields: DocBuf::new(), returned: 0, projection: None }
    }
}

/// Eight hexadecimal digits that stand for a text.
fn short_hash(text: &str) -> String {
    let hash = text.bytes().fold(0x811c_9dc5u32, |h, b| (h ^ u32::from(b)).wrapping_mul(0x0100_0193));
    format!("{hash:08X}")
}

/// The `queryHash` of a query, which names its shape.
pub fn query_hash(q: &Query) -> String {
    short_hash(&query_shape(q))
}

fn hashes(q: &Query, info: &CollectionInfo) -> (String, String) {
    let indexes: String = info.indexes.iter().map(|i| format!("{};", i.name)).collect();
    (query_hash(q), short_hash(&format!("{}{indexes}", cache_key(q))))
}

/// A winner as the cache remembers it.
pub(crate) fn cached(
    q: &Query,
    solution: &super::Solution,
    works: u64,
    trial: &Trial,
    rejected: &[Rejected],
    info: &CollectionInfo,
) -> CachedPlan {
    let mut query = DocBuilder::new();
    query.raw_doc("query", q.matcher.filter());
    query.raw_doc("sort", q.sort.as_ref().map_or(RawDoc::empty(), |s| &s.spec));
    query.raw_doc("projection", q.projection.as_ref().map_or(RawDoc::empty(), |p| p.spec()));
    if let Some(c) = &q.ctx.collation {
        query.raw_doc("collation", c.spec());
    }
    let mut plan = DocBuilder::new();
    let writer = Writer { q, info, memory: q.ctx.memory.sort, writes: false };
    writer.whole(&solution.root, None, None, &mut plan);
    let losers = rejected.iter().map(|r| (&r.plan, &r.trial));
    let all = [(&solution.root, trial)].into_iter().chain(losers);
    let counters = |(plan, trial): (&PlanNode, &Trial)| {
        let mut b = DocBuilder::new();
        writer.trial(plan, trial, false, &mut b);
        (b.finish(), trial.score)
    };
    CachedPlan {
        signature: solution.signature.clone(),
        works,
        active: false,
        query: query.finish(),
        plan: plan.finish(),
        trial: all.map(counters).collect(),
        hashes: hashes(q, info),
        index_filter: info.index_filters.of(|| query_shape(q)).is_some(),
        created_ms: q.ctx.vars.now_ms,
    }
}

/// The `queryPlanner` document.
/// `exists` is false for a write to a collection that does not: it is not even parsed. A plan that `failed` has no hashes.
pub fn query_planner(
    ex: &Executor,
    info: &CollectionInfo,
    top: Option<&Top>,
    exists: bool,
    failed: bool,
) -> DocBuf {
    let q = ex.query();
    let writes = top.is_some_and(|t| t.stage != "COUNT");
    let writer = Writer { q, info, memory: q.ctx.memory.sort, writes };
    let mut b = DocBuilder::new();
    let by_id = ex.plan().is_some_and(|p| p.any(&|n| matches!(n, PlanNode::IdHack { .. })));
    b.str("namespace", &q.ns)
        .bool("indexFilterSet", !by_id && info.index_filters.of(|| query_shape(q)).is_some());
    let eof = matches!(ex.plan(), Some(PlanNode::Eof) | None);
    // A write by `_id` is not planned at all, nor is one of nothing.
    let planned = exists && (top.is_none_or(|t| t.stage == "COUNT") || !(by_id || eof));
    if planned {
        b.raw_doc("parsedQuery", &q.matcher.root().to_doc());
    }
    if let Some(c) = &q.ctx.collation {
        b.raw_doc("collation", c.spec());
    }
    if planned && !eof && !failed {
        let (query_hash, key) = hashes(q, info);
        b.str("queryHash", &query_hash);
        b.str("planCacheKey", &key);
    }
    b.bool("maxIndexedOrSolutionsReached", false)
        .bool("maxIndexedAndSolutionsReached", false)
        .bool("maxScansToExplodeReached", false);
    if let Some(plan) = ex.plan() {
        b.doc("winningPlan", |b| writer.whole(plan, None, top, b));
    }
    b.array("rejectedPlans", |a| {
        for r in ex.rejected() {
            a.doc(|b| writer.whole(&r.plan, None, top, b));
        }
    });
    b.finish()
}

/// The `executionStats` document; `all_plans` adds the counters of the trial. What the plan `failed` with is told in it.
pub fn execution_stats(
    ex: &Executor,
    info: &CollectionInfo,
    top: Option<&Top>,
    returned: u64,
    millis: i64,
    all_plans: bool,
    failed: Option<&Error>,
) -> DocBuf {
    let writes = top.is_some_and(|t| t.stage != "COUNT");
    let writer = Writer { q: ex.query(), info, memory: ex.ctx().memory.sort, writes };
    let stats = ex.stats();
    let mut b = DocBuilder::new();
    b.bool("executionSuccess", failed.is_none());
    if let Some(e) = failed {
        b.str("errorMessage", &e.message).i32("errorCode", e.code.0);
    }
    number(&mut b, "nReturned", returned);
    number(&mut b, "executionTimeMillis", millis.max(0) as u64);
    number(&mut b, "totalKeysExamined", stats.total_keys_examined());
    number(&mut b, "totalDocsExamined", stats.total_docs_examined());
    if failed.is_some() {
        b.bool("failed", true);
    }
    if let Some(plan) = ex.plan() {
        b.doc("executionStages", |b| writer.whole(plan, Some(&stats), top, b));
    }
    if all_plans {
        b.array("allPlansExecution", |a| {
            let winner = ex.plan().zip(ex.trial());
            let losers = ex.rejected().iter().map(|r| (&r.plan, &r.trial));
            for (plan, trial) in winner.into_iter().chain(losers) {
                a.doc(|b| writer.trial(plan, trial, true, b));
            }
        });
    }
    b.finish()
}

/// As int32 where it fits.
/// A counter of a stage, under its name.
type Counter = (&'static str, fn(&StageStats) -> u64);

const KEYS: Counter = ("keysExamined", |s| s.keys_examined);
const DOCS: Counter = ("docsExamined", |s| s.docs_examined);
const DUPS_TESTED: Counter = ("dupsTested", |s| s.dups_tested);
const DUPS_DROPPED: Counter = ("dupsDropped", |s| s.dups_dropped);

/// What a stage counted, once it ran.
fn counted(b: &mut DocBuilder, stats: Option<&StageStats>, counters: &[Counter]) {
    if let Some(s) = stats {
        counters.iter().for_each(|(name, of)| number(b, name, of(s)));
    }
}

fn number(b: &mut DocBuilder, name: &str, n: u64) {
    match i32::try_from(n) {
        Ok(n) => b.i32(name, n),
        Err(_) => b.i64(name, i64::try_from(n).unwrap_or(i64::MAX)),
    };
}

struct Writer<'a> {
    q: &'a Query,
    info: &'a CollectionInfo,
    memory: usize,
    /// The rows are written to.
    writes: bool,
}

/// Counters as shown: stages that only pass rows on take a step per step of their input.
struct Shown {
    works: u64,
    advanced: u64,
    eof: bool,
}

fn shown(node: &PlanNode, s: &StageStats) -> Shown {
    if let PlanNode::SortKeyGenerator { input, .. } | PlanNode::Reads { input, .. } = node {
        return shown(input, s);
    }
    let inputs: u64 = node.inputs().iter().zip(&s.inputs).map(|(n, s)| shown(n, s).works).sum();
    let works = match node {
        PlanNode::Fetch { .. }
        | PlanNode::ShardFilter { .. }
        | PlanNode::Project { .. }
        | PlanNode::Skip { .. }
        | PlanNode::ReturnKey { .. } => inputs,
        PlanNode::Limit { .. } => inputs + u64::from(s.eof && s.works > inputs),
        PlanNode::Sort { .. } => inputs + s.advanced + u64::from(s.eof),
        _ => s.works,
    };
    Shown { works: works.max(s.advanced), advanced: s.advanced, eof: s.eof }
}

impl Writer<'_> {
    /// Of whole documents, without anything beside them.
    fn is_simple_sort(&self, keys: &SortKeySource) -> bool {
        matches!(keys, SortKeySource::Documents) && !self.q.wants_text_score() && !self.writes
    }

    fn whole(&self, plan: &PlanNode, stats: Option<&StageStats>, top: Option<&Top>, b: &mut DocBuilder) {
        if let Some(top) = top {
            if let Some(projection) = &top.projection {
                b.str("stage", "PROJECTION_DEFAULT");
                if let Some(s) = stats {
                    self.counters(&shown(plan, s), s, b);
                }
                b.raw_doc("transformBy", projection);
                let below = Top { projection: None, ..top.clone() };
                b.doc("inputStage", |b| self.whole(plan, stats, Some(&below), b));
                return;
            }
            b.str("stage", top.stage);
            if let Some(s) = stats {
                let counters = Shown { advanced: top.returned, eof: true, ..shown(plan, s) };
                self.counters(&counters, s, b);
                b.elems_of(&top.stats_fields);
            }
            b.elems_of(&top.plan_fields);
            b.doc("inputStage", |b| self.whole(plan, stats, None, b));
            return;
        }
        if let PlanNode::IxScan(scan) = plan
            && self.q.kind == QueryKind::Count
            && scan.filter.is_none()
            && let Some(ends) = count_bounds(scan)
        {
            return self.count_scan(scan, &ends, stats, b);
        }
        let rooted_or = matches!(self.q.matcher.root(), Node::Or(_))
            && self.q.hint.is_none()
            && self.q.natural.is_none()
            && !matches!(plan, PlanNode::Eof);
        if rooted_or {
            b.str("stage", "SUBPLAN");
            if let Some(s) = stats {
                self.counters(&shown(plan, s), s, b);
            }
            b.doc("inputStage", |b| self.stage(plan, stats, b));
        } else {
            self.stage(plan, stats, b);
        }
    }

    /// What a candidate did in the race.
    fn trial(&self, plan: &PlanNode, trial: &Trial, with_score: bool, b: &mut DocBuilder) {
        let stats = &trial.stats;
        number(b, "nReturned", stats.advanced);
        number(b, "executionTimeMillisEstimate", 0);
        number(b, "totalKeysExamined", stats.total_keys_examined());
        number(b, "totalDocsExamined", stats.total_docs_examined());
        if with_score {
            b.f64("score", trial.score);
        }
        b.doc("executionStages", |b| self.whole(plan, Some(stats), None, b));
    }

    fn counters(&self, s: &Shown, stats: &StageStats, b: &mut DocBuilder) {
        number(b, "nReturned", s.advanced);
        number(b, "executionTimeMillisEstimate", 0);
        number(b, "works", s.works);
        number(b, "advanced", s.advanced);
        number(b, "needTime", s.works.saturating_sub(s.advanced + u64::from(s.eof)));
        // No stage asks for one: turns end with the quota, which counts as saving.
        number(b, "needYield", 0);
        number(b, "saveState", stats.saves);
        number(b, "restoreState", stats.saves);
        number(b, "isEOF", u64::from(s.eof));
    }

    fn stage(&self, node: &PlanNode, stats: Option<&StageStats>, b: &mut DocBuilder) {
        if let PlanNode::DistinctScan(d) = node
            && d.gives == Gives::Values
        {
            return self.values(d, stats, b);
        }
        self.stage_itself(node, stats, b);
    }

    /// A scan for `distinct` makes documents of its keys.
    fn values(&self, d: &Arc<DistinctScan>, stats: Option<&StageStats>, b: &mut DocBuilder) {
        let node = PlanNode::DistinctScan(d.clone());
        b.str("stage", if d.key.contains('.') { "PROJECTION_DEFAULT" } else { "PROJECTION_COVERED" });
        if let Some(s) = stats {
            self.counters(&shown(&node, s), s, b);
        }
        b.doc("transformBy", |_| {});
        b.doc("inputStage", |b| self.stage_itself(&node, stats, b));
    }

    fn stage_itself(&self, node: &PlanNode, stats: Option<&StageStats>, b: &mut DocBuilder) {
        b.str("stage", shown_name(node));
        let filter = match node {
            PlanNode::CollScan(c) => c.filter.as_ref(),
            PlanNode::IxScan(s) => s.filter.as_ref(),
            PlanNode::DistinctScan(s) => s.scan.filter.as_ref(),
            PlanNode::Fetch { filter, .. } | PlanNode::TextOr { filter, .. } => filter.as_ref(),
            PlanNode::KeyOr { filter, .. } => Some(filter),
            _ => None,
        };
        if let Some(f) = filter {
            b.raw_doc("filter", &f.root().to_doc());
        }
        if let Some(s) = stats {
            self.counters(&shown(node, s), s, b);
        }
        self.fields(node, stats, b);
        let inputs = node.inputs();
        let input_stats = |i: usize| stats.and_then(|s| s.inputs.get(i));
        match (node, inputs) {
            (PlanNode::TextOr { .. }, [one]) => {
                b.doc("inputStage", |b| self.stage(one, input_stats(0), b));
            }
            (PlanNode::TextOr { .. }, []) => {}
            (
                PlanNode::Or { .. }
                | PlanNode::SortMerge { .. }
                | PlanNode::TextOr { .. }
                | PlanNode::KeyOr { .. },
                _,
            ) => {
                b.array("inputStages", |a| {
                    for (i, n) in inputs.iter().enumerate() {
                        a.doc(|b| self.stage(n, input_stats(i), b));
                    }
                });
            }
            (PlanNode::SortKeyGenerator { .. } | PlanNode::Reads { .. }, [one]) => {
                // It has no stage of its own at run time, so no counters either.
                b.doc("inputStage", |b| self.stage(one, stats, b));
            }
            (_, [one]) => {
                b.doc("inputStage", |b| self.stage(one, input_stats(0), b));
            }
            _ => {}
        }
    }

    /// What is special to each kind of stage.
    fn fields(&self, node: &PlanNode, stats: Option<&StageStats>, b: &mut DocBuilder) {
        match node {
            PlanNode::CollScan(c) => {
                b.str("direction", direction(c.dir));
                for (name, end) in [("minRecord", &c.min), ("maxRecord", &c.max)] {
                    if let Some(v) = end.as_ref().and_then(record_value) {
                        b.bson(name, &v);
                    }
                }
                counted(b, stats, &[DOCS]);
            }
            PlanNode::IdHack { .. } => counted(b, stats, &[KEYS, DOCS]),
            PlanNode::IxScan(s) => {
                self.index(s, b);
                counted(b, stats, &[KEYS, ("seeks", |s| s.seeks), DUPS_TESTED, DUPS_DROPPED]);
            }
            PlanNode::GeoNear(n) => {
                if let Some(index) = self.info.indexes.get(n.index) {
                    b.raw_doc("keyPattern", &index.key_pattern);
                    b.str("indexName", &index.name).i32("indexVersion", index.version);
                }
                counted(b, stats, &[KEYS, DOCS]);
            }
            PlanNode::DistinctScan(d) => {
                self.index(&d.scan, b);
                counted(b, stats, &[KEYS]);
            }
            PlanNode::Fetch { .. } => counted(b, stats, &[DOCS, ("alreadyHasObj", |_| 0)]),
            PlanNode::ShardFilter { .. } => counted(b, stats, &[("chunkSkips", |s| s.chunk_skips)]),
            PlanNode::TextMatch(t) => self.text_match(t, stats, b),
            PlanNode::TextOr { .. } => counted(b, stats, &[DOCS]),
            PlanNode::Or { .. } | PlanNode::KeyOr { .. } => counted(b, stats, &[DUPS_TESTED, DUPS_DROPPED]),
            PlanNode::SortMerge { pattern, .. } => {
                b.raw_doc("sortPattern", &pattern.spec);
                counted(b, stats, &[DUPS_TESTED, DUPS_DROPPED]);
            }
            PlanNode::Sort { pattern, limit, keys, .. } => {
                b.raw_doc("sortPattern", &shown_pattern(pattern));
                number(b, "memLimit", self.memory as u64);
                if *limit > 0 {
                    number(b, "limitAmount", *limit);
                }
                b.str("type", if self.is_simple_sort(keys) { "simple" } else { "default" });
                if let Some(s) = stats {
                    number(b, "totalDataSizeSorted", s.sorted_bytes);
                    b.bool("usedDisk", s.spills > 0);
                    number(b, "spills", s.spills);
                }
            }
            PlanNode::Skip { n, .. } => number(b, "skipAmount", *n),
            PlanNode::Limit { n, .. } => number(b, "limitAmount", *n),
            PlanNode::Project { projection, .. } | PlanNode::Reads { projection, .. } => {
                b.raw_doc("transformBy", projection.spec());
            }
            PlanNode::SortKeyGenerator { .. } | PlanNode::ReturnKey { .. } | PlanNode::Eof => {}
        }
    }

    fn text_match(&self, t: &TextMatch, stats: Option<&StageStats>, b: &mut DocBuilder) {
        let q = &t.meaning.query;
        b.raw_doc("indexPrefix", &t.prefix);
        b.str("indexName", self.info.indexes.get(t.index).map_or("", |i| &i.name));
        b.doc("parsedTextQuery", |b| {
            let mut list = |name: &str, words: &mut dyn Iterator<Item = &String>| {
                b.array(name, |a| {
                    words.for_each(|w| {
                        a.str(w);
                    });
                });
            };
            list("terms", &mut q.terms.iter());
            list("negatedTerms", &mut q.negated_terms.iter());
            list("phrases", &mut q.phrases.iter());
            list("negatedPhrases", &mut q.negated_phrases.iter());
        });
        b.i32("textIndexVersion", t.meaning.spec.version);
        counted(b, stats, &[("docsRejected", |s| s.docs_rejected)]);
    }

    fn index_head(&self, index: &IndexInfo, scan: &IxScan, b: &mut DocBuilder) {
        match scan.wild_path {
            Some(_) => {
                b.doc("keyPattern", |b| {
                    for f in &scan.fields {
                        b.i32(&f.name, if f.kind == FieldKind::Descending { -1 } else { 1 });
                    }
                });
            }
            None => {
                b.raw_doc("keyPattern", &index.key_pattern);
            }
        }
        b.str("indexName", &index.name);
        if let Some(c) = &index.collation {
            b.raw_doc("collation", c.spec());
        }
        let multikey = if index.kind == IndexKind::Text { index.multikey.is_multikey() } else { scan.dedup };
        b.bool("isMultiKey", multikey);
        let is_text = index.kind == IndexKind::Text;
        let paths_of = |b: &mut DocBuilder| {
            if scan.fields.is_empty() {
                for (i, f) in index.fields.iter().enumerate() {
                    paths(&f.path, index.multikey.field(i), b);
                }
            }
            for f in &scan.fields {
                paths(&f.name, f.multikey, b);
            }
        };
        if !is_text && index.kind != IndexKind::Hashed {
            b.doc("multiKeyPaths", paths_of);
        }
        b.bool("isUnique", index.unique)
            .bool("isSparse", index.sparse)
            .bool("isPartial", index.partial.is_some())
            .i32("indexVersion", index.version);
    }

    fn index(&self, scan: &IxScan, b: &mut DocBuilder) {
        let Some(index) = self.info.indexes.get(scan.index) else { return };
        self.index_head(index, scan, b);
        b.str("direction", direction(scan.dir));
        let order = Collation::order(&index.collation);
        b.doc("indexBounds", |b| {
            for f in scan.fields.iter().filter(|_| index.kind != IndexKind::Text) {
                b.array(&f.name, |a| {
                    for text in bounds_text(f, scan.dir, order) {
                        a.str(&text);
                    }
                });
            }
        });
    }

    fn count_scan(&self, scan: &IxScan, ends: &CountEnds, stats: Option<&StageStats>, b: &mut DocBuilder) {
        b.str("stage", "COUNT_SCAN");
        if let Some(s) = stats {
            self.counters(&Shown { works: s.works, advanced: s.advanced, eof: s.eof }, s, b);
            number(b, "keysExamined", s.keys_examined);
        }
        if let Some(index) = self.info.indexes.get(scan.index) {
            self.index_head(index, scan, b);
        }
        b.doc("indexBounds", |b| {
            b.raw_doc("startKey", &ends.start).bool("startKeyInclusive", ends.start_inclusive);
            b.raw_doc("endKey", &ends.end).bool("endKeyInclusive", ends.end_inclusive);
        });
    }
}

/// The `_id` that a record of a clustered collection lies under, or the time of an oplog entry.
fn record_value(rid: &RecordId) -> Option<Bson> {
    match rid {
        RecordId::Long(n) => Some(Bson::Int64(*n)),
        RecordId::Key(key) => KeyReader::new(key, Directions(0), &[]).next_value().ok()?,
    }
}

struct CountEnds {
    start: DocBuf,
    start_inclusive: bool,
    end: DocBuf,
    end_inclusive: bool,
}

/// The ends of a scan that is one plain range.
fn count_bounds(scan: &IxScan) -> Option<CountEnds> {
    if !scan.bounds.plain || scan.bounds.nothing || scan.fields.is_empty() {
        return None;
    }
    let (mut start, mut end) = (DocBuilder::new(), DocBuilder::new());
    let (mut start_inclusive, mut end_inclusive) = (true, true);
    for f in &scan.fields {
        let list = visited(f, scan.dir);
        let i: &Interval = list.0.first()?;
        start.raw(i.low.ty(), &f.name, i.low.data());
        end.raw(i.high.ty(), &f.name, i.high.data());
        start_inclusive &= i.low_inclusive;
        end_inclusive &= i.high_inclusive;
    }
    Some(CountEnds { start: start.finish(), start_inclusive, end: end.finish(), end_inclusive })
}

/// Parts by metadata have names of their own.
fn shown_pattern(pattern: &SortPattern) -> DocBuf {
    let mut b = DocBuilder::new();
    let mut computed = 0;
    for (part, e) in pattern.parts.iter().zip(pattern.spec.iter()) {
        match part.meta {
            Some(_) => {
                b.value(&format!("$computed{computed}"), e.value());
                computed += 1;
            }
            None => {
                b.elem(e);
            }
        }
    }
    b.finish()
}

/// A covered projection of dotted paths is shown as any other.
fn shown_name(node: &PlanNode) -> &'static str {
    match node {
        PlanNode::Project { kind: ProjectKind::Covered, projection, .. } if !projection.is_simple() => {
            "PROJECTION_DEFAULT"
        }
        other => other.stage_name(),
    }
}

fn direction(dir: Direction) -> &'static str {
    if dir.is_forward() { "forward" } else { "backward" }
}

/// The prefixes of a path that reached arrays.
fn paths(path: &str, bits: u64, b: &mut DocBuilder) {
    b.array(path, |a| {
        let ends = path.match_indices('.').map(|(i, _)| i).chain([path.len()]);
        for (i, end) in ends.enumerate() {
            if bits >> i.min(63) & 1 == 1 {
                a.str(&path[..end]);
            }
        }
    });
}

/// The intervals in the order the scan visits them.
fn visited(f: &BoundField, dir: Direction) -> IntervalList {
    if (f.kind == FieldKind::Descending) == dir.is_forward() {
        f.intervals.reversed()
    } else {
        f.intervals.clone()
    }
}

fn bounds_text(f: &BoundField, dir: Direction, order: Option<&dyn StringOrder>) -> Vec<String> {
    let end = |v: &Operand| match (v.value(), order) {
        (v, Some(order)) if v.element_type() == ElementType::String => {
            let mut key = Vec::new();
            order.sort_key(&String::from_utf8_lossy(v.string_bytes().unwrap_or_default()), &mut key);
            let hex: String = key.iter().map(|b| format!("{b:02x}")).collect();
            format!("CollationKey(0x{hex})")
        }
        (v, _) => v.to_string(),
    };
    let text = |i: &Interval| {
        let open = if i.low_inclusive { '[' } else { '(' };
        let close = if i.high_inclusive { ']' } else { ')' };
        format!("{open}{}, {}{close}", end(&i.low), end(&i.high))
    };
    visited(f, dir).0.iter().map(text).collect()
}

/// A plan in one line, for tests and logs: stages outermost first, with bounds and filters.
pub fn one_line(node: &PlanNode, info: &CollectionInfo) -> String {
    let filter = |f: &Matcher| format!("filter {}", to_relaxed(&f.root().to_doc()));
    let mut out = shown_name(node).to_owned();
    let mut facts: Vec<String> = Vec::new();
    match node {
        PlanNode::CollScan(c) => {
            facts.extend((!c.dir.is_forward()).then(|| "backward".to_owned()));
            facts.extend(c.filter.as_deref().map(filter));
        }
        PlanNode::Fetch { filter: Some(f), .. } => facts.push(filter(f)),
        PlanNode::IxScan(s) => facts.extend(scan_facts(s, info)),
        PlanNode::DistinctScan(d) => facts.extend(scan_facts(&d.scan, info)),
        PlanNode::Sort { pattern, limit, .. } => {
            facts.push(to_relaxed(&pattern.spec));
            facts.extend((*limit > 0).then(|| "limit".to_owned()));
        }
        PlanNode::SortMerge { pattern, .. } => facts.push(to_relaxed(&pattern.spec)),
        _ => {}
    }
    if !facts.is_empty() {
        out.push_str(&format!("({})", facts.join("; ")));
    }
    match (node, node.inputs()) {
        (
            PlanNode::Or { .. }
            | PlanNode::SortMerge { .. }
            | PlanNode::TextOr { .. }
            | PlanNode::KeyOr { .. },
            many,
        ) => {
            let all: Vec<String> = many.iter().map(|n| one_line(n, info)).collect();
            out.push_str(&format!(" <- [{}]", all.join(" | ")));
        }
        (_, [one]) => out.push_str(&format!(" <- {}", one_line(one, info))),
        _ => {}
    }
    out
}

fn scan_facts(s: &IxScan, info: &CollectionInfo) -> Vec<String> {
    let index = info.indexes.get(s.index);
    let name = index.map_or("?", |i| i.name.as_str());
    let order = index.and_then(|i| Collation::order(&i.collation));
    let bounds: Vec<String> =
        s.fields.iter().map(|f| format!("{}: {}", f.name, bounds_text(f, s.dir, order).join(" "))).collect();
    let mut facts = vec![name.to_owned(), bounds.join(", ")];
    facts.extend((!s.dir.is_forward()).then(|| "backward".to_owned()));
    facts.extend(s.filter.as_ref().map(|f| format!("filter {}", to_relaxed(&f.root().to_doc()))));
    facts
}
