//! What holds for all expressions; each family has its own table in `ops`.

use super::*;
use crate::ctx::{Lets, QueryCtx, Variables};
use pando_base::{Error, Result};
use pando_bson::{Bson, Decimal128, Document, Value, doc};
use std::sync::Arc;

/// Evaluates `expression` over `doc`; `None` is missing, errors are `code text`.
pub(super) fn eval_over(doc: &Document, expression: impl Into<Bson>) -> Result<Option<Bson>, String> {
    let mut let_vars = Lets::default();
    let_vars.set("outer", Some(Bson::Int32(7)));
    let vars = Variables { now_ms: 1_600_000_000_123, cluster_time: None, let_vars, ..Variables::default() };
    let ctx = QueryCtx { vars: Arc::new(vars), ..QueryCtx::default() };
    let mut holder = Document::new();
    holder.push("e", expression);
    let holder = holder.to_raw();
    let doc = doc.to_raw();
    let shown = |e: Error| format!("{} {}", e.code.0, e.message);
    let v = holder.get("e").unwrap_or(Value::Null);
    let expr = Expr::parse(v, &ctx).map_err(shown)?;
    let v = expr.eval_doc(&doc, &ctx).map_err(shown)?;
    Ok(v.value().map(Bson::from))
}

fn eval(expression: impl Into<Bson>) -> Option<Bson> {
    let doc = doc! { "a": 1, "s": "x", "d": { "x": 1, "y": { "z": 2 } }, "l": [{ "x": 1 }, { "x": [2] }, 3, [{ "x": 9 }]], "n": Bson::Null };
    eval_over(&doc, expression).expect("evaluates")
}

fn refused(expression: impl Into<Bson>) -> String {
    eval_over(&doc! { "a": 1, "l": [1] }, expression).expect_err("is refused")
}

#[test]
fn paths_go_through_documents_and_map_over_arrays() {
    assert_eq!(eval("$d.y.z"), Some(2.into()));
    assert_eq!(eval("$l.x"), Some(Bson::Array(pando_bson::bson_array!(1, [2]))));
    assert_eq!(eval("$a.x"), None);
    assert_eq!(eval("$zz"), None);
    assert_eq!(eval("$l.0"), Some(Bson::Array(vec![])));
    assert_eq!(eval("$$ROOT.d.x"), Some(1.into()));
    assert_eq!(eval("$$CURRENT.a"), Some(1.into()));
}

#[test]
fn missing_leaves_no_field_and_becomes_null_in_arrays() {
    assert_eq!(eval(doc! { "p": "$zz", "q": "$a" }), Some(doc! { "q": 1 }.into()));
    assert_eq!(
        eval(pando_bson::bson_array!("$zz", "$a")),
        Some(pando_bson::bson_array!(Bson::Null, 1).into())
    );
    assert_eq!(eval(doc! { "p": "$$REMOVE" }), Some(doc! {}.into()));
}

#[test]
fn variables_are_known_by_their_names() {
    assert_eq!(eval("$$outer"), Some(7.into()));
    assert_eq!(eval("$$NOW"), Some(Bson::DateTime(1_600_000_000_123)));
    assert_eq!(
        eval(
            doc! { "$let": { "vars": { "p": "$a", "q": "$d" }, "in": { "$add": ["$$p", "$$q.x", "$$outer"] } } }
        ),
        Some(9.into())
    );
    // The values are computed outside the new names.
    assert_eq!(
        eval(
            doc! { "$let": { "vars": { "p": 1 }, "in": { "$let": { "vars": { "p": 2, "q": "$$p" }, "in": "$$q" } } } }
        ),
        Some(1.into())
    );
    assert_eq!(eval(doc! { "$let": { "vars": { "CURRENT": "$d" }, "in": "$x" } }), Some(1.into()));
}

