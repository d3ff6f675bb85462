//! `driverOIDTest` (test command): the ObjectId as it arrived, and its text.

use crate::{Node, OpCtx, Reply, Request};
use pando_base::{Error, Result};
use pando_bson::Value;

pub async fn run<S: Node>(_: &S, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let Value::ObjectId(id) = req.first().value() else {
        return Err(Error::uncoded("not oid"));
    };
    let mut r = Reply::new();
    r.body.value("oid", Value::ObjectId(id));
    r.body.str("str", &id.to_hex());
    Ok(r)
}
