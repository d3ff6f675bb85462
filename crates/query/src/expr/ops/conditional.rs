//! `$cond`, `$ifNull`, `$switch`.

use crate::ctx::QueryCtx;
use crate::expr::{Expr, Op, ParseCtx, Scope, Val, parts};
use pando_base::{Error, Result};
use pando_bson::Value;

#[derive(Clone)]
struct Cond {
    test: Expr,
    yes: Expr,
    no: Expr,
}

pub(in crate::expr) fn parse_cond(name: &'static str, v: Value<'_>, p: &mut ParseCtx<'_>) -> Result<Expr> {
    let Value::Document(d) = v else {
        let mut args = p.args(name, v, 3, 3)?.into_iter();
        return match (args.next(), args.next(), args.next()) {
            (Some(test), Some(yes), Some(no)) => Ok(Expr::Op(Box::new(Cond { test, yes, no }))),
            _ => Err(Error::internal("$cond lost an argument")),
        };
    };
    let (mut test, mut yes, mut no) = (None, None, None);
    for e in d {
        let slot = match e.name() {
            "if" => &mut test,
            "then" => &mut yes,
            "else" => &mut no,
            other => return Err(Error::location(17083, format!("Unrecognized parameter to $cond: {other}"))),
        };
        *slot = Some(p.parse(e.value())?);
    }
    let missing = |code, which: &str| Error::location(code, format!("Missing '{which}' parameter to $cond"));
    Ok(Expr::Op(Box::new(Cond {
        test: test.ok_or_else(|| missing(17080, "if"))?,
        yes: yes.ok_or_else(|| missing(17081, "then"))?,
        no: no.ok_or_else(|| missing(17082, "else"))?,
    })))
}

impl Op for Cond {
    fn name(&self) -> &'static str {
        "$cond"
    }
    fn eval<'s>(&'s self, scope: &Scope<'s>) -> Result<Val<'s>> {
        if self.test.eval(scope)?.is_truthy() { self.yes.eval(scope) } else { self.no.eval(scope) }
    }
    parts!(test, yes, no);
    fn folds(&self) -> bool {
        true
    }
    fn simplify(&mut self, _: &QueryCtx) -> Result<Option<Expr>> {
        let Some(test) = self.test.as_const() else { return Ok(None) };
        let taken = if test.is_truthy() { &mut self.yes } else { &mut self.no };
        Ok(Some(std::mem::replace(taken, Expr::null())))
    }
}

#[derive(Clone)]
struct IfNull {
    args: Vec<Expr>,
}

pub(in crate::expr) fn parse_if_null(name: &'static str, v: Value<'_>, p: &mut ParseCtx<'_>) -> Result<Expr> {
    let args = p.args(name, v, 0, usize::MAX)?;
    if args.len() < 2 {
        return Err(Error::location(
            1257300,
            format!("$ifNull needs at least two arguments, had: {}", args.len()),
        ));
    }
    Ok(Expr::Op(Box::new(IfNull { args })))
}

impl Op for IfNull {
    fn name(&self) -> &'static str {
        "$ifNull"
    }
    fn eval<'s>(&'s self, scope: &Scope<'s>) -> Result<Val<'s>> {
        let Some((last, candidates)) = self.args.split_last() else { return Ok(Val::NULL) };
        for e in candidates {
            let v = e.eval(scope)?;
            if !v.is_nullish() {
                return Ok(v);
            }
        }
        last.eval(scope)
    }
    parts!(args);
    fn folds(&self) -> bool {
        true
    }
    fn simplify(&mut self, _: &QueryCtx) -> Result<Option<Expr>> {
        // Constants that are null are passed over; another ends the list.
        let last = self.args.len().saturating_sub(1);
        let ends = |e: &Expr| e.as_const().is_some_and(|v| !v.is_nullish());
        let end = self.args.iter().position(ends).unwrap_or(last);
        self.args.truncate(end + 1);
        let mut at = 0;
        self.args.retain(|e| {
            at += 1;
            at > end || !e.as_const().is_some_and(Val::is_nullish)
        });
        Ok(if self.args.len() == 1 { self.args.pop() } else { None })
    }
}

