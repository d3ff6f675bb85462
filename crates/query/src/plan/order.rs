//! What an access gives beyond its rows: order, sort keys, and how far it narrows.

use super::access::{Access, shared_components};
use super::node::SortKeySource;
use crate::sort::SortPattern;
use crate::source::{Direction, FieldKind};

/// How much of an index an access pins down; for choosing without trying.
pub(super) fn score(a: &Access) -> u32 {
    let mut total = 0;
    let mut leading = true;
    for f in &a.fields {
        let worth = if f.intervals.is_everything() {
            leading = false;
            0
        } else if f.intervals.is_single_point() {
            8
        } else if f.intervals.all_points() {
            6
        } else {
            4
        };
        total += if leading { worth * 2 } else { worth };
        leading &= f.intervals.all_points();
    }
    total + a.done.iter().filter(|d| **d).count() as u32
}

/// The direction in which the scan gives the wanted order; `None` if neither does.
pub(super) fn order_of(a: &Access, sort: &SortPattern) -> Option<Direction> {
    let mut dir: Option<Direction> = None;
    let mut at = 0;
    for part in &sort.parts {
        if part.meta.is_some() {
            return None;
        }
        let fixed = |f: &super::bound_field::BoundField| f.multikey == 0 && f.intervals.is_single_point();
        if a.fields.iter().any(|f| f.name == part.path && fixed(f)) {
            continue;
        }
        loop {
            let f = a.fields.get(at)?;
            at += 1;
            if f.name == part.path {
                let descending = match f.kind {
                    FieldKind::Ascending => false,
                    FieldKind::Descending => true,
                    _ => return None,
                };
                if f.multikey != 0 && !array_order_holds(a, at - 1) {
                    return None;
                }
                let this =
                    if descending == part.descending { Direction::Forward } else { Direction::Backward };
                if *dir.get_or_insert(this) != this {
                    return None;
                }
                break;
            }
            if !fixed(f) {
                return None;
            }
        }
    }
    Some(dir.unwrap_or(Direction::Forward))
}

/// A document with an array sorts by its least element, so the scan must see all of them: no bounds on the
/// field, nor on another field through the same array.
fn array_order_holds(a: &Access, at: usize) -> bool {
    let field = &a.fields[at];
    field.intervals.is_everything()
        && a.fields.iter().enumerate().all(|(i, other)| {
            let shared = shared_components(&field.name, &other.name).min(63);
            let arrays = (field.multikey | other.multikey) & ((1 << shared) - 1);
            i == at || other.intervals.is_everything() || arrays == 0
        })
}

/// Sort keys as pieces of index keys, if the index has all parts.
pub(super) fn key_sort(a: &Access, sort: &SortPattern) -> Option<SortKeySource> {
    let parts = sort.parts.iter().map(|p| {
        let at = a.fields.iter().position(|f| f.name == p.path && p.meta.is_none())?;
        let descending = match a.fields[at].kind {
            FieldKind::Ascending => false,
            FieldKind::Descending => true,
            _ => return None,
        };
        Some((at, descending != p.descending))
    });
    Some(SortKeySource::IndexKeys(parts.collect::<Option<Vec<_>>>()?))
}
