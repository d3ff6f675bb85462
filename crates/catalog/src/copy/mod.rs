//! Another member's collections into this node: an initial sync ([`cloning`], [`clone_load`]), single documents after
//! a rollback ([`refetch`]), and a collection into a capped one of this node ([`capped_copy`]).

pub(crate) mod capped_copy;
pub(crate) mod clone_load;
pub(crate) mod cloning;
pub(crate) mod refetch;
