//! `dropDatabase`: removes all collections of a database.

use super::prelude::*;
use pando_command::W;
use pando_request::DropDatabaseArgs;
use pando_workflows::drop_database::{Asked, DropDatabase, Options};

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    DropDatabaseArgs::parse(&req)?;
    let one = DropDatabaseArgs::number(&req)?;
    ctx.arguments_read()?;
    DropDatabaseArgs::check_one(one)?;
    server.upkeep.admission.before_write(ctx).await?;
    let given = ctx.args.write_concern.as_ref();
    let asked = match given.filter(|wc| wc.w_given).map(|wc| &wc.w) {
        None => Asked::Nothing,
        Some(W::Nodes(n)) => Asked::Nodes(i64::from(*n)),
        Some(W::Majority | W::Mode(_) | W::Tags(_)) => Asked::Other,
    };
    let options = Options {
        db: req.db.to_owned(),
        replicated: server.replication.member.is_replicated(),
        asked,
        wtimeout_ms: given.map_or(0, |wc| wc.wtimeout_ms),
    };
    crate::workflows::in_command::run(
        &server.replication,
        &server.access,
        ctx,
        Box::new(DropDatabase::new(options)),
    )
    .await?;
    Ok(Reply::new())
}