#[test]
fn parse_errors_have_mongodbs_codes_and_texts() {
    let cases: Vec<(Bson, &str)> = vec![
        (doc! { "$nope": 1 }.into(), "168 Unrecognized expression '$nope'"),
        ("$$nope".into(), "17276 Use of undefined variable: nope"),
        ("$".into(), "16872 '$' by itself is not a valid FieldPath"),
        ("$.a".into(), "15998 FieldPath field names may not be empty strings."),
        ("$a.".into(), "40353 FieldPath must not end with a '.'."),
        (
            "$a.$b".into(),
            "16410 FieldPath field names may not start with '$'. Consider using $getField or $setField.",
        ),
        (
            doc! { "$add": [1], "$sum": 1 }.into(),
            "15983 An object representing an expression must have exactly one field: { $add: [ 1 ], $sum: 1 }",
        ),
        (
            doc! { "$divide": [1] }.into(),
            "16020 Expression $divide takes exactly 2 arguments. 1 were passed in.",
        ),
        (
            doc! { "$let": { "vars": { "X": 1 }, "in": 1 } }.into(),
            "9 'X' starts with an invalid character for a user variable name",
        ),
    ];
    for (expression, text) in cases {
        assert_eq!(refused(expression.clone()), text, "{expression:?}");
    }
}

#[test]
fn no_document_gets_a_field_whose_name_has_a_nul() {
    let set = |value: &str| doc! { "$setField": { "field": "a\0b", "input": "$$ROOT", "value": value } };
    assert!(refused(set("$a")).starts_with("16411 "));
    let d = eval("$$ROOT");
    assert_eq!(eval(set("$nothing")), d);
    assert_eq!(eval(set("$$REMOVE")), d);
    assert_eq!(eval(doc! { "$unsetField": { "field": "a\0b", "input": "$$ROOT" } }), d);
    assert_eq!(eval(doc! { "$getField": { "field": "a\0b", "input": "$d" } }), None);
}

#[test]
fn numbers_promote_and_overflow_into_doubles() {
    let add = |a: Bson, b: Bson| eval(doc! { "$add": [a, b] });
    assert_eq!(add(1.into(), 2.into()), Some(3.into()));
    assert_eq!(add(i32::MAX.into(), 1.into()), Some(Bson::Int64(1 << 31)));
    assert_eq!(add(i64::MAX.into(), 1.into()), Some(Bson::Double(9.223372036854776e18)));
    assert_eq!(add(1.into(), 0.5.into()), Some(Bson::Double(1.5)));
    assert_eq!(add(1.into(), Decimal128::from_i64(2).into()), Some(Decimal128::from_i64(3).into()));
    // The middle of two milliseconds goes towards zero, a decimal's to the even one.
    assert_eq!(add(Bson::DateTime(5), 2.5.into()), Some(Bson::DateTime(7)));
    assert_eq!(add(Bson::DateTime(-10), 0.5.into()), Some(Bson::DateTime(-9)));
    let half = Decimal128::from_i64(1) / Decimal128::from_i64(2);
    assert_eq!(add(Bson::DateTime(5), half.into()), Some(Bson::DateTime(6)));
    assert_eq!(add("$n".into(), 1.into()), Some(Bson::Null));
    assert_eq!(eval(doc! { "$mod": [-7, 3] }), Some((-1).into()));
    assert_eq!(eval(doc! { "$divide": [7, 2] }), Some(3.5.into()));
    assert_eq!(eval(doc! { "$subtract": [Bson::DateTime(7), Bson::DateTime(2)] }), Some(Bson::Int64(5)));
}

#[test]
fn arithmetic_refuses_what_is_no_number() {
    let cases: Vec<(Document, &str)> = vec![
        (doc! { "$add": [1, "x"] }, "16554 $add only supports numeric or date types, not string"),
        (
            doc! { "$add": [Bson::DateTime(1), Bson::DateTime(2)] },
            "16612 only one date allowed in an $add expression",
        ),
        (doc! { "$subtract": [1, "x"] }, "14 can't $subtract string from int"),
        (doc! { "$multiply": ["x", 1] }, "14 $multiply only supports numeric types, not string"),
        (doc! { "$divide": [1, 0] }, "2 can't $divide by zero"),
        (doc! { "$mod": [1, 0] }, "16610 can't $mod by zero"),
    ];
    for (expression, text) in cases {
        assert_eq!(refused(expression.clone()), text, "{expression:?}");
    }
}

