//! Commands to shards: what goes with each, one or several of them, and when they are routed again.

pub(crate) mod abort;
pub(crate) mod call;
pub(crate) mod envelope;
mod handed_on;
pub(crate) mod scatter;
mod shards;
pub(crate) mod stale;
pub(crate) mod view;

pub(crate) use handed_on::{handed_on, own_fields};
pub use shards::Shards;
pub(crate) use view::View;
