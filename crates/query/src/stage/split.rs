//! A pipeline in two parts, for a collection that lies on several shards: what each shard does with its own documents, and
//! what is done with what they send.
//!
//! ```text
//!   shard a: [$match] ► [$sort] ─┐ rows with     ┌────────┐
//!   shard b: [$match] ► [$sort] ─┼─────────────► │ merger │ [$group] ► [$out] …
//!   shard c: [$match] ► [$sort] ─┘ their keys    └────────┘
//! ```
//!
//! Stages that look at one document at a time stay on the shards, up to the first one that does not. That one decides: some
//! do a half of their work on each side (`$sort`, `$group`, `$limit`, `$sample`, `$geoNear`), the others and all that
//! follows are the merger's. Then as much as possible is kept from being sent: limits are told to the shards, arrays are
//! unwound by the merger, and fields that it does not look at stay where they are.

use super::geo_near::NearPart;
use super::group::{Group, Phase};
use super::limit::Limit;
use super::needs::Needs;
use super::pipeline::Pipeline;
use super::sample::Sample;
use super::sinks::Sink;
use super::skip::Skip;
use super::sort::Sort;
use super::sources::PipelineSource;
use super::spec::{Spec, Stage, add_needs};
use super::transform::{Reshape, project};
use crate::expr::ParseCtx;
use crate::sort::SortPattern;
use pando_base::Result;
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};
use std::sync::Arc;

/// The two parts of a pipeline.
#[derive(Clone, Debug, PartialEq)]
pub struct Split {
    /// Whom the first part is sent to.
    pub asked: Asked,
    /// What each of them runs; with [`Asked::Nobody`] it has no stages.
    pub shards: Pipeline,
    /// How what they send is put together; `None` as it comes.
    pub order: Option<MergeOrder>,
    /// What is done with that; often nothing.
    pub merger: Pipeline,
    /// Where that can be done.
    pub host: MergeHost,
}

/// Which shards run the first part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Those that own documents which the leading filter may want.
    Owners,
    /// All there are.
    EachShard,
    /// The whole pipeline is the merger's, on the node that was asked.
    Nobody,
}

/// Where the merger may run. A later one can do what an earlier one can.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MergeHost {
    /// On a router.
    Anywhere,
    /// On a router unless it may use the disk, else on some shard.
    WithDisk,
    /// On some shard.
    AnyShard,
    /// On the primary shard of the database.
    Primary,
}

/// The order that each shard sends its rows in, and they are merged by.
#[derive(Clone, Debug, PartialEq)]
pub struct MergeOrder {
    pub pattern: Arc<SortPattern>,
    pub by: OrderedBy,
}

/// Where the values are that rows are merged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderedBy {
    /// `$sortKey`, which goes with each row.
    Carried,
    /// Fields of the documents.
    Fields,
}

impl MergeOrder {
    fn ascending(path: &str) -> Result<MergeOrder> {
        let mut b = DocBuilder::new();
        b.i32(path, 1);
        Ok(MergeOrder { pattern: Arc::new(SortPattern::parse(&b.finish())?), by: OrderedBy::Fields })
    }
    fn carried(pattern: Arc<SortPattern>) -> MergeOrder {
        MergeOrder { pattern, by: OrderedBy::Carried }
    }
}

/// The first stage that does not stay on the shards, in two halves.
#[derive(Default)]
struct Halves {
    shard: Option<Stage>,
    merger: Option<Stage>,
    order: Option<MergeOrder>,
}

impl Pipeline {
    /// The parts for a collection that lies on several shards. `is_sharded` tells that of other collections, by namespace.
    pub fn split(&self, is_sharded: &dyn Fn(&str) -> bool) -> Result<Split> {
        let asked = asked(&self.source);
        if asked == Asked::Nobody {
            let shards = Pipeline { source: PipelineSource::Collection, ..self.part(Vec::new()) };
            let host = self.host(&self.stages, self.sink.as_ref().map(|(s, _)| s), is_sharded);
            return Ok(Split { asked, shards, order: None, merger: self.clone(), host });
        }
        let cut = self.stages.iter().position(|s| !self.stays(s, is_sharded));
        let cut = cut.unwrap_or(self.stages.len());
        let (mut shards, mut merger) = (self.stages[..cut].to_vec(), self.stages[cut..].to_vec());
        let mut order = match &self.source {
            PipelineSource::ChangeStream(_) => Some(MergeOrder::ascending("_id._data")?),
            _ => None,
        };
        if !merger.is_empty() {
            let halves = self.halves(merger.remove(0))?;
            shards.extend(halves.shard);
            merger.splice(0..0, halves.merger);
            order = halves.order;
        }
        tell_limit(&mut shards, &merger);
        if order.is_none() && !merger.is_empty() {
            while let Some(Spec::Unwind(_)) = shards.last().map(|s| &s.spec) {
                merger.splice(0..0, shards.pop());
            }
        }
        self.send_less(&mut shards, &merger, order.as_ref())?;
        let mut parts =
            [self.part(shards), Pipeline { source: PipelineSource::Collection, ..self.part(merger) }];
        let writes = parts[1].is_empty() && self.writes_where_it_is(is_sharded);
        parts[usize::from(!writes)].sink = self.sink.clone();
        parts[0].splits_events = self.splits_events;
        // Each part knows what its own stages say, as the server does that it is forwarded to.
        let [shards, merger] = parts.map(|part| Pipeline::parse_forwarded(&part.spelled(), &self.ctx));
        let (shards, merger) = (shards?, merger?);
        let host = self.host(&merger.stages, merger.sink.as_ref().map(|(s, _)| s), is_sharded);
        Ok(Split { asked, shards, order, merger, host })
    }

