//! `$mergeObjects`: later fields win, null and missing are skipped.

use super::Accumulator;
use crate::ctx::QueryCtx;
use crate::expr::Val;
use pando_base::{Error, Result};
use pando_bson::{DocBuf, DocBuilder, RawDoc};

#[derive(Default)]
pub(crate) struct MergeObjects(DocBuf);

/// `b` over `a`: fields of `a` keep their place.
pub(crate) fn merged(a: &RawDoc, b: &RawDoc) -> DocBuf {
    if a.is_empty() {
        return b.to_buf();
    }
    let mut out = DocBuilder::with_capacity(a.byte_len() + b.byte_len());
    for e in a {
        out.elem(b.elem(e.name()).unwrap_or(e));
    }
    for e in b {
        if a.elem(e.name()).is_none() {
            out.elem(e);
        }
    }
    out.finish()
}

impl Accumulator for MergeObjects {
    fn add(&mut self, v: Val<'_>, _: &QueryCtx) -> Result<()> {
        if v.is_nullish() {
            return Ok(());
        }
        let Some(d) = v.as_doc() else {
            return Err(Error::location(5911200, "$mergeObjects only supports objects"));
        };
        self.0 = merged(&self.0, d);
        Ok(())
    }
    fn goes_on(&self) -> bool {
        false
    }
    fn result(&mut self) -> Result<Val<'static>> {
        Ok(Val::Doc(std::mem::take(&mut self.0)))
    }
    fn heap_bytes(&self) -> usize {
        self.0.byte_len()
    }
    fn partial(&mut self) -> Result<Val<'static>> {
        self.result()
    }
    fn merge(&mut self, partial: Val<'_>, ctx: &QueryCtx) -> Result<()> {
        self.add(partial, ctx)
    }
}
