//! A `$group` by the source that looks at least and greatest values only: buckets know these, and need not be unpacked.
//!
//! Such a bucket gives two measurements, one of the least and one of the greatest values. One whose ends do not tell (they
//! are null, documents or arrays, which are not compared as `$min` and `$max` do) is unpacked as ever.

use super::ask_buckets::Ask;
use super::pipeline::Pipeline;
use super::spec::Spec;

impl Pipeline {
    /// `at` is the unpacking.
    pub(super) fn ask_for_ends(&mut self, at: usize) {
        let extremes = |spec: &Spec| match spec {
            Spec::Group(group) => group.extremes(),
            _ => None,
        };
        let (Some(series), Some(wanted)) =
            (self.stages[at].unpacking(), self.stages.get(at + 1).and_then(|s| extremes(&s.spec)))
        else {
            return;
        };
        let ask = Ask::of(series, &self.ctx);
        let root = |path: &str| path.split('.').next().unwrap_or_default().to_owned();
        // The least time of a bucket is rounded; by a collation the ends may be others.
        let known = |path: &String| root(path) != ask.time && ask.renamed(path).is_none();
        let by_source = wanted.by.iter().all(|path| ask.renamed(path).is_some());
        if self.ctx.collation.is_some() || wanted.of.is_empty() || !by_source || !wanted.of.iter().all(known)
        {
            return;
        }
        let paths = wanted.of.iter().map(|path| path.split('.').map(str::to_owned).collect());
        let paths = paths.collect();
        if let Spec::UnpackBucket(unpack) = &mut self.stages[at].spec {
            unpack.ends = Some(paths);
        }
    }
}
