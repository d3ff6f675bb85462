//! Who tells, and since when.

use super::super::prelude::*;
use crate::config::VERSION;

pub(super) fn append(server: &Server, ctx: &OpCtx, b: &mut DocBuilder) {
    let up = ctx.env().clock.mono().saturating_sub(server.instance.started);
    b.str("host", &server.config.host_port());
    b.str("version", VERSION);
    b.str("process", "mongod");
    b.i64("pid", i64::from(server.config.host.facts().pid));
    b.f64("uptime", up.as_secs() as f64);
    b.i64("uptimeMillis", up.as_millis() as i64);
    b.i64("uptimeEstimate", up.as_secs() as i64);
    b.date("localTime", ctx.env().clock.wall_ms());
}
