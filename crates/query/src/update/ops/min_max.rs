//! `$min` and `$max`.

use crate::update::modifier::{Apply, Arg, Effect, Modifier, Stored, value_depth};
use crate::update::path::Path;
use pando_base::Result;
use pando_bson::{Elem, ElementType};
use std::cmp::Ordering;

#[derive(Debug)]
struct Bound {
    value: Stored,
    /// The new value wins when it compares so to the old one.
    wins: Ordering,
}

pub(super) fn parse_min(arg: &Arg<'_>) -> Result<Box<dyn Modifier>> {
    Ok(Box::new(Bound { value: Stored::of(arg.elem), wins: Ordering::Less }))
}

pub(super) fn parse_max(arg: &Arg<'_>) -> Result<Box<dyn Modifier>> {
    Ok(Box::new(Bound { value: Stored::of(arg.elem), wins: Ordering::Greater }))
}

impl Modifier for Bound {
    fn update(&self, cx: &Apply<'_>, old: Elem<'_>, _path: &Path<'_>, out: &mut Vec<u8>) -> Result<Effect> {
        if cx.compare(self.value.value(), old.value()) != self.wins {
            return Ok(Effect::Same);
        }
        Ok(Effect::Set(self.value.put(out)))
    }
    fn create(&self, _cx: &Apply<'_>, out: &mut Vec<u8>) -> Result<Option<ElementType>> {
        Ok(Some(self.value.put(out)))
    }
    fn depth(&self) -> usize {
        value_depth(self.value.value())
    }
}
