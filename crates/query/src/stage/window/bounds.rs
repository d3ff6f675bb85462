//! Which documents a window holds.

use super::partition::{Partition, Place};
use crate::date::{self, Unit, Zone};
use crate::number::Number;
use pando_base::{Error, Result};
use pando_bson::compare::cmp_values;
use std::ops::Range;

#[derive(Clone, Copy, Debug)]
pub(super) enum Bound {
    Unbounded,
    Current,
    Documents(i64),
    Range(Number),
}

#[derive(Clone, Debug)]
pub(super) struct Bounds {
    pub(super) lower: Bound,
    pub(super) upper: Bound,
    pub(super) by_range: bool,
    pub(super) unit: Option<Unit>,
    /// A range needs an ascending sort by one field.
    pub(super) sorted_upwards: bool,
    /// The last window, from where the next one is looked for.
    last: Range<usize>,
}

impl Bounds {
    pub(super) fn new(lower: Bound, upper: Bound, by_range: bool, unit: Option<Unit>) -> Bounds {
        Bounds { lower, upper, by_range, unit, sorted_upwards: true, last: 0..0 }
    }
    pub(super) fn whole() -> Bounds {
        Bounds::new(Bound::Unbounded, Bound::Unbounded, false, None)
    }
    pub(super) fn restart(&mut self) {
        self.last = 0..0;
    }
    pub(super) fn is_whole(&self) -> bool {
        matches!((self.lower, self.upper), (Bound::Unbounded, Bound::Unbounded))
    }

    /// How many documents behind its own a window holds at most; `None` when only they can tell.
    pub(super) fn ahead(&self) -> Option<usize> {
        match self.upper {
            Bound::Current => Some(0),
            Bound::Documents(by) => Some(usize::try_from(by).unwrap_or(0)),
            Bound::Unbounded | Bound::Range(_) => None,
        }
    }

    /// Documents enter windows but never leave them.
    pub(super) fn only_grows(&self) -> bool {
        matches!(self.lower, Bound::Unbounded)
    }

    /// The window of document `at`; asked in order.
    pub(super) fn window(&mut self, p: &Partition, at: usize) -> Result<Range<usize>> {
        let n = p.len();
        if self.by_range {
            return self.range(p, at);
        }
        if self.is_whole() {
            return Ok(0..n);
        }
        let offset = |by: i64| (at as i64).saturating_add(by);
        let low = match self.lower {
            Bound::Documents(by) => offset(by).clamp(0, n as i64) as usize,
            Bound::Current => at,
            _ => 0,
        };
        let high = match self.upper {
            Bound::Documents(by) => (offset(by).saturating_add(1)).clamp(0, n as i64) as usize,
            Bound::Current => at + 1,
            _ => n,
        };
        Ok(low..high.max(low))
    }

    fn range(&mut self, p: &Partition, at: usize) -> Result<Range<usize>> {
        if !self.sorted_upwards {
            return Err(Error::location(5_429_404, "Missing _sortExpr with range-based bounds"));
        }
        let n = p.len();
        let base = self.check(p, at)?;
        let (mut low, mut high) = (self.last.start, self.last.end.max(self.last.start));
        low = match self.lower {
            Bound::Unbounded => 0,
            // The document itself, whatever others are equal to it.
            Bound::Current => at,
            bound => {
                let edge = self.edge(base, bound)?;
                while low < n && below(p, low, edge)? {
                    low += 1;
                }
                low
            }
        };
        high = match self.upper {
            Bound::Unbounded => n,
            Bound::Current => at + 1,
            bound => {
                let edge = self.edge(base, bound)?;
                high = high.max(low);
                while high < n && !above(p, high, edge)? {
                    high += 1;
                }
                high
            }
        };
        let high = high.max(low);
        self.last = low..high;
        Ok(low..high)
    }

    fn check(&self, p: &Partition, at: usize) -> Result<Place> {
        let kind = p.sort_value(at)?;
        let text = |wanted: &str| {
            format!(
                "Invalid range: Expected the sortBy field to be a {wanted}, but it was {}",
                kind.type_name()
            )
        };
        match (p.place(at)?, self.unit) {
            (Some(place @ Place::Date(_)), Some(_)) | (Some(place @ Place::Number(_)), None) => Ok(place),
            (Some(Place::Date(_)), None) => Err(Error::location(
                5_429_413,
                "Invalid range: For windows that involve date or time ranges, a unit must be provided.",
            )),
            (_, Some(_)) => Err(Error::location(5_429_513, text("Date"))),
            (_, None) => Err(Error::location(5_429_414, text("number"))),
        }
    }

    fn edge(&self, base: Place, bound: Bound) -> Result<Place> {
        let overflow = || Error::location(5_429_410, "Date overflow in a range-based window");
        Ok(match (base, bound) {
            (Place::Number(n), Bound::Range(by)) => Place::Number(n + by),
            (Place::Date(ms), Bound::Range(by)) => {
                let unit = self.unit.unwrap_or(Unit::Millisecond);
                let by = by.truncate_i64().ok_or_else(overflow)?;
                Place::Date(date::add(ms, unit, by, &Zone::Utc).ok_or_else(overflow)?)
            }
            (base, _) => base,
        })
    }
}

fn compare(p: &Partition, at: usize, edge: Place) -> Result<std::cmp::Ordering> {
    use pando_bson::Value;
    let value = p.sort_value(at)?;
    let edge = match edge {
        Place::Number(n) => n.value(),
        Place::Date(ms) => Value::DateTime(ms),
    };
    Ok(cmp_values(value.value().unwrap_or(Value::Null), edge))
}

fn below(p: &Partition, at: usize, edge: Place) -> Result<bool> {
    Ok(compare(p, at, edge)?.is_lt())
}

fn above(p: &Partition, at: usize, edge: Place) -> Result<bool> {
    Ok(compare(p, at, edge)?.is_gt())
}
