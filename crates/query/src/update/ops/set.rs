//! `$set`, `$setOnInsert`, `$unset`.

use crate::update::modifier::{Apply, Arg, Blocked, Effect, Modifier, Stored, value_depth};
use crate::update::path::Path;
use pando_base::Result;
use pando_bson::{Elem, ElementType};

#[derive(Debug)]
struct Set {
    value: Stored,
    only_on_insert: bool,
}

pub(super) fn parse(arg: &Arg<'_>) -> Result<Box<dyn Modifier>> {
    Ok(Box::new(Set { value: Stored::of(arg.elem), only_on_insert: false }))
}

pub(super) fn parse_on_insert(arg: &Arg<'_>) -> Result<Box<dyn Modifier>> {
    Ok(Box::new(Set { value: Stored::of(arg.elem), only_on_insert: true }))
}

impl Modifier for Set {
    fn update(&self, _cx: &Apply<'_>, old: Elem<'_>, _path: &Path<'_>, out: &mut Vec<u8>) -> Result<Effect> {
        if self.value.is_same(old) {
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
    fn idle(&self, cx: &Apply<'_>) -> bool {
        self.only_on_insert && !cx.insert
    }
}

#[derive(Debug)]
struct Unset;

pub(super) fn parse_unset(_arg: &Arg<'_>) -> Result<Box<dyn Modifier>> {
    Ok(Box::new(Unset))
}

impl Modifier for Unset {
    fn update(&self, _: &Apply<'_>, _: Elem<'_>, _: &Path<'_>, _: &mut Vec<u8>) -> Result<Effect> {
        Ok(Effect::Remove)
    }
    fn create(&self, _: &Apply<'_>, _: &mut Vec<u8>) -> Result<Option<ElementType>> {
        Ok(None)
    }
    fn blocked(&self, _: &Apply<'_>) -> Result<Blocked> {
        Ok(Blocked::Ignore)
    }
}
