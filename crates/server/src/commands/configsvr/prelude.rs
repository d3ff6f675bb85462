//! What nearly every one of these files uses.

pub(super) use super::super::prelude::*;
pub(super) use super::call::Call;
pub(super) use super::fields;
pub(super) use pando_bson::fields::missing;
pub(super) use pando_routing::ShardId;