#[test]
fn comparison_orders_all_types_and_missing_before_null() {
    assert_eq!(eval(doc! { "$cmp": ["$zz", "$n"] }), Some((-1).into()));
    assert_eq!(eval(doc! { "$gt": ["$s", 5] }), Some(true.into()));
    assert_eq!(eval(doc! { "$eq": [1, 1.0] }), Some(true.into()));
    assert_eq!(eval(doc! { "$lte": ["$zz", "$yy"] }), Some(true.into()));
}

#[test]
fn conditions_take_the_first_branch_that_holds() {
    assert_eq!(eval(doc! { "$cond": ["$a", "yes", { "$divide": ["$a", 0] }] }), Some("yes".into()));
    assert_eq!(eval(doc! { "$cond": { "if": "$zz", "then": 1, "else": "$s" } }), Some("x".into()));
    assert_eq!(eval(doc! { "$ifNull": ["$zz", "$n", "$s"] }), Some("x".into()));
    assert_eq!(
        eval(doc! { "$switch": { "branches": [{ "case": "$n", "then": 1 }, { "case": "$a", "then": 2 }] } }),
        Some(2.into())
    );
    assert_eq!(
        refused(doc! { "$switch": { "branches": [{ "case": "$zz", "then": 1 }] } }),
        "40066 $switch could not find a matching branch for an input, and no default was specified."
    );
    assert_eq!(eval(doc! { "$and": ["$a", "$s"] }), Some(true.into()));
    assert_eq!(eval(doc! { "$or": ["$n", "$zz", 0] }), Some(false.into()));
    assert_eq!(eval(doc! { "$and": [] }), Some(true.into()));
}

#[test]
fn constant_parts_are_folded_once() {
    let ctx = QueryCtx::default();
    let e = doc! { "$add": [1, { "$multiply": [2, 3] }] }.to_raw();
    let expr = Expr::parse(Value::Document(&e), &ctx).expect("parses");
    assert!(matches!(expr.as_const().and_then(Val::value), Some(Value::Int32(7))));
    let e = doc! { "$add": ["$a", { "$multiply": [2, 3] }] }.to_raw();
    let expr = Expr::parse(Value::Document(&e), &ctx).expect("parses");
    assert_eq!(format!("{expr:?}"), "$add([$$ROOT.a, 6])");
}

#[test]
fn dependencies_are_the_paths_of_the_document() {
    let ctx = QueryCtx::default();
    let e = doc! { "$let": { "vars": { "v": "$a.b" }, "in": { "$add": ["$$v.x", "$c"] } } }.to_raw();
    let expr = Expr::parse(Value::Document(&e), &ctx).expect("parses");
    let mut paths = std::collections::BTreeSet::new();
    assert!(expr.dependencies(&mut paths));
    assert_eq!(paths.into_iter().collect::<Vec<_>>(), ["a.b", "c"]);
    let whole = Expr::parse(Value::String("$$ROOT"), &ctx).expect("parses");
    assert!(!whole.dependencies(&mut Default::default()));
}

/// `{$reduce: …}` that wraps its value `n` times.
fn wrapping(n: i32) -> Document {
    doc! { "$reduce": { "input": { "$range": [0, n] }, "initialValue": 1, "in": ["$$value"] } }
}
#[test]
fn a_value_that_nests_step_by_step_is_given_up() {
    assert_eq!(eval(doc! { "$size": wrapping(900) }), Some(Bson::Int32(1)));
    assert!(refused(doc! { "$size": wrapping(1100) }).contains("1000 levels"));
    assert!(refused(doc! { "$size": wrapping(1_000_000) }).contains("1000 levels"), "and soon");
    // Many elements are no levels.
    let all = doc! { "$reduce": {
        "input": { "$range": [0, 3000] }, "initialValue": [],
        "in": { "$concatArrays": ["$$value", [["$$this"]]] },
    } };
    assert_eq!(eval(doc! { "$size": all }), Some(Bson::Int32(3000)));
}

