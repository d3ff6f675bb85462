//! MongoDB's order of values, exact across numeric types.
//!
//! Types first, in the order of [`canonical_type`]; numbers of all four types form one class and compare by
//! value (never through a lossy double): NaN equals NaN and is the lowest number, −0 equals 0. Documents
//! compare field by field: type class, then name, then value; arrays ignore the names. Strings compare as
//! bytes unless a [`StringOrder`] (a collation) is given. Undefined and null are two classes here;
//! callers for which missing, undefined and null are one thing say so before they come.
//!
//! Three entrances, one order: raw elements ([`cmp_elems`], [`cmp_docs`]), decoded values ([`cmp_values`])
//! and owned trees ([`cmp_bson`]). The raw one does not decode what it can compare as bytes.

use crate::decimal128::{Num, prefix_of_decimal, prefix_of_f64};
use crate::name::Name;
use crate::owned::{Bson, Document};
use crate::raw::{Elem, RawDoc, Texts, Value};
use crate::types::{Decimal128, ElementType};
use pando_base::limits;
use std::cmp::Ordering;

/// An order of strings other than by bytes: a collation.
pub trait StringOrder: Send + Sync {
    fn cmp(&self, a: &str, b: &str) -> Ordering;
    /// Appends bytes whose byte order is [`StringOrder::cmp`]; equal strings give equal bytes.
    fn sort_key(&self, s: &str, out: &mut Vec<u8>);
}

type Order<'a> = Option<&'a dyn StringOrder>;

/// The place of a type's class in the order; types of one class compare by value.
pub const fn canonical_type(ty: ElementType) -> u8 {
    use ElementType::*;
    match ty {
        MinKey => 0,
        Undefined => 1,
        Null => 5,
        Double | Int32 | Int64 | Decimal128 => 10,
        String | Symbol => 15,
        Document => 20,
        Array => 25,
        Binary => 30,
        ObjectId => 35,
        Boolean => 40,
        DateTime => 45,
        Timestamp => 47,
        Regex => 50,
        DbPointer => 55,
        JavaScript => 60,
        JavaScriptWithScope => 65,
        MaxKey => 127,
    }
}

/// Compares two values.
pub fn cmp_values(a: Value<'_>, b: Value<'_>) -> Ordering {
    cmp_values_at(a, b, None, 0)
}

/// Compares two values, strings by `order`.
pub fn cmp_values_with(a: Value<'_>, b: Value<'_>, order: Order<'_>) -> Ordering {
    cmp_values_at(a, b, order, 0)
}

pub fn values_equal(a: Value<'_>, b: Value<'_>) -> bool {
    cmp_values(a, b) == Ordering::Equal
}

/// Compares two documents: fields in order, each by type class, name and value.
pub fn cmp_docs(a: &RawDoc, b: &RawDoc) -> Ordering {
    cmp_raw_docs(a, b, true, None, 0)
}

pub fn cmp_docs_with(a: &RawDoc, b: &RawDoc, order: Order<'_>) -> Ordering {
    cmp_raw_docs(a, b, true, order, 0)
}

/// Compares the values of two elements without decoding more than needed; names are ignored.
pub fn cmp_elems(a: &Elem<'_>, b: &Elem<'_>, order: Order<'_>) -> Ordering {
    cmp_elems_at(a, b, order, 0)
}

fn class_of(v: &Value<'_>) -> u8 {
    canonical_type(v.element_type())
}

