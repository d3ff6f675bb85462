//! What nearly every command file uses.

pub(super) use crate::Router;
pub(super) use crate::remote::envelope::{self, Kind};
pub(super) use crate::remote::handed_on;
pub(super) use pando_base::{Error, ErrorCode, Namespace, Result};
pub(super) use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};
pub(super) use pando_command::{OpCtx, Reply, Request};
