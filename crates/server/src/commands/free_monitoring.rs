//! `getFreeMonitoringStatus`, `setFreeMonitoring`: the service is no more, so it is disabled for good.

use super::prelude::*;
use pando_command::request::missing;

pub(super) async fn status(_: &Server, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    req.check("getFreeMonitoringStatus", &[])?;
    let mut r = Reply::new();
    r.body.str("state", "disabled");
    Ok(r)
}

pub(super) async fn set(_: &Server, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    const OWNER: &str = "setFreeMonitoring";
    let mut action = None;
    // What it does not know it passes over, as a real server does.
    for arg in req.given_args(OWNER, &["action"]).filter(|arg| arg.name() == "action") {
        action = Some(arg.str()?);
    }
    match action.ok_or_else(|| missing(OWNER, "action"))? {
        "disable" => Ok(Reply::new()),
        "enable" => Err(Error::location(50840, "Free Monitoring is disabled: its service has ended")),
        other => Err(Error::bad_value(format!(
            "Enumeration value '{other}' for field '{OWNER}.action' is not a valid value."
        ))),
    }
}
