//! `$and`, `$or`, `$not`.

use crate::ctx::QueryCtx;
use crate::expr::{Call, Expr, Op, ParseCtx, Scope, Val, parts};
use pando_base::Result;
use pando_bson::Value;

/// Stops at the first member that decides.
#[derive(Clone)]
struct Junction {
    name: &'static str,
    members: Vec<Expr>,
    /// The truth of a member that decides, and of the whole then.
    decisive: bool,
}

fn parse(name: &'static str, decisive: bool, v: Value<'_>, p: &mut ParseCtx<'_>) -> Result<Expr> {
    let members = p.args(name, v, 0, usize::MAX)?;
    Ok(Expr::Op(Box::new(Junction { name, members, decisive })))
}

pub(in crate::expr) fn parse_and(name: &'static str, v: Value<'_>, p: &mut ParseCtx<'_>) -> Result<Expr> {
    parse(name, false, v, p)
}

pub(in crate::expr) fn parse_or(name: &'static str, v: Value<'_>, p: &mut ParseCtx<'_>) -> Result<Expr> {
    parse(name, true, v, p)
}

impl Op for Junction {
    fn name(&self) -> &'static str {
        self.name
    }
    fn eval<'s>(&'s self, scope: &Scope<'s>) -> Result<Val<'s>> {
        for member in &self.members {
            if member.eval(scope)?.is_truthy() == self.decisive {
                return Ok(Val::bool(self.decisive));
            }
        }
        Ok(Val::bool(!self.decisive))
    }
    parts!(members);
    fn folds(&self) -> bool {
        true
    }
    fn simplify(&mut self, _: &QueryCtx) -> Result<Option<Expr>> {
        // A constant decides, or can go.
        let constants = || self.members.iter().filter_map(Expr::as_const);
        if constants().any(|v| v.is_truthy() == self.decisive) {
            return Ok(Some(Expr::Const(Val::bool(self.decisive))));
        }
        self.members.retain(|e| e.as_const().is_none());
        if self.members.is_empty() {
            return Ok(Some(Expr::Const(Val::bool(!self.decisive))));
        }
        Ok(None)
    }
}

pub(in crate::expr) fn not<'v>(args: &[Val<'v>], _: &Call<'_>) -> Result<Val<'v>> {
    Ok(Val::bool(!args[0].is_truthy()))
}
