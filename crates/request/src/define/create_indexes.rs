//! The arguments of `createIndexes`.

use crate::declare::kinds::{Anything, Array, Bool, SafeBool, Uuid};
use crate::declare::{arguments, kind};
use pando_base::Result;
use pando_bson::shape::{Means, Shape, wrong_type_at};
use pando_bson::{RawDoc, Value};
use pando_topology::commit_quorum::CommitQuorum as Quorum;

arguments! {
    /// What `createIndexes` asks for.
    pub struct CreateIndexesArgs of "createIndexes" as "createIndexes", refusing {
        /// Specifications as written; what they mean is not known here.
        "indexes" indexes: required IndexSpecs,
        "commitQuorum" commit_quorum: optional CommitQuorum,
        /// Options that no index has are dropped instead of being refused.
        "ignoreUnknownIndexOptions" ignore_unknown: optional SafeBool,
        /// A time series, named by its collection of buckets.
        "isTimeseriesNamespace" by_buckets: optional Bool,
        "collectionUUID" collection_uuid: optional Uuid,
    }
}

impl<'a> CreateIndexesArgs<'a> {
    /// The specifications; a null among them is passed over.
    pub fn specs(&self) -> Vec<&'a RawDoc> {
        self.indexes.iter().filter_map(|e| e.value().as_doc()).collect()
    }
}

kind! { pub IndexSpecs like Array { SHAPE: Shape::List(&Shape::Object), MEANS: Means::IndexSpec } }
kind! {
    /// A number of members that hold data, or a name for some of them.
    pub CommitQuorum like Anything {
        SHAPE: Shape::Checked {
            like: &[Shape::Int, Shape::Word(&["votingMembers", "majority"])],
            check: check_quorum,
        },
    }
}

/// Whether a set could meet it is not asked here.
fn check_quorum(path: &str, v: &Value<'_>) -> Result<()> {
    let wrong = || wrong_type_at(path, v, &["long", "int", "decimal", "double", "string"]);
    Quorum::parse(v).unwrap_or_else(|| Err(wrong())).map(drop)
}
