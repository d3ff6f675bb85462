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
    for arg in req.args(OWNER) {
        match arg.name() {
            "action" if !arg.is_absent() => action = Some(checked_action(OWNER, arg.str()?)?),
            "action" => {}
            _ => return Err(arg.unknown()),
        }
    }
    match action.ok_or_else(|| missing(OWNER, "action"))? {
        "disable" => Ok(Reply::new()),
        _ => Err(Error::location(50840, "Free Monitoring is disabled: its service has ended")),
    }
}

fn checked_action<'a>(owner: &str, action: &'a str) -> Result<&'a str> {
    match action {
        "disable" | "enable" => Ok(action),
        other => Err(Error::bad_value(format!(
            "Enumeration value '{other}' for field '{owner}.action' is not a valid value."
        ))),
    }
}
