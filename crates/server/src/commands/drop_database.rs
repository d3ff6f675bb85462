//! `dropDatabase`: removes all collections of a database.

use super::prelude::*;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    if req.first().value().as_i64() != Some(1) && !matches!(req.first().value(), Value::Boolean(true)) {
        return Err(Error::location(
            5_255_100,
            "Invalid dropDatabase command: have to pass 1 as db parameter",
        ));
    }
    for arg in req.args("dropDatabase") {
        return Err(arg.unknown());
    }
    server.before_write(ctx).await?;
    let last = server.catalog.drop_database(req.db).await?;
    server.wrote(ctx, last);
    Ok(Reply::new())
}
