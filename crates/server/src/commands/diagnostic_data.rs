//! `getDiagnosticData`: what an operator's tools collect, in one reply, each part with when it began and ended.

use super::prelude::*;
use super::{coll_stats, repl_set_get_status, server_status};
use pando_command::Param;

pub(super) async fn run(server: &Server, ctx: &OpCtx, _: Request<'_>) -> Result<Reply> {
    let mut data = DocBuilder::new();
    if server.instance.params.bool(Param::diagnosticDataCollectionEnabled) {
        let clock = &ctx.env().clock;
        data.date("start", clock.wall_ms());
        let status = pando_bson::doc! { "serverStatus": 1 }.to_raw();
        let start = clock.wall_ms();
        let done = server_status::run(server, ctx, part("serverStatus", "admin", &status)).await;
        append(&mut data, "serverStatus", ctx, start, done);
        if server.replication.member.is_initiated() {
            let status = pando_bson::doc! { "replSetGetStatus": 1 }.to_raw();
            let start = clock.wall_ms();
            let done =
                repl_set_get_status::run(server, ctx, part("replSetGetStatus", "admin", &status)).await;
            append(&mut data, "replSetGetStatus", ctx, start, done);
            let stats = pando_bson::doc! { "collStats": "oplog.rs" }.to_raw();
            let start = clock.wall_ms();
            let done = coll_stats::run(server, ctx, part("collStats", "local", &stats)).await;
            append(&mut data, "local.oplog.rs.stats", ctx, start, done);
        }
        data.date("end", clock.wall_ms());
    }
    let mut r = Reply::new();
    r.body.raw_doc("data", &data.finish());
    Ok(r)
}

fn part<'a>(name: &'static str, db: &'a str, body: &'a RawDoc) -> Request<'a> {
    Request { name, invoked_as: name, db, body, sequences: &[], exhaust_allowed: false, legacy: false }
}

fn append(data: &mut DocBuilder, name: &str, ctx: &OpCtx, start: i64, done: Result<Reply>) {
    let Ok(reply) = done else { return };
    let encoded = pando_command::reply::Encoded { buf: reply.body.into_buffer() };
    data.doc(name, |d| {
        d.date("start", start);
        d.elems_of(encoded.doc());
        d.date("end", ctx.env().clock.wall_ms());
    });
}
