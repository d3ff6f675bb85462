//! Optimizing ends, and changes no answer: every operator of the registry, with constants of every type beside paths, in
//! every position.

use super::parse::Def;
use super::registry;
use super::spelled::spelled;
use super::{Expr, ParseCtx};
use crate::ctx::QueryCtx;
use pando_bson::extjson::parse;
use pando_bson::{Bson, DocBuf, Document, Value};
use std::collections::BTreeSet;

/// A value of every type, and some more numbers, strings and arrays.
const VALUES: &[&str] = &[
    "null",
    "1",
    "3",
    r#"{"$numberLong":"4"}"#,
    "0.5",
    r#"{"$numberDecimal":"2.5"}"#,
    r#""string""#,
    r#""day""#,
    r#"{"x":1}"#,
    "[]",
    "[1,2]",
    r#"["a","b"]"#,
    r#"[[1],"x"]"#,
    r#"{"$binary":{"base64":"AAE=","subType":"00"}}"#,
    r#"{"$undefined":true}"#,
    r#"{"$oid":"5f0000000000000000000001"}"#,
    "true",
    "false",
    r#"{"$date":{"$numberLong":"1600000000000"}}"#,
    r#"{"$regularExpression":{"pattern":"a","options":""}}"#,
    r#"{"$dbPointer":{"$ref":"c","$id":{"$oid":"5f0000000000000000000001"}}}"#,
    r#"{"$code":"x"}"#,
    r#"{"$symbol":"s"}"#,
    r#"{"$timestamp":{"t":1,"i":2}}"#,
    r#"{"$minKey":1}"#,
    r#"{"$maxKey":1}"#,
];

