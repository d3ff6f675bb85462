//! `$first` and `$last`: a missing value counts, and shows as null.

use super::Accumulator;
use crate::ctx::QueryCtx;
use crate::expr::Val;
use pando_base::Result;

fn shown(v: &Val<'static>) -> Val<'static> {
    if v.is_missing() { Val::NULL } else { v.clone() }
}

#[derive(Default)]
pub(crate) struct First(Option<Val<'static>>);

impl Accumulator for First {
    fn add(&mut self, v: Val<'_>, _: &QueryCtx) -> Result<()> {
        if self.0.is_none() {
            self.0 = Some(v.into_owned());
        }
        Ok(())
    }
    fn is_settled(&self) -> bool {
        self.0.is_some()
    }
    fn result(&mut self) -> Result<Val<'static>> {
        Ok(self.0.as_ref().map_or(Val::NULL, shown))
    }
    fn heap_bytes(&self) -> usize {
        self.0.as_ref().map_or(0, Val::heap_bytes)
    }
    fn partial(&mut self) -> Result<Val<'static>> {
        self.result()
    }
    fn merge(&mut self, partial: Val<'_>, ctx: &QueryCtx) -> Result<()> {
        self.add(partial, ctx)
    }
}

#[derive(Default)]
pub(crate) struct Last(Option<Val<'static>>);

impl Accumulator for Last {
    fn add(&mut self, v: Val<'_>, _: &QueryCtx) -> Result<()> {
        self.0 = Some(v.into_owned());
        Ok(())
    }
    fn result(&mut self) -> Result<Val<'static>> {
        Ok(self.0.as_ref().map_or(Val::NULL, shown))
    }
    fn heap_bytes(&self) -> usize {
        self.0.as_ref().map_or(0, Val::heap_bytes)
    }
    fn partial(&mut self) -> Result<Val<'static>> {
        self.result()
    }
    fn merge(&mut self, partial: Val<'_>, ctx: &QueryCtx) -> Result<()> {
        self.add(partial, ctx)
    }
}
