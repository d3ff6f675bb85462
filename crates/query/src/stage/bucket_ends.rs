//! A `$group` by the source that looks at least and greatest values only: buckets know these, and need not be unpacked.
//!
//! Such a bucket gives two measurements, one of the least and one of the greatest values. One whose ends do not tell (they
//! are null, documents or arrays, which are not compared as `$min` and `$max` do) is unpacked as ever.

use super::Pipeline;
use super::ask_buckets::Ask;
use crate::timeseries::Extent;
use pando_bson::{DocBuf, DocBuilder, Elem, ElementType as T, RawDoc, Value};

/// What a `$group` looks at.
pub(crate) struct Extremes {
    /// Its `_id` is made of these.
    pub(super) by: Vec<String>,
    /// Paths whose least or greatest value it gives.
    pub(super) of: Vec<String>,
}

impl Pipeline {
    /// `at` is the unpacking.
    pub(super) fn ask_for_ends(&mut self, at: usize) {
        let (Some(series), Some(wanted)) =
            (self.stages[at].as_unpack(), self.stages.get(at + 1).and_then(|s| s.as_extremes()))
        else {
            return;
        };
        let ask = Ask::of(&series, &self.ctx);
        let root = |path: &str| path.split('.').next().unwrap_or_default().to_owned();
        // The least time of a bucket is rounded; by a collation the ends may be others.
        let known = |path: &String| root(path) != ask.time && ask.renamed(path).is_none();
        let by_source = wanted.by.iter().all(|path| ask.renamed(path).is_some());
        if self.ctx.collation.is_some() || wanted.of.is_empty() || !by_source || !wanted.of.iter().all(known)
        {
            return;
        }
        let paths = wanted.of.iter().map(|path| path.split('.').map(str::to_owned).collect());
        self.stages[at].give_ends(paths.collect());
    }
}

fn is_plain(e: &Elem<'_>) -> bool {
    !matches!(e.ty, T::Null | T::Undefined | T::Document | T::Array)
}

/// A bucket of two measurements with the same ends; `None` when they do not tell.
pub(super) fn instead_of(bucket: &RawDoc, time_field: &str, paths: &[Vec<String>]) -> Option<DocBuf> {
    let control = bucket.get("control")?.as_doc()?;
    let (min, max) = (control.get("min")?.as_doc()?, control.get("max")?.as_doc()?);
    let mut roots: Vec<&str> = Vec::new();
    for path in paths {
        match Extent::of(min, max, path) {
            Extent::Absent => {}
            Extent::Between(low, high) if is_plain(&low) && is_plain(&high) => {
                let root = path.first()?.as_str();
                if !roots.contains(&root) {
                    roots.push(root);
                }
            }
            _ => return None,
        }
    }
    let mut b = DocBuilder::with_capacity(256);
    b.doc("control", |c| {
        c.i32("version", 1);
    });
    if let Some(meta) = bucket.elem("meta") {
        b.elem(meta);
    }
    b.doc("data", |d| {
        d.doc(time_field, |t| {
            t.value("0", Value::DateTime(0)).value("1", Value::DateTime(0));
        });
        for root in roots {
            d.doc(root, |column| {
                for (row, end) in [("0", min), ("1", max)] {
                    if let Some(e) = end.elem(root) {
                        column.raw(e.ty, row, e.data());
                    }
                }
            });
        }
    });
    Some(b.finish())
}
