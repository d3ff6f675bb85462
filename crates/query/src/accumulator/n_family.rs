//! `$firstN`, `$lastN`, `$minN`, `$maxN`, `$top(N)`, `$bottom(N)`.
//!
//! All keep a bounded list: in order of arrival, of value, or of a sort key.

use super::Accumulator;
use crate::ctx::QueryCtx;
use crate::expr::Val;
use crate::number::Number;
use pando_base::{Error, ErrorCode, Result};
use pando_bson::{DocBuilder, Value};
use std::cmp::Ordering;
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NKind {
    First,
    Last,
    Min,
    Max,
    /// By sort key, the first ones.
    Top,
    /// By sort key, the last ones; of equal ones those that came first.
    Bottom,
    /// The same over a window that documents leave: of equal ones those that came last.
    BottomOfWindow,
}

pub(crate) struct NFamily {
    name: &'static str,
    kind: NKind,
    n: usize,
    /// `$top` and `$bottom` give the value instead of an array.
    single: bool,
    /// `First`, `Last`: in order of arrival. Others: in the order of the result.
    kept: VecDeque<(Box<[u8]>, Val<'static>)>,
    bytes: usize,
}

const ENTRY_BYTES: usize = std::mem::size_of::<(Box<[u8]>, Val<'static>)>();

impl NFamily {
    pub(crate) fn new(name: &'static str, kind: NKind, n: usize, single: bool) -> NFamily {
        NFamily { name, kind, n, single, kept: VecDeque::new(), bytes: 0 }
    }

    fn push_at(&mut self, at: usize, key: &[u8], v: Val<'_>, ctx: &QueryCtx) -> Result<()> {
        let v = v.into_owned();
        self.bytes += ENTRY_BYTES + key.len() + v.heap_bytes();
        if self.bytes > ctx.memory.top_n {
            return Err(Error::new(
                ErrorCode::ExceededMemoryLimit,
                format!(
                    "{} used too much memory and spilling to disk cannot reduce memory consumption any further. Memory limit: \
                     {} bytes",
                    self.name, ctx.memory.top_n
                ),
            ));
        }
        self.kept.insert(at, (key.into(), v));
        Ok(())
    }
    fn forget(&mut self, gone: Option<(Box<[u8]>, Val<'static>)>) {
        if let Some((key, v)) = gone {
            self.bytes -= ENTRY_BYTES + key.len() + v.heap_bytes();
        }
    }

    /// Keeps the list sorted; equal ones stay in order of arrival.
    fn add_sorted(
        &mut self,
        key: &[u8],
        v: Val<'_>,
        ctx: &QueryCtx,
        before: impl Fn(&(Box<[u8]>, Val<'static>)) -> bool,
    ) -> Result<()> {
        let at = self.kept.partition_point(before);
        if matches!(self.kind, NKind::Bottom | NKind::BottomOfWindow) {
            // The last n are wanted: the front goes when it gets too long.
            if self.kept.len() == self.n {
                let stays =
                    |front: &(Box<[u8]>, Val<'static>)| self.kind == NKind::Bottom && *front.0 == *key;
                if at == 0 || self.kept.front().is_some_and(stays) {
                    return Ok(());
                }
                let gone = self.kept.pop_front();
                self.forget(gone);
                return self.push_at(at - 1, key, v, ctx);
            }
            return self.push_at(at, key, v, ctx);
        }
        if at >= self.n {
            return Ok(());
        }
        if self.kept.len() == self.n {
            let gone = self.kept.pop_back();
            self.forget(gone);
        }
        self.push_at(at, key, v, ctx)
    }
}

impl Accumulator for NFamily {
    fn add(&mut self, v: Val<'_>, ctx: &QueryCtx) -> Result<()> {
        match self.kind {
            NKind::First => {
                if self.kept.len() < self.n {
                    self.push_at(self.kept.len(), &[], v, ctx)?;
                }
                Ok(())
            }
            NKind::Last => {
                if self.kept.len() == self.n {
                    let gone = self.kept.pop_front();
                    self.forget(gone);
                }
                self.push_at(self.kept.len(), &[], v, ctx)
            }
            NKind::Min | NKind::Max => {
                if v.is_nullish() {
                    return Ok(());
                }
                let view = v.clone();
                let Some(new) = view.value() else { return Ok(()) };
                // Among equals the largest list gives the latest first, the smallest list the earliest.
                let max = self.kind == NKind::Max;
                let order =
                    |old: &Val<'static>| old.value().map_or(Ordering::Less, |old| ctx.compare(old, new));
                if max
                    && self.kept.len() == self.n
                    && self.kept.back().is_some_and(|(_, last)| order(last).is_eq())
                {
                    return Ok(());
                }
                self.add_sorted(
                    &[],
                    v,
                    ctx,
                    |(_, old)| if max { order(old).is_gt() } else { order(old).is_le() },
                )
            }
            NKind::Top | NKind::Bottom | NKind::BottomOfWindow => {
                Err(Error::internal(format!("{} without a sort key", self.name)))
            }
        }
    }
    fn add_keyed(&mut self, key: &[u8], v: Val<'_>, ctx: &QueryCtx) -> Result<()> {
        self.add_sorted(key, v, ctx, |(old, _)| **old <= *key)
    }
    fn goes_on(&self) -> bool {
        false
    }
    fn result(&mut self) -> Result<Val<'static>> {
        let mut values = std::mem::take(&mut self.kept).into_iter().map(|(_, v)| v);
        if self.single {
            let v = values.next_back().unwrap_or(Val::Missing);
            return Ok(if v.is_missing() { Val::NULL } else { v });
        }
        Ok(Val::array(values))
    }
    fn heap_bytes(&self) -> usize {
        self.bytes
    }
    fn partial(&mut self) -> Result<Val<'static>> {
        let entries = std::mem::take(&mut self.kept).into_iter().map(|(key, v)| {
            let mut b = DocBuilder::new();
            b.binary("k", 0, &key);
            v.put_to(&mut b, "v");
            Val::Doc(b.finish())
        });
        Ok(Val::array(entries))
    }
    fn merge(&mut self, partial: Val<'_>, ctx: &QueryCtx) -> Result<()> {
        for e in partial.as_array().into_iter().flatten() {
            // Values as they are come from MongoDB's servers.
            let own = e.value().as_doc().and_then(|entry| match entry.first()?.value() {
                Value::Binary { bytes, .. } if entry.elem("k").is_some() => Some((bytes, entry.get("v"))),
                _ => None,
            });
            match (self.kind, own) {
                (NKind::Top | NKind::Bottom | NKind::BottomOfWindow, Some((key, v))) => {
                    self.add_keyed(key, Val::option(v), ctx)?
                }
                (_, Some((_, v))) => self.add(Val::option(v), ctx)?,
                (_, None) => self.add(Val::Ref(e.value()), ctx)?,
            }
        }
        Ok(())
    }
}

/// The `n` of this family: a positive integer.
pub(crate) fn check_n(v: &Val<'_>) -> Result<usize> {
    let not_integral = |code| {
        let text = format!("Value for 'n' must be of integral type, but found {}", crate::expr::shown(v));
        Error::location(code, text)
    };
    let Some(number) = v.value().and_then(Number::of) else { return Err(not_integral(5_787_902)) };
    if let (Number::Double(_), None) = (number, number.truncate_i64()) {
        let text = format!("Can't coerce out of range value {} to long", number.shown());
        return Err(Error::location(31109, text));
    }
    // A decimal may be off by what a double does not show.
    let whole = number.truncate_i64().filter(|n| *n as f64 == number.to_f64());
    let Some(n) = whole else { return Err(not_integral(5_787_903)) };
    match usize::try_from(n) {
        Ok(n) if n > 0 => Ok(n),
        _ => Err(Error::location(5787908, format!("'n' must be greater than 0, found {n}"))),
    }
}
