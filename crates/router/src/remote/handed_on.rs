//! A shard's reply as the client's.

use pando_bson::{Elem, RawDoc};
use pando_command::Reply;

/// What every server says for itself.
fn is_of_every_reply(name: &str) -> bool {
    matches!(
        name,
        "ok" | "$clusterTime"
            | "operationTime"
            | "$configTime"
            | "$topologyTime"
            | "$gleStats"
            | "$replData"
            | "lastCommittedOpTime"
            | "topologyVersion"
            | "readOnly"
    )
}

/// What the command itself has said.
pub(crate) fn own_fields(reply: &RawDoc) -> impl Iterator<Item = Elem<'_>> {
    reply.iter().filter(|e| !is_of_every_reply(e.name()))
}

pub(crate) fn handed_on(reply: &RawDoc) -> Reply {
    let mut r = Reply::with_capacity(reply.byte_len());
    own_fields(reply).for_each(|e| _ = r.body.elem(e));
    r
}
