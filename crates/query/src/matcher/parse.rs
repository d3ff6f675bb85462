//! Filter documents into trees, with MongoDB's complaints.

use super::bits::{BitOp, BitTest};
use super::bucket::BucketTest;
use super::compare::{CmpOp, Comparison};
use super::in_list::InList;
use super::modulo::Modulo;
use super::node::{ElemMatchObject, ElemMatchValue, ExprNode, Node, Pred, SampleRate, Scope};
use super::number::{parse_non_negative, shown};
use super::path::Path;
use super::place::Place;
use super::regexp::RegexPred;
use super::text::TextNode;
use super::type_set::TypeSet;
use crate::ctx::QueryCtx;
use crate::geo::{GeoQuery, NearQuery, is_near};
use crate::jsonschema::{Schema, takes_no_document};
use crate::regex;
use pando_base::{Error, ErrorCode, Result, patience};
use pando_bson::{DocBuilder, Elem, ElementType, RawDoc, Value};
use std::sync::Arc;

/// Where in the filter we are; some operators work only at the top.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    /// The whole document, also inside `$and $or $nor`.
    Top,
    /// Inside an `$elemMatch`.
    Nested,
}

/// What every part of the parser is told: where the filter stands, and what it is evaluated in.
#[derive(Clone, Copy)]
pub(super) struct In<'a> {
    pub(super) place: Place,
    pub(super) ctx: &'a QueryCtx,
}

pub(super) fn parse_filter(filter: &RawDoc, place: Place, ctx: &QueryCtx) -> Result<Node> {
    parse_doc(filter, Level::Top, In { place, ctx })
}

fn parse_doc(filter: &RawDoc, level: Level, at: In<'_>) -> Result<Node> {
    let mut all = Vec::new();
    for e in filter {
        let name = e.path()?;
        match name.strip_prefix('$') {
            // The names of a reference are fields of elements.
            Some("ref" | "id" | "db") if level == Level::Nested => parse_field(name, e, at, &mut all)?,
            Some(op) => {
                count(name, at.ctx);
                all.extend(parse_keyword(op, e, level, at)?);
            }
            None => parse_field(name, e, at, &mut all)?,
        }
    }
    Ok(Node::And(all))
}

/// An operator stands in a filter.
fn count(name: &str, ctx: &QueryCtx) {
    if let Some(named) = ctx.counts() {
        named.filter(name);
    }
}

/// `{name: e}`: an operator document, a regex or an equality.
fn parse_field(name: &str, e: Elem<'_>, at: In<'_>, all: &mut Vec<Node>) -> Result<()> {
    patience::spend(2)?;
    match e.value() {
        Value::Document(ops) if is_operators(ops, false) => parse_operators(name, ops, at, all),
        Value::Regex { pattern, options } => {
            count("$regex", at.ctx);
            all.push(Node::leaf(name, Pred::Regex(RegexPred::new(pattern, options)?)));
            Ok(())
        }
        Value::NotUtf8(_) if e.ty == ElementType::Regex => Err(regex::not_utf8()),
        _ => {
            count("$eq", at.ctx);
            all.push(comparison(name, CmpOp::Eq, e, at.ctx)?);
            Ok(())
        }
    }
}

/// True for documents whose first field is an operator; a database reference is a plain value.
fn is_operators(doc: &RawDoc, partial_reference_is_value: bool) -> bool {
    let Some(first) = doc.first() else { return false };
    if !first.name_bytes().starts_with(b"$") {
        return false;
    }
    let has = |name: &str| doc.elem(name).is_some();
    let reference = if partial_reference_is_value {
        has("$ref") || has("$id") || has("$db")
    } else {
        has("$ref") && has("$id")
    };
    !reference
}

