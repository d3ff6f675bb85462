//! The kinds of events, by subject: their names, and the fields of `param` (MongoDB's "System Event Audit Messages").

mod access;
mod definitions;
mod principals;
mod process;
mod sharding;

pub use access::Mutation;
pub use definitions::IndexBuild;
