//! `usersInfo`. Users cannot be created yet, so a well-formed question finds none.

use super::prelude::*;
use pando_query::matcher::{Matcher, Place};
use pando_request::UsersInfoArgs;
use pando_request::settings::users_info::Users;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let args = UsersInfoArgs::parse(&req)?;
    let users = Users::parse(&req)?;
    ctx.arguments_read()?;
    args.check(&users)?;
    // Users without details are looked for by a query, which has to have a name at least.
    if matches!(&users, Users::Named(names) if names.is_empty() && !args.details()) {
        return Err(Error::bad_value("$and/$or/$nor must be a nonempty array"));
    }
    if let Some(filter) = args.filter {
        let query = server.crud.reads.query_ctx(ctx, None, None, None)?;
        Matcher::parse_in(Place::Document, filter, &query).map(drop)?;
    }
    let mut r = Reply::new();
    r.body.array("users", |_| {});
    Ok(r)
}
