//! The fail point `failGetMoreAfterCursorCheckout`.

use crate::OpCtx;
use pando_base::Error;

/// The fail point that drivers' change-stream tests use. Members, who read each other's logs all the time, don't count.
pub fn after_checkout(ctx: &OpCtx) -> Option<Error> {
    let point = ctx.client.instance.fail_points.get("failGetMoreAfterCursorCheckout")?;
    let data = point.check(&*ctx.env().rng, |_| !ctx.client.is_internal())?;
    if data.get("closeConnection").is_some_and(|v| v.is_truthy()) {
        ctx.close_connection();
    }
    let code = data.get("errorCode").and_then(|v| v.as_i64()).unwrap_or(11601) as i32;
    let mut e = Error::location(code, "Hit the 'failGetMoreAfterCursorCheckout' failpoint");
    for label in data.get("errorLabels").and_then(|v| v.as_array()).into_iter().flatten() {
        e = e.with_label(label.value().as_str().unwrap_or_default());
    }
    Some(e)
}
