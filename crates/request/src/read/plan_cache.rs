//! The arguments of the commands about remembered plans and index filters: they name queries by their shape.
//!
//! MongoDB looks at them only once there is a collection, so reading takes whatever stands there, and [`QueryShape::named`]
//! tells what is wrong with it.

use super::find::FindArgs;
use crate::declare::kinds::AnythingGiven;
use crate::declare::{arguments, kind};
use pando_base::{Error, Result};
use pando_bson::shape::{Means, Null, Shape};
use pando_bson::{RawDoc, Value};

arguments! {
    /// What `planCacheClear` asks for: the plans of one shape, or all.
    pub struct PlanCacheClearArgs of "planCacheClear" as "planCacheClear", keeping {
        "query" query: optional Query,
        "sort" sort: optional SortOrder,
        "projection" projection: optional Projected,
        "collation" collation: optional Collated,
    }
}
arguments! {
    /// What `planCacheClearFilters` asks for: the filter of one shape, or all.
    pub struct PlanCacheClearFiltersArgs of "planCacheClearFilters" as "planCacheClearFilters", keeping {
        "query" query: optional Query,
        "sort" sort: optional SortOrder,
        "projection" projection: optional Projected,
        "collation" collation: optional Collated,
    }
}
arguments! {
    /// What `planCacheSetFilter` asks for: the indexes that queries of a shape may use.
    pub struct PlanCacheSetFilterArgs of "planCacheSetFilter" as "planCacheSetFilter", keeping {
        "query" query: optional Query,
        "sort" sort: optional SortOrder,
        "projection" projection: optional Projected,
        "collation" collation: optional Collated,
        "indexes" indexes: optional Indexes,
    }
}
arguments! {
    /// `planCacheListFilters` has no arguments beside the collection.
    pub struct PlanCacheListFiltersArgs of "planCacheListFilters" as "planCacheListFilters", keeping {}
}

/// Nobody looks whether it is an object before the collection is found.
const OBJECT_LATER: Shape = Shape::Checked { like: &[Shape::Object], check: |_, _| Ok(()) };
kind! { pub Query like AnythingGiven { SHAPE: OBJECT_LATER, NULL: Null::Value, MEANS: Means::Filter } }
kind! { pub SortOrder like AnythingGiven { SHAPE: OBJECT_LATER, NULL: Null::Value, MEANS: Means::Sort } }
kind! { pub Projected like AnythingGiven { SHAPE: OBJECT_LATER, NULL: Null::Value, MEANS: Means::Projection } }
kind! { pub Collated like AnythingGiven { SHAPE: OBJECT_LATER, NULL: Null::Value, MEANS: Means::Collation } }
kind! {
    pub Indexes like AnythingGiven {
        SHAPE: Shape::Checked { like: &[Shape::List(&Shape::Object), Shape::List(&Shape::String)], check: |_, _| Ok(()) },
        NULL: Null::Value,
        MEANS: Means::IndexName,
    }
}

/// A query by what it looks like.
#[derive(Clone, Copy, Debug)]
pub struct QueryShape<'a> {
    query: Option<Value<'a>>,
    sort: Option<Value<'a>>,
    projection: Option<Value<'a>>,
    collation: Option<Value<'a>>,
}

macro_rules! names_a_shape {
    ($($Args:ident),*) => { $(
        impl<'a> $Args<'a> {
            pub fn shape(&self) -> QueryShape<'a> {
                let Self { query, sort, projection, collation, .. } = *self;
                QueryShape { query, sort, projection, collation }
            }
        }
    )* };
}
names_a_shape!(PlanCacheClearArgs, PlanCacheClearFiltersArgs, PlanCacheSetFilterArgs);

impl<'a> PlanCacheSetFilterArgs<'a> {
    /// Key patterns and names.
    pub fn indexes(&self) -> Result<(Vec<&'a RawDoc>, Vec<&'a str>)> {
        let list = match self.indexes {
            None => return Err(Error::bad_value("required field indexes missing")),
            Some(Value::Array(list)) => list,
            Some(_) => return Err(Error::bad_value("required field indexes must be an array")),
        };
        if list.is_empty() {
            return Err(Error::bad_value("required field indexes must contain at least one index"));
        }
        let (mut patterns, mut names) = (Vec::new(), Vec::new());
        for e in list {
            match e.value() {
                Value::String(name) => names.push(name),
                Value::Document(d) if d.is_empty() => {
                    return Err(Error::bad_value("index specification cannot be empty"));
                }
                Value::Document(d) => patterns.push(d),
                _ => return Err(Error::bad_value("each item in indexes must be an object or string")),
            }
        }
        Ok((patterns, names))
    }
}

impl<'a> QueryShape<'a> {
    /// The query that a command names; `None` when it means all.
    pub fn of_one(&self) -> Result<Option<FindArgs<'a>>> {
        if self.query.is_some() {
            return self.named().map(Some);
        }
        match self.sort.or(self.projection).or(self.collation) {
            Some(_) => Err(Error::bad_value("sort, projection, or collation provided without query")),
            None => Ok(None),
        }
    }

    /// The query that a command must name.
    pub fn named(&self) -> Result<FindArgs<'a>> {
        let part = |v: Option<Value<'a>>, name: &str| match v {
            None => Ok(None),
            Some(Value::Document(d) | Value::Array(d)) => Ok(Some(d)),
            Some(_) => Err(Error::bad_value(format!("{name} must be an object"))),
        };
        let Some(filter) = part(self.query, "required field query")? else {
            return Err(Error::bad_value("required field query missing"));
        };
        let sort = part(self.sort, "optional field sort")?;
        let projection = part(self.projection, "optional field projection")?;
        let collation = part(self.collation, "optional field collation")?;
        if collation.is_some_and(RawDoc::is_empty) {
            return Err(Error::bad_value("optional field collation cannot be an empty object"));
        }
        Ok(FindArgs { filter: Some(filter), sort, projection, collation, ..FindArgs::default() })
    }
}
