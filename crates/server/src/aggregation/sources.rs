//! `$currentOp`: what is asked for, and operations as rows of a cluster.

use crate::statistics::operations::Want;
use pando_base::{Error, ErrorCode, Result};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};
use pando_command::OpCtx;

/// An operation as a router shows it beside those of other shards: its number says where it is to be killed.
pub(super) fn of_shard(row: &RawDoc, shard: &str) -> DocBuf {
    let mut b = DocBuilder::with_capacity(row.byte_len() + 64);
    b.str("shard", shard);
    for e in row {
        match (e.name(), e.value()) {
            ("opid", v) => drop(b.str("opid", &format!("{shard}:{v}"))),
            ("client", v) => drop(b.value("client_s", v)),
            _ => drop(b.elem(e)),
        }
    }
    b.finish()
}

/// What a `$currentOp` asks for.
pub(super) fn wanted_operations(ctx: &OpCtx, spec: &RawDoc) -> Result<Want> {
    let mut want = Want { owner: ctx.owner(), ..Want::default() };
    for e in spec {
        let name = e.name();
        let flag = match (name, e.value()) {
            (
                "allUsers" | "idleConnections" | "idleCursors" | "idleSessions" | "localOps" | "truncateOps"
                | "backtrace",
                v,
            ) => match v {
                Value::Boolean(b) => b,
                v => {
                    let code =
                        if name == "allUsers" { ErrorCode::TypeMismatch } else { ErrorCode::FailedToParse };
                    return Err(Error::new(
                        code,
                        format!(
                            "The '{name}' parameter of the $currentOp stage must be a boolean value, but found: {}",
                            v.type_name()
                        ),
                    ));
                }
            },
            _ => {
                return Err(Error::failed_to_parse(format!(
                    "Unrecognized option '{name}' in $currentOp stage."
                )));
            }
        };
        match name {
            "allUsers" if flag => want.owner = None,
            "idleConnections" => want.idle_connections = flag,
            "idleCursors" => want.idle_cursors = flag,
            "idleSessions" => want.no_idle_sessions = !flag,
            _ => {}
        }
    }
    Ok(want)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_bson::doc;

    #[test]
    fn an_operation_of_a_shard_is_known_by_the_shards_name() {
        let row = doc! { "type": "op", "opid": 7, "client": "h:1", "ns": "d.c" };
        let shown = doc! { "shard": "s0", "type": "op", "opid": "s0:7", "client_s": "h:1", "ns": "d.c" };
        assert_eq!(of_shard(&row.to_raw(), "s0"), shown.to_raw());
    }
}
