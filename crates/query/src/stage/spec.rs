//! The stages of a parsed pipeline, whichever they are.

use super::bucket_auto::BucketAuto;
use super::conditions;
use super::densify::Densify;
use super::distances::Distances;
use super::facet::Facet;
use super::geo_near::NearPart;
use super::graph_lookup::GraphLookup;
use super::group::Group;
use super::limit::Limit;
use super::lookup_spec::Lookup;
use super::matching::Match;
use super::needs::Needs;
use super::parsed::{Origin, Parsed};
use super::redact::Redact;
use super::running::{Running, Start};
use super::sample::Sample;
use super::skip::Skip;
use super::sort::Sort;
use super::transform::Reshape;
use super::union_with::UnionWith;
use super::unpack_bucket::UnpackBucket;
use super::unsorted::Unsorted;
use super::unwind::Unwind;
use super::window::WindowFields;
use crate::ctx::QueryCtx;
use pando_base::Result;
use pando_bson::{DocBuf, RawDoc};
use std::collections::BTreeSet;

macro_rules! specs {
    ($($kind:ident($data:ty)),* $(,)?) => {
        /// What a stage is.
        #[derive(Clone, PartialEq)]
        pub(crate) enum Spec {
            $($kind($data)),*
        }
        impl Spec {
            fn start(self, run: &mut Start<'_>) -> Result<Box<dyn Running>> {
                match self { $(Spec::$kind(s) => s.start(run)),* }
            }
            pub(super) fn needs(&self, needs: &mut Needs) {
                match self { $(Spec::$kind(s) => s.needs(needs)),* }
            }
            fn optimize(&mut self, ctx: &QueryCtx) -> Result<()> {
                match self { $(Spec::$kind(s) => s.optimize(ctx)),* }
            }
            pub(super) fn origin(&self, path: &str) -> Option<Origin> {
                match self { $(Spec::$kind(s) => s.origin(path)),* }
            }
        }
        $(impl From<$data> for Spec {
            fn from(s: $data) -> Spec {
                Spec::$kind(s)
            }
        })*
    };
}

specs! {
    BucketAuto(BucketAuto),
    Densify(Densify),
    Distances(Distances),
    Facet(Facet),
    GeoNear(NearPart),
    GraphLookup(GraphLookup),
    Group(Group),
    Limit(Limit),
    Lookup(Lookup),
    Match(Match),
    Redact(Redact),
    Sample(Sample),
    Skip(Skip),
    Sort(Sort),
    Reshape(Reshape),
    UnionWith(UnionWith),
    UnpackBucket(UnpackBucket),
    Unsorted(Unsorted),
    Unwind(Unwind),
    WindowFields(WindowFields),
}

/// One stage of a parsed pipeline.
#[derive(Clone)]
pub(crate) struct Stage {
    /// `{$name: …}`, which stands for this stage alone.
    pub(super) text: DocBuf,
    /// explain leaves it out: it goes with another one.
    pub(super) hidden: bool,
    pub(super) spec: Spec,
}

impl PartialEq for Stage {
    fn eq(&self, other: &Stage) -> bool {
        self.text == other.text && self.spec == other.spec
    }
}

impl Stage {
    pub(super) fn new(text: DocBuf, spec: impl Into<Spec>) -> Stage {
        Stage { text, hidden: false, spec: spec.into() }
    }
    pub(super) fn hidden(text: DocBuf, spec: impl Into<Spec>) -> Stage {
        Stage { text, hidden: true, spec: spec.into() }
    }
    /// A `$match` of this filter.
    pub(super) fn matching(filter: &RawDoc, ctx: &QueryCtx) -> Result<Stage> {
        Ok(Stage::new(conditions::text(filter), Match::new(filter, ctx)?))
    }
    pub(super) fn optimize(&mut self, ctx: &QueryCtx) -> Result<()> {
        self.spec.optimize(ctx)
    }
    pub(super) fn start(self, run: &mut Start<'_>) -> Result<Box<dyn Running>> {
        self.spec.start(run)
    }

