//! `$let`.

use crate::ctx::QueryCtx;
use crate::expr::{Expr, Held, Op, ParseCtx, Scope, Val, VarId, check_user_var_name, parts};
use pando_base::{Error, Result};
use pando_bson::Value;

#[derive(Clone)]
struct Let {
    vars: Vec<(VarId, Expr)>,
    body: Expr,
}

pub(in crate::expr) fn parse_let(_: &'static str, v: Value<'_>, p: &mut ParseCtx<'_>) -> Result<Expr> {
    let Value::Document(d) = v else {
        return Err(Error::location(16874, "$let only supports an object as its argument"));
    };
    let (mut vars, mut body) = (None, None);
    for e in d {
        match e.name() {
            "vars" => vars = Some(e.value()),
            "in" => body = Some(e.value()),
            other => return Err(Error::location(16875, format!("Unrecognized parameter to $let: {other}"))),
        }
    }
    let vars = vars.ok_or_else(|| Error::location(16876, "Missing 'vars' parameter to $let"))?;
    let body = body.ok_or_else(|| Error::location(16877, "Missing 'in' parameter to $let"))?;
    let Value::Document(vars) = vars else {
        return Err(Error::location(10065, "invalid parameter: expected an object (vars)"));
    };
    // All of them are evaluated outside the new names.
    let mut values = Vec::new();
    for e in vars {
        check_user_var_name(e.name())?;
        values.push((e.name(), p.parse(e.value())?));
    }
    let mark = p.mark();
    let vars = values.into_iter().map(|(name, e)| (p.bind(name), e)).collect();
    let body = p.parse(body);
    p.forget(mark);
    Ok(Expr::Op(Box::new(Let { vars, body: body? })))
}

impl Op for Let {
    fn name(&self) -> &'static str {
        "$let"
    }
    fn eval<'s>(&'s self, scope: &Scope<'s>) -> Result<Val<'s>> {
        let (mut values, mut held, mut bytes) = (Vec::with_capacity(self.vars.len()), Held::default(), 0);
        for (id, e) in &self.vars {
            let value = e.eval(scope)?;
            bytes += value.heap_bytes();
            held.set(bytes)?;
            values.push((*id, value));
        }
        let frame = scope.frame_of(&values);
        Ok(self.body.eval(&scope.within(&frame))?.into_owned())
    }
    fn simplify(&mut self, _: &QueryCtx) -> Result<Option<Expr>> {
        Ok(self.vars.is_empty().then(|| self.body.clone()))
    }
    parts!(vars, body);
}