fn cmp_values_at(a: Value<'_>, b: Value<'_>, order: Order<'_>, depth: usize) -> Ordering {
    use Value::*;
    match (a, b) {
        (Int32(x), Int32(y)) => x.cmp(&y),
        (String(x) | Symbol(x), String(y) | Symbol(y)) => match order {
            None => x.as_bytes().cmp(y.as_bytes()),
            Some(order) => order.cmp(x, y),
        },
        (ObjectId(x), ObjectId(y)) => x.0.cmp(&y.0),
        (Document(x), Document(y)) => cmp_raw_docs(x, y, true, order, depth + 1),
        (Array(x), Array(y)) => cmp_raw_docs(x, y, false, order, depth + 1),
        (JavaScriptWithScope { code: x, scope: s }, JavaScriptWithScope { code: y, scope: t }) => {
            x.as_bytes().cmp(y.as_bytes()).then_with(|| cmp_raw_docs(s, t, true, order, depth + 1))
        }
        (Binary { subtype: s, bytes: x }, Binary { subtype: t, bytes: y }) => {
            x.len().cmp(&y.len()).then(s.cmp(&t)).then_with(|| x.cmp(y))
        }
        (Boolean(x), Boolean(y)) => x.cmp(&y),
        (DateTime(x), DateTime(y)) => x.cmp(&y),
        (Timestamp(x), Timestamp(y)) => x.cmp(&y),
        (Regex { pattern: p, options: o }, Regex { pattern: q, options: r }) => {
            p.as_bytes().cmp(q.as_bytes()).then_with(|| o.as_bytes().cmp(r.as_bytes()))
        }
        (DbPointer { ns: x, id: i }, DbPointer { ns: y, id: j }) => {
            x.len().cmp(&y.len()).then_with(|| x.as_bytes().cmp(y.as_bytes())).then_with(|| i.cmp(&j))
        }
        (JavaScript(x), JavaScript(y)) => x.as_bytes().cmp(y.as_bytes()),
        _ => {
            let (x, y) = (class_of(&a), class_of(&b));
            if x != y {
                return x.cmp(&y);
            }
            match (a, b) {
                (NotUtf8(_), _) | (_, NotUtf8(_)) => cmp_texts(a, b, order, depth),
                _ => cmp_numbers(a, b),
            }
        }
    }
}

/// Two values of one class that hold texts, not all of which are UTF-8: by their bytes, and where a collation orders
/// strings, as if U+FFFD stood for what is not.
#[cold]
fn cmp_texts(a: Value<'_>, b: Value<'_>, order: Order<'_>, depth: usize) -> Ordering {
    use Texts::*;
    let (Some(x), Some(y)) = (a.texts(), b.texts()) else { return Ordering::Equal };
    match (x, y) {
        (String(x) | Symbol(x), String(y) | Symbol(y)) => match order {
            None => x.cmp(y),
            Some(order) => {
                order.cmp(&std::string::String::from_utf8_lossy(x), &std::string::String::from_utf8_lossy(y))
            }
        },
        (JavaScript(x), JavaScript(y)) => x.cmp(y),
        (JavaScriptWithScope { code: x, scope: s }, JavaScriptWithScope { code: y, scope: t }) => {
            x.cmp(y).then_with(|| cmp_raw_docs(s, t, true, order, depth + 1))
        }
        (Regex { pattern: p, options: o }, Regex { pattern: q, options: r }) => {
            p.cmp(q).then_with(|| o.cmp(r))
        }
        (DbPointer { ns: x, id: i }, DbPointer { ns: y, id: j }) => {
            x.len().cmp(&y.len()).then_with(|| x.cmp(y)).then_with(|| i.cmp(&j))
        }
        // Values of one class hold the same texts.
        _ => Ordering::Equal,
    }
}

fn cmp_elems_at(a: &Elem<'_>, b: &Elem<'_>, order: Order<'_>, depth: usize) -> Ordering {
    if a.ty == b.ty {
        match a.ty {
            // Counted strings: equal lengths up front, so the bytes behind them decide; NUL sorts lowest.
            ElementType::String if order.is_none() => {
                return a.data().get(4..).cmp(&b.data().get(4..));
            }
            ElementType::ObjectId => return a.data().cmp(b.data()),
            _ => {}
        }
    } else {
        let (x, y) = (canonical_type(a.ty), canonical_type(b.ty));
        if x != y {
            return x.cmp(&y);
        }
    }
    cmp_values_at(a.value(), b.value(), order, depth)
}