/// What named arguments are called, each with a value that its operators take.
const NAMED: &[(&str, &str)] = &[
    ("input", "[2,1]"),
    ("in", r#""$$this""#),
    ("as", r#""this""#),
    ("cond", "true"),
    ("limit", "1"),
    ("vars", r#"{"this":1}"#),
    ("initialValue", "1"),
    ("inputs", "[[1],[2]]"),
    ("defaults", "[1,2]"),
    ("useLongestLength", "true"),
    ("date", r#"{"$date":{"$numberLong":"1600000000000"}}"#),
    ("startDate", r#"{"$date":{"$numberLong":"1600000000000"}}"#),
    ("endDate", r#"{"$date":{"$numberLong":"1700000000000"}}"#),
    ("unit", r#""week""#),
    ("amount", "1"),
    ("binSize", "2"),
    ("startOfWeek", r#""monday""#),
    ("timezone", r#""UTC""#),
    ("format", r#""%Y""#),
    ("dateString", r#""2020""#),
    ("onNull", "1"),
    ("onError", "2"),
    ("to", r#""string""#),
    ("year", "2020"),
    ("month", "1"),
    ("day", "1"),
    ("hour", "1"),
    ("minute", "1"),
    ("second", "1"),
    ("millisecond", "1"),
    ("isoWeekYear", "2020"),
    ("isoWeek", "1"),
    ("isoDayOfWeek", "1"),
    ("iso8601", "false"),
    ("field", r#""x""#),
    ("value", "1"),
    ("regex", r#""a""#),
    ("options", r#""i""#),
    ("find", r#""a""#),
    ("replacement", r#""b""#),
    ("chars", r#""a""#),
    ("n", "1"),
    ("sortBy", "1"),
    ("branches", r#"[{"case":"$a","then":1},{"case":{"$eq":[1,1]},"then":2},{"case":0,"then":3}]"#),
    ("default", "1"),
    ("if", "true"),
    ("then", "1"),
    ("else", "2"),
    ("p", "[0.5]"),
    ("method", r#""approximate""#),
    ("body", r#""function(){}""#),
    ("args", "[1]"),
    ("lang", r#""js""#),
];

fn literal(value: &str) -> String {
    format!("{{\"$literal\":{value}}}")
}

fn holder(text: &str) -> DocBuf {
    parse(&format!("{{\"e\":{text}}}")).unwrap_or_else(|e| panic!("{text}: {e}")).to_raw()
}

const DOCS_AT_A_TIME: usize = 5;

/// Drives one expression at a time over all documents.
struct Driver {
    docs: Vec<DocBuf>,
    driven: usize,
    /// Expressions that had a value with some document.
    valued: BTreeSet<&'static str>,
    wrong: Vec<String>,
}

type Answer = Result<Option<Bson>, i32>;

impl Driver {
    fn new() -> Driver {
        let n = VALUES.len();
        // Both fields take every value; the last documents lack one or both.
        let mut docs: Vec<DocBuf> = (0..n)
            .map(|i| {
                let (a, b) = (VALUES[i], VALUES[(i * 7 + 3) % n]);
                parse(&format!("{{\"a\":{a},\"b\":{b}}}")).unwrap().to_raw()
            })
            .collect();
        docs.push(Document::new().to_raw());
        docs.push(parse(r#"{"a":2,"b":3}"#).unwrap().to_raw());
        docs.push(parse(r#"{"a":"x","b":"y"}"#).unwrap().to_raw());
        Driver { docs, driven: 0, valued: BTreeSet::new(), wrong: Vec::new() }
    }

    fn drive(&mut self, name: &'static str, argument: &str) {
        let text = format!("{{\"{name}\":{argument}}}");
        let holder = holder(&text);
        let written = holder.get("e").unwrap_or(Value::Null);
        let ctx = QueryCtx::default();
        let Ok(plain) = ParseCtx::new(&ctx).parse(written) else { return };
        let Ok(mut optimized) = ParseCtx::new(&ctx).parse(written) else { return };
        self.driven += 1;
        let refused = optimized.optimize(&ctx).err().map(|e| e.code.0);
        // Explain spells what does not fold as well.
        spelled(written, &ctx);
        let answer = |e: &Expr, doc| -> Answer {
            e.eval_doc(doc, &ctx).map(|v| v.value().map(Bson::from)).map_err(|e| e.code.0)
        };
        // A few documents, others each time; all of them where it may never have a value.
        let take = if refused.is_some() { self.docs.len() } else { DOCS_AT_A_TIME };
        let docs: Vec<&DocBuf> =
            self.docs.iter().cycle().skip(self.driven % self.docs.len()).take(take).collect();
        let answers: Vec<Answer> = docs.iter().map(|d| answer(&plain, d)).collect();
        if answers.iter().any(Result::is_ok) {
            self.valued.insert(name);
        }
        if let Some(code) = refused {
            // Which of two mistakes is told may differ: patterns are looked at ahead of what they are matched with.
            // So may what a null, or a false of sets, before them hides: constants that stand side by side once nested lists are taken in,
            // and a constant operand that can never do.
            let ahead = matches!(name, "$concat" | "$concatArrays" | "$indexOfArray");
            let hidden = |a: &Answer| {
                a.is_err() || (ahead && *a == Ok(Some(Bson::Null))) || (name == "$setEquals" && is_false(a))
            };
            if !answers.contains(&Err(code)) && !answers.iter().all(hidden) {
                self.wrong.push(format!("{text}: {code} comes from nowhere"));
            }
            return;
        }
        for (doc, plain) in docs.into_iter().zip(&answers) {
            let now = answer(&optimized, doc);
            if !same(name, plain, &now) {
                self.wrong.push(format!("{text} of {doc}: {plain:?}, optimized {now:?}"));
                return;
            }
        }
    }
}

fn is_false(a: &Answer) -> bool {
    *a == Ok(Some(Bson::Boolean(false)))
}

/// Constants that come last are looked at last: which of two wrong arguments is named may change, whether a wrong
/// one or a null is met first, what is rounded to whole milliseconds, and how many digits an equal decimal has. Of
/// nested lists that are taken in, a null is met before what was wrong inside.
fn same(name: &str, plain: &Answer, optimized: &Answer) -> bool {
    let any_order = matches!(name, "$add" | "$multiply" | "$setUnion" | "$setIntersection");
    match (plain, optimized) {
        _ if name == "$rand" => true,
        (Err(_), Err(_)) => true,
        (Ok(Some(Bson::DateTime(a))), Ok(Some(Bson::DateTime(b)))) => a.abs_diff(*b) <= 1,
        (Ok(Some(Bson::Null)), Err(_)) | (Err(_), Ok(Some(Bson::Null))) if any_order => true,
        (Err(_), Ok(Some(Bson::Null))) => matches!(name, "$concat" | "$concatArrays"),
        (Ok(Some(Bson::Decimal128(a))), Ok(Some(Bson::Decimal128(b)))) if any_order => {
            a.total_cmp(*b).is_eq()
        }
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}

fn positional(d: &mut Driver, name: &'static str) {
    for (i, v) in VALUES.iter().enumerate() {
        let (c, next) = (literal(v), literal(VALUES[(i * 5 + 1) % VALUES.len()]));
        d.drive(name, &format!("[{c}]"));
        d.drive(name, &c);
        for w in VALUES.iter().skip(i % 7).step_by(7) {
            d.drive(name, &format!("[{c},{}]", literal(w)));
            d.drive(name, &format!("[{c},\"$a\",{}]", literal(w)));
        }
        for args in [
            format!("[{c},\"$a\"]"),
            format!("[\"$a\",{c}]"),
            format!("[\"$a\",{c},\"$b\"]"),
            format!("[\"$a\",\"$b\",{c}]"),
            format!("[{c},\"$a\",\"$b\"]"),
            format!("[\"$a\",{c},{next}]"),
            format!("[{c},{next},\"$a\"]"),
            format!("[{c},{{\"{name}\":[\"$a\",{next}]}},{c}]"),
            format!("[{c},{{\"{name}\":[{next},\"$a\"]}},\"$b\",{c}]"),
            format!("[{c},{{\"{name}\":\"$a\"}}]"),
        ] {
            d.drive(name, &args);
        }
    }
    d.drive(name, "[]");
    d.drive(name, "\"$a\"");
    d.drive(name, "[\"$a\",\"$b\"]");
}

/// The names an operator knows: those it does not complain about.
fn names_of(name: &str) -> Vec<(&'static str, &'static str)> {
    let ctx = QueryCtx::default();
    let mut known: Vec<_> = NAMED.to_vec();
    loop {
        let fields: Vec<String> = known.iter().map(|(n, v)| format!("\"{n}\":{v}")).collect();
        let holder = holder(&format!("{{\"{name}\":{{{}}}}}", fields.join(",")));
        let Err(e) = ParseCtx::new(&ctx).parse(holder.get("e").unwrap_or(Value::Null)) else { return known };
        // The name that is not known stands behind a colon, or comes last.
        let (text, told) = e.message.split_once(": ").map_or((&*e.message, false), |(_, t)| (t, true));
        let mut words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric()).collect();
        if !told {
            words.reverse();
        }
        let unknown = words.iter().find_map(|w| known.iter().position(|(n, _)| n == w));
        match unknown {
            Some(at) => known.remove(at),
            // Parts of a day in two calendars do not go together.
            None if known.iter().any(|(n, _)| n.starts_with("iso")) => {
                known.retain(|(n, _)| !n.starts_with("iso"));
                continue;
            }
            None => return known,
        };
    }
}

fn named(d: &mut Driver, name: &'static str) {
    let known = names_of(name);
    let all = |at: usize, v: &str, rest: &str| {
        let fields: Vec<String> = known
            .iter()
            .enumerate()
            .map(|(i, (n, own))| {
                let v = if i == at {
                    v
                } else if rest.is_empty() {
                    own
                } else {
                    rest
                };
                format!("\"{n}\":{v}")
            })
            .collect();
        format!("{{{}}}", fields.join(","))
    };
    for at in 0..known.len() {
        for v in VALUES {
            d.drive(name, &all(at, &literal(v), ""));
            d.drive(name, &all(at, v, ""));
            d.drive(name, &all(at, &literal(v), "\"$a\""));
        }
        d.drive(name, &all(at, "\"$a\"", ""));
        d.drive(name, &all(at, known[at].1, "\"$a\""));
        // Without this one.
        let others: Vec<_> = known.iter().enumerate().filter(|(i, _)| *i != at).collect();
        let fields: Vec<String> = others.iter().map(|(_, (n, v))| format!("\"{n}\":{v}")).collect();
        d.drive(name, &format!("{{{}}}", fields.join(",")));
    }
}

#[test]
fn optimizing_ends_and_changes_no_answer() {
    let mut d = Driver::new();
    for (name, def) in registry::all() {
        positional(&mut d, name);
        if matches!(def, Def::Parse(_)) {
            named(&mut d, name);
        }
    }
    assert!(d.wrong.is_empty(), "{} wrong:\n{}", d.wrong.len(), d.wrong[..d.wrong.len().min(40)].join("\n"));
    // Each of them was really driven: with some arguments it has a value.
    let idle: Vec<_> = registry::all().map(|(n, _)| n).filter(|n| !d.valued.contains(n)).collect();
    assert_eq!(idle, ["$function", "$meta"], "never evaluated");
    assert!(d.driven > 30_000, "{}", d.driven);
}

#[test]
fn constants_that_have_no_value_together_stay_apart_in_explain() {
    let ctx = QueryCtx::default();
    for op in ["$add", "$multiply"] {
        let holder = holder(&format!("{{\"{op}\":[\"$a\",3,\"string\"]}}"));
        let shown = spelled(holder.get("e").unwrap_or(Value::Null), &ctx).to_string();
        assert!(shown.contains("[ \"$a\", { $const: 3 }, { $const: \"string\" } ]"), "{shown}");
        assert!(Expr::parse(holder.get("e").unwrap_or(Value::Null), &ctx).is_err());
    }
}
