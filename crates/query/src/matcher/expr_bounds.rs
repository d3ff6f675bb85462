//! What an `$expr` implies about single fields, so that an index can narrow the search. The expression itself is always
//! evaluated as well, so what is said here may be too little, never too much.

use super::compare::{CmpOp, Comparison};
use super::node::{Node, Pred};
use super::operand::Operand;
use crate::ctx::QueryCtx;
use crate::expr::Expr;
use pando_bson::ElementType as T;

/// Comparisons of fields with constants that hold wherever the expression does.
pub(super) fn implied(expr: &Expr, ctx: &QueryCtx) -> Vec<Node> {
    let mut out = Vec::new();
    collect(expr, ctx, &mut out);
    out
}

fn collect(expr: &Expr, ctx: &QueryCtx, out: &mut Vec<Node>) {
    match expr {
        Expr::Op(op) if op.name() == "$and" => op.parts().into_iter().for_each(|e| collect(e, ctx, out)),
        Expr::Nary(n) if n.args.len() == 2 => {
            let Some(op) = operator(n.name) else { return };
            let node = comparison(op, &n.args[0], &n.args[1], ctx)
                .or_else(|| comparison(flipped(op), &n.args[1], &n.args[0], ctx));
            out.extend(node);
        }
        _ => {}
    }
}

fn operator(name: &str) -> Option<CmpOp> {
    Some(match name {
        "$eq" => CmpOp::Eq,
        "$lt" => CmpOp::Lt,
        "$lte" => CmpOp::Lte,
        "$gt" => CmpOp::Gt,
        "$gte" => CmpOp::Gte,
        _ => return None,
    })
}

fn flipped(op: CmpOp) -> CmpOp {
    match op {
        CmpOp::Eq => CmpOp::Eq,
        CmpOp::Lt => CmpOp::Gt,
        CmpOp::Lte => CmpOp::Gte,
        CmpOp::Gt => CmpOp::Lt,
        CmpOp::Gte => CmpOp::Lte,
    }
}

fn comparison(op: CmpOp, field: &Expr, constant: &Expr, ctx: &QueryCtx) -> Option<Node> {
    let path = field.as_field().filter(|p| !p.is_whole())?;
    // A number is a field's name in expressions, a position in filters and indexes.
    if path.parts().iter().any(|p| p.bytes().all(|b| b.is_ascii_digit())) {
        return None;
    }
    let rhs = Operand::from(constant.as_const()?.value()?);
    let plain = !matches!(rhs.ty(), T::Null | T::Undefined | T::Array | T::Regex | T::MinKey | T::MaxKey);
    plain.then(|| Node::leaf(&path.dotted(), Pred::Implied(Comparison::new(op, rhs, ctx.collation.clone()))))
}