    /// A pipeline of these stages of this one, which writes nothing.
    fn part(&self, stages: Vec<Stage>) -> Pipeline {
        Pipeline { stages, sink: None, splits_events: false, ..self.clone() }
    }

    fn ns(&self, coll: &str) -> String {
        format!("{}.{coll}", self.ctx.vars.db)
    }

    /// Whether each shard can do all of a stage for its own documents.
    fn stays(&self, stage: &Stage, is_sharded: &dyn Fn(&str) -> bool) -> bool {
        match &stage.spec {
            Spec::Match(_) | Spec::Redact(_) | Spec::Reshape(_) | Spec::UnpackBucket(_) | Spec::Unwind(_) => {
                true
            }
            // What is near in a bucket comes in an order, or is sorted by the stage behind.
            Spec::Distances(distances) => !distances.keeps_all,
            Spec::GeoNear(near) => near.output.is_none(),
            // An unsharded collection is on one shard only.
            Spec::Lookup(join) => is_sharded(&self.ns(&join.from)),
            Spec::GraphLookup(join) => is_sharded(&self.ns(&join.from)),
            _ => false,
        }
    }

    fn halves(&self, stage: Stage) -> Result<Halves> {
        let both = |stage: Stage, order| Halves { shard: Some(stage), merger: None, order };
        Ok(match &stage.spec {
            // A plan can do a sort by fields, and the merger find their values again.
            Spec::Sort(sort)
                if !sort.keep_key
                    && sort.pattern.parts.iter().all(|p| p.meta.is_none())
                    && !self.stages.iter().any(|s| asks_for_key(&s.text)) =>
            {
                let order = MergeOrder { pattern: sort.pattern.clone(), by: OrderedBy::Fields };
                both(stage, Some(order))
            }
            Spec::Sort(sort) => {
                let order = MergeOrder::carried(sort.pattern.clone());
                let sort = Sort { keep_key: true, ..sort.clone() };
                both(Stage::new(sort.forwarded_text(), sort), Some(order))
            }
            Spec::Group(group) if group.phase == Phase::Whole => Halves {
                shard: Some(in_phase(&stage, group, Phase::Partial)),
                merger: Some(in_phase(&stage, group, Phase::Merging)),
                order: None,
            },
            Spec::Limit(_) => Halves { shard: Some(stage.clone()), merger: Some(stage), order: None },
            Spec::Sample(sample) => {
                let limit = (sample.size > 0).then(|| limit(sample.size as u64));
                let sample = Sample { keep_key: true, ..sample.clone() };
                let order = MergeOrder::carried(Arc::new(by_lot()?));
                Halves { merger: limit, ..both(Stage::new(sample.forwarded_text(), sample), Some(order)) }
            }
            Spec::GeoNear(NearPart { output: Some(output), .. }) => {
                let order = MergeOrder::ascending(&output.distance_field)?;
                both(stage, Some(order))
            }
            Spec::Distances(distances) => {
                let order = MergeOrder::ascending(&distances.output.distance_field)?;
                both(stage, Some(order))
            }
            _ => Halves { merger: Some(stage), ..Halves::default() },
        })
    }

    /// Fields that the merger does not look at stay on the shards.
    fn send_less(&self, shards: &mut Vec<Stage>, merger: &[Stage], order: Option<&MergeOrder>) -> Result<()> {
        let (mut wanted, mut made) = (Needs::default(), Needs::default());
        add_needs(merger, &mut wanted);
        add_needs(shards, &mut made);
        // What the shards have made themselves is small enough.
        if made.fields().is_some() {
            return Ok(());
        }
        let Some(fields) = wanted.fields() else { return Ok(()) };
        let ordered = order.filter(|o| o.by == OrderedBy::Fields);
        let ordered = ordered.iter().flat_map(|o| o.pattern.parts.iter().map(|p| p.path.as_str()));
        let mut roots: Vec<&str> = fields.iter().map(String::as_str).chain(ordered).collect();
        for root in &mut roots {
            *root = root.split('.').next().unwrap_or_default();
        }
        roots.sort_unstable();
        roots.dedup();
        let mut b = DocBuilder::new();
        b.doc("$project", |d| {
            for root in &roots {
                d.bool(root, true);
            }
            if !roots.contains(&"_id") {
                // Of nothing at all an `_id` is left, which tells how many there are.
                d.bool("_id", roots.is_empty());
            }
        });
        let text = b.finish();
        if let Some(e) = text.first() {
            let stage = Reshape::from(project(e, &mut ParseCtx::new(&self.ctx))?);
            shards.push(Stage::new(text.clone(), stage));
        }
        Ok(())
    }

