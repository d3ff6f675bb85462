//! Commands about shards, chunks and zones, as routers check them. Asked of MongoDB's documentation of built-in roles: who may do it is
//! who has the action on the collection or database that the command names in full, or may write the config servers' collection.

use super::{is_on, split};
use crate::{Node, OpCtx, Request};
use pando_auth::Action::{
    ClearJumboFlag, EnableSharding, Find, GetShardVersion, MoveChunk, RefineCollectionShardKey, Remove,
    SplitChunk, Update,
};
use pando_auth::{Action, Authority, Target};
use pando_base::Result;

/// On the collection that the command's first value names in full.
fn may(req: &Request<'_>, who: &Authority, actions: &[Action]) -> Result<bool> {
    let (db, coll) = split(req.first().value().as_str().unwrap_or_default());
    Ok(match coll {
        "" => who.may(Target::Database(db), actions),
        _ => who.may(Target::Collection(db, coll), actions),
    })
}

macro_rules! checks {
    ($($name:ident $actions:expr;)*) => {
        $(pub fn $name<S: Node>(_: &S, _: &OpCtx, req: &Request<'_>, who: &Authority) -> Result<bool> {
            may(req, who, &$actions)
        })*
    };
}

checks! {
    clear_jumbo_flag [ClearJumboFlag];
    enable [EnableSharding];
    merge [SplitChunk];
    move_chunks [MoveChunk];
    refine_key [RefineCollectionShardKey];
    shard_version [GetShardVersion];
    split_chunk [SplitChunk];
}

/// `mergeChunks` of a shard is for routers.
pub fn merge_on_shard<S: Node>(_: &S, _: &OpCtx, _: &Request<'_>, who: &Authority) -> Result<bool> {
    Ok(who.may_on_cluster(Action::Internal))
}

/// To say whether chunks are moved at all is more than to say how large they are.
pub fn configure_balancing<S: Node>(_: &S, _: &OpCtx, req: &Request<'_>, who: &Authority) -> Result<bool> {
    let moves = is_on(req.body, "defragmentCollection") || req.body.get("enableBalancing").is_some();
    may(req, who, if moves { &[SplitChunk, MoveChunk] } else { &[SplitChunk] })
}

const SETTINGS: Target<'static> = Target::Collection("config", "settings");
const SHARDS: Target<'static> = Target::Collection("config", "shards");
const TAGS: Target<'static> = Target::Collection("config", "tags");

pub fn control_balancer<S: Node>(_: &S, _: &OpCtx, _: &Request<'_>, who: &Authority) -> Result<bool> {
    Ok(who.may(SETTINGS, &[Update]))
}
pub fn balancer_status<S: Node>(_: &S, _: &OpCtx, _: &Request<'_>, who: &Authority) -> Result<bool> {
    Ok(who.may(SETTINGS, &[Find]))
}

pub fn add_shard_to_zone<S: Node>(_: &S, _: &OpCtx, _: &Request<'_>, who: &Authority) -> Result<bool> {
    Ok(who.may_on_cluster(EnableSharding) || who.may(SHARDS, &[Update]))
}
pub fn remove_shard_from_zone<S: Node>(_: &S, _: &OpCtx, _: &Request<'_>, who: &Authority) -> Result<bool> {
    Ok(who.may_on_cluster(EnableSharding) || who.may(SHARDS, &[Update]) && who.may(TAGS, &[Find]))
}
pub fn update_zone<S: Node>(_: &S, _: &OpCtx, _: &Request<'_>, who: &Authority) -> Result<bool> {
    let writes = || who.may(SHARDS, &[Find]) && who.may(TAGS, &[Find, Update, Remove]);
    Ok(who.may_on_cluster(EnableSharding) || writes())
}
