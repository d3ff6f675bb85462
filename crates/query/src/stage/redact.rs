//! `$redact`: keeps, drops or looks into each document and its sub-documents, as an expression says.

use super::needs::Needs;
use super::parsed::{Compiled, Parsed};
use super::running::{Running, Start};
use super::step::Step;
use super::upstream::Upstream;
use crate::ctx::QueryCtx;
use crate::expr::{Expr, ParseCtx, Scope, Val, VarId, shown};
use pando_base::{Error, Result};
use pando_bson::{ArrayBuilder, DocBuf, DocBuilder, Elem, RawDoc, Value};

/// Parts of documents.
#[derive(Clone, PartialEq)]
pub(crate) struct Redact(Compiled<Judge>);

#[derive(Clone)]
struct Judge {
    expr: Expr,
    /// `$$CURRENT`: the document being judged.
    current: VarId,
}

pub(super) fn parse(e: Elem<'_>, p: &mut ParseCtx<'_>) -> Result<Redact> {
    let mark = p.mark();
    let current = p.bind("CURRENT");
    p.judges = true;
    let expr = p.parse(e.value());
    p.judges = false;
    p.forget(mark);
    Ok(Redact(Compiled(Judge { expr: expr?, current })))
}

impl Parsed for Redact {
    fn start(self, _: &mut Start<'_>) -> Result<Box<dyn Running>> {
        Ok(Box::new(self.0.0))
    }
    fn needs(&self, needs: &mut Needs) {
        needs.whole();
    }
    fn optimize(&mut self, ctx: &QueryCtx) -> Result<()> {
        self.0.expr.optimize(ctx)
    }
}

impl Judge {
    /// `None` when the document is dropped.
    fn redact(&self, doc: &RawDoc, scope: &Scope<'_>) -> Result<Option<DocBuf>> {
        let this = Val::Ref(Value::Document(doc));
        let frame = scope.frame(self.current, &this);
        let verdict = self.expr.eval(&scope.within(&frame))?;
        match verdict.as_str() {
            Some("keep") => Ok(Some(doc.to_buf())),
            Some("prune") => Ok(None),
            Some("descend") => {
                let mut b = DocBuilder::with_capacity(doc.byte_len());
                for e in doc {
                    match e.value() {
                        Value::Document(d) => {
                            if let Some(d) = self.redact(d, scope)? {
                                b.raw_doc(e.name_bytes(), &d);
                            }
                        }
                        Value::Array(a) => {
                            b.raw_array(e.name_bytes(), &self.redact_array(a, scope)?);
                        }
                        _ => {
                            b.elem(e);
                        }
                    }
                }
                Ok(Some(b.finish()))
            }
            _ => Err(Error::location(
                17053,
                format!(
                    "$redact's expression should not return anything aside from the variables $$KEEP, $$DESCEND, and \
                     $$PRUNE, but returned {}",
                    shown(&verdict)
                ),
            )),
        }
    }
    fn redact_array(&self, array: &RawDoc, scope: &Scope<'_>) -> Result<DocBuf> {
        let mut out = ArrayBuilder::new();
        for e in array {
            match e.value() {
                Value::Document(d) => {
                    if let Some(d) = self.redact(d, scope)? {
                        out.raw_doc(&d);
                    }
                }
                Value::Array(a) => {
                    out.value(Value::Array(&self.redact_array(a, scope)?));
                }
                v => {
                    out.value(v);
                }
            }
        }
        Ok(out.finish())
    }
}

impl Running for Judge {
    fn next(&mut self, up: &mut Upstream<'_>) -> Result<Step> {
        loop {
            let row = match up.next()? {
                Step::Row(row) => row,
                step => return Ok(step),
            };
            let scope = Scope::new(row.doc(), up.ctx()).with_facts(row.facts());
            if let Some(doc) = self.redact(row.doc(), &scope)? {
                return Ok(Step::Row(row.becomes(doc.into())));
            }
        }
    }
}