fn comparison(path: &str, op: CmpOp, e: Elem<'_>, ctx: &QueryCtx) -> Result<Node> {
    if e.ty == ElementType::Undefined {
        return Err(Error::bad_value("cannot compare to undefined"));
    }
    if e.ty == ElementType::Regex && op != CmpOp::Eq {
        return Err(Error::bad_value(format!("Can't have RegEx as arg to predicate over field '{path}'.")));
    }
    Ok(Node::leaf(path, Pred::Cmp(Comparison::new(op, e.into(), ctx.collation.clone()))))
}

/// A `$`-name where a field is expected.
fn parse_keyword(op: &str, e: Elem<'_>, level: Level, at: In<'_>) -> Result<Option<Node>> {
    let top_only = |what: &str| {
        if level == Level::Top {
            return Ok(());
        }
        Err(Error::bad_value(format!("{what} can only be applied to the top-level document")))
    };
    Ok(Some(match op {
        "and" => Node::And(parse_list(e, level, at)?),
        "or" => Node::Or(parse_list(e, level, at)?),
        "nor" => Node::Nor(parse_list(e, level, at)?),
        "comment" => return Ok(None),
        "expr" => {
            top_only("$expr")?;
            at.place.allow_expr()?;
            parse_expr(e, at)?
        }
        "jsonSchema" => parse_schema(e, at)?,
        "sampleRate" => {
            top_only("$sampleRate")?;
            parse_sample_rate(e.value(), at.ctx)?
        }
        "alwaysTrue" => parse_always(e, Node::AlwaysTrue)?,
        "alwaysFalse" => parse_always(e, Node::AlwaysFalse)?,
        "where" => {
            at.place.allow_where()?;
            top_only("$where")?;
            super::script::parse(e.value(), at.ctx)?
        }
        "_internalBucketGeoWithin" => {
            let (field, query) = GeoQuery::parse_of_bucket(e)?;
            Node::leaf(&format!("data.{field}"), Pred::Geo(Arc::new(query)))
        }
        "_internalBucketHolds" => BucketTest::parse(e, at.ctx)?.into_node(),
        "text" => {
            top_only("$text")?;
            at.place.allow_text()?;
            let node = TextNode::parse(e)?;
            at.place.need_text_index(at.ctx)?;
            Node::Text(Arc::new(node))
        }
        "not" => {
            return Err(Error::bad_value(
                "unknown top level operator: $not. If you are trying to negate an entire expression, use $nor.",
            ));
        }
        _ => {
            return Err(Error::bad_value(format!(
                "unknown top level operator: {}. If you have a field name that starts with a '$' symbol, \
                 consider using $getField or $setField.",
                e.name()
            )));
        }
    }))
}

/// Whether `{$elemMatch: {<op>: ...}}` is about documents rather than single values.
/// What stands below a path; anything else that begins with a dollar is a value in `$all`.
fn is_operator(name: &str) -> bool {
    let bits = ["$bitsAllSet", "$bitsAllClear", "$bitsAnySet", "$bitsAnyClear"];
    let geo = ["$near", "$nearSphere", "$geoNear", "$within", "$geoWithin", "$geoIntersects"];
    matches!(
        name,
        "$eq"
            | "$gt"
            | "$gte"
            | "$lt"
            | "$lte"
            | "$ne"
            | "$in"
            | "$nin"
            | "$size"
            | "$all"
            | "$exists"
            | "$mod"
            | "$type"
            | "$regex"
            | "$options"
            | "$elemMatch"
    ) || bits.contains(&name)
        || geo.contains(&name)
        || name.starts_with("$_internal")
}

fn is_keyword(op: &str) -> bool {
    matches!(
        op,
        "$and"
            | "$or"
            | "$nor"
            | "$where"
            | "$expr"
            | "$comment"
            | "$text"
            | "$jsonSchema"
            | "$sampleRate"
            | "$alwaysTrue"
            | "$alwaysFalse"
    )
}

