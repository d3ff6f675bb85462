//! A secondary that is asked to write (`$out`, `$merge`; drivers send them where reads go) has the primary carry the
//! command out.
//!
//! MongoDB computes on the secondary and sends only the results. Here the primary does both: the same outcome, over data
//! at least as new, at the price of the primary's work. What the primary says of a failure goes on to the client, labels and
//! details included.

use super::Replication;
use pando_base::{Error, ErrorCode, OpTime, Result, limits};
use pando_bson::{DocBuf, DocBuilder, Value};
use pando_command::{OpCtx, Reply, Request};
use std::time::Duration;

impl Replication {
    pub(crate) async fn forward_to_primary(&self, ctx: &OpCtx, req: &Request<'_>) -> Result<Reply> {
        let Some(primary) = self.member.state().primary else {
            return Err(Error::new(ErrorCode::NotWritablePrimary, "not primary"));
        };
        let body = for_the_primary(req);
        let limit = Duration::from_millis(limits::PASSED_ON_MS_MAX);
        let asked = async {
            let mut connection = self.peers.take_new(&primary, limit).await?;
            connection.call(&body, limit).await.map(|reply| reply.to_buf())
        };
        let answer = ctx.interruptible(asked).await??;
        if let Some(Value::Timestamp(ts)) = answer.get("operationTime") {
            // The client's next causally consistent read must see what was written there.
            ctx.set_last_op(OpTime::new(ts, self.member.term()));
        }
        let mut reply = Reply::with_capacity(answer.byte_len());
        for e in &*answer {
            if !matches!(e.name(), "ok" | "$clusterTime" | "operationTime") {
                reply.body.elem(e);
            }
        }
        Ok(reply)
    }
}

/// The command as it came, but for the primary only: a node that is no longer one refuses it.
fn for_the_primary(req: &Request<'_>) -> DocBuf {
    let mut b = DocBuilder::with_capacity(req.body.byte_len() + 64);
    for e in req.body {
        if e.name() != "$readPreference" {
            b.elem(e);
        }
    }
    b.doc("$readPreference", |d| {
        d.str("mode", "primary");
    });
    b.finish()
}
