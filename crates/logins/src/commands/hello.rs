//! What a `hello` has of logins: the mechanisms of a user, and the answer to the first message that came along.

use super::prelude::*;
use super::sasl;
use pando_request::HelloArgs;

pub async fn append_logins(
    node: &dyn KeepsUsers,
    ctx: &OpCtx,
    args: &HelloArgs<'_>,
    b: &mut DocBuilder,
) -> Result<()> {
    if let Some(name) = &args.mechanisms_of {
        node.logins().counts.asked_for_mechanisms.inc();
        // For a user that is there.
        if let Some(user) = node.user(name).await? {
            b.array("saslSupportedMechs", |a| {
                for mechanism in user.mechanisms().into_iter().filter(|m| *m != "external") {
                    a.str(mechanism);
                }
            });
        }
    }
    if let Some(step) = args.speculative {
        sasl::speculate(node, ctx, step, b).await;
    }
    Ok(())
}
