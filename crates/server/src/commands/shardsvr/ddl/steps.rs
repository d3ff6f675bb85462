//! Steps that a coordinator's own node makes (see `pando_workflows::ddl`): what needs the catalog, or asks the config servers.

use super::Ddl;
use super::create_collection::Wanted;
use super::move_primary;
use crate::Server;
use crate::commands::shardsvr::migration;
use pando_base::{Error, ErrorCode, Namespace, Result};
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use pando_command::OpCtx;
use pando_command::on_behalf_of::OnBehalfOf;
use pando_metadata_cache::Ask;
use pando_shard::metadata::KnownDatabase;
use pando_workflows::ddl;
use pando_workflows::{
    coll_mod, create_collection, drop_collection, drop_sharded_database, refine_shard_key, rename_collection,
};

/// One step: the first field tells which, and of what.
pub(crate) async fn own_step(server: &Server, body: &RawDoc) -> Result<DocBuf> {
    let unknown = || Error::internal(format!("no step of a coordinator: {body}"));
    let first = body.first().ok_or_else(unknown)?;
    let name = first.value().as_str().ok_or_else(unknown)?;
    let db = name.split('.').next().unwrap_or_default();
    let client = server.instance.internal_client("ShardingDDLCoordinator");
    let asked_by = ddl::asked_by(body).as_deref().and_then(OnBehalfOf::parse);
    let is_somebodys = asked_by.is_some();
    client.act_for(asked_by);
    let ctx = OpCtx::internal(client, "ShardingDDLCoordinator", db);
    // Whether it may was asked when the definition began.
    ctx.locks.pass_write_block();
    let ddl = Ddl::new(server, &ctx)?;
    let step = std::pin::pin!(make(&ddl, first.name(), name, body));
    if is_somebodys { ctx.run(step).await } else { step.await }
}

async fn make(ddl: &Ddl<'_>, step: &str, name: &str, body: &RawDoc) -> Result<DocBuf> {
    if let Some(made) = migration::step(ddl, step, body).await? {
        return Ok(made);
    }
    let db = name.split('.').next().unwrap_or_default();
    if let Some(made) = move_primary::step(ddl, step, db, body).await? {
        return Ok(made);
    }
    let of_collection = || Namespace::parse(name);
    match step {
        coll_mod::LOOK => ddl.look_at_coll_mod(&of_collection()?).await,
        coll_mod::OWNERS => ddl.look_at_owners(&of_collection()?).await,
        coll_mod::HERE => ddl.coll_mod_here(&of_collection()?, body).await,
        create_collection::CHECK => ddl.check_create(&Wanted::of_state(&of_collection()?, body)?).await,
        create_collection::MAKE => ddl.make_collection(&Wanted::of_state(&of_collection()?, body)?).await,
        create_collection::REFRESH => nothing(ddl.sharding.refresh_anew(&of_collection()?).await),
        drop_collection::LOOK => ddl.look_at_collection(&of_collection()?).await,
        drop_collection::DROP_HERE => nothing(ddl.drop_as_told(&of_collection()?).await),
        refine_shard_key::LOOK => ddl.look_at_shard_key(&of_collection()?, body).await,
        rename_collection::LOOK => ddl.look_at_rename(&of_collection()?, body).await,
        rename_collection::RENAME_HERE => nothing(ddl.rename_here(&of_collection()?, body).await),
        rename_collection::DROP_SOURCE => nothing(ddl.drop_source(&of_collection()?, body).await),
        drop_sharded_database::LOOK => ddl.look_at_database(db).await,
        drop_sharded_database::DROP_HERE => nothing(ddl.drop_database_here(db).await),
        drop_sharded_database::REFRESH => nothing(ddl.sharding.refresh_database_anew(db).await),
        _ => Err(Error::internal(format!("no step of a coordinator: {body}"))),
    }
}

fn nothing(done: Result<()>) -> Result<DocBuf> {
    done.map(|()| DocBuf::default())
}

impl Ddl<'_> {
    /// Whoever has waited for the locks of a database may find that it has moved meanwhile. One that is nowhere has not.
    ///
    /// # Errors
    /// 249 where another shard is its primary.
    pub(super) async fn check_has_not_moved(&self, db: &str) -> Result<()> {
        self.sharding.refresh_database_anew(db).await?;
        if let Some(KnownDatabase::Here(_)) = self.sharding.metadata.known_database(db) {
            return Ok(());
        }
        let mut filter = DocBuilder::new();
        filter.str("_id", db);
        match self.cluster.catalog.read(&Ask::of("databases", filter.finish())).await?.is_empty() {
            true => Ok(()),
            false => {
                let text = format!("database {db} has moved to another shard");
                Err(Error::new(ErrorCode::StaleDbVersion, text))
            }
        }
    }
    /// What the config servers know of a collection, and the number of this definition. Asking them first, this node has heard of
    /// every time that they have: the number is above those of all earlier definitions of the name.
    async fn look_at_collection(&self, ns: &Namespace) -> Result<DocBuf> {
        if ns.db() != "config" {
            self.check_has_not_moved(ns.db()).await?;
        }
        self.sharding.refresh_anew(ns).await?;
        let mut b = DocBuilder::new();
        if let Some(table) = self.sharding.metadata.known(ns).table() {
            b.uuid("collectionUUID", &table.collection.uuid.0);
        }
        self.append_number(&mut b, "a collection is dropped", ns.as_str()).await?;
        Ok(b.finish())
    }
    async fn look_at_database(&self, db: &str) -> Result<DocBuf> {
        self.check_has_not_moved(db).await?;
        let mut b = DocBuilder::new();
        let collections = self.sharded_collections(db).await?;
        b.array("collections", |list| {
            for (ns, uuid) in &collections {
                list.doc(|d| {
                    d.str("ns", ns.as_str()).uuid("uuid", &uuid.0);
                });
            }
        });
        if let Some(KnownDatabase::Here(version)) = self.sharding.metadata.known_database(db) {
            version.append("version", &mut b);
        }
        self.append_number(&mut b, "a database is dropped", db).await?;
        Ok(b.finish())
    }
    pub(super) async fn append_number(&self, b: &mut DocBuilder, what: &str, name: &str) -> Result<()> {
        let shards = self.cluster.others().await?;
        b.timestamp("timestamp", self.server.replication.note(what, name)?);
        b.array("shards", |list| {
            for shard in &shards {
                list.str(shard.as_str());
            }
        });
        Ok(())
    }
}