fn parse_list(e: Elem<'_>, level: Level, at: In<'_>) -> Result<Vec<Node>> {
    let Value::Array(items) = e.value() else {
        return Err(Error::bad_value(format!("{} must be an array", e.name())));
    };
    let nodes = items.iter().map(|x| match x.value() {
        Value::Document(d) => parse_doc(d, level, at),
        _ => Err(Error::bad_value("$or/$and/$nor entries need to be full objects")),
    });
    let nodes = nodes.collect::<Result<Vec<Node>>>()?;
    if nodes.is_empty() {
        return Err(Error::bad_value("$and/$or/$nor must be a nonempty array"));
    }
    Ok(nodes)
}

fn parse_schema(e: Elem<'_>, at: In<'_>) -> Result<Node> {
    at.place.allow_schema()?;
    match e.value() {
        Value::Document(doc) => {
            let schema = Schema::parse(doc, at.ctx)?;
            // A validator tells what is wrong with a document by its schema.
            if at.place != Place::Document && takes_no_document(doc) {
                return Ok(Node::AlwaysFalse);
            }
            Ok(Node::JsonSchema(Arc::new(schema)))
        }
        _ => Err(Error::type_mismatch("$jsonSchema must be an object")),
    }
}

fn parse_expr(e: Elem<'_>, at: In<'_>) -> Result<Node> {
    let mut b = DocBuilder::new();
    b.raw(e.ty, "", e.data());
    let (eval, implied) = super::expr::compile(e.value(), at)?;
    let expr = Node::Expr(ExprNode { keyword: "$expr", source: b.finish(), eval });
    if implied.is_empty() {
        return Ok(expr);
    }
    Ok(Node::And(std::iter::once(expr).chain(implied).collect()))
}

fn parse_sample_rate(v: Value<'_>, ctx: &QueryCtx) -> Result<Node> {
    if !v.is_number() {
        return Err(Error::bad_value("argument to $sampleRate must be a numeric type"));
    }
    let rate = match v {
        Value::Decimal128(_) => v.to_string().parse().unwrap_or(f64::NAN),
        other => other.as_f64().unwrap_or(f64::NAN),
    };
    match rate {
        0.0 => Ok(Node::AlwaysFalse),
        1.0 => Ok(Node::AlwaysTrue),
        r if r > 0.0 && r < 1.0 => Ok(Node::SampleRate(SampleRate { rate, random: ctx.random.clone() })),
        _ => Err(Error::bad_value("numeric argument to $sampleRate must be in [0, 1]")),
    }
}

fn parse_always(e: Elem<'_>, node: Node) -> Result<Node> {
    let n = super::number::parse_i64(e).map_err(|m| Error::new(ErrorCode::FailedToParse, m))?;
    if n != 1 {
        let message = format!("{} must be an integer value of 1", e.name());
        return Err(Error::new(ErrorCode::FailedToParse, message));
    }
    Ok(node)
}

/// `{path: {$gt: 1, $lt: 5}}` appends one node per operator.
fn parse_operators(path: &str, ops: &RawDoc, at: In<'_>, all: &mut Vec<Node>) -> Result<()> {
    if let Some(first) = ops.first()
        && is_near(first.name())
        && matches!(first.value(), Value::Document(_) | Value::Array(_))
    {
        at.place.allow_near()?;
        count(first.name(), at.ctx);
        all.push(Node::leaf(path, Pred::Near(Arc::new(NearQuery::parse(ops)?))));
        return Ok(());
    }
    for e in ops {
        if let Some(node) = parse_operator(path, ops, e, at)? {
            all.push(node);
        }
    }
    Ok(())
}

