//! What the catalog manager asks of the process that it is part of.

use pando_base::{OpTime, Result, SessionId, Timestamp};
use pando_bson::{DocBuf, RawDoc};
use pando_env::BoxFuture;

pub trait Node: Send + Sync {
    /// Runs a command on another host. A command that was carried out twice must have the effect of once.
    fn call<'a>(&'a self, host: &'a str, command: &'a RawDoc) -> BoxFuture<'a, Result<DocBuf>>;
    /// Returns when a majority of this set holds the entry.
    fn await_majority(&self, upto: OpTime) -> BoxFuture<'_, Result<()>>;
    /// A transaction of this session has been committed.
    fn committed(&self, session: SessionId, number: i64, at: OpTime);
    /// A time after all that this node knows of, and before all that it will give to writes.
    fn next_time(&self) -> Timestamp;
    /// The number of an operation that shards take part in: it grows from one to the next, whichever node is primary, and is on a majority.
    fn number<'a>(&'a self, what: &'a str, of: &'a str) -> BoxFuture<'a, Result<Timestamp>>;
    /// From now on this set is a shard, too: `identity` says which one of which cluster. Returns when a majority has it; once more it does
    /// nothing new.
    fn become_shard<'a>(&'a self, identity: &'a RawDoc) -> BoxFuture<'a, Result<()>>;
    /// `set/host1,host2` of this set.
    fn connection_string(&self) -> String;
    /// Of chunks that have been where they are since then nobody needs to know where they were before.
    fn history_from(&self) -> Timestamp;
    /// The version whose features may be used.
    fn feature_version(&self) -> String;
    /// `host:port` of this process, for what it logs.
    fn host_port(&self) -> String;
}
