//! `sleep` (test command): keeps an operation running.

use crate::{Node, OpCtx, Reply, Request};
use pando_base::Result;
use std::time::Duration;

pub async fn run<S: Node>(_: &S, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let mut ms = 0;
    for arg in req.args("sleep") {
        match arg.name() {
            "millis" => ms = arg.i64()?,
            "secs" | "seconds" | "w" | "r" => ms += arg.i64()?.saturating_mul(1000),
            _ => {}
        }
    }
    let ms = if ms == 0 { 10_000 } else { ms.clamp(0, 3_600_000) };
    ctx.sleep(Duration::from_millis(ms as u64)).await?;
    Ok(Reply::new())
}