fn parse_operator(path: &str, ops: &RawDoc, e: Elem<'_>, at: In<'_>) -> Result<Option<Node>> {
    let leaf = |pred: Pred| Node::leaf(path, pred);
    let not = |node: Node| Node::Not(Box::new(node));
    count(e.name(), at.ctx);
    Ok(Some(match e.name() {
        "$eq" => comparison(path, CmpOp::Eq, e, at.ctx)?,
        "$gt" => comparison(path, CmpOp::Gt, e, at.ctx)?,
        "$gte" => comparison(path, CmpOp::Gte, e, at.ctx)?,
        "$lt" => comparison(path, CmpOp::Lt, e, at.ctx)?,
        "$lte" => comparison(path, CmpOp::Lte, e, at.ctx)?,
        "$ne" => {
            if e.ty == ElementType::Regex {
                return Err(Error::bad_value("Can't have regex as arg to $ne."));
            }
            not(comparison(path, CmpOp::Eq, e, at.ctx)?)
        }
        "$in" => leaf(Pred::In(parse_in("$in", e.value(), at.ctx)?)),
        "$nin" => not(leaf(Pred::In(parse_in("$nin", e.value(), at.ctx)?))),
        "$exists" if e.value().is_truthy() => leaf(Pred::Exists),
        "$exists" => not(leaf(Pred::Exists)),
        "$type" => leaf(Pred::Type(TypeSet::parse(path, e.value())?)),
        "$size" => {
            let fail = |m: String| Error::bad_value(format!("Failed to parse $size. {m}"));
            let n = parse_non_negative(e).map_err(fail)?;
            if i32::try_from(n).is_err() {
                return Err(fail(format!("Cannot represent {} in an int", shown(e))));
            }
            leaf(Pred::Size(n))
        }
        "$mod" => leaf(Pred::Mod(Modulo::parse(e.value())?)),
        "$regex" => leaf(Pred::Regex(parse_regex(ops)?)),
        "$options" => match ops.elem("$regex") {
            Some(_) => return Ok(None),
            None => return Err(Error::bad_value("$options needs a $regex")),
        },
        "$not" => parse_not(path, e, at)?,
        "$all" => parse_all(path, e, at)?,
        "$elemMatch" => parse_elem_match(path, e, at)?,
        "$bitsAllSet" => leaf(Pred::Bits(BitTest::parse(BitOp::AllSet, path, e)?)),
        "$bitsAllClear" => leaf(Pred::Bits(BitTest::parse(BitOp::AllClear, path, e)?)),
        "$bitsAnySet" => leaf(Pred::Bits(BitTest::parse(BitOp::AnySet, path, e)?)),
        "$bitsAnyClear" => leaf(Pred::Bits(BitTest::parse(BitOp::AnyClear, path, e)?)),
        "$where" => return Err(Error::bad_value("$where cannot be applied to a field")),
        "$near" | "$nearSphere" | "$geoNear" => {
            return Err(Error::bad_value(format!("near must be first in: {ops}")));
        }
        "$geoWithin" | "$within" | "$geoIntersects" => leaf(Pred::Geo(Arc::new(GeoQuery::parse(ops)?))),
        other => return Err(Error::bad_value(format!("unknown operator: {other}"))),
    }))
}

fn parse_in(op: &str, v: Value<'_>, ctx: &QueryCtx) -> Result<InList> {
    let Value::Array(items) = v else {
        return Err(Error::bad_value(format!("{op} needs an array")));
    };
    let mut values = Vec::new();
    let mut regexes = Vec::new();
    for e in items {
        // It will be sorted, and its bounds made.
        patience::spend(4)?;
        match e.value() {
            Value::Document(d) if is_operators(d, false) => {
                return Err(Error::bad_value("cannot nest $ under $in"));
            }
            Value::Regex { pattern, options } => regexes.push(RegexPred::new(pattern, options)?),
            Value::NotUtf8(_) if e.ty == ElementType::Regex => return Err(regex::not_utf8()),
            Value::Undefined => {
                return Err(Error::bad_value("InMatchExpression equality cannot be undefined"));
            }
            _ => values.push(e.into()),
        }
    }
    Ok(InList::new(values, regexes, ctx.collation.clone()))
}

