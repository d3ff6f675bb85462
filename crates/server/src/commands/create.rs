//! `create`: a collection or a view.

use super::prelude::*;
use pando_access::options::{Capped, ClusteredIndex, ValidationAction, ValidationLevel, ViewDefinition};
use pando_access::{Access, CollectionOptions, names};
use pando_base::Uuid;
use pando_query::timeseries::TimeSeries;
use pando_request::CreateArgs;
use pando_request::define::create::Clustered;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    run_as(server, ctx, req, None).await
}

/// Of a collection that somebody else has defined: which UUID it is to have, and whether it is a part of one that others tell of.
#[derive(Clone, Copy)]
pub(super) enum As {
    /// Any.
    Told,
    Whole(Uuid),
    Part(Uuid),
}

/// The same, with the UUID that a collection is to have.
pub(super) async fn run_as(
    server: &Server,
    ctx: &OpCtx,
    req: Request<'_>,
    made_as: Option<As>,
) -> Result<Reply> {
    let mut args = CreateArgs::parse(&req)?;
    let ns = req.ns()?;
    // A router's `$out` fills such a collection, and it is told like any other.
    let may_be_temp = ctx.database_version.is_some() || made_as.is_some();
    let temp = may_be_temp && args.temp.take() == Some(true);
    let noted = args.auto_index_id.is_some();
    // The statements of a transaction, but for the first one, cannot be sent back.
    if let Some(sharding) =
        server.sharding.as_ref().filter(|_| ctx.database_version.is_some() && ctx.in_txn())
    {
        sharding.make_known(&ns, ctx).await?;
    }
    server.upkeep.admission.before_write(ctx).await?;
    args.check_form(&ns)?;
    names::check_creatable(&ns)?;
    if args.view_on.is_some() && !ctx.in_txn() {
        names::check_view_name(&ns)?;
        args.check_view()?;
        // It is there from now on, whatever comes of the view.
        server.access.make_room_for_views(ctx, &ns).await?;
    }
    let options = args.check_content(ctx.env().clock.wall_ms() / 1000).and_then(|()| options_of(&args));
    let options = options.map(|o| CollectionOptions { temp, ..o });
    let taken = server.access.taken(&ns, false);
    // A view's other mistakes are told before.
    if let Some(taken) = taken.filter(|_| !ctx.in_txn() && args.view_on.is_none()) {
        // Whatever else is wrong with it.
        return match options.and_then(|o| is_there(&server.access, &ns, &o)) {
            Ok(true) => Ok(reply(noted)),
            _ => Err(taken),
        };
    }
    let options = options?;
    let last = match made_as {
        None | Some(As::Told) => server.access.create(ctx, &ns, options).await?,
        Some(As::Whole(uuid)) => server.access.create_as(ctx, &ns, options, uuid).await?,
        Some(As::Part(uuid)) => server.access.create_part(ctx, &ns, options, uuid).await?,
    };
    ctx.wrote(last);
    Ok(reply(noted))
}

/// What is made of arguments that go together.
fn options_of(a: &CreateArgs<'_>) -> Result<CollectionOptions> {
    let filled = |d: Option<&RawDoc>| d.filter(|d| !d.is_empty()).map(RawDoc::to_buf);
    let level = |s| ValidationLevel::parse(s, "create.validationLevel");
    let action = |s| ValidationAction::parse(s, "create.validationAction");
    Ok(CollectionOptions {
        capped: a.size.filter(|_| a.is_capped()).map(|size| Capped::new(size, a.max)),
        validator: filled(a.validator),
        validation_level: a.validation_level.map(level).transpose()?,
        validation_action: a.validation_action.map(action).transpose()?,
        collation: a.collation.map(RawDoc::to_buf),
        clustered: match a.clustered {
            Some(Clustered::Spec { name, .. }) => Some(ClusteredIndex { name: name.to_owned() }),
            _ => None,
        },
        expire_after_seconds: a.expire_after_seconds.map(pando_access::ttl_seconds).transpose()?,
        change_stream_pre_and_post_images: a.images == Some(true),
        storage_engine: filled(a.storage_engine),
        index_option_defaults: a.given_index_defaults(),
        temp: false,
        view: a.view_on.map(|on| ViewDefinition {
            view_on: on.to_owned(),
            pipeline: a.pipeline.map_or_else(DocBuf::new, RawDoc::to_buf),
        }),
        time_series: a.time_series.map(TimeSeries::parse).transpose()?,
        auto_index_id: a.auto_index_id,
    })
}

fn reply(noted: bool) -> Reply {
    let mut r = Reply::new();
    if noted {
        r.body.str("note", "The autoIndexId option is deprecated and will be removed in a future release");
    }
    r
}

/// Since 7.0 creating what exists with the same options succeeds.
fn is_there(access: &Access, ns: &Namespace, options: &CollectionOptions) -> Result<bool> {
    let definitions = access.definitions();
    let Some(existing) = definitions.collection(ns) else { return Ok(false) };
    let mut wanted = options.clone();
    wanted.collation = match &options.collation {
        Some(c) => pando_access::full_collation(c)?,
        None => None,
    };
    Ok(existing.options == wanted)
}
