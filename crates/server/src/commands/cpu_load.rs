//! `cpuload` (test command): keeps a processor busy for a while.

use super::prelude::*;
use crate::read::STEPS_PER_TURN;
use std::hint::black_box;

/// Rounds of a load of 1.
const ROUNDS: f64 = 10_000.0;

pub(super) async fn run(_: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let factor = req.body.get("cpuFactor").and_then(|v| v.as_f64()).unwrap_or(1.0);
    let mut left = (ROUNDS * factor) as u64;
    let mut x: u64 = 100;
    while left > 0 {
        let turn = left.min(STEPS_PER_TURN as u64);
        for _ in 0..turn {
            x = black_box(x.wrapping_mul(13));
        }
        left -= turn;
        ctx.yield_now().await?;
    }
    Ok(Reply::new())
}
