//! `$let`.

use crate::expr::{Expr, Frame, Held, Op, ParseCtx, Scope, Val, VarId, check_user_var_name, parts};
use pando_base::{Error, Result};
use pando_bson::Value;

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

/// Evaluates the rest of the variables, then the body, one stack frame each.
fn bind_all<'s>(
    vars: &'s [(VarId, Expr)],
    body: &'s Expr,
    outer: &Scope<'s>,
    inner: &Scope<'_>,
) -> Result<Val<'static>> {
    let Some(((id, e), rest)) = vars.split_first() else {
        return Ok(body.eval(inner)?.into_owned());
    };
    let value = e.eval(outer)?;
    let _held = Held::of(&value)?;
    let frame: Frame<'_> = inner.frame(*id, &value);
    bind_all(rest, body, outer, &inner.within(&frame))
}

impl Op for Let {
    fn name(&self) -> &'static str {
        "$let"
    }
    fn eval<'s>(&'s self, scope: &Scope<'s>) -> Result<Val<'s>> {
        bind_all(&self.vars, &self.body, scope, scope)
    }
    parts!(vars, body);
}