    /// How explain shows it, before that is spelled out; `None` for what goes with another one.
    pub(super) fn shown(&self, ctx: &QueryCtx) -> Option<DocBuf> {
        if self.hidden && self.sort().is_none_or(|s| s.bounded.is_none()) {
            return None;
        }
        Some(match &self.spec {
            Spec::Distances(distances) => distances.shown(),
            Spec::Lookup(join) => join.shown(&self.text, ctx),
            Spec::Sort(sort) => match &sort.bounded {
                Some(by) => sort.shown_bounded(by),
                None => self.text.clone(),
            },
            _ => self.text.clone(),
        })
    }
    /// Writes the text of an unpacking anew, when what it gives out has changed.
    pub(super) fn spell_unpacking(&mut self) {
        if let Spec::UnpackBucket(unpack) = &self.spec {
            (self.text, self.hidden) = (unpack.text(), false);
        }
    }

    /// The filter of a `$match`.
    pub(super) fn filter(&self) -> Option<&RawDoc> {
        match &self.spec {
            Spec::Match(m) => Some(m.filter()),
            _ => None,
        }
    }
    pub(super) fn near(&self) -> Option<&NearPart> {
        match &self.spec {
            Spec::GeoNear(near) => Some(near),
            _ => None,
        }
    }
    pub(super) fn unpacking(&self) -> Option<&UnpackBucket> {
        match &self.spec {
            Spec::UnpackBucket(unpack) => Some(unpack),
            _ => None,
        }
    }
    pub(super) fn sort(&self) -> Option<&Sort> {
        match &self.spec {
            Spec::Sort(sort) => Some(sort),
            _ => None,
        }
    }
    pub(super) fn sort_mut(&mut self) -> Option<&mut Sort> {
        match &mut self.spec {
            Spec::Sort(sort) => Some(sort),
            _ => None,
        }
    }
    /// Begins with a search for words.
    pub(super) fn has_text(&self) -> bool {
        matches!(&self.spec, Spec::Match(m) if m.has_text())
    }
    /// Gives one document for each that comes in, in the same order.
    pub(super) fn is_one_for_one(&self) -> bool {
        match &self.spec {
            Spec::Reshape(_) => true,
            Spec::Lookup(join) => join.unwind.is_none(),
            _ => false,
        }
    }
    pub(super) fn is_union(&self) -> bool {
        matches!(self.spec, Spec::UnionWith(_))
    }
    /// Makes one document of each, of nothing but that.
    pub(super) fn is_reshaping(&self) -> bool {
        matches!(self.spec, Spec::Reshape(_))
    }
    /// A `$project` that keeps named fields.
    pub(super) fn is_inclusion(&self) -> bool {
        matches!(&self.spec, Spec::Reshape(reshape) if reshape.is_inclusion())
    }
    /// Leaves out documents, whatever is in them.
    pub(super) fn cuts(&self) -> bool {
        matches!(self.spec, Spec::Limit(_) | Spec::Sample(_) | Spec::Skip(_))
    }
    /// Its rows may nest deeper than those it gets.
    pub(super) fn may_nest(&self) -> bool {
        !matches!(
            self.spec,
            Spec::Limit(_) | Spec::Match(_) | Spec::Sample(_) | Spec::Skip(_) | Spec::Sort(_)
        )
    }
    /// Its rows are new ones, of which nothing is known.
    pub(super) fn drops_facts(&self) -> bool {
        matches!(self.spec, Spec::Group(_) | Spec::UnpackBucket(_))
    }
    /// It has many rows at a time, or the same several times, and keeps only these fields of them.
    pub(super) fn kept_fields(&self) -> Option<&Option<BTreeSet<String>>> {
        match &self.spec {
            Spec::Sample(s) => Some(&s.keep),
            Spec::Unwind(u) => Some(&u.keep),
            Spec::WindowFields(w) => Some(&w.keep),
            _ => None,
        }
    }
    pub(super) fn kept_fields_mut(&mut self) -> Option<&mut Option<BTreeSet<String>>> {
        match &mut self.spec {
            Spec::Sample(s) => Some(&mut s.keep),
            Spec::Unwind(u) => Some(&mut u.keep),
            Spec::WindowFields(w) => Some(&mut w.keep),
            _ => None,
        }
    }
}

/// What these stages read of the input.
pub(super) fn add_needs(stages: &[Stage], needs: &mut Needs) {
    for stage in stages {
        stage.spec.needs(needs);
        if needs.is_settled() {
            break;
        }
    }
}
