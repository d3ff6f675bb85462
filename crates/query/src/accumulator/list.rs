//! `$push` and `$addToSet`: missing values are left out.

use super::Accumulator;
use crate::ctx::QueryCtx;
use crate::expr::Val;
use crate::value_set::ValueSet;
use pando_base::{Error, ErrorCode, Result};
use pando_bson::ArrayBuilder;

fn check_bytes(name: &str, bytes: usize, max: usize) -> Result<()> {
    if bytes > max {
        return Err(Error::new(
            ErrorCode::ExceededMemoryLimit,
            format!("{name} used too much memory and cannot spill to disk. Memory limit: {max} bytes"),
        ));
    }
    Ok(())
}

#[derive(Default)]
pub(crate) struct Push(ArrayBuilder);

impl Accumulator for Push {
    fn add(&mut self, v: Val<'_>, ctx: &QueryCtx) -> Result<()> {
        if let Some(v) = v.value() {
            self.0.value(v);
            check_bytes("$push", self.0.byte_len(), ctx.memory.push)?;
        }
        Ok(())
    }
    fn goes_on(&self) -> bool {
        false
    }
    fn result(&mut self) -> Result<Val<'static>> {
        Ok(Val::Array(std::mem::take(&mut self.0).finish()))
    }
    fn heap_bytes(&self) -> usize {
        self.0.byte_len()
    }
    fn partial(&mut self) -> Result<Val<'static>> {
        self.result()
    }
    fn merge(&mut self, partial: Val<'_>, ctx: &QueryCtx) -> Result<()> {
        for e in partial.as_array().into_iter().flatten() {
            self.add(Val::Ref(e.value()), ctx)?;
        }
        Ok(())
    }
}

#[derive(Default)]
pub(crate) struct AddToSet {
    set: ValueSet,
    values: ArrayBuilder,
}

impl Accumulator for AddToSet {
    fn add(&mut self, v: Val<'_>, ctx: &QueryCtx) -> Result<()> {
        if let Some(v) = v.value()
            && self.set.insert(v, ctx)
        {
            self.values.value(v);
            check_bytes("$addToSet", self.values.byte_len(), ctx.memory.add_to_set)?;
        }
        Ok(())
    }
    fn goes_on(&self) -> bool {
        false
    }
    fn result(&mut self) -> Result<Val<'static>> {
        Ok(Val::Array(std::mem::take(&mut self.values).finish()))
    }
    fn heap_bytes(&self) -> usize {
        self.values.byte_len() + self.set.heap_bytes()
    }
    fn partial(&mut self) -> Result<Val<'static>> {
        self.result()
    }
    fn merge(&mut self, partial: Val<'_>, ctx: &QueryCtx) -> Result<()> {
        for e in partial.as_array().into_iter().flatten() {
            self.add(Val::Ref(e.value()), ctx)?;
        }
        Ok(())
    }
}
