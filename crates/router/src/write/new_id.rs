//! Documents without an `_id` get one here, and those with a `Timestamp(0, 0)` the time instead of it: where they go may depend on both, and
//! both must be the same on every try.

use crate::remote::Shards;
use pando_base::Timestamp;
use pando_bson::{DocBuilder, ElementType, ObjectId, RawDoc};
use pando_command::OpCtx;
use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// Times that this router has given to documents: each once, and growing.
#[derive(Default)]
pub(crate) struct Stamps(AtomicU64);

impl Stamps {
    /// `salt` keeps apart what several routers give in one second.
    fn next(&self, seconds: u32, salt: u32) -> Timestamp {
        let first = u64::from(seconds) << 32 | u64::from(salt >> 12) << 12 | 1;
        let after = |last: u64| if last >> 32 < u64::from(seconds) { first } else { last + 1 };
        let update = self.0.fetch_update(SeqCst, SeqCst, |last| Some(after(last)));
        Timestamp(after(update.unwrap_or_else(|last| last)))
    }
}

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

/// A document as it is to be inserted.
pub(crate) fn for_insert<'a>(shards: &Shards, ctx: &OpCtx, doc: &'a RawDoc) -> Cow<'a, RawDoc> {
    let is_empty = |e: &pando_bson::Elem<'_>| {
        e.ty == ElementType::Timestamp && e.data() == [0; 8] && e.name_bytes() != b"_id"
    };
    if !doc.iter().any(|e| is_empty(&e)) {
        return with_id(ctx, doc);
    }
    let seconds = u32::try_from(ctx.env().clock.wall_ms() / 1000).unwrap_or(u32::MAX);
    let mut b = DocBuilder::with_capacity(doc.byte_len() + 20);
    if doc.elem("_id").is_none() {
        b.object_id("_id", new_id(ctx));
    }
    for e in doc {
        if is_empty(&e) {
            let mut salt = [0; 4];
            ctx.env().rng.fill(&mut salt);
            let at = shards.stamps.next(seconds, u32::from_le_bytes(salt));
            b.value(e.name_bytes(), pando_bson::Value::Timestamp(at));
        } else {
            b.elem(e);
        }
    }
    Cow::Owned(b.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_documents_grow_and_are_apart() {
        let stamps = Stamps::default();
        let all: Vec<Timestamp> =
            [7, 7, 8, 6, 8].into_iter().map(|seconds| stamps.next(seconds, 0xabcd_e000)).collect();
        assert!(all.windows(2).all(|w| w[0] < w[1]), "{all:?}");
        assert_eq!((all[0].secs(), all[2].secs(), all[3].secs()), (7, 8, 8));
        assert!(Stamps::default().next(7, 1 << 20) != all[0]);
    }
}
