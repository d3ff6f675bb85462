//! `profile`: a router keeps no profile of operations, but has the thresholds of its slow-query lines set by this command, too.

use super::super::prelude::*;
use pando_command::Param;
use pando_request::ProfileArgs;

pub(in crate::commands) async fn run(router: &Router, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let args = ProfileArgs::parse(&req)?;
    let (level, new_rate) = (ProfileArgs::level(&req)?, args.rate()?);
    if matches!(level, 1 | 2) {
        return Err(Error::bad_value("a router has no profile: the level can only be 0 or, to ask, -1"));
    }
    if args.new_filter().is_some() {
        let text = "filters of slow operations are not supported by this router";
        return Err(Error::new(ErrorCode::CommandNotSupported, text));
    }
    let params = &router.instance.params;
    let (slow_ms, rate) = (params.int(Param::slowOpThresholdMs), params.double(Param::slowOpSampleRate));
    if let Some(ms) = args.slow_ms {
        params.force_int(Param::slowOpThresholdMs, ms);
    }
    if let Some(rate) = new_rate {
        params.force_double(Param::slowOpSampleRate, rate);
    }
    let mut r = Reply::new();
    r.body.i32("was", 0).i32("slowms", slow_ms as i32).f64("sampleRate", rate);
    Ok(r)
}
