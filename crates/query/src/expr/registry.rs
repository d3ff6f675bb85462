//! The table of expression operators: a row is a name, its arity or parser, and the function behind it.
//!
//! Rows are grouped by family, as in the documentation; lookup is by a sorted index made once.

use super::ops::{
    accumulate, arith, array, boolean, compare, conditional, convert, date_count, date_parts, date_text,
    function, iterate, literal, math, misc, objects, regexes, set, strings, trig, variables,
};
use super::parse::{Def, ParseCtx};
use super::tree::{Expr, Joins, NaryFn, Steps};
use crate::ctx::QueryCtx;
use pando_base::Result;
use pando_bson::Value;
use std::sync::OnceLock;

const MANY: usize = usize::MAX;

const fn fixed(n: usize, f: NaryFn) -> Def {
    Def::Nary { min: n, max: n, f, joins: Joins::No, steps: Steps::No }
}
const fn ranged(min: usize, max: usize, f: NaryFn) -> Def {
    Def::Nary { min, max, f, joins: Joins::No, steps: Steps::No }
}
const fn many(f: NaryFn) -> Def {
    Def::Nary { min: 0, max: MANY, f, joins: Joins::No, steps: Steps::No }
}
const fn joining(joins: Joins, f: NaryFn) -> Def {
    // Of these a null says nothing about the others.
    let steps = if matches!(joins, Joins::SeveralInAnyOrder) { Steps::No } else { Steps::Any };
    Def::Nary { min: 0, max: MANY, f, joins, steps }
}
/// Looks at each argument before the next one is evaluated.
const fn stepwise(steps: Steps, def: Def) -> Def {
    match def {
        Def::Nary { min, max, f, joins, .. } => Def::Nary { min, max, f, joins, steps },
        other => other,
    }
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

impl<'a> ParseCtx<'a> {
    /// Knows every operator.
    pub fn new(ctx: &'a QueryCtx) -> ParseCtx<'a> {
        ParseCtx::knowing(find, ctx)
    }
}

impl Expr {
    /// Parses an expression outside of any stage, and optimizes it.
    pub fn parse(v: Value<'_>, ctx: &QueryCtx) -> Result<Expr> {
        let mut expr = ParseCtx::new(ctx).parse(v)?;
        expr.optimize(ctx)?;
        Ok(expr)
    }
    /// `name` is an operator of expressions.
    pub fn is_operator(name: &str) -> bool {
        find(name).is_some()
    }
    /// Names of all operators, with the fewest and most arguments of those that only take a list.
    pub(crate) fn operators() -> impl Iterator<Item = (&'static str, Option<(usize, usize)>)> {
        TABLE.iter().map(|(name, def)| match def {
            Def::Nary { min, max, .. } => (*name, Some((*min, *max))),
            Def::Parse(_) => (*name, None),
        })
    }
}

#[rustfmt::skip]
static TABLE: &[(&str, Def)] = &[
    // arithmetic
    ("$add", joining(Joins::AnyOrder, arith::add)),
    ("$subtract", fixed(2, arith::subtract)),
    ("$multiply", joining(Joins::AnyOrder, arith::multiply)),
    ("$divide", fixed(2, arith::divide)),
    ("$mod", fixed(2, arith::modulo)),
    ("$abs", fixed(1, math::abs)),
    ("$ceil", fixed(1, math::ceil)),
    ("$exp", fixed(1, math::exp)),
    ("$floor", fixed(1, math::floor)),
    ("$ln", fixed(1, math::ln)),
    ("$log", fixed(2, math::log)),
    ("$log10", fixed(1, math::log10)),
    ("$pow", fixed(2, math::pow)),
    ("$round", stepwise(Steps::Numbers, ranged(1, 2, math::round))),
    ("$sqrt", fixed(1, math::sqrt)),
    ("$trunc", stepwise(Steps::Numbers, ranged(1, 2, math::trunc))),
    ("$bitAnd", many(math::bit_and)),
    ("$bitNot", fixed(1, math::bit_not)),
    ("$bitOr", many(math::bit_or)),
    ("$bitXor", many(math::bit_xor)),
    // trigonometry
    ("$acos", fixed(1, trig::acos)),
    ("$acosh", fixed(1, trig::acosh)),
    ("$asin", fixed(1, trig::asin)),
    ("$asinh", fixed(1, trig::asinh)),
    ("$atan", fixed(1, trig::atan)),
    ("$atan2", stepwise(Steps::Numbers, fixed(2, trig::atan2))),
    ("$atanh", fixed(1, trig::atanh)),
    ("$cos", fixed(1, trig::cos)),
    ("$cosh", fixed(1, trig::cosh)),
    ("$degreesToRadians", fixed(1, trig::degrees_to_radians)),
    ("$radiansToDegrees", fixed(1, trig::radians_to_degrees)),
    ("$sin", fixed(1, trig::sin)),
    ("$sinh", fixed(1, trig::sinh)),
    ("$tan", fixed(1, trig::tan)),
    ("$tanh", fixed(1, trig::tanh)),
    // accumulators over arguments or one array
    ("$avg", many(accumulate::avg)),
    ("$max", joining(Joins::SeveralInAnyOrder, accumulate::max)),
    ("$min", joining(Joins::SeveralInAnyOrder, accumulate::min)),
    ("$stdDevPop", many(accumulate::std_dev_pop)),
    ("$stdDevSamp", many(accumulate::std_dev_samp)),
    ("$sum", joining(Joins::SeveralInAnyOrder, accumulate::sum)),
    // arrays
    ("$arrayElemAt", fixed(2, array::array_elem_at)),
    ("$concatArrays", joining(Joins::InOrder, array::concat_arrays)),
    ("$filter", Def::Parse(iterate::parse_filter)),
    ("$first", fixed(1, array::first)),
    ("$firstN", Def::Parse(iterate::parse_n)),
    ("$in", fixed(2, array::is_in)),
    ("$indexOfArray", Def::Parse(array::parse_index_of_array)),
    ("$isArray", fixed(1, array::is_array)),
    ("$last", fixed(1, array::last)),
    ("$lastN", Def::Parse(iterate::parse_n)),
    ("$map", Def::Parse(iterate::parse_map)),
    ("$maxN", Def::Parse(iterate::parse_n)),
    ("$minN", Def::Parse(iterate::parse_n)),
    ("$range", stepwise(Steps::ThirdAlone, ranged(2, 3, array::range))),
    ("$reduce", Def::Parse(iterate::parse_reduce)),
    ("$reverseArray", fixed(1, array::reverse_array)),
    ("$size", fixed(1, array::size)),
    ("$slice", stepwise(Steps::ThirdAlone, ranged(2, 3, array::slice))),
    ("$sortArray", Def::Parse(iterate::parse_sort_array)),
    ("$zip", Def::Parse(iterate::parse_zip)),
    // sets
    ("$allElementsTrue", fixed(1, set::all_elements_true)),
    ("$anyElementTrue", fixed(1, set::any_element_true)),
    ("$setDifference", fixed(2, set::difference)),
    ("$setEquals", Def::Parse(set::parse_equals)),
    ("$setIntersection", joining(Joins::AnyOrder, set::intersection)),
    ("$setIsSubset", Def::Parse(set::parse_is_subset)),
    ("$setUnion", joining(Joins::AnyOrder, set::union)),
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
    // strings
    ("$concat", joining(Joins::InOrder, strings::concat)),
    ("$indexOfBytes", stepwise(Steps::TextThenNumbers, ranged(2, 4, strings::index_of_bytes))),
    ("$indexOfCP", stepwise(Steps::TextThenNumbers, ranged(2, 4, strings::index_of_cp))),
    ("$ltrim", Def::Parse(strings::parse_trim)),
    ("$regexFind", Def::Parse(regexes::parse)),
    ("$regexFindAll", Def::Parse(regexes::parse)),
    ("$regexMatch", Def::Parse(regexes::parse)),
    ("$replaceAll", Def::Parse(strings::parse_replace)),
    ("$replaceOne", Def::Parse(strings::parse_replace)),
    ("$rtrim", Def::Parse(strings::parse_trim)),
    ("$split", fixed(2, strings::split)),
    ("$strLenBytes", fixed(1, strings::str_len_bytes)),
    ("$strLenCP", fixed(1, strings::str_len_cp)),
    ("$strcasecmp", fixed(2, strings::strcasecmp)),
    ("$substr", Def::Parse(strings::parse_substr)),
    ("$substrBytes", Def::Parse(strings::parse_substr)),
    ("$substrCP", fixed(3, strings::substr_cp)),
    ("$toLower", fixed(1, strings::to_lower)),
    ("$toUpper", fixed(1, strings::to_upper)),
    ("$trim", Def::Parse(strings::parse_trim)),
    // objects
    ("$arrayToObject", fixed(1, objects::array_to_object)),
    ("$getField", Def::Parse(objects::parse_get_field)),
    ("$mergeObjects", stepwise(Steps::Any, many(objects::merge_objects))),
    ("$objectToArray", fixed(1, objects::object_to_array)),
    ("$setField", Def::Parse(objects::parse_set_field)),
    ("$unsetField", Def::Parse(objects::parse_set_field)),
    // dates
    ("$dateAdd", Def::Parse(date_count::parse_add)),
    ("$dateDiff", Def::Parse(date_count::parse_diff)),
    ("$dateFromParts", Def::Parse(date_parts::parse_from_parts)),
    ("$dateFromString", Def::Parse(date_text::parse_from_string)),
    ("$dateSubtract", Def::Parse(date_count::parse_add)),
    ("$dateToParts", Def::Parse(date_parts::parse_to_parts)),
    ("$dateToString", Def::Parse(date_text::parse_to_string)),
    ("$dateTrunc", Def::Parse(date_count::parse_trunc)),
    ("$dayOfMonth", Def::Parse(date_parts::parse_part)),
    ("$dayOfWeek", Def::Parse(date_parts::parse_part)),
    ("$dayOfYear", Def::Parse(date_parts::parse_part)),
    ("$hour", Def::Parse(date_parts::parse_part)),
    ("$isoDayOfWeek", Def::Parse(date_parts::parse_part)),
    ("$isoWeek", Def::Parse(date_parts::parse_part)),
    ("$isoWeekYear", Def::Parse(date_parts::parse_part)),
    ("$millisecond", Def::Parse(date_parts::parse_part)),
    ("$minute", Def::Parse(date_parts::parse_part)),
    ("$month", Def::Parse(date_parts::parse_part)),
    ("$second", Def::Parse(date_parts::parse_part)),
    ("$week", Def::Parse(date_parts::parse_part)),
    ("$year", Def::Parse(date_parts::parse_part)),
    // conversion
    ("$convert", Def::Parse(convert::parse_convert)),
    ("$toBool", Def::Parse(convert::parse_short)),
    ("$toDate", Def::Parse(convert::parse_short)),
    ("$toDecimal", Def::Parse(convert::parse_short)),
    ("$toDouble", Def::Parse(convert::parse_short)),
    ("$toInt", Def::Parse(convert::parse_short)),
    ("$toLong", Def::Parse(convert::parse_short)),
    ("$toObjectId", Def::Parse(convert::parse_short)),
    ("$toString", Def::Parse(convert::parse_short)),
    // types, sizes, the rest
    ("$binarySize", fixed(1, misc::binary_size)),
    ("$bsonSize", fixed(1, misc::bson_size)),
    ("$function", Def::Parse(function::parse)),
    ("$isNumber", fixed(1, misc::is_number)),
    ("$median", Def::Parse(misc::parse_quantile)),
    ("$meta", Def::Parse(misc::parse_meta)),
    ("$percentile", Def::Parse(misc::parse_quantile)),
    ("$rand", Def::Parse(misc::parse_rand)),
    ("$toHashedIndexKey", Def::Parse(misc::parse_hashed)),
    ("$tsIncrement", fixed(1, misc::ts_increment)),
    ("$tsSecond", fixed(1, misc::ts_second)),
    ("$type", fixed(1, misc::type_of)),
    // conditional
    ("$cond", Def::Parse(conditional::parse_cond)),
    ("$ifNull", Def::Parse(conditional::parse_if_null)),
    ("$switch", Def::Parse(conditional::parse_switch)),
    // variables and literals
    ("$let", Def::Parse(variables::parse_let)),
    ("$literal", Def::Parse(literal::parse_literal)),
    ("$const", Def::Parse(literal::parse_literal)),
];

/// Every operator and its row.
#[cfg(test)]
pub(super) fn all() -> impl Iterator<Item = (&'static str, &'static Def)> {
    TABLE.iter().map(|(name, def)| (*name, def))
}

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
