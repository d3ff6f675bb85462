//! The arguments of `setIndexCommitQuorum`.

use crate::declare::kinds::{Anything, Array};
use crate::declare::{arguments, kind};
use pando_bson::shape::{Means, Shape};

arguments! {
    /// What `setIndexCommitQuorum` asks for.
    pub struct SetIndexCommitQuorumArgs of "setIndexCommitQuorum" as "setIndexCommitQuorum", keeping {
        "indexNames" index_names: required IndexNames,
        /// Looked at once the server is known to be of a set.
        "commitQuorum" commit_quorum: required Anything,
    }
}

impl<'a> SetIndexCommitQuorumArgs<'a> {
    /// A null among the names is passed over.
    pub fn names(&self) -> Vec<&'a str> {
        self.index_names.iter().filter_map(|e| e.value().as_str()).collect()
    }
}

kind! { pub IndexNames like Array { SHAPE: Shape::List(&Shape::String), MEANS: Means::IndexName } }
