//! Where a write goes (SH-RT-1, SH-RT-3).

use super::execute::Writes;
use crate::remote::Shards;
use pando_base::{Error, ErrorCode, Result};
use pando_bson::keystring::KeyBuilder;
use pando_bson::{RawDoc, Value};
use pando_command::OpCtx;
use pando_metadata_cache::{Route, Target};
use pando_query::matcher::Matcher;
use pando_request::{DeleteStatement, UpdateStatement};
use pando_routing::RoutingTable;
use pando_routing::target::point_of;

/// The shard that a document belongs to.
pub(crate) fn of_document(route: &Route, doc: &RawDoc) -> Result<Vec<Target>> {
    let Some(table) = &route.table else { return Ok(vec![route.primary()]) };
    let mut key = KeyBuilder::default();
    table.collection.key.key_of(doc, &mut key)?;
    Ok(vec![Route::owner_of_key(table, key.bytes())?])
}

/// The shard with the one key that a filter names.
pub(crate) fn of_point(table: &RoutingTable, matcher: Option<&Matcher>) -> Result<Option<Target>> {
    let mut key = KeyBuilder::default();
    let Some(matcher) = matcher else { return Ok(None) };
    match point_of(&table.collection.key, matcher, &mut key)? {
        Some(_) => Route::owner_of_key(table, key.bytes()).map(Some),
        None => Ok(None),
    }
}

/// Only the `_id`, and what it equals.
pub(crate) fn is_exact_id(filter: &RawDoc) -> bool {
    let mut elems = filter.iter();
    let (Some(id), None) = (elems.next(), elems.next()) else { return false };
    id.name() == "_id"
        && match id.value() {
            Value::Document(d) => {
                !d.first().is_some_and(|e| e.name().starts_with('$'))
                    || d.elem("$eq").is_some() && d.count() == 1
            }
            Value::Regex { .. } | Value::Array(_) => false,
            _ => true,
        }
}

/// What is done to one document only, without saying where it is.
pub(crate) enum Goes {
    To(Vec<Target>),
    /// Nobody knows where the document is, if there is one: it has to be looked for.
    Anywhere,
}

pub(crate) fn of_update(
    shards: &Shards,
    ctx: &OpCtx,
    route: &Route,
    s: &UpdateStatement<'_>,
) -> Result<Goes> {
    let Some(table) = &route.table else { return Ok(Goes::To(vec![route.primary()])) };
    let matcher = shards.condition(ctx, Some(table), Some(s.filter), s.collation, s.let_vars);
    if let Some(target) = of_point(table, matcher.as_ref())? {
        return Ok(Goes::To(vec![target]));
    }
    if s.upsert && s.multi {
        let text = "Failed to target upsert by query :: could not extract exact shard key";
        return Err(Error::new(ErrorCode::ShardKeyNotFound, text));
    }
    let targets = route.concerned(matcher.as_ref());
    if s.multi {
        return Ok(Goes::To(targets));
    }
    if s.upsert {
        return Ok(Goes::Anywhere);
    }
    if targets.len() == 1 {
        return Ok(Goes::To(targets));
    }
    // A whole document says where it is to be, so that is where it is.
    if let Value::Document(new) = s.update
        && !new.first().is_some_and(|e| e.name().starts_with('$'))
        && table.collection.key.fields().iter().all(|f| new.get_path(&f.path).is_some())
    {
        return of_document(route, new).map(Goes::To);
    }
    match is_exact_id(s.filter) && s.collation.is_none() {
        true => Ok(Goes::To(targets)),
        false => Ok(Goes::Anywhere),
    }
}

pub(crate) fn of_delete(
    shards: &Shards,
    ctx: &OpCtx,
    route: &Route,
    s: &DeleteStatement<'_>,
) -> Result<Goes> {
    let Some(table) = &route.table else { return Ok(Goes::To(vec![route.primary()])) };
    let matcher = shards.condition(ctx, Some(table), Some(s.filter), s.collation, s.let_vars);
    if let Some(target) = of_point(table, matcher.as_ref())? {
        return Ok(Goes::To(vec![target]));
    }
    let targets = route.concerned(matcher.as_ref());
    let exact = is_exact_id(s.filter) && s.collation.is_none();
    match s.multi || targets.len() == 1 || exact {
        true => Ok(Goes::To(targets)),
        false => Ok(Goes::Anywhere),
    }
}

/// A retryable write of one document has to say where it is.
pub(crate) fn needs_key(writes: &Writes<'_>, route: &Route, statement: &RawDoc) -> Error {
    let key = route.table.as_ref().map(|t| t.collection.key.pattern().to_string()).unwrap_or_default();
    match writes.command {
        "delete" => Error::new(
            ErrorCode::ShardKeyNotFound,
            format!(
                "A single delete on a sharded collection must contain an exact match on _id (and have the collection \
                 default collation) or contain the shard key (and have the simple collation). Delete request: \
                 {statement}, shard key pattern: {key}"
            ),
        ),
        _ => Error::new(
            ErrorCode::InvalidOptions,
            format!(
                "A {{multi:false}} update on a sharded collection must either contain an exact match on _id (and have \
                 the collection default collation) or contain the shard key (and have the simple collation). Update \
                 request: {statement}, shard key pattern: {key}"
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_metadata_cache::testing::{doc, route, table};

    #[test]
    fn a_document_goes_where_its_key_is() {
        let route = route(Some(table(&[("a", None), ("b", Some(0))])));
        let to = |text: &str| of_document(&route, &doc(text)).map(|t| t[0].shard.to_string());
        assert_eq!(to(r#"{"k": -1}"#).unwrap(), "a");
        assert_eq!(to(r#"{"k": 0}"#).unwrap(), "b");
        assert_eq!(to("{}").unwrap(), "a", "what is missing is null, which is below all numbers");
        assert_eq!(to(r#"{"k": [1]}"#).unwrap_err().code, ErrorCode::ShardKeyNotFound);
    }

    #[test]
    fn an_exact_id_is_one_value() {
        for (text, exact) in [
            (r#"{"_id": 1}"#, true),
            (r#"{"_id": {"a": 1}}"#, true),
            (r#"{"_id": {"$eq": 1}}"#, true),
            (r#"{"_id": {"$gt": 1}}"#, false),
            (r#"{"_id": 1, "x": 1}"#, false),
            ("{}", false),
        ] {
            assert_eq!(is_exact_id(&doc(text)), exact, "{text}");
        }
    }
}
