//! Plans as trees of stages.

use super::bound_field::BoundField;
use super::key_bounds::KeyBounds;
use super::near_output::NearOutput;
use crate::collation::Collation;
use crate::geo::{GeoIndex, NearQuery};
use crate::matcher::{Matcher, Operand, Path, TextMeaning};
use crate::projection::Projection;
use crate::sort::SortPattern;
use crate::source::{Direction, Owned, RecordId};
use pando_bson::DocBuf;
use std::sync::Arc;

/// One stage and what feeds it.
#[derive(Clone, Debug)]
pub enum PlanNode {
    CollScan(CollScan),
    /// One document by its `_id`.
    IdHack {
        key: Operand,
    },
    IxScan(Arc<IxScan>),
    /// Nearest first.
    GeoNear(Arc<GeoNear>),
    /// The index entries' distinct values of one field.
    DistinctScan(Arc<DistinctScan>),
    Fetch {
        input: Box<PlanNode>,
        filter: Option<Arc<Matcher>>,
    },
    /// Rows of documents that this shard owns. `key_fields` name the fields of the index keys that it judges by; empty: it judges by
    /// documents.
    ShardFilter {
        input: Box<PlanNode>,
        owned: Arc<dyn Owned>,
        key_fields: Vec<String>,
    },
    /// What only the document can tell of a text search.
    TextMatch(TextMatch),
    /// Records of all inputs with the sum of their scores; `filter` is over keys.
    TextOr {
        inputs: Vec<PlanNode>,
        filter: Option<Arc<Matcher>>,
        key_fields: Vec<String>,
    },
    /// Like [`PlanNode::Or`], of rows whose keys match.
    KeyOr {
        inputs: Vec<PlanNode>,
        filter: Arc<Matcher>,
        key_fields: Vec<String>,
    },
    /// All rows of all inputs, each record once.
    Or {
        inputs: Vec<PlanNode>,
    },
    /// Inputs in order, merged; each record once.
    SortMerge {
        inputs: Vec<PlanNode>,
        pattern: Arc<SortPattern>,
        keys: Vec<SortKeySource>,
        dedup: bool,
    },
    /// `limit` 0 = all.
    Sort {
        input: Box<PlanNode>,
        pattern: Arc<SortPattern>,
        limit: u64,
        keys: SortKeySource,
    },
    /// Adds the sort key to rows that are already in order, for `$meta: "sortKey"`.
    SortKeyGenerator {
        input: Box<PlanNode>,
        pattern: Arc<SortPattern>,
    },
    Skip {
        input: Box<PlanNode>,
        n: u64,
    },
    Limit {
        input: Box<PlanNode>,
        n: u64,
    },
    /// `key_fields` name the fields of the index keys that rows carry; rows without documents are made from them.
    Project {
        input: Box<PlanNode>,
        projection: Arc<Projection>,
        kind: ProjectKind,
        key_fields: Vec<String>,
    },
    /// Says what is read of the rows by those who get them. They go on whole: cutting them down would be work for nothing.
    Reads {
        input: Box<PlanNode>,
        projection: Arc<Projection>,
    },
    /// Rows are the index keys used.
    ReturnKey {
        input: Box<PlanNode>,
        fields: Vec<String>,
    },
    /// Nothing.
    Eof,
}

#[derive(Clone, Debug)]
pub struct TextMatch {
    /// Position among the collection's indexes.
    pub index: usize,
    /// Values of the fields before the term.
    pub prefix: DocBuf,
    pub meaning: Arc<TextMeaning>,
    pub input: Box<PlanNode>,
}

#[derive(Clone, Debug)]
pub struct CollScan {
    pub filter: Option<Arc<Matcher>>,
    pub dir: Direction,
    /// Both inclusive; for clustered collections.
    pub min: Option<RecordId>,
    pub max: Option<RecordId>,
    /// `max` itself is left out.
    pub max_exclusive: bool,
    /// By `_id` of a clustered collection.
    pub clustered: bool,
    pub tailable: bool,
    /// Goes on behind this record.
    pub resume_after: Option<RecordId>,
}

impl CollScan {
    /// The record that ends the scan and is not part of it.
    #[inline]
    pub(crate) fn is_beyond(&self, rid: &RecordId) -> bool {
        self.max_exclusive && Some(rid) == self.max.as_ref()
    }
}

#[derive(Clone, Debug)]
pub struct IxScan {
    /// Position among the collection's indexes.
    pub index: usize,
    pub dir: Direction,
    pub fields: Vec<BoundField>,
    pub bounds: KeyBounds,
    /// Over the key's fields, under their dotted paths as plain names.
    pub filter: Option<Arc<Matcher>>,
    /// A record may be met more than once.
    pub dedup: bool,
    /// Rows carry their keys.
    pub keep_key: bool,
    pub wild_path: Option<String>,
}

/// A search for what is near a place.
#[derive(Debug)]
pub struct GeoNear {
    /// Position among the collection's indexes.
    pub index: usize,
    pub geo: Arc<GeoIndex>,
    /// The index's fields, and which of them is the place.
    pub fields: Vec<BoundField>,
    pub place: usize,
    pub near: Arc<NearQuery>,
    pub path: Path,
    /// Over the key's fields.
    pub filter: Option<Arc<Matcher>>,
    pub collation: Option<Arc<Collation>>,
    pub output: Option<Arc<NearOutput>>,
    /// Rows have to tell how near they are.
    pub tells: bool,
}

