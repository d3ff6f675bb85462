//! `renameCollection`: within a database, coordinated by its primary shard.
//!
//! A rename by name must not be sent twice: the second would take what was made under the old name meanwhile, and drop what the first has
//! renamed. So each try names the collection that is meant by its UUID, and one that finds it gone looks whether it has the new name.

use super::super::prelude::*;
use super::on_primary::OnPrimary;
use pando_base::Uuid;
use pando_request::RenameCollectionArgs;
use pando_rpc::Retry;

const NAME: &str = "_shardsvrRenameCollection";

pub(in crate::commands) async fn run(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let from = RenameCollectionArgs::source(&req)?;
    ctx.arguments_read()?;
    let args = RenameCollectionArgs::parse(&req)?;
    let to = args.target()?;
    args.check_uuids(&from, &to)?;
    if from.db() != to.db() {
        let text = "Source and destination collections must be on the same database.";
        return Err(Error::new(ErrorCode::CommandFailed, text));
    }
    let expected = args.collection_uuid.map(Uuid);
    // What is not there, or is not what the client expects, is told by the shard.
    let meant = uuid_of(router, ctx, &from).await?.filter(|there| expected.is_none_or(|uuid| uuid == *there));
    // On the database that it is about, not on `admin`.
    let within = Request { db: from.db(), ..req };
    let retry = if meant.is_some() { Retry::Idempotent } else { Retry::NotIdempotent };
    let on = OnPrimary { ns: from.clone(), name: NAME, creates: false, retry };
    let arguments = |b: &mut DocBuilder| {
        b.str(NAME, from.coll()).str("to", to.as_str());
        for option in ["dropTarget", "stayTemp"] {
            req.body.elem(option).into_iter().for_each(|e| _ = b.elem(e));
        }
        if let Some(uuid) = meant.or(expected) {
            b.uuid("collectionUUID", &uuid.0);
        }
    };
    let done = on.run_with(router, ctx, &within, arguments).await;
    for ns in [&from, &to] {
        router.catalog.renew_collection(ns.as_str());
    }
    match done {
        Ok(reply) => Ok(handed_on(&reply)),
        Err(e) if is_gone(&e, meant) && uuid_of(router, ctx, &to).await? == meant => Ok(Reply::new()),
        // It went between the two, and nobody has asked for this one.
        Err(e) if is_about(&e, meant) && expected.is_none() => {
            let text = format!("Source collection {from} does not exist");
            Err(Error::new(ErrorCode::NamespaceNotFound, text))
        }
        Err(e) => Err(e),
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
