//! What nearly every command file uses.

pub(super) use crate::KeepsUsers;
pub(super) use pando_base::{Error, ErrorCode, Result};
pub(super) use pando_bson::{DocBuilder, RawDoc, Value};
pub(super) use pando_command::{OpCtx, Reply, Request};
