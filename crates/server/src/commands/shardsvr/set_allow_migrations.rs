//! `_shardsvrSetAllowMigrations {<coll>, allowMigrations}`: whether chunks of a collection may move (SYS-263), coordinated by the primary
//! shard of its database.
//!
//! One document of the config servers says so, and every commit of a migration is judged by it, so there is nothing to be done in steps: whoever
//! meets a primary that ends in the middle sends it again. The change names the version that it is of: a command that comes late, of a primary
//! that is none any more, changes nothing.

use crate::commands::prelude::*;
use crate::commands::shardsvr::ddl::Ddl;
use pando_base::limits;
use pando_bson::fields::wrong_type;
use pando_command::request::missing;

/// Returns when nobody begins or commits a migration any more, or everybody may.
///
/// # Errors
/// 118 where it is not sharded.
pub(in crate::commands) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = req.ns()?;
    let allow = match req.body.get("allowMigrations") {
        None => return Err(missing(req.name, "allowMigrations")),
        Some(Value::Boolean(allow)) => allow,
        Some(v) => return Err(wrong_type(req.name, "allowMigrations", &v, &["bool"])),
    };
    server.upkeep.admission.before_write(ctx).await?;
    let ddl = Ddl::new(server, ctx)?;
    let _locks = ddl.lock_collection(&ns).await?;
    server.access.check_database(ctx, ns.db())?;
    let mut tries = 0;
    while let Err(e) = ddl.set_allow_migrations(&ns, allow).await {
        tries += 1;
        // It was split, or a range of it has moved, since it was looked at.
        if e.code != ErrorCode::ConflictingOperationInProgress || tries >= limits::WORKFLOW_TRIES_MAX {
            return Err(e);
        }
    }
    Ok(Reply::new())
}

impl Ddl<'_> {
    async fn set_allow_migrations(&self, ns: &Namespace, allow: bool) -> Result<()> {
        self.sharding.refresh_anew(ns).await?;
        let table = self.sharding.metadata.known(ns).table().cloned();
        let table = table.ok_or_else(|| {
            Error::new(ErrorCode::NamespaceNotSharded, format!("Collection {ns} is not sharded"))
        })?;
        let mut b = DocBuilder::new();
        b.str("_configsvrSetAllowMigrations", ns.as_str()).bool("allowMigrations", allow);
        b.uuid("collectionUUID", &table.collection.uuid.0);
        table.version().append("collectionVersion", &mut b);
        b.doc("writeConcern", |d| _ = d.str("w", "majority")).str("$db", "admin");
        self.on_config(&b.finish()).await?;
        self.sharding.refresh_anew(ns).await
    }
}
