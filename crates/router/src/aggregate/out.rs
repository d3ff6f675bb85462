//! `$out`: a new collection in the place of another, with its options and indexes.

use super::writing::Writing;
use crate::cursors::RouterCursor;
use crate::remote::envelope::{self, Kind};
use pando_base::{Error, Namespace, Result};
use pando_bson::{ArrayBuilder, DocBuf, DocBuilder, RawDoc};
use pando_command::Request;
use pando_rpc::Retry;

pub(super) async fn run(w: &Writing<'_>, into: &Namespace, results: &mut RouterCursor) -> Result<()> {
    let route = w.router.route_for_write(w.ctx, into).await?;
    if route.is_sharded() {
        let text = format!("namespace '{into}' is sharded so it can't be used for $out");
        return Err(Error::location(28769, text));
    }
    let mut name = String::from("tmp.agg_out.");
    (0..2).for_each(|_| name.push_str(&format!("{:016x}", w.ctx.env().rng.next_u64())));
    let tmp = Namespace::new(into.db(), &name)?;
    let done = fill_and_rename(w, into, &tmp, results).await;
    if done.is_err() {
        // Its own failure is not the command's.
        let drop = |b: &mut DocBuilder| _ = b.str("drop", tmp.coll());
        let _ = on_primary(w, into, drop).await;
    }
    done
}

async fn fill_and_rename(
    w: &Writing<'_>,
    into: &Namespace,
    tmp: &Namespace,
    results: &mut RouterCursor,
) -> Result<()> {
    let options = options_of(w, into).await?;
    on_primary(w, into, |b| {
        b.str("create", tmp.coll()).bool("temp", true);
        options.iter().filter(|e| e.name() != "uuid").for_each(|e| _ = b.elem(e));
    })
    .await?;
    let indexes = indexes_of(w, into).await?;
    if !indexes.is_empty() {
        on_primary(w, into, |b| _ = b.str("createIndexes", tmp.coll()).raw_array("indexes", &indexes))
            .await?;
    }
    while let Some(batch) = w.next_batch(results).await? {
        w.insert(tmp, &batch).await?;
    }
    on_primary(w, into, |b| {
        b.str("_shardsvrRenameCollection", tmp.coll()).str("to", into.as_str()).bool("dropTarget", true);
    })
    .await?;
    w.router.catalog.renew_collection(into.as_str());
    Ok(())
}

/// A command of the database's primary shard.
async fn on_primary(w: &Writing<'_>, into: &Namespace, command: impl Fn(&mut DocBuilder)) -> Result<DocBuf> {
    let route = w.router.catalog.route(into).await?;
    let within = Request { db: into.db(), ..*w.req };
    let mut b = DocBuilder::new();
    command(&mut b);
    envelope::append(&mut b, w.ctx, &within, Kind::Write, &route.primary_of_database());
    let done = w.router.call_primary(w.ctx, &route.db.primary, &b.finish(), Retry::NotIdempotent).await?;
    Ok(done.reply)
}

/// The first batch of a listing by the primary shard, which has all that is asked for here.
pub(super) async fn listed(
    w: &Writing<'_>,
    into: &Namespace,
    command: impl Fn(&mut DocBuilder),
) -> Result<Vec<DocBuf>> {
    let route = w.router.catalog.route(into).await?;
    let within = Request { db: into.db(), ..*w.req };
    let mut b = DocBuilder::new();
    command(&mut b);
    envelope::append(&mut b, w.ctx, &within, Kind::Plain, &route.primary_of_database());
    let done = w.router.call_primary(w.ctx, &route.db.primary, &b.finish(), Retry::Idempotent).await;
    let reply = match done {
        Ok(answer) => answer.reply,
        Err(f) if f.code() == pando_base::ErrorCode::NamespaceNotFound => return Ok(Vec::new()),
        Err(f) => return Err(f.into()),
    };
    let batch = reply.get_path("cursor.firstBatch").and_then(|v| v.as_array()).unwrap_or(RawDoc::empty());
    Ok(batch.iter().filter_map(|e| e.value().as_doc().map(RawDoc::to_buf)).collect())
}

async fn options_of(w: &Writing<'_>, into: &Namespace) -> Result<DocBuf> {
    let found = listed(w, into, |b| {
        b.i32("listCollections", 1).doc("filter", |d| _ = d.str("name", into.coll()));
    });
    let found = found.await?.pop();
    let options = found.as_ref().and_then(|d| d.get("options")?.as_doc().map(RawDoc::to_buf));
    Ok(options.unwrap_or_default())
}

/// All but the one on `_id`, which every collection has.
async fn indexes_of(w: &Writing<'_>, into: &Namespace) -> Result<DocBuf> {
    let mut out = ArrayBuilder::new();
    for index in listed(w, into, |b| _ = b.str("listIndexes", into.coll())).await? {
        if index.get("name").and_then(|v| v.as_str()) == Some("_id_") {
            continue;
        }
        out.raw_doc(&index);
    }
    Ok(out.finish())
}
