//! `dropDatabase`: the primary shard coordinates; this router forgets the database.

use super::super::prelude::*;
use super::on_primary::OnPrimary;
use pando_request::DropDatabaseArgs;
use pando_rpc::Retry;

pub(in crate::commands) async fn run(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let n = DropDatabaseArgs::number(&req)?;
    DropDatabaseArgs::parse(&req)?;
    ctx.arguments_read()?;
    DropDatabaseArgs::check_one(n)?;
    if matches!(req.db, "admin" | "config") {
        return Err(Error::new(ErrorCode::IllegalOperation, format!("Cannot drop the {} database", req.db)));
    }
    let ns = Namespace::unchecked(req.db, "$cmd");
    let on = OnPrimary { ns, name: "_shardsvrDropDatabase", creates: false, retry: Retry::Idempotent };
    let done = on.run(router, ctx, &req).await;
    router.catalog.forget_database(req.db);
    match done {
        Err(e) if e.code == ErrorCode::NamespaceNotFound => {
            let mut r = Reply::new();
            r.body.str("info", "database does not exist");
            Ok(r)
        }
        done => done.map(|reply| {
            let mut r = handed_on(&reply);
            if reply.get("dropped").is_none() {
                r.body.str("dropped", req.db);
            }
            r
        }),
    }
}
