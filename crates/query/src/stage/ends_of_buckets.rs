//! Buckets that stand for others: two measurements with the same least and greatest values.

use crate::timeseries::Extent;
use pando_bson::{DocBuf, DocBuilder, Elem, ElementType as T, RawDoc, Value};

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
