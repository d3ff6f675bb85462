//! What one operation has heard while it ran: the newest time at which a shard did its part.

use pando_base::Timestamp;
use pando_bson::{RawDoc, Value};
use pando_command::OpCtx;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// Hangs on the operation's context.
#[derive(Default)]
pub(crate) struct OpTimes {
    operation: AtomicU64,
}

impl OpTimes {
    /// `operationTime` of the reply; zero when no shard was asked.
    pub(crate) fn operation(&self) -> Timestamp {
        Timestamp(self.operation.load(SeqCst))
    }
}

/// A shard has answered.
pub(crate) fn hear(ctx: &OpCtx, reply: &RawDoc) {
    if let (Some(times), Some(Value::Timestamp(t))) = (ctx.attached::<OpTimes>(), reply.get("operationTime"))
    {
        times.operation.fetch_max(t.0, SeqCst);
    }
}