fn cmp_raw_docs(a: &RawDoc, b: &RawDoc, names: bool, order: Order<'_>, depth: usize) -> Ordering {
    if depth > limits::BSON_DEPTH_MAX {
        // Validated documents never come here; a lying one gets some fixed order instead of a deep stack.
        return a.as_bytes().cmp(b.as_bytes());
    }
    if a.as_bytes() == b.as_bytes() {
        return Ordering::Equal;
    }
    let mut right = b.iter();
    for x in a {
        let Some(y) = right.next() else { return Ordering::Greater };
        let (cx, cy) = (canonical_type(x.ty), canonical_type(y.ty));
        let by = cx.cmp(&cy);
        let by = if names { by.then_with(|| x.name_bytes().cmp(y.name_bytes())) } else { by };
        let by = by.then_with(|| cmp_elems_at(&x, &y, order, depth));
        if by != Ordering::Equal {
            return by;
        }
    }
    if right.next().is_some() { Ordering::Less } else { Ordering::Equal }
}

/// Compares two numbers of any types by value. Anything else counts as equal.
pub fn cmp_numbers(a: Value<'_>, b: Value<'_>) -> Ordering {
    use Value::*;
    match (a, b) {
        (Double(x), Double(y)) => cmp_f64(x, y),
        (Decimal128(x), Decimal128(y)) => x.total_cmp(y),
        (Double(x), Decimal128(y)) => cmp_decimal_f64(y, x).reverse(),
        (Decimal128(x), Double(y)) => cmp_decimal_f64(x, y),
        _ => match (int(a), int(b)) {
            (Some(x), Some(y)) => x.cmp(&y),
            (Some(x), None) => match b {
                Double(y) => cmp_i64_f64(x, y),
                Decimal128(y) => crate::Decimal128::from_i64(x).total_cmp(y),
                _ => Ordering::Equal,
            },
            (None, Some(y)) => match a {
                Double(x) => cmp_i64_f64(y, x).reverse(),
                Decimal128(x) => x.total_cmp(crate::Decimal128::from_i64(y)),
                _ => Ordering::Equal,
            },
            (None, None) => Ordering::Equal,
        },
    }
}

fn int(v: Value<'_>) -> Option<i64> {
    match v {
        Value::Int32(n) => Some(i64::from(n)),
        Value::Int64(n) => Some(n),
        _ => None,
    }
}

/// Doubles: NaN lowest and equal to itself, −0 equal to 0.
pub fn cmp_f64(a: f64, b: f64) -> Ordering {
    match a.partial_cmp(&b) {
        Some(order) => order,
        None => b.is_nan().cmp(&a.is_nan()),
    }
}

/// An integer with a double, exactly.
pub fn cmp_i64_f64(a: i64, b: f64) -> Ordering {
    const TWO_POW_63: f64 = 9_223_372_036_854_775_808.0;
    if b.is_nan() || b < -TWO_POW_63 {
        return Ordering::Greater;
    }
    if b >= TWO_POW_63 {
        return Ordering::Less;
    }
    // In range, so the cast only drops the fraction; where |b| ≥ 2^53 there is none.
    let whole = b as i64;
    a.cmp(&whole).then_with(|| cmp_f64(0.0, b.fract()))
}

/// A decimal with a double, exactly.
pub fn cmp_decimal_f64(a: Decimal128, b: f64) -> Ordering {
    let (negative, coefficient, exponent) = match a.unpack() {
        Num::Nan => return if b.is_nan() { Ordering::Equal } else { Ordering::Less },
        Num::Infinity { negative } => {
            let x = if negative { f64::NEG_INFINITY } else { f64::INFINITY };
            return cmp_f64(x, b);
        }
        Num::Finite { negative, coefficient, exponent } => (negative, coefficient, exponent),
    };
    if b.is_nan() {
        return Ordering::Greater;
    }
    if coefficient == 0 {
        return cmp_f64(0.0, b);
    }
    // Signs first; then magnitudes of equal sign.
    if b == 0.0 || (b < 0.0) != negative {
        return if negative { Ordering::Less } else { Ordering::Greater };
    }
    let magnitude = if b.is_infinite() {
        Ordering::Less
    } else {
        prefix_of_decimal(coefficient, exponent).cmp(&prefix_of_f64(b.abs()))
    };
    if negative { magnitude.reverse() } else { magnitude }
}

