//! `repl`: this member as `hello` shows it, and what of it is no figure.

use super::super::prelude::*;

/// `userWriteBlockMode`.
const WRITES_ALLOWED: i32 = 1;
const WRITES_BLOCKED: i32 = 2;

pub(super) fn append(server: &Server, d: &mut DocBuilder) {
    server.replication.member.append_hello(d, false, server.replication.positions());
    if let Some(services) = server.replication.services() {
        d.doc("primaryOnlyServices", |x| {
            for (name, state, instances) in services.host.counts() {
                x.doc(name, |s| {
                    s.str("state", state).i64("numInstances", instances as i64);
                });
            }
        });
    }
    d.i32("rbid", server.replication.progress.rbid());
    let mode = if server.settings.user_writes.are_blocked() { WRITES_BLOCKED } else { WRITES_ALLOWED };
    d.i32("userWriteBlockMode", mode);
}