#[test]
fn a_decimal_is_rounded_to_a_whole_number_and_the_least_when_there_is_none() {
    let d = |text: &str| Bson::Decimal128(text.parse().unwrap());
    let part = |n: &str| eval(doc! { "$substrBytes": ["abcdef", 1, d(n)] });
    assert_eq!(part("1.5"), Some("bc".into()));
    assert_eq!(part("2.5"), Some("bc".into()));
    assert_eq!(part("1E25"), Some("bcdef".into()));
    assert_eq!(part("NaN"), Some("bcdef".into()));
    assert!(refused(doc! { "$substrBytes": ["abcdef", 1, 1e25] }).starts_with("31109"));
    let before = |n: Bson| eval_over(&doc! {}, doc! { "$subtract": [Bson::DateTime(0), n] });
    assert_eq!(before(d("1.5")), Ok(Some(Bson::DateTime(-2))));
    assert_eq!(before(Bson::Double(1.7)), Ok(Some(Bson::DateTime(-1))));
    assert_eq!(before(d("1E25")), Err("159 Cannot negate the minimum duration".into()));
    let far = eval_over(&doc! {}, doc! { "$subtract": [Bson::DateTime(-5), Bson::Int64(i64::MAX)] });
    assert_eq!(far, Err("159 Overflow while adding -9223372036854775807ms to 9223372036854775804ms".into()));
}

#[test]
fn a_constant_set_gives_the_mistake_of_the_other_operand_another_number() {
    let set = || Bson::Array(vec![1.into()]);
    assert!(refused(doc! { "$setIsSubset": ["$a", set()] }).starts_with("17310"));
    assert!(refused(doc! { "$setIsSubset": ["$a", "$l"] }).starts_with("17046"));
    assert!(refused(doc! { "$setIsSubset": [1, set()] }).starts_with("17046"));
    assert!(refused(doc! { "$setIsSubset": ["$a", 5] }).starts_with("17311"));
    // A condition is asked as it was written.
    let filter = doc! { "$expr": { "$setIsSubset": ["$a", set()] } }.to_raw();
    let matcher = crate::matcher::Matcher::parse(&filter, &QueryCtx::default()).unwrap();
    assert_eq!(matcher.matches(&doc! { "a": 1 }.to_raw()).unwrap_err().code.0, 17046);
}

#[test]
fn what_is_wrong_with_arguments_of_a_conversion_is_told_before_how_many_there_are() {
    assert!(refused(doc! { "$toInt": [1, 2, "$$nope"] }).starts_with("17276"));
    assert!(refused(doc! { "$toInt": [1, { "$nope": 1 }] }).starts_with("168"));
    assert!(refused(doc! { "$toInt": [1, 2] }).starts_with("50723"));
}

#[test]
fn what_a_hash_is_made_of_is_not_evaluated_ahead() {
    let expr = doc! { "e": { "$toHashedIndexKey": { "$floor": "x" } } }.to_raw();
    let expr = Expr::parse(expr.get("e").unwrap(), &QueryCtx::default()).unwrap();
    assert_eq!(expr.eval_doc(&doc! {}.to_raw(), &QueryCtx::default()).unwrap_err().code.0, 28765);
}

#[test]
fn an_argument_that_settles_the_answer_comes_before_a_later_one_that_fails() {
    let bad = || Bson::from(doc! { "$toInt": "$s" });
    let of = |name: &str, args: Vec<Bson>| {
        let mut d = Document::new();
        d.push(name, args);
        eval_over(&doc! { "a": 1, "s": "x", "l": [1], "n": Bson::Null }, d)
    };
    for name in
        ["$add", "$multiply", "$concat", "$concatArrays", "$setUnion", "$round", "$atan2", "$indexOfArray"]
    {
        assert_eq!(of(name, vec!["$n".into(), bad()]), Ok(Some(Bson::Null)), "{name}");
    }
    for (name, code) in
        [("$concat", "16702"), ("$setEquals", "17044"), ("$atan2", "51044"), ("$indexOfBytes", "40091")]
    {
        let of_wrong_type = if name == "$atan2" { "$s" } else { "$a" };
        assert!(of(name, vec![of_wrong_type.into(), bad()]).unwrap_err().starts_with(code), "{name}");
    }
    assert!(of("$range", vec!["$n".into(), bad()]).unwrap_err().starts_with("241"));
    assert!(of("$range", vec!["$n".into(), 1.into(), bad()]).unwrap_err().starts_with("34443"));
    assert!(of("$add", vec!["$a".into(), bad()]).unwrap_err().starts_with("241"));
    assert_eq!(of("$slice", vec!["$l".into(), "$n".into(), bad()]), Ok(Some(Bson::Null)));
}
