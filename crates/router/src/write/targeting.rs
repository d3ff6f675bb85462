//! Where a write goes (SH-RT-1, SH-RT-3).

use super::execute::Writes;
use crate::remote::Shards;
use pando_base::{Error, ErrorCode, Result};
use pando_bson::keystring::KeyBuilder;
use pando_bson::{DocBuilder, RawDoc, Value};
use pando_command::OpCtx;
use pando_metadata_cache::{Route, Target};
use pando_query::matcher::Matcher;
use pando_request::{DeleteStatement, UpdateStatement};
use pando_routing::target::point_of;
use pando_routing::{RoutingTable, ShardKey};
use std::sync::LazyLock;

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

/// Whether a filter says what the `_id` equals, by the collation that documents of the collection are told apart by: such a write of one
/// document may be sent to several shards, whatever else the filter says.
fn names_id(
    shards: &Shards,
    ctx: &OpCtx,
    table: &RoutingTable,
    (filter, collation, let_vars): (&RawDoc, Option<&RawDoc>, Option<&RawDoc>),
) -> Result<bool> {
    // Values of `_id` are unique as they are spelled, or by the collection's own collation: either tells one document.
    let table = collation.map(|_| table);
    let matcher = shards.condition(ctx, table, Some(filter), collation, let_vars);
    matcher.map_or(Ok(false), |m| equals_id(&m))
}

fn equals_id(matcher: &Matcher) -> Result<bool> {
    static ID: LazyLock<Option<ShardKey>> = LazyLock::new(|| {
        let mut b = DocBuilder::new();
        b.i32("_id", 1);
        ShardKey::parse(&b.finish()).ok()
    });
    let Some(id) = &*ID else { return Ok(false) };
    Ok(point_of(id, matcher, &mut KeyBuilder::default())?.is_some())
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
        return Err(no_place_for_upsert());
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
    match names_id(shards, ctx, table, (s.filter, s.collation, s.let_vars))? {
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
    let is_told = s.multi || targets.len() == 1;
    match is_told || names_id(shards, ctx, table, (s.filter, s.collation, s.let_vars))? {
        true => Ok(Goes::To(targets)),
        false => Ok(Goes::Anywhere),
    }
}

/// A retryable write of one document has to say where it is, or is to be.
pub(crate) fn needs_key(writes: &Writes<'_>, route: &Route, statement: &RawDoc) -> Error {
    if statement.get("upsert").is_some_and(|v| v.is_truthy()) {
        return no_place_for_upsert();
    }
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

fn no_place_for_upsert() -> Error {
    let text = "Failed to target upsert by query :: could not extract exact shard key";
    Error::new(ErrorCode::ShardKeyNotFound, text)
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
    fn an_exact_id_is_one_value_whatever_else_is_asked_for() {
        for (text, exact) in [
            (r#"{"_id": 1}"#, true),
            (r#"{"_id": {"a": 1}}"#, true),
            (r#"{"_id": {"$eq": 1}}"#, true),
            (r#"{"_id": null}"#, true),
            (r#"{"_id": {"$gt": 1}}"#, false),
            (r#"{"_id": [1]}"#, false),
            (r#"{"_id": {"$in": [1, 2]}}"#, false),
            (r#"{"_id": 1, "x": 1}"#, true),
            (r#"{"x": {"$gt": 1}, "_id": "s"}"#, true),
            (r#"{"$and": [{"_id": 1}, {"x": null}]}"#, true),
            (r#"{"$or": [{"_id": 1}, {"x": null}]}"#, false),
            (r#"{"_id.a": 1}"#, false),
            ("{}", false),
        ] {
            let matcher = Matcher::parse(&doc(text), &Default::default()).unwrap();
            assert_eq!(equals_id(&matcher).unwrap(), exact, "{text}");
        }
    }
}
