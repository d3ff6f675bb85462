//! `renameCollection`: coordinated by the primary shard of the database, which has to be that of the other one, too, where there are two.
//!
//! A rename by name must not be sent twice: the second would take what was made under the old name meanwhile, and drop what the first has
//! renamed. So each try names the collection that is meant by its UUID, and one that finds it gone looks whether it has the new name. In another
//! database it has another UUID: that rename is sent once.

use super::super::prelude::*;
use super::on_primary::OnPrimary;
use pando_base::{Uuid, limits};
use pando_request::RenameCollectionArgs;
use pando_routing::DatabaseVersion;
use pando_rpc::Retry;

const NAME: &str = "_shardsvrRenameCollection";

pub(in crate::commands) async fn run(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let from = RenameCollectionArgs::source(&req)?;
    ctx.arguments_read()?;
    let args = RenameCollectionArgs::parse(&req)?;
    let to = args.target()?;
    args.check_uuids(&from, &to)?;
    let asked = Asked { is_across: from.db() != to.db(), expected: args.collection_uuid.map(Uuid), from, to };
    if asked.is_across {
        check_not_of_servers(&[&asked.from, &asked.to])?;
    }
    let mut tries = 0;
    loop {
        let done = asked.once(router, ctx, &req).await?;
        tries += 1;
        match done {
            Some(reply) => return Ok(reply),
            // With another primary shard it has another UUID.
            None if tries < limits::ROUTER_STALE_TRIES_MAX => {}
            None => return Err(no_source(&asked.from)),
        }
    }
}

struct Asked {
    from: Namespace,
    to: Namespace,
    is_across: bool,
    expected: Option<Uuid>,
}

impl Asked {
    /// `None` when the collection that was meant is gone, and its database has moved.
    async fn once(&self, router: &Router, ctx: &OpCtx, req: &Request<'_>) -> Result<Option<Reply>> {
        let Asked { from, to, is_across, expected } = self;
        // What is not there, or is not what the client expects, is told by the shard.
        let meant =
            uuid_of(router, ctx, from).await?.filter(|there| expected.is_none_or(|uuid| uuid == *there));
        let before = version_of(router, from).await?;
        if *is_across {
            prepare_other_database(router, ctx, from, to, meant.is_some()).await?;
        }
        // On the database that it is about, not on `admin`.
        let within = Request { db: from.db(), ..*req };
        let retry = if meant.is_some() && !is_across { Retry::Idempotent } else { Retry::NotIdempotent };
        let on = OnPrimary { ns: from.clone(), name: NAME, creates: false, retry };
        let arguments = |b: &mut DocBuilder| {
            b.str(NAME, from.coll()).str("to", to.as_str());
            for option in ["dropTarget", "stayTemp"] {
                req.body.elem(option).into_iter().for_each(|e| _ = b.elem(e));
            }
            if let Some(uuid) = meant.or(*expected) {
                b.uuid("collectionUUID", &uuid.0);
            }
        };
        let done = on.run_with(router, ctx, &within, arguments).await;
        for ns in [from, to] {
            router.catalog.renew_collection(ns.as_str());
        }
        match done {
            Ok(reply) => Ok(Some(handed_on(&reply))),
            Err(e) if is_gone(&e, meant) && uuid_of(router, ctx, to).await? == meant => {
                Ok(Some(Reply::new()))
            }
            Err(e) if is_about(&e, meant) && expected.is_none() => {
                match version_of(router, from).await? == before {
                    // It went between the two, and nobody has asked for this one.
                    true => Err(no_source(from)),
                    false => Ok(None),
                }
            }
            Err(e) => Err(e),
        }
    }
}

fn no_source(from: &Namespace) -> Error {
    Error::new(ErrorCode::NamespaceNotFound, format!("Source collection {from} does not exist"))
}

/// Of the database, as this router knows it.
async fn version_of(router: &Router, ns: &Namespace) -> Result<Option<DatabaseVersion>> {
    Ok(router.catalog.route_if_any(ns).await?.map(|route| route.db.version))
}

/// What servers keep in databases of their own stays there.
fn check_not_of_servers(names: &[&Namespace]) -> Result<()> {
    match names.iter().find(|ns| matches!(ns.db(), "admin" | "config" | "local")) {
        Some(ns) => Err(Error::new(ErrorCode::IllegalOperation, format!("Cannot rename {ns}"))),
        None => Ok(()),
    }
}

/// The other database comes into being on the primary shard of the first, unless there is nothing to rename. The shard looks at all of this once
/// more, when nobody can change it.
///
/// # Errors
/// 125 where the source is sharded.
async fn prepare_other_database(
    router: &Router,
    ctx: &OpCtx,
    from: &Namespace,
    to: &Namespace,
    is_there: bool,
) -> Result<()> {
    router.catalog.renew_collection(from.as_str());
    let Some(route) = router.catalog.route_if_any(from).await? else { return Ok(()) };
    if route.table.is_some() {
        let text = "Source and destination collections must be on the same database.";
        return Err(Error::new(ErrorCode::CommandFailed, text));
    }
    if !is_there || router.catalog.route_if_any(to).await?.is_some() {
        return Ok(());
    }
    let primary = route.db.primary.as_str();
    match router.create_database(ctx, to.db(), Some(primary)).await {
        // Somebody was faster, and has it elsewhere.
        Err(e) if e.code == ErrorCode::NamespaceExists => Ok(()),
        done => done.map(drop),
    }
}

/// Nobody has that UUID under the old name. A client may expect another one of what is to make room.
fn is_about(e: &Error, meant: Option<Uuid>) -> bool {
    let told = RawDoc::validate(&e.extra).ok().and_then(|extra| extra.get("collectionUUID"));
    let uuid = match told {
        Some(Value::Binary { subtype: 4, bytes }) => Uuid::from_slice(bytes),
        _ => None,
    };
    e.code == ErrorCode::CollectionUUIDMismatch && meant.is_some() && uuid == meant
}
fn is_gone(e: &Error, meant: Option<Uuid>) -> bool {
    meant.is_some() && e.code == ErrorCode::NamespaceNotFound || is_about(e, meant)
}

/// As the primary shard of the database has it, which has a part of every collection.
async fn uuid_of(router: &Router, ctx: &OpCtx, ns: &Namespace) -> Result<Option<Uuid>> {
    let name = "listCollections";
    let mut b = DocBuilder::new();
    b.i32(name, 1);
    let body = b.finish();
    let request = Request {
        name,
        invoked_as: name,
        db: ns.db(),
        body: &body,
        sequences: &[],
        exhaust_allowed: false,
        legacy: false,
    };
    let on = OnPrimary { ns: ns.clone(), name, creates: false, retry: Retry::Idempotent };
    let arguments = |b: &mut DocBuilder| {
        b.i32(name, 1).doc("filter", |d| _ = d.str("name", ns.coll()));
    };
    let listed = match on.ask(router, ctx, &request, Kind::Plain, arguments).await {
        Err(e) if e.code == ErrorCode::NamespaceNotFound => return Ok(None),
        listed => listed?,
    };
    let first = listed.get_path("cursor.firstBatch").and_then(|v| v.as_array()?.first());
    let uuid = first.as_ref().and_then(|e| e.value().as_doc()?.get_path("info.uuid"));
    Ok(match uuid {
        Some(Value::Binary { subtype: 4, bytes }) => Uuid::from_slice(bytes),
        _ => None,
    })
}
