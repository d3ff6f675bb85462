//! `secondaryThrottle`: secondaries of the recipient set the pace at which documents come.

use super::Ddl;
use pando_base::{Error, Result, limits};
use pando_bson::{RawDoc, Value};
use pando_command::concern::Provenance;
use pando_command::{W, WriteConcern};

/// Waits until as many members have what has been written as a step's request wants; not at all where it says nothing of that.
///
/// # Errors
/// What a write with this concern would be told: 64 when it takes too long, 100 where there are not so many members.
pub(super) async fn wait(ddl: &Ddl<'_>, body: &RawDoc) -> Result<()> {
    let Some(Value::Document(asked)) = body.get_path("request.secondaryThrottle") else { return Ok(()) };
    let replication = &ddl.server.replication;
    let concern = match asked.is_empty() {
        false => WriteConcern::parse(&Value::Document(asked))?,
        true if replication.member.config().is_none_or(|config| config.data_bearing() < 2) => return Ok(()),
        true => WriteConcern {
            wtimeout_ms: limits::MIGRATION_THROTTLE_MS.cast_signed(),
            ..WriteConcern::of(W::Nodes(2), Provenance::ImplicitDefault)
        },
    };
    ddl.ctx.wrote(replication.last_applied());
    match replication.await_write_concern(ddl.ctx, &concern).await {
        None => Ok(()),
        Some(e) => {
            Err(Error::new(e.code, format!("{} :: while secondaries set the pace of a migration", e.message)))
        }
    }
}
