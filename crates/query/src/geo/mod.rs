//! Places: what `$geoWithin`, `$geoIntersects`, `$near` and the indexes on places share.
//!
//! * [`parse`] — GeoJSON and coordinate pairs of documents and queries into [`Shape`]s, with MongoDB's complaints
//! * `ring` — loops and polygons on the sphere; `flat` — their counterparts on the plane
//! * `predicates` — what contains or meets what; [`distance`] — how far things are
//! * [`GeoQuery`], [`NearQuery`] — the operators
//! * `cover` — regions as cells of the sphere; `grid` — of the plane; [`GeoIndex`] — cells as index keys
//!
//! Edges on the sphere are geodesics, a loop encloses the smaller area unless its reference system says that its
//! winding counts. Cells are the `s2` crate's; orientations and crossings are `exact`, so that a point on an edge is
//! on the same side in every question.

mod cover;
pub mod distance;
mod edge_index;
mod exact;
mod flat;
mod grid;
mod index;
mod near;
pub mod parse;
mod predicates;
mod query;
mod ring;
mod shape;
#[cfg(test)]
mod tests;

pub use grid::Grid;
pub use index::GeoIndex;
pub(crate) use near::is_near;
pub use near::{NearQuery, NearResult, each_below, each_place};
pub use query::BUCKET_OPERATOR;
pub use query::{GeoOp, GeoQuery};
pub use shape::{Crs, GeoPoint, Shape, Xy};