/// Compares owned values.
pub fn cmp_bson(a: &Bson, b: &Bson) -> Ordering {
    cmp_nodes(Node::from(a), Node::from(b), None, 0)
}

pub fn cmp_bson_with(a: &Bson, b: &Bson, order: Order<'_>) -> Ordering {
    cmp_nodes(Node::from(a), Node::from(b), order, 0)
}

/// Compares an owned value with a borrowed one.
pub fn cmp_bson_value(a: &Bson, b: Value<'_>, order: Order<'_>) -> Ordering {
    cmp_nodes(Node::from(a), Node::Value(b), order, 0)
}

pub fn cmp_documents(a: &Document, b: &Document) -> Ordering {
    cmp_fields(Fields::Owned(a.fields().iter()), Fields::Owned(b.fields().iter()), true, None, 0)
}

/// A value of either shape.
#[derive(Clone, Copy)]
enum Node<'a> {
    Value(Value<'a>),
    Document(&'a Document),
    Array(&'a [Bson]),
    CodeWithScope(&'a str, &'a Document),
}

impl<'a> From<&'a Bson> for Node<'a> {
    fn from(v: &'a Bson) -> Node<'a> {
        match v {
            Bson::Document(d) => Node::Document(d),
            Bson::Array(items) => Node::Array(items),
            Bson::JavaScriptWithScope(code, scope) => Node::CodeWithScope(code, scope),
            scalar => Node::Value(scalar.scalar().unwrap_or(Value::Null)),
        }
    }
}

impl<'a> Node<'a> {
    fn class(&self) -> u8 {
        canonical_type(match self {
            Node::Value(v) => v.element_type(),
            Node::Document(_) => ElementType::Document,
            Node::Array(_) => ElementType::Array,
            Node::CodeWithScope(..) => ElementType::JavaScriptWithScope,
        })
    }
    fn fields(&self) -> Fields<'a> {
        match self {
            Node::Value(Value::Document(d) | Value::Array(d)) => Fields::Raw(d.iter()),
            Node::Value(Value::JavaScriptWithScope { scope, .. }) => Fields::Raw(scope.iter()),
            Node::Value(Value::NotUtf8(v)) => match v.texts() {
                Texts::JavaScriptWithScope { scope, .. } => Fields::Raw(scope.iter()),
                _ => Fields::Raw(RawDoc::empty().iter()),
            },
            Node::Value(_) => Fields::Raw(RawDoc::empty().iter()),
            Node::Document(d) | Node::CodeWithScope(_, d) => Fields::Owned(d.fields().iter()),
            Node::Array(items) => Fields::Items(items.iter()),
        }
    }
    fn code(&self) -> Option<&'a [u8]> {
        match self {
            Node::Value(v) => match v.texts()? {
                Texts::JavaScriptWithScope { code, .. } => Some(code),
                _ => None,
            },
            Node::CodeWithScope(code, _) => Some(code.as_bytes()),
            _ => None,
        }
    }
}

/// The fields of a document or array of either shape.
enum Fields<'a> {
    Raw(crate::raw::Iter<'a>),
    Owned(std::slice::Iter<'a, (Name, Bson)>),
    Items(std::slice::Iter<'a, Bson>),
}

impl<'a> Iterator for Fields<'a> {
    type Item = (&'a [u8], Node<'a>);
    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Fields::Raw(it) => it.next().map(|e| (e.name_bytes(), Node::Value(e.value()))),
            Fields::Owned(it) => it.next().map(|(name, v)| (name.as_bytes(), Node::from(v))),
            Fields::Items(it) => it.next().map(|v| (&b""[..], Node::from(v))),
        }
    }
}

