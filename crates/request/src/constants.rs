//! What a router tells of its clock and of who asks, so that every shard answers alike.

use pando_bson::shape::{Field, Shape};

/// `runtimeConstants` of reads, `legacyRuntimeConstants` of writes.
pub const RUNTIME_CONSTANTS: Shape = Shape::Fields(&[
    Field::required("localNow", Shape::Date),
    Field::required("clusterTime", Shape::Timestamp),
    Field::optional("jsScope", Shape::Object),
    Field::optional("isMapReduce", Shape::Bool),
    Field::optional("userRoles", Shape::List(&Shape::Any)),
]);