#[derive(Clone)]
struct Switch {
    branches: Vec<(Expr, Expr)>,
    default: Option<Expr>,
}

pub(in crate::expr) fn parse_switch(_: &'static str, v: Value<'_>, p: &mut ParseCtx<'_>) -> Result<Expr> {
    let Value::Document(d) = v else {
        return Err(Error::location(
            40060,
            format!("$switch requires an object as an argument, found: {}", v.type_name()),
        ));
    };
    let mut switch = Switch { branches: Vec::new(), default: None };
    for e in d {
        match e.name() {
            "branches" => {
                let Value::Array(branches) = e.value() else {
                    return Err(Error::location(
                        40061,
                        format!("$switch expected an array for 'branches', found: {}", e.ty.name()),
                    ));
                };
                for b in branches {
                    switch.branches.push(parse_branch(b.value(), p)?);
                }
            }
            "default" => switch.default = Some(p.parse(e.value())?),
            other => {
                return Err(Error::location(40067, format!("$switch found an unknown argument: {other}")));
            }
        }
    }
    if switch.branches.is_empty() {
        return Err(Error::location(40068, "$switch requires at least one branch"));
    }
    Ok(Expr::Op(Box::new(switch)))
}

fn parse_branch(v: Value<'_>, p: &mut ParseCtx<'_>) -> Result<(Expr, Expr)> {
    let Value::Document(d) = v else {
        return Err(Error::location(
            40062,
            format!("$switch expected each branch to be an object, found: {}", v.type_name()),
        ));
    };
    let (mut case, mut then) = (None, None);
    for e in d {
        match e.name() {
            "case" => case = Some(p.parse(e.value())?),
            "then" => then = Some(p.parse(e.value())?),
            other => {
                return Err(Error::location(
                    40063,
                    format!("$switch found an unknown argument to a branch: {other}"),
                ));
            }
        }
    }
    let case =
        case.ok_or_else(|| Error::location(40064, "$switch requires each branch have a 'case' expression"))?;
    let then =
        then.ok_or_else(|| Error::location(40065, "$switch requires each branch have a 'then' expression."))?;
    Ok((case, then))
}

impl Switch {
    fn no_match(&self) -> Error {
        Error::location(
            40066,
            "$switch could not find a matching branch for an input, and no default was specified.",
        )
    }
}

impl Op for Switch {
    fn name(&self) -> &'static str {
        "$switch"
    }
    fn eval<'s>(&'s self, scope: &Scope<'s>) -> Result<Val<'s>> {
        for (case, then) in &self.branches {
            if case.eval(scope)?.is_truthy() {
                return then.eval(scope);
            }
        }
        match &self.default {
            Some(e) => e.eval(scope),
            None => Err(self.no_match()),
        }
    }
    fn parts(&self) -> Vec<&Expr> {
        let branches = self.branches.iter().flat_map(|(c, t)| [c, t]);
        branches.chain(&self.default).collect()
    }
    fn parts_mut(&mut self) -> Vec<&mut Expr> {
        let branches = self.branches.iter_mut().flat_map(|(c, t)| [c, t]);
        branches.chain(&mut self.default).collect()
    }
    fn simplify(&mut self, _: &QueryCtx) -> Result<Option<Expr>> {
        // Branches that can never be taken go; one that is always taken ends the list.
        self.branches.retain(|(case, _)| case.as_const().is_none_or(Val::is_truthy));
        if let Some(at) = self.branches.iter().position(|(case, _)| case.as_const().is_some()) {
            let (_, then) = self.branches.swap_remove(at);
            self.branches.truncate(at);
            self.default = Some(then);
        }
        if !self.branches.is_empty() {
            return Ok(None);
        }
        match self.default.take() {
            Some(e) => Ok(Some(e)),
            None => Err(Error::location(
                40069,
                "Cannot execute a switch statement where all the cases evaluate to false without a default",
            )),
        }
    }
}
