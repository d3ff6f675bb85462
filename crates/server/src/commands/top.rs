//! `top`: time spent per collection since the start.

use super::prelude::*;
use crate::statistics::top::COLUMNS;

pub(super) async fn run(server: &Server, _: &OpCtx, _: Request<'_>) -> Result<Reply> {
    let mut r = Reply::with_capacity(4096);
    r.body.doc("totals", |t| {
        t.str("note", "all times in microseconds");
        for (ns, row) in server.statistics.top.all() {
            t.doc(&ns, |d| {
                for (name, usage) in COLUMNS.iter().zip(row) {
                    d.doc(name, |x| {
                        x.i64("time", usage.micros as i64);
                        x.i64("count", usage.count as i64);
                    });
                }
            });
        }
    });
    Ok(r)
}
