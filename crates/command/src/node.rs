//! What the pipeline asks of a server role: may this run here, is it replicated, what time is it.
//!
//! A replica-set member, a standalone node and a router each implement [`Node`]; the pipeline is the same.

use crate::client::Client;
use crate::cluster_time::Signature;
use crate::concern::{ReadLevel, WriteConcern, WriteConcernError};
use crate::instance::Instance;
use crate::{Flags, GenericArgs, OpCtx, Request, Roles};
use pando_auth::Authority;
use pando_base::{Error, ErrorCode, Namespace, Result, Timestamp, Uuid};
use pando_bson::{DocBuf, DocBuilder, ObjectId, RawDoc};
use pando_env::BoxFuture;
use std::sync::Arc;

/// Identifies a server process and counts changes of its view of the topology.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TopologyVersion {
    pub process_id: ObjectId,
    pub counter: i64,
}

/// The times a reply carries on a replica set.
#[derive(Clone, Copy, Debug)]
pub struct ReplyTimes {
    /// `$clusterTime.clusterTime`: the newest this node knows.
    pub cluster_time: Timestamp,
    /// The proof of it; zeros where nothing is signed.
    pub signature: Signature,
    /// `operationTime`: a causal session may read after this.
    pub operation_time: Timestamp,
}

/// The state of things before a handler ran.
#[derive(Default)]
pub struct Attempt(pub Option<Box<dyn std::any::Any + Send>>);

/// A role's side of the pipeline.
pub trait Node: Send + Sync + Sized + 'static {
    fn instance(&self) -> &Arc<Instance>;

    /// What this process is: a command of other roles is refused.
    fn roles(&self) -> Roles;

    /// The write gate and its relatives: a write needs a primary (10107), a read needs one too unless the read
    /// preference or the command allows otherwise (13435), recovering nodes answer little (13436).
    fn admit(&self, ctx: &OpCtx, flags: Flags) -> Result<()>;

    /// Where clients have to log in, before anybody asks what this one may do: learns what another node has to be asked. `None` where
    /// everything is known.
    fn look_up<'a>(&'a self, _client: &'a Client, _args: &'a GenericArgs) -> Option<BoxFuture<'a, ()>> {
        None
    }
    /// What the client may do who sits at a connection. Asked where clients have to log in.
    fn authority(&self, _client: &Client) -> Result<Arc<Authority>> {
        Ok(Arc::new(Authority::nobody()))
    }
    /// The collection of a database that has this UUID.
    fn collection_of(&self, _db: &str, _uuid: Uuid) -> Option<Namespace> {
        None
    }
    /// Is this where a member of the set connects from?
    fn is_member_address(&self, _remote: &str) -> bool {
        false
    }
    /// Takes in a `$clusterTime` (205 when it is too far ahead; 204 and 211 when it is not properly signed).
    fn advance_cluster_time(&self, _client: &Client, _seen: Timestamp, _signature: &Signature) -> Result<()> {
        Ok(())
    }
    /// Before a statement of a transaction: takes its session for this operation alone, and what the transaction holds
    /// open; waits for the read concern of a first statement.
    fn check_out<'a>(&'a self, _ctx: &'a OpCtx, _req: &'a Request<'a>) -> BoxFuture<'a, Result<()>> {
        Box::pin(async {
            let text = "Transaction numbers are only allowed on a replica set member or mongos";
            Err(Error::new(ErrorCode::IllegalOperation, text))
        })
    }
    /// Adds what the reply to a statement of a transaction says of the transaction.
    fn append_of_transaction(&self, _ctx: &OpCtx, _reply: &mut DocBuilder) {}
    /// After it: gives the session back. A statement that failed ends the transaction.
    fn check_in(&self, _ctx: &OpCtx, _failed: Option<&Error>) {}
    /// Before a handler runs: what [`Node::try_again`] compares with.
    fn attempt(&self, _ctx: &OpCtx) -> Attempt {
        Attempt::default()
    }
    /// The handler met something that is undecided: undoes what it did and waits until it should run again; `None` when
    /// the error is its answer.
    fn try_again<'a>(
        &'a self,
        _ctx: &'a OpCtx,
        _attempt: Attempt,
        _error: &Error,
    ) -> Option<BoxFuture<'a, Result<()>>> {
        None
    }
    /// The operation met a collection that its sender, or this node, knows too little of ([`OpCtx::take_refusals`]): this node
    /// learns what it can before the sender is told.
    fn learn<'a>(&'a self, _ctx: &'a OpCtx) -> BoxFuture<'a, ()> {
        Box::pin(async {})
    }
    /// Waits until what `readConcern` asks for can be read here; not called for a plain local read.
    fn await_read_concern<'a>(&'a self, _ctx: &'a OpCtx) -> BoxFuture<'a, Result<()>> {
        Box::pin(async { Ok(()) })
    }
    /// Waits until a tenant's data may be looked at here, behind the read concern; `None` where nobody has to.
    fn await_access<'a>(
        &'a self,
        _ctx: &'a OpCtx,
        _flags: Flags,
        _req: &'a Request<'a>,
    ) -> Option<BoxFuture<'a, Result<()>>> {
        None
    }
    /// Whether what a command has read holds, now that it is done.
    fn check_afterwards(&self, _ctx: &OpCtx, _req: &Request<'_>) -> Result<()> {
        Ok(())
    }
    /// The write concern that applies when the client gave none (or gave no `w`).
    fn default_write_concern(&self) -> WriteConcern;
    /// The cluster-wide default for reads, where one was set.
    fn default_read_level(&self) -> Option<ReadLevel>;

    /// Waits for the operation's last write (`ctx.last_op()`, or the client's last one if this operation
    /// changed nothing) to satisfy `wc`.
    fn await_write_concern<'a>(
        &'a self,
        ctx: &'a OpCtx,
        wc: &'a WriteConcern,
    ) -> BoxFuture<'a, Option<WriteConcernError>>;

    /// `None` on a standalone node: replies carry no times.
    fn reply_times(&self, ctx: &OpCtx) -> Option<ReplyTimes>;

    /// Adds what other members asked for beside the answer (`$replData`, `$oplogQueryData`), and what servers of a cluster hand on
    /// (`$configTime`, `$topologyTime`).
    fn append_metadata(&self, _ctx: &OpCtx, _reply: &mut DocBuilder) {}

    /// Attached to "not primary" errors; `None` on a standalone node.
    fn topology_version(&self) -> Option<TopologyVersion>;

    /// Profiling level (0, 1, 2) of a database.
    fn profiling_level(&self, _db: &str) -> i32 {
        0
    }
    /// Whether operations of a database are chosen by a filter instead of by how long they took.
    fn has_profile_filter(&self, _db: &str) -> bool {
        false
    }
    /// Whether that filter chooses this operation.
    fn passes_profile_filter(&self, _db: &str, _entry: &RawDoc) -> bool {
        true
    }
    /// Stores one `system.profile` document.
    fn profile(&self, _db: &str, _entry: DocBuf) {}
}