#[derive(Debug)]
pub struct DistinctScan {
    pub scan: Arc<IxScan>,
    /// Position of the field whose values are wanted.
    pub field: usize,
    /// Its path.
    pub key: String,
    pub gives: Gives,
}

/// The rows of a [`DistinctScan`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Gives {
    /// Documents with nothing but the field.
    Values,
    /// As an index scan gives them.
    Entries,
}

/// Where a sort takes its keys from.
#[derive(Clone, Debug)]
pub enum SortKeySource {
    Documents,
    /// Field `i` of the sort is field `.0` of the index key, turned round if `.1`.
    IndexKeys(Vec<(usize, bool)>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProjectKind {
    /// Top-level fields kept.
    Simple,
    /// From the index key alone; dotted paths count as [`ProjectKind::Default`] in explain.
    Covered,
    Default,
}

impl PlanNode {
    pub fn fetch(self, filter: Option<Arc<Matcher>>) -> PlanNode {
        PlanNode::Fetch { input: Box::new(self), filter }
    }
    /// The stage's name in explain output.
    pub fn stage_name(&self) -> &'static str {
        match self {
            PlanNode::CollScan(c) if c.clustered => "CLUSTERED_IXSCAN",
            PlanNode::CollScan(_) => "COLLSCAN",
            PlanNode::IdHack { .. } => "IDHACK",
            PlanNode::IxScan(_) => "IXSCAN",
            PlanNode::GeoNear(n) if n.is_sphere() => "GEO_NEAR_2DSPHERE",
            PlanNode::GeoNear(_) => "GEO_NEAR_2D",
            PlanNode::DistinctScan(_) => "DISTINCT_SCAN",
            PlanNode::Fetch { .. } => "FETCH",
            PlanNode::ShardFilter { .. } => "SHARDING_FILTER",
            PlanNode::TextMatch(_) => "TEXT_MATCH",
            PlanNode::TextOr { .. } => "TEXT_OR",
            PlanNode::Or { .. } | PlanNode::KeyOr { .. } => "OR",
            PlanNode::SortMerge { .. } => "SORT_MERGE",
            PlanNode::Sort { .. } => "SORT",
            PlanNode::SortKeyGenerator { .. } => "SORT_KEY_GENERATOR",
            PlanNode::Skip { .. } => "SKIP",
            PlanNode::Limit { .. } => "LIMIT",
            PlanNode::Project { kind: ProjectKind::Simple, .. } => "PROJECTION_SIMPLE",
            PlanNode::Project { kind: ProjectKind::Covered, .. } => "PROJECTION_COVERED",
            PlanNode::Project { kind: ProjectKind::Default, .. } => "PROJECTION_DEFAULT",
            PlanNode::Reads { projection, .. } if projection.is_simple() => "PROJECTION_SIMPLE",
            PlanNode::Reads { .. } => "PROJECTION_DEFAULT",
            PlanNode::ReturnKey { .. } => "RETURN_KEY",
            PlanNode::Eof => "EOF",
        }
    }
    /// What feeds this stage.
    pub fn inputs(&self) -> &[PlanNode] {
        match self {
            PlanNode::Fetch { input, .. }
            | PlanNode::ShardFilter { input, .. }
            | PlanNode::Sort { input, .. }
            | PlanNode::SortKeyGenerator { input, .. }
            | PlanNode::Skip { input, .. }
            | PlanNode::Limit { input, .. }
            | PlanNode::Project { input, .. }
            | PlanNode::Reads { input, .. }
            | PlanNode::ReturnKey { input, .. } => std::slice::from_ref(input),
            PlanNode::TextMatch(t) => std::slice::from_ref(&*t.input),
            PlanNode::Or { inputs }
            | PlanNode::SortMerge { inputs, .. }
            | PlanNode::TextOr { inputs, .. }
            | PlanNode::KeyOr { inputs, .. } => inputs,
            PlanNode::CollScan(_)
            | PlanNode::IdHack { .. }
            | PlanNode::IxScan(_)
            | PlanNode::GeoNear(_)
            | PlanNode::DistinctScan(_)
            | PlanNode::Eof => &[],
        }
    }
    /// The index that the stage itself walks, by its position among the collection's; `IDHACK` looks up in the one by `_id`.
    pub fn index(&self) -> Option<usize> {
        match self {
            PlanNode::IxScan(s) => Some(s.index),
            PlanNode::DistinctScan(d) => Some(d.scan.index),
            PlanNode::GeoNear(n) => Some(n.index),
            _ => None,
        }
    }
    pub fn any(&self, test: &dyn Fn(&PlanNode) -> bool) -> bool {
        test(self) || self.inputs().iter().any(|n| n.any(test))
    }
    /// Sorts everything before it gives the first row.
    pub fn has_blocking_sort(&self) -> bool {
        self.any(&|n| matches!(n, PlanNode::Sort { .. }))
    }
}
