//! The copy of a shard merge, as the recipient's primary orders it: the donor's primary holds a checkpoint still, every member that bears data takes the tenants'
//! tables in, and then the collections come into being. What sessions have done is told as for a tenant that is copied by documents.
//!
//! A member that is away is waited for; whoever is tired of it calls the merge off, or takes the member out of the set. Where either side's folders are
//! encrypted the documents are copied one by one.

use super::publish;
use crate::tenants::copy::Copier;
use pando_base::codes::class;
use pando_base::{Error, ErrorCode, Result, Timestamp, Uuid, limits};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};
use pando_env::BoxFuture;
use pando_rpc::Retry;
use pando_workflows::shard_split::append_op_time;
use std::task::Poll;
use std::time::Duration;

/// What the donor's primary holds still.
struct Held {
    host: String,
    backup: i64,
    checkpoint: Timestamp,
}

impl Copier<'_> {
    /// Everything of all tenants as of one time of the donor's, which is returned. What an earlier attempt has left has to be cleared before.
    ///
    /// # Errors
    /// Behind any the copy begins anew, if it begins.
    pub(crate) async fn merge(&self) -> Result<Timestamp> {
        let Some(held) = self.hold().await? else { return self.copy().await };
        let import = self.roles.maintenance.new_uuid();
        let taken = self.take_in_everywhere(import, &held).await;
        self.let_go(&held).await;
        taken?;
        // A donor that has given the merge up takes new tenants again, before this set has heard of it.
        publish(&self.roles.maintenance, import, |ns| self.whose.owns(ns.db())).await?;
        self.tell_sessions().await?;
        Ok(held.checkpoint)
    }
    /// `None`: files do not help here.
    async fn hold(&self) -> Result<Option<Held>> {
        if self.roles.storage.is_encrypted() {
            return Ok(None);
        }
        // The donor's checkpoint may lie far behind. Here it has to have what was there when the tenants were counted, and no index build that was
        // given up since; and nothing that the donor might still lose.
        // What an attempt has opened that ended without a word is let go.
        let open = command(|b| _ = b.i32("_openBackup", 1).bool("upToNow", true).uuid("owner", &self.id.0));
        // It takes a checkpoint.
        let limit = Duration::from_secs(limits::FOREIGN_TAKE_IN_SECS_MAX);
        let reply = self.donor.call_within(self.roles, &open, limit, limit).await?;
        let host = self.donor.primary().to_owned();
        let backup = reply.get("backup").and_then(|v| v.as_i64());
        let (Some(backup), Some(Value::Timestamp(checkpoint))) = (backup, reply.get("checkpoint")) else {
            return Err(Error::internal(format!("not a backup: {reply}")));
        };
        let held = Held { host, backup, checkpoint };
        if reply.get("encrypted").is_some_and(|v| v.is_truthy()) {
            self.let_go(&held).await;
            return Ok(None);
        }
        Ok(Some(held))
    }
    /// The donor lets its checkpoint go; if it does not hear that it does so by itself, when another one is opened, at the end, or after a while.
    async fn let_go(&self, held: &Held) {
        let close = command(|b| _ = b.i64("_closeBackup", held.backup));
        let _ = self.call(&held.host, &close, Duration::from_millis(limits::WORKFLOW_CALL_MS_MAX)).await;
    }
    /// All members that bear data, at the same time.
    async fn take_in_everywhere(&self, import: Uuid, held: &Held) -> Result<()> {
        // Whatever was to be forgotten until now is before that time, also by an earlier primary's word that arrives late.
        let since = self.roles.replication.last_applied();
        let take = command(|b| {
            b.uuid("_takeInCollections", &import.0).str("donor", &held.host).i64("backup", held.backup);
            b.uuid("migration", &self.id.0);
            append_op_time(b, "since", since);
        });
        all(self.members()?.iter().map(|host| self.take_in_on(host, &take)).collect()).await
    }
    fn members(&self) -> Result<Vec<String>> {
        let config = self.roles.replication.member.require_config()?;
        let bearing = config.members.iter().filter(|m| m.is_data_bearing());
        Ok(bearing.map(|m| m.host.clone()).collect())
    }
    fn take_in_on<'a>(&'a self, host: &'a str, take: &'a RawDoc) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            loop {
                let limit = Duration::from_secs(limits::FOREIGN_TAKE_IN_SECS_MAX);
                match self.call(host, take, limit).await {
                    Ok(_) => return Ok(()),
                    // Away, or at it still since it was asked before.
                    Err(e) if may_come_right(&e) => {}
                    Err(e) => return Err(as_others(e, host)),
                }
                self.roles.env.clock.sleep(Duration::from_millis(limits::FOREIGN_READ_PAUSE_MS)).await;
            }
        })
    }
    /// Nothing need be remembered any more of what was taken in for this merge: all of it is published, and on a majority, or has been dropped.
    /// Before a merge copies, that holds of all others, too. A member that is away keeps what it has until the next merge.
    pub(crate) async fn forget_imports(&self, of_all: bool) -> Result<()> {
        let at = self.roles.replication.write_noop("what was taken in from another set is forgotten")?;
        self.roles.replication.await_majority(at).await?;
        let forget = command(|b| {
            match of_all {
                true => b.str("_forgetImport", "all"),
                false => b.uuid("_forgetImport", &self.id.0),
            };
            b.timestamp("upto", at.ts);
        });
        all(self.members()?.iter().map(|host| self.forget_on(host, &forget)).collect()).await
    }
    fn forget_on<'a>(&'a self, host: &'a str, forget: &'a RawDoc) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            for _ in 0..limits::FOREIGN_READ_TRIES {
                let limit = Duration::from_millis(limits::WORKFLOW_CALL_MS_MAX);
                match self.call(host, forget, limit).await {
                    Ok(said) if said.get("forgotten").is_some_and(|v| v.is_truthy()) => return Ok(()),
                    Ok(_) => {}
                    Err(e) if may_come_right(&e) => {}
                    Err(e) => return Err(as_others(e, host)),
                }
                self.roles.env.clock.sleep(Duration::from_millis(limits::FOREIGN_READ_PAUSE_MS)).await;
            }
            Ok(())
        })
    }
    async fn call(&self, host: &str, body: &RawDoc, limit: Duration) -> Result<DocBuf> {
        let said = self.roles.replication.peers.call(host, body, Retry::Idempotent, limit).await;
        said.map_err(Error::from)
    }
}

fn command(build: impl FnOnce(&mut DocBuilder)) -> DocBuf {
    let mut b = DocBuilder::new();
    build(&mut b);
    b.str("$db", "admin");
    b.finish()
}
fn may_come_right(e: &Error) -> bool {
    e.code.is(class::NETWORK | class::RETRIABLE | class::NOT_PRIMARY | class::RECOVERING | class::SHUTDOWN)
        || e.code == ErrorCode::ConflictingOperationInProgress
}
/// What another member says of itself is not about this one's office.
fn as_others(e: Error, host: &str) -> Error {
    e.context(format_args!("{host} did not take the donor's tables in"))
}

/// Until all are done, or one of them fails.
async fn all(mut works: Vec<BoxFuture<'_, Result<()>>>) -> Result<()> {
    std::future::poll_fn(|cx| {
        let mut i = 0;
        while i < works.len() {
            match works[i].as_mut().poll(cx) {
                Poll::Ready(Ok(())) => drop(works.swap_remove(i)),
                Poll::Ready(Err(e)) => return Poll::Ready(Err(e)),
                Poll::Pending => i += 1,
            }
        }
        if works.is_empty() { Poll::Ready(Ok(())) } else { Poll::Pending }
    })
    .await
}
