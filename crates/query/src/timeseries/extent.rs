//! What the least and greatest value of a field say about the measurements of a bucket.
//!
//! Values are ordered by their class first, so that the two ends tell which classes lie between them. Arrays may hide
//! there: they are compared element by element with a condition, but as wholes when the ends were found. The same goes for
//! documents in the middle of a path.

use pando_bson::compare::canonical_type;
use pando_bson::{Elem, ElementType, RawDoc};

/// A field in `control.min` and `control.max`.
#[derive(Clone, Copy, Debug)]
pub enum Extent<'a> {
    /// No measurement has it.
    Absent,
    /// All values are scalars or documents between the two.
    Between(Elem<'a>, Elem<'a>),
    /// The ends do not tell: there may be arrays, or documents of which the ends know nothing.
    Unknown,
}

fn class(e: &Elem<'_>) -> u8 {
    canonical_type(e.ty)
}

/// Whether the classes from `min` to `max` include one that stands for itself only.
fn may_hide(min: &Elem<'_>, max: &Elem<'_>, ty: ElementType) -> bool {
    (class(min)..=class(max)).contains(&canonical_type(ty))
}

impl<'a> Extent<'a> {
    /// Of the dotted path `parts` below the two documents.
    pub fn of<S: AsRef<str>>(min: &'a RawDoc, max: &'a RawDoc, parts: &[S]) -> Extent<'a> {
        let (mut min, mut max) = (min, max);
        for (i, part) in parts.iter().enumerate() {
            let (low, high) = match (min.elem(part.as_ref()), max.elem(part.as_ref())) {
                (None, None) => return Extent::Absent,
                (Some(low), Some(high)) => (low, high),
                _ => return Extent::Unknown,
            };
            if may_hide(&low, &high, ElementType::Array) {
                return Extent::Unknown;
            }
            if i + 1 == parts.len() {
                return Extent::Between(low, high);
            }
            if low.ty == ElementType::Document && high.ty == ElementType::Document {
                (min, max) = (RawDoc::trusted(low.data()), RawDoc::trusted(high.data()));
            } else if may_hide(&low, &high, ElementType::Document) {
                return Extent::Unknown;
            } else {
                return Extent::Absent;
            }
        }
        Extent::Unknown
    }
}

/// Whether an index on `control.min.f` and `control.max.f` cannot tell by these ends which measurements a bucket has.
/// Such an index counts as one over arrays.
pub fn hides_values<S: AsRef<str>>(bucket: &RawDoc, parts: &[S]) -> bool {
    let control = bucket.get("control").and_then(|c| c.as_doc());
    let ends = control.and_then(|c| Some((c.get("min")?.as_doc()?, c.get("max")?.as_doc()?)));
    ends.is_some_and(|(min, max)| matches!(Extent::of(min, max, parts), Extent::Unknown))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_bson::{Document, doc};

    fn told(min: Document, max: Document, path: &str) -> &'static str {
        let parts: Vec<&str> = path.split('.').collect();
        match Extent::of(&min.to_raw(), &max.to_raw(), &parts) {
            Extent::Absent => "absent",
            Extent::Between(..) => "between",
            Extent::Unknown => "unknown",
        }
    }

    #[test]
    fn arrays_and_documents_may_hide_between_the_ends() {
        assert_eq!(told(doc! { "x": 1 }, doc! { "x": "a" }, "x"), "between");
        assert_eq!(told(doc! { "x": 1 }, doc! { "x": true }, "x"), "unknown");
        assert_eq!(told(doc! { "x": [1] }, doc! { "x": [2] }, "x"), "unknown");
        assert_eq!(told(doc! { "x": false }, doc! { "x": true }, "x"), "between");
        assert_eq!(told(doc! {}, doc! {}, "x"), "absent");
        assert_eq!(told(doc! {}, doc! { "x": 1 }, "x"), "unknown");
    }

    #[test]
    fn a_path_goes_through_documents_on_both_sides() {
        assert_eq!(told(doc! { "x": { "y": 1 } }, doc! { "x": { "y": 5 } }, "x.y"), "between");
        assert_eq!(told(doc! { "x": 1 }, doc! { "x": { "y": 5 } }, "x.y"), "unknown");
        assert_eq!(told(doc! { "x": { "y": 1 } }, doc! { "x": true }, "x.y"), "unknown");
        assert_eq!(told(doc! { "x": 1 }, doc! { "x": 7 }, "x.y"), "absent");
        assert_eq!(told(doc! { "x": { "z": 1 } }, doc! { "x": { "z": 5 } }, "x.y"), "absent");
    }
}
