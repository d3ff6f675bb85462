//! `dataSize`: documents and bytes of a collection.

use super::prelude::*;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let Value::String(full) = req.first().value() else {
        return Err(pando_command::request::wrong_type(
            "dataSize",
            "dataSize",
            &req.first().value(),
            &["string"],
        ));
    };
    let ns = Namespace::parse(full)?;
    let mut range = false;
    for arg in req.args("dataSize") {
        match arg.name() {
            "estimate" | "scale" => {}
            "keyPattern" | "min" | "max" | "maxSize" | "maxObjects" => range = true,
            _ => return Err(arg.unknown()),
        }
    }
    if range {
        return Err(Error::new(
            ErrorCode::CommandNotSupported,
            "dataSize of a key range is not supported by this server yet",
        ));
    }
    let coll = server.existing_collection(&ns)?;
    let (size, count) = coll.map_or((0, 0), |c| (c.data_bytes(), c.count()));
    let mut r = Reply::new();
    r.body.bool("estimate", false);
    r.body.i64("size", size as i64);
    r.body.i64("numObjects", count as i64);
    r.body.i32("millis", ctx.elapsed().as_millis() as i32);
    Ok(r)
}
