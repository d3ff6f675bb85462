//! `listCommands`: the table of commands, as far as it is built.

use super::prelude::*;
use pando_command::{Flags, Privileges};

pub(super) async fn run(server: &Server, _: &OpCtx, _: Request<'_>) -> Result<Reply> {
    let test = server.instance.test_commands();
    let mut r = Reply::with_capacity(16 << 10);
    r.body.doc("commands", |all| {
        for spec in server.registry.commands() {
            let hidden = spec.flags.has(Flags::HIDDEN) || (spec.flags.has(Flags::TEST_ONLY) && !test);
            if spec.handler.is_none() || hidden {
                continue;
            }
            all.doc(spec.name, |d| {
                d.str("help", spec.help);
                d.bool("requiresAuth", spec.privileges != Privileges::Open);
                d.bool("secondaryOk", spec.flags.has(Flags::SECONDARY_OK));
                d.bool("adminOnly", spec.flags.has(Flags::ADMIN_ONLY));
                d.array("apiVersions", |a| {
                    if spec.api_v1 {
                        a.str("1");
                    }
                });
                d.array("deprecatedApiVersions", |a| {
                    if spec.flags.has(Flags::DEPRECATED_IN_V1) {
                        a.str("1");
                    }
                });
                if spec.flags.has(Flags::SECONDARY_OPT_IN) {
                    d.bool("secondaryOverrideOk", true);
                }
            });
        }
    });
    Ok(r)
}
