//! `_hashBSONElement` (test command): the value under which a hashed index keeps the command's own value.

use super::prelude::*;
use pando_command::args::safe_i64;

pub(super) async fn run(_: &Server, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let key = req.first().value();
    let seed = match req.body.get("seed") {
        None => 0,
        Some(v) if v.is_number() => safe_i64(&v).unwrap_or(0) as i32,
        Some(_) => {
            let mut shown = DocBuilder::new();
            shown.value("key", key);
            let e = Error::uncoded("seed must be a number");
            return Err(e.with_extra(shown.finish().as_bytes().to_vec()));
        }
    };
    let mut r = Reply::new();
    r.body.value("key", key);
    r.body.i32("seed", seed);
    r.body.i64("out", pando_bson::hashed::hashed_key_seeded(key, seed));
    Ok(r)
}