fn cmp_nodes(a: Node<'_>, b: Node<'_>, order: Order<'_>, depth: usize) -> Ordering {
    if let (Node::Value(x), Node::Value(y)) = (a, b) {
        return cmp_values_at(x, y, order, depth);
    }
    let class = a.class();
    let by = class.cmp(&b.class());
    if by != Ordering::Equal {
        return by;
    }
    let code = a.code().cmp(&b.code());
    let names = class != canonical_type(ElementType::Array);
    code.then_with(|| cmp_fields(a.fields(), b.fields(), names, order, depth + 1))
}

fn cmp_fields(a: Fields<'_>, mut b: Fields<'_>, names: bool, order: Order<'_>, depth: usize) -> Ordering {
    if depth > limits::BSON_DEPTH_MAX {
        return Ordering::Equal;
    }
    for (name, x) in a {
        let Some((other, y)) = b.next() else { return Ordering::Greater };
        let by = x.class().cmp(&y.class());
        let by = if names { by.then_with(|| name.cmp(other)) } else { by };
        let by = by.then_with(|| cmp_nodes(x, y, order, depth));
        if by != Ordering::Equal {
            return by;
        }
    }
    if b.next().is_some() { Ordering::Less } else { Ordering::Equal }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DocBuilder, doc};

    fn dec(coefficient: u128, exponent: i32) -> Value<'static> {
        Value::Decimal128(crate::decimal128::pack_exact(false, coefficient, exponent))
    }

    /// One row per step of the order; values within a row are equal.
    fn ladder() -> Vec<Vec<Value<'static>>> {
        use Value::*;
        let big = 9_007_199_254_740_992i64; // 2^53
        vec![
            vec![MinKey],
            vec![Undefined],
            vec![Null],
            vec![Double(f64::NAN), Decimal128(crate::Decimal128::NAN)],
            vec![Double(f64::NEG_INFINITY), Decimal128(crate::Decimal128::NEG_INFINITY)],
            vec![Double(f64::MIN)],
            vec![Int64(i64::MIN), Double(-9_223_372_036_854_775_808.0)],
            vec![Int64(i64::MIN + 1)],
            vec![Double(-1.5)],
            vec![Int32(-1), Int64(-1), Double(-1.0)],
            vec![Double(0.0), Double(-0.0), Int32(0), Int64(0), dec(0, 0), dec(0, -5)],
            vec![Double(5e-324)],
            vec![dec(1, -1)],
            vec![Double(0.1)],
            vec![Double(0.5), dec(50, -2)],
            vec![Int32(1), Int64(1), Double(1.0), dec(1, 0), dec(100, -2)],
            vec![dec(1_000_000_000_000_000_000_000_000_000_000_001, -33)],
            vec![Int64(big), Double(big as f64), dec(big as u128, 0)],
            vec![Int64(big + 1), dec(big as u128 + 1, 0)],
            vec![Int64(big + 2), Double((big + 2) as f64)],
            vec![Int64(i64::MAX), dec(i64::MAX as u128, 0)],
            vec![Double(9_223_372_036_854_775_808.0), dec(1 << 63, 0)],
            vec![Double(f64::MAX)],
            vec![dec(1, 400)],
            vec![Double(f64::INFINITY), Decimal128(crate::Decimal128::INFINITY)],
            vec![String("")],
            vec![String("a"), Symbol("a")],
            vec![String("a\0")],
            vec![String("b")],
            vec![String("é")],
            vec![Binary { subtype: 9, bytes: b"" }],
            vec![Binary { subtype: 0, bytes: b"b" }],
            vec![Binary { subtype: 5, bytes: b"a" }],
            vec![Binary { subtype: 0, bytes: b"aa" }],
            vec![ObjectId(crate::ObjectId([1; 12]))],
            vec![ObjectId(crate::ObjectId([2; 12]))],
            vec![Boolean(false)],
            vec![Boolean(true)],
            vec![DateTime(-1)],
            vec![DateTime(0)],
            vec![Timestamp(pando_base::Timestamp::new(1, 2))],
            vec![Timestamp(pando_base::Timestamp(u64::MAX))],
            vec![Regex { pattern: "a", options: "" }],
            vec![Regex { pattern: "a", options: "i" }],
            vec![DbPointer { ns: "b", id: crate::ObjectId([0; 12]) }],
            vec![DbPointer { ns: "aa", id: crate::ObjectId([0; 12]) }],
            vec![JavaScript("x")],
            vec![JavaScriptWithScope { code: "x", scope: RawDoc::empty() }],
            vec![MaxKey],
        ]
    }

    #[test]
    fn values_follow_the_canonical_ladder() {
        let rows = ladder();
        for (i, row) in rows.iter().enumerate() {
            for (j, other) in rows.iter().enumerate() {
                for a in row {
                    for b in other {
                        assert_eq!(cmp_values(*a, *b), i.cmp(&j), "{a:?} {b:?}");
                        assert_eq!(cmp_bson(&Bson::from(*a), &Bson::from(*b)), i.cmp(&j), "{a:?} {b:?}");
                        let (mut p, mut q) = (DocBuilder::new(), DocBuilder::new());
                        p.value("", *a);
                        q.value("", *b);
                        assert_eq!(cmp_docs(&p.finish(), &q.finish()), i.cmp(&j), "{a:?} {b:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn documents_compare_by_type_then_name_then_value() {
        let ascending = [
            doc! {},
            doc! { "b": 1 },
            doc! { "b": 1, "a": 1 },
            doc! { "b": 2 },
            doc! { "c": 0 },
            doc! { "a": "x" },
            doc! { "a": { "z": 1 } },
            doc! { "a": [] },
            doc! { "a": [1] },
            doc! { "a": [1, 2] },
            doc! { "a": [2] },
        ];
        for (i, a) in ascending.iter().enumerate() {
            for (j, b) in ascending.iter().enumerate() {
                assert_eq!(cmp_docs(&a.to_raw(), &b.to_raw()), i.cmp(&j), "{a:?} {b:?}");
                assert_eq!(cmp_documents(a, b), i.cmp(&j), "{a:?} {b:?}");
                let raw = b.to_raw();
                let mixed = cmp_bson_value(&Bson::Document(a.clone()), Value::Document(&raw), None);
                assert_eq!(mixed, i.cmp(&j));
            }
        }
    }

    #[test]
    fn a_string_order_replaces_bytes() {
        struct NoCase;
        impl StringOrder for NoCase {
            fn cmp(&self, a: &str, b: &str) -> Ordering {
                a.to_lowercase().cmp(&b.to_lowercase())
            }
            fn sort_key(&self, s: &str, out: &mut Vec<u8>) {
                out.extend_from_slice(s.to_lowercase().as_bytes());
            }
        }
        let (a, b) = (doc! { "x": ["A"] }.to_raw(), doc! { "x": ["a"] }.to_raw());
        assert_eq!(cmp_docs(&a, &b), Ordering::Less);
        assert_eq!(cmp_docs_with(&a, &b, Some(&NoCase)), Ordering::Equal);
    }

    #[test]
    fn nesting_beyond_the_limit_does_not_recurse_without_end() {
        let depth = 100_000usize;
        let mut bytes = Vec::new();
        for i in 0..depth {
            let len = (5 + 3 * (depth - i)) as u32 + 5 * (depth - i) as u32;
            bytes.extend_from_slice(&len.to_le_bytes());
            bytes.extend_from_slice(&[3, b'a', 0]);
        }
        bytes.extend_from_slice(&[5, 0, 0, 0, 0]);
        bytes.extend(std::iter::repeat_n(0, depth));
        let deep = RawDoc::trusted(&bytes);
        assert_eq!(cmp_docs(deep, deep), Ordering::Equal);
        assert_eq!(crate::hash_value(Value::Document(deep)), crate::hash_value(Value::Document(deep)));
    }
}
