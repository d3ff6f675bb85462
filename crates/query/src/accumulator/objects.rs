//! `$mergeObjects`: later fields win, null and missing are skipped.

use super::Accumulator;
use crate::ctx::QueryCtx;
use crate::expr::Val;
use pando_base::{Error, HashMap, Result};
use pando_bson::{DocBuf, DocBuilder, Elem, RawDoc};

#[derive(Default)]
pub(crate) struct MergeObjects(DocBuf);

/// `b` over `a`: fields of `a` keep their place.
pub(crate) fn merged(a: &RawDoc, b: &RawDoc) -> DocBuf {
    if a.is_empty() {
        return b.to_buf();
    }
    if a.byte_len().saturating_mul(b.byte_len()) > NAMES_WORTH_A_TABLE {
        return merged_by_table(a, b);
    }
    let mut out = DocBuilder::with_capacity(a.byte_len() + b.byte_len());
    for e in a {
        out.elem(b.elem(e.name_bytes()).unwrap_or(e));
    }
    for e in b {
        if a.elem(e.name_bytes()).is_none() {
            out.elem(e);
        }
    }
    out.finish()
}

/// Documents of so many bytes times so many are not searched field by field.
const NAMES_WORTH_A_TABLE: usize = 1 << 20;

/// The first of a name counts, as it does in a search.
fn by_name(d: &RawDoc) -> HashMap<&[u8], Elem<'_>> {
    let mut table = HashMap::default();
    for e in d {
        table.entry(e.name_bytes()).or_insert(e);
    }
    table
}

fn merged_by_table(a: &RawDoc, b: &RawDoc) -> DocBuf {
    let (of_a, of_b) = (by_name(a), by_name(b));
    let mut out = DocBuilder::with_capacity(a.byte_len() + b.byte_len());
    for e in a {
        out.elem(of_b.get(e.name_bytes()).copied().unwrap_or(e));
    }
    for e in b.iter().filter(|e| !of_a.contains_key(e.name_bytes())) {
        out.elem(e);
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
