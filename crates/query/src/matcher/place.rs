//! Where a filter stands, which says what it may hold. The parser asks when it meets an operator, before it reads what
//! the operator is given: of two mistakes in a filter the first one is told.

use super::text::no_index;
use crate::ctx::{QueryCtx, TextIndex};
use pando_base::{Error, ErrorCode, Result};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// A command's query, which may hold everything.
    Query,
    /// The query of an upsert, which makes a document of it; `$expr` says nothing about one.
    Upsert,
    /// `$match`: what sorts by distance is a stage of its own.
    Match,
    /// The query of `$geoNear`, which stands beside a `$near`.
    BesideNear,
    /// What looks at one document at a time without a collection's indexes: a validator, a partial index.
    Document,
    /// Conditions on elements of an array: array filters, `$pull`, `$elemMatch` in a projection.
    Elements,
}

impl Place {
    pub(super) fn allow_near(self) -> Result<()> {
        match self {
            Place::Query | Place::Upsert | Place::BesideNear => Ok(()),
            Place::Match | Place::Document | Place::Elements => Err(Error::location(
                5_626_500,
                "$geoNear, $near, and $nearSphere are not allowed in this context",
            )),
        }
    }
    pub(super) fn allow_where(self) -> Result<()> {
        match self {
            Place::Query | Place::Upsert => Ok(()),
            _ => Err(Error::bad_value("$where is not allowed in this context")),
        }
    }
    pub(super) fn allow_text(self) -> Result<()> {
        match self {
            Place::Document | Place::Elements => {
                Err(Error::bad_value("$text is not allowed in this context"))
            }
            _ => Ok(()),
        }
    }
    pub(super) fn allow_schema(self) -> Result<()> {
        refuse(self == Place::Elements, "$jsonSchema is not allowed in this context")
    }
    pub(super) fn allow_expr(self) -> Result<()> {
        refuse(self == Place::Upsert, "$expr is not allowed in the query predicate for an upsert")?;
        refuse(self == Place::Elements, "$expr is not allowed in this context")
    }
    /// A command's query knows its collection: a search without a text index is refused (27) where it stands.
    /// Pipelines find out when they are planned.
    pub(super) fn need_text_index(self, ctx: &QueryCtx) -> Result<()> {
        match (self, &ctx.text_index) {
            (Place::Query | Place::Upsert, TextIndex::Missing) => Err(no_index()),
            (Place::Query | Place::Upsert, TextIndex::NoCollection(ns)) => {
                let text = format!("text index required for $text query (no such collection '{ns}')");
                Err(Error::new(ErrorCode::IndexNotFound, text))
            }
            _ => Ok(()),
        }
    }
}

fn refuse(refused: bool, text: &'static str) -> Result<()> {
    match refused {
        true => Err(Error::new(ErrorCode::QueryFeatureNotAllowed, text)),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Matcher;
    use super::*;
    use pando_bson::{Document, doc};

    fn code(place: Place, filter: Document) -> i32 {
        Matcher::parse_in(place, &filter.to_raw(), &QueryCtx::default()).err().map_or(0, |e| e.code.0)
    }

    #[test]
    fn what_may_not_stand_somewhere_is_refused_before_its_argument_is_read() {
        let near = || doc! { "a": { "$near": [] } };
        assert_eq!(code(Place::Query, near()), 2);
        for place in [Place::Match, Place::Document, Place::Elements] {
            assert_eq!(code(place, near()), 5_626_500, "{place:?}");
            assert_eq!(code(place, doc! { "a": { "$not": { "$near": [], "$bogus": 1 } } }), 5_626_500);
            assert_eq!(code(place, doc! { "a": { "$all": [{ "$elemMatch": { "$near": [] } }] } }), 5_626_500);
            assert_eq!(code(place, doc! { "a": { "$elemMatch": { "b": { "$near": [] } } } }), 5_626_500);
            assert_eq!(code(place, doc! { "$where": 1 }), 2);
        }
        assert_eq!(code(Place::Elements, doc! { "$jsonSchema": 1 }), 224);
        assert_eq!(code(Place::Document, doc! { "$jsonSchema": 1 }), 14);
        assert_eq!(code(Place::Upsert, doc! { "$expr": { "$bogus": 1 } }), 224);
    }

    #[test]
    fn of_two_mistakes_the_first_is_told() {
        let unknown = || doc! { "$bogus": 1 };
        assert_eq!(code(Place::Match, doc! { "a": unknown(), "b": { "$near": [] } }), 2);
        assert_eq!(code(Place::Match, doc! { "b": { "$near": [] }, "a": unknown() }), 5_626_500);
        assert_eq!(code(Place::Upsert, doc! { "a": unknown(), "$expr": 1 }), 2);
        assert_eq!(code(Place::Elements, doc! { "a": { "$gt": 1, "$near": [] } }), 2);
        assert_eq!(code(Place::Query, doc! { "a": { "$elemMatch": { "$near": [], "$bogus": 1 } } }), 34_413);
    }

    #[test]
    fn names_in_values_are_no_operators() {
        assert_eq!(code(Place::Elements, doc! { "a": { "b": { "$near": 1 } } }), 0);
        assert_eq!(code(Place::Elements, doc! { "a": { "$in": [{ "b": { "$where": 1 } }] } }), 0);
    }

    #[test]
    fn a_search_is_refused_where_it_stands_when_its_collection_has_no_text_index() {
        let ctx = QueryCtx { text_index: TextIndex::Missing, ..QueryCtx::default() };
        let filter = doc! { "$nor": [{ "$text": { "$search": "a" }, "$alwaysFalse": 1 }] }.to_raw();
        let code = |place| Matcher::parse_in(place, &filter, &ctx).err().map_or(0, |e| e.code.0);
        assert_eq!((code(Place::Query), code(Place::Match)), (27, 0));
    }
}
