//! The table of expression operators: a row is a name, its arity or parser, and the function behind it.
//!
//! Rows are grouped by family, as in the documentation; lookup is by a sorted index made once.

use super::ops::*;
use super::{Expr, NaryFn, ParseCtx};
use pando_base::Result;
use pando_bson::Value;
use std::sync::OnceLock;

/// How an operator is made from its argument.
pub(super) enum Def {
    /// Positional arguments, all evaluated, then given to one function.
    Nary { min: usize, max: usize, f: NaryFn, pure: bool },
    /// A parser of its own.
    Parse(fn(&'static str, Value<'_>, &mut ParseCtx<'_>) -> Result<Expr>),
}

const MANY: usize = usize::MAX;

const fn fixed(n: usize, f: NaryFn) -> Def {
    Def::Nary { min: n, max: n, f, pure: true }
}
const fn ranged(min: usize, max: usize, f: NaryFn) -> Def {
    Def::Nary { min, max, f, pure: true }
}
const fn many(f: NaryFn) -> Def {
    Def::Nary { min: 0, max: MANY, f, pure: true }
}
/// As [`fixed`], but its errors wait until a document is read.
const fn late(min: usize, max: usize, f: NaryFn) -> Def {
    Def::Nary { min, max, f, pure: false }
}

/// The row of an operator.
pub(super) fn find(name: &str) -> Option<(&'static str, &'static Def)> {
    static INDEX: OnceLock<Vec<u16>> = OnceLock::new();
    let index = INDEX.get_or_init(|| {
        let mut rows: Vec<u16> = (0..TABLE.len() as u16).collect();
        rows.sort_by_key(|&i| TABLE[i as usize].0);
        rows
    });
    let at = index.binary_search_by(|&i| TABLE[i as usize].0.cmp(name)).ok()?;
    let (name, def) = &TABLE[index[at] as usize];
    Some((name, def))
}

#[rustfmt::skip]
static TABLE: &[(&str, Def)] = &[
    // arithmetic
    ("$add", many(arith::add)),
    ("$subtract", fixed(2, arith::subtract)),
    ("$multiply", many(arith::multiply)),
    ("$divide", fixed(2, arith::divide)),
    ("$mod", fixed(2, arith::modulo)),
    // boolean and comparison
    ("$and", Def::Parse(boolean::parse_and)),
    ("$or", Def::Parse(boolean::parse_or)),
    ("$not", fixed(1, boolean::not)),
    ("$cmp", fixed(2, compare::cmp)),
    ("$eq", fixed(2, compare::eq)),
    ("$ne", fixed(2, compare::ne)),
    ("$gt", fixed(2, compare::gt)),
    ("$gte", fixed(2, compare::gte)),
    ("$lt", fixed(2, compare::lt)),
    ("$lte", fixed(2, compare::lte)),
    // conditional
    ("$cond", Def::Parse(conditional::parse_cond)),
    ("$ifNull", Def::Parse(conditional::parse_if_null)),
    ("$switch", Def::Parse(conditional::parse_switch)),
    // variables and literals
    ("$let", Def::Parse(variables::parse_let)),
    ("$literal", Def::Parse(literal::parse_literal)),
    ("$const", Def::Parse(literal::parse_literal)),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_all_found() {
        for (name, _) in TABLE {
            assert_eq!(TABLE.iter().filter(|(n, _)| n == name).count(), 1, "{name}");
            assert_eq!(find(name).map(|(n, _)| n), Some(*name));
        }
        assert!(find("$nope").is_none());
    }
}