    /// Each shard can write its own results.
    fn writes_where_it_is(&self, is_sharded: &dyn Fn(&str) -> bool) -> bool {
        match &self.sink {
            Some((Sink::Merge(merge), _)) => {
                let db = merge.into.db.as_deref().unwrap_or(&self.ctx.vars.db);
                is_sharded(&format!("{db}.{}", merge.into.coll))
            }
            _ => false,
        }
    }

    fn host(&self, stages: &[Stage], sink: Option<&Sink>, is_sharded: &dyn Fn(&str) -> bool) -> MergeHost {
        let beside = |coll: &str| match is_sharded(&self.ns(coll)) {
            true => MergeHost::AnyShard,
            false => MergeHost::Primary,
        };
        let of = |stage: &Stage| match &stage.spec {
            Spec::BucketAuto(_)
            | Spec::Group(_)
            | Spec::Sample(_)
            | Spec::Sort(_)
            | Spec::WindowFields(_) => MergeHost::WithDisk,
            Spec::Lookup(join) => beside(&join.from),
            Spec::GraphLookup(join) => beside(&join.from),
            Spec::UnionWith(union) if union.coll.is_empty() => MergeHost::Anywhere,
            Spec::UnionWith(union) => beside(&union.coll),
            Spec::Facet(facet) => {
                let inside = facet.facets.iter().map(|(_, p)| p.host(&p.stages, None, is_sharded));
                inside.max().unwrap_or(MergeHost::Anywhere)
            }
            _ => MergeHost::Anywhere,
        };
        let sink = sink.map(|sink| match sink {
            Sink::Out(_) => MergeHost::Primary,
            Sink::Merge(_) => MergeHost::AnyShard,
        });
        stages.iter().map(of).chain(sink).max().unwrap_or(MergeHost::Anywhere)
    }
}

/// Whether `$meta: "sortKey"` is anywhere in it.
fn asks_for_key(spec: &RawDoc) -> bool {
    spec.iter().any(|e| match e.value() {
        Value::String(what) => e.name() == "$meta" && what == "sortKey",
        Value::Document(d) | Value::Array(d) => asks_for_key(d),
        _ => false,
    })
}

/// Who has documents of a source.
fn asked(source: &PipelineSource) -> Asked {
    match source {
        PipelineSource::Collection
        | PipelineSource::CollStats(_)
        | PipelineSource::IndexStats
        | PipelineSource::PlanCacheStats
        | PipelineSource::Sessions(_) => Asked::Owners,
        PipelineSource::ChangeStream(_) => Asked::EachShard,
        PipelineSource::CurrentOp(spec) => match spec.get("localOps") {
            Some(Value::Boolean(true)) => Asked::Nobody,
            _ => Asked::EachShard,
        },
        PipelineSource::LocalSessions(_) | PipelineSource::Documents(_) => Asked::Nobody,
    }
}

/// The order of documents that were drawn by lot.
fn by_lot() -> Result<SortPattern> {
    let mut b = DocBuilder::new();
    b.doc("lot", |d| {
        d.str("$meta", "randVal");
    });
    SortPattern::parse(&b.finish())
}

fn limit(n: u64) -> Stage {
    let mut b = DocBuilder::new();
    b.i64("$limit", i64::try_from(n).unwrap_or(i64::MAX));
    Stage::new(b.finish(), Limit(n))
}

/// A `$group` as one side does it.
fn in_phase(stage: &Stage, group: &Group, phase: Phase) -> Stage {
    let mut b = DocBuilder::new();
    b.doc("$group", |d| {
        if let Some(spec) = stage.text.get("$group").and_then(|v| v.as_doc()) {
            d.elems_of(spec);
        }
        if let Some(name) = phase.option() {
            d.bool(name, true);
        }
    });
    let text: DocBuf = b.finish();
    Stage::new(text, group.in_phase(phase))
}

/// No shard has to send more than the merger takes in all.
fn tell_limit(shards: &mut Vec<Stage>, merger: &[Stage]) {
    let mut skipped = 0u64;
    for stage in merger {
        match stage.spec {
            Spec::Skip(Skip(n)) => skipped = skipped.saturating_add(n),
            Spec::Limit(Limit(n)) => {
                let enough = skipped.saturating_add(n);
                let told = match shards.last().map(|s| &s.spec) {
                    Some(Spec::Limit(Limit(n))) => *n <= enough,
                    Some(Spec::Sample(sample)) => sample.size as u64 <= enough,
                    _ => false,
                };
                if !told {
                    shards.push(limit(enough));
                }
                return;
            }
            _ if stage.is_one_for_one() => {}
            _ => return,
        }
    }
}
