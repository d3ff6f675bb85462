//! Documents without an `_id` get one here: where they go may depend on it, and it must be the same on every try.

use pando_bson::{DocBuilder, ObjectId, RawDoc};
use pando_command::OpCtx;
use std::borrow::Cow;

pub(crate) fn new_id(ctx: &OpCtx) -> ObjectId {
    let mut id = [0; 12];
    ctx.env().rng.fill(&mut id);
    id[..4].copy_from_slice(&((ctx.env().clock.wall_ms() / 1000) as u32).to_be_bytes());
    ObjectId(id)
}

pub(crate) fn with_id<'a>(ctx: &OpCtx, doc: &'a RawDoc) -> Cow<'a, RawDoc> {
    if doc.elem("_id").is_some() {
        return Cow::Borrowed(doc);
    }
    let mut b = DocBuilder::with_capacity(doc.byte_len() + 20);
    b.object_id("_id", new_id(ctx)).elems_of(doc);
    Cow::Owned(b.finish())
}
