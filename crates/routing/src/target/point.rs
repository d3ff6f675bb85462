//! The one key that a filter names: where a write of one document goes, and what an upsert would insert (SH-RT-3).

use crate::shard_key::ShardKey;
use pando_base::Result;
use pando_bson::keystring::KeyBuilder;
use pando_bson::{DocBuf, DocBuilder, ElementType, RawDoc, Value};
use pando_query::matcher::{CmpOp, Matcher, Node, Pred};
use pando_query::plan::compares_strings;

/// The value of the shard key that every matching document has, when the filter says what each of its fields equals; the key's
/// bytes go to `out`. Nothing when a field is not named, or may have several values.
pub fn point_of(key: &ShardKey, matcher: &Matcher, out: &mut KeyBuilder) -> Result<Option<DocBuf>> {
    let all = match matcher.root() {
        Node::And(all) => all.as_slice(),
        one => std::slice::from_ref(one),
    };
    let mut values = DocBuilder::new();
    for field in key.fields() {
        let Some(value) = all.iter().find_map(|node| equality(node, &field.path, matcher)) else {
            return Ok(None);
        };
        values.value(&*field.path, value);
    }
    let values = values.finish();
    out.clear();
    for e in values.iter() {
        let is_hashed = key.fields().get(out.fields()).is_some_and(|f| f.hashed);
        match is_hashed {
            true => out.append(Value::Int64(pando_bson::hashed::hashed_key_of(&e))),
            false => out.append_elem(&e, None),
        };
    }
    Ok(Some(values))
}

fn equality<'a>(node: &'a Node, path: &str, matcher: &Matcher) -> Option<Value<'a>> {
    let Node::Leaf(l) = node else { return None };
    let Pred::Cmp(c) = &l.pred else { return None };
    if c.op != CmpOp::Eq || (matcher.collation().is_some() && compares_strings(node)) {
        return None;
    }
    let value = c.rhs.value();
    if l.path.dotted() == path {
        return (!matches!(c.rhs.ty(), ElementType::Array | ElementType::Regex)).then_some(value);
    }
    let rest = path.strip_prefix(l.path.dotted())?.strip_prefix('.')?;
    match value {
        Value::Document(doc) => inner_value(doc, rest),
        _ => None,
    }
}

/// What a document has at a path: null where it has nothing, nothing where it has an array.
pub(super) fn inner_value<'a>(doc: &'a RawDoc, path: &str) -> Option<Value<'a>> {
    let (name, rest) = path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest)));
    match (doc.get(name), rest) {
        (None, _) => Some(Value::Null),
        (Some(Value::Array(_)), _) => None,
        (Some(v), None) => Some(v),
        (Some(Value::Document(inner)), Some(rest)) => inner_value(inner, rest),
        (Some(_), Some(_)) => Some(Value::Null),
    }
}