fn parse_regex(ops: &RawDoc) -> Result<RegexPred> {
    let (mut pattern, mut flags) = (None, None);
    for e in ops {
        match (e.name(), e.value()) {
            ("$regex", Value::String(s)) => pattern = Some(s),
            ("$regex", Value::Regex { pattern: p, options }) => {
                pattern = Some(p);
                if !options.is_empty() {
                    if flags.is_some() {
                        return Err(both_options());
                    }
                    flags = Some(options);
                }
            }
            ("$regex", Value::NotUtf8(_)) if matches!(e.ty, ElementType::Regex | ElementType::String) => {
                return Err(regex::not_utf8());
            }
            ("$regex", _) => return Err(Error::bad_value("$regex has to be a string")),
            ("$options", Value::String(s)) => {
                if flags.is_some() {
                    return Err(both_options());
                }
                flags = Some(s);
            }
            ("$options", _) => return Err(Error::bad_value("$options has to be a string")),
            _ => {}
        }
    }
    RegexPred::new(pattern.unwrap_or_default(), flags.unwrap_or_default())
}

fn both_options() -> Error {
    Error::location(51075, "options set in both $regex and $options")
}

fn parse_not(path: &str, e: Elem<'_>, at: In<'_>) -> Result<Node> {
    let inner = match e.value() {
        Value::Regex { pattern, options } => Node::leaf(path, Pred::Regex(RegexPred::new(pattern, options)?)),
        Value::NotUtf8(_) if e.ty == ElementType::Regex => return Err(regex::not_utf8()),
        Value::Document(ops) if ops.is_empty() => return Err(Error::bad_value("$not cannot be empty")),
        Value::Document(ops) => {
            let mut all = Vec::new();
            parse_operators(path, ops, at, &mut all)?;
            Node::And(all)
        }
        _ => return Err(Error::bad_value("$not needs a regex or a document")),
    };
    Ok(Node::Not(Box::new(inner)))
}

fn parse_all(path: &str, e: Elem<'_>, at: In<'_>) -> Result<Node> {
    let Value::Array(items) = e.value() else {
        return Err(Error::bad_value("$all needs an array"));
    };
    fn elem_match(x: Elem<'_>) -> Option<Elem<'_>> {
        x.value().as_doc()?.first().filter(|f| f.name_bytes() == b"$elemMatch")
    }
    let Some(first) = items.first() else { return Ok(Node::AlwaysFalse) };
    let mut all = Vec::new();
    let matching = elem_match(first).is_some();
    for x in items {
        all.push(match (elem_match(x), x.value()) {
            (Some(inner), _) if matching => parse_elem_match(path, inner, at)?,
            _ if matching => return Err(Error::bad_value("$all/$elemMatch has to be consistent")),
            (_, Value::Regex { pattern, options }) => {
                Node::leaf(path, Pred::Regex(RegexPred::new(pattern, options)?))
            }
            (_, Value::Document(d))
                if is_operators(d, true) && d.first().is_some_and(|f| is_operator(f.name())) =>
            {
                return Err(Error::bad_value("no $ expressions in $all"));
            }
            _ => comparison(path, CmpOp::Eq, x, at.ctx)?,
        });
    }
    Ok(Node::And(all))
}

fn parse_elem_match(path: &str, e: Elem<'_>, at: In<'_>) -> Result<Node> {
    let Value::Document(inner) = e.value() else {
        return Err(Error::bad_value("$elemMatch needs an Object"));
    };
    if is_operators(inner, true) && !inner.first().is_some_and(|f| is_keyword(f.name())) {
        let mut all = Vec::new();
        parse_operators("", inner, at, &mut all)?;
        return Ok(Node::ElemMatchValue(ElemMatchValue { path: Path::new(path), slot: 0, all }));
    }
    let root = parse_doc(inner, Level::Nested, at)?;
    let scope = Box::new(Scope { root, names: Vec::new() });
    Ok(Node::ElemMatchObject(ElemMatchObject { path: Path::new(path), slot: 0, scope }))
}
