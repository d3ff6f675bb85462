//! `getLog`: the latest log lines, from memory.

use super::prelude::*;

pub(super) async fn run(_: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    if let Some(arg) = req.args("getLog").next() {
        return Err(arg.unknown());
    }
    let which = req.first_str("getLog")?;
    let mut r = Reply::with_capacity(64 << 10);
    let (lines, written) = match which {
        "*" => {
            r.body.array("names", |a| {
                a.str("global").str("startupWarnings");
            });
            return Ok(r);
        }
        "global" => ctx.env().log.sink().recent(),
        "startupWarnings" => {
            let lines = ctx.env().log.sink().startup_warnings();
            let n = lines.len() as u64;
            (lines, n)
        }
        other => return Err(Error::new(ErrorCode::OperationFailed, format!("No log named '{other}'"))),
    };
    r.body.i32("totalLinesWritten", i32::try_from(written).unwrap_or(i32::MAX));
    r.body.array("log", |a| {
        for line in &lines {
            a.str(line);
        }
    });
    Ok(r)
}
