//! What a workflow says.
//!
//! An action that takes time is begun under a slot, a number of the workflow's own choice (0, or which participant it
//! is about). Its answer comes back under the same slot. A slot holds one action at a time; many slots may be in use.

use crate::Retry;
use pando_base::{Millis, Namespace, OpTime, Result};
use pando_bson::DocBuf;

/// Which of a workflow's actions an answer belongs to.
pub type Slot = u32;

/// Something that takes time, and is answered.
#[derive(Clone, PartialEq, Debug)]
pub enum Action {
    /// The state document, on a majority. Nothing else begins before it is there.
    Checkpoint(DocBuf),
    /// Writes of this node, in this order; the first one that fails ends them. What is repeated is the whole list.
    Write(Vec<LocalWrite>),
    Read(Query),
    /// Waits until others have what was written here up to `upto`; [`OpTime::NULL`]: everything so far.
    Await {
        upto: OpTime,
        concern: Concern,
        /// 0: as long as it takes.
        timeout_ms: Millis,
    },
    /// A command to another node.
    Call {
        to: Target,
        body: DocBuf,
    },
    Lock(Resource, Level),
    /// From here on others are kept out of something, though no lock is held.
    Enter(Section),
    Rest(Millis),
    /// Until somebody says that it may go on.
    AwaitNudge,
    /// A random number.
    Draw,
    /// The state document goes, on a majority. The machine layer's own, at the end.
    Forget,
}

/// One write of this node.
#[derive(Clone, PartialEq, Debug)]
pub enum LocalWrite {
    /// Inserts or replaces by `_id`.
    Put { ns: Namespace, doc: DocBuf },
    /// Removes by `{_id: …}`.
    Remove { ns: Namespace, id: DocBuf },
    /// Gives up the index builds of a collection. The database must be locked.
    AbortIndexBuilds { ns: Namespace, why: &'static str },
    /// Drops a collection if it is there. The database must be locked.
    DropCollection { ns: Namespace },
    /// The entry that says that a database is gone. The database must be locked, and empty.
    DropDatabase { db: String },
    /// The critical section of a collection, or of a whole database ([`whole_database`]: everything that goes by the database's version
    /// waits), as a document that every member goes by; who writes now is waited for. What is entered stays entered, and reads that are
    /// blocked stay so. 117 where it belongs to another reason.
    EnterSection { ns: Namespace, reason: DocBuf, block_reads: bool },
    /// The section's document goes, if it belongs to that reason.
    LeaveSection { ns: Namespace, reason: DocBuf },
}

/// What a section of a database is entered under.
pub fn whole_database(db: &str) -> Namespace {
    Namespace::unchecked(db, "")
}

/// Something to be looked up on this node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Query {
    /// The collections of a database, without views.
    Collections { db: String },
}

/// Who has to have a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Concern {
    Majority,
    /// As many as the client asks for; the shell knows the words.
    AsAsked,
}

/// Another node, by what it is known as.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Target {
    /// `host:port`.
    Host(String),
    /// The primary of a set, `<name>/<host>,<host>`.
    Set(String),
    /// The primary of a shard.
    Shard(String),
    /// The primary of the config servers.
    ConfigServers,
    /// This node: a step that only its catalog can make. It lasts as long as it takes, and ends with this node's office.
    Own,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Resource {
    /// Definitions of a database.
    Database(String),
    /// The DDL lock of a namespace, or of a database: definitions that a cluster's shard coordinates.
    Definition(String),
    /// Which shards a cluster has: while the config servers hold it none is added.
    Membership,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Level {
    Shared,
    Exclusive,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Section {
    /// A database is being dropped: nothing can be created in it, and nobody else drops it.
    DropPending { db: String },
}

/// One thing that a workflow wants.
#[derive(Clone, Debug)]
pub(crate) enum Want {
    Begin(Slot, Action, Retry),
    Checkpoint,
    Release(Resource),
    Leave(Section),
    Report(OpTime),
    Note(String),
    Cancel(Slot),
    Done(Result<DocBuf>),
}

/// What a step wants, in order.
#[derive(Default, Debug)]
pub struct Actions(pub(crate) Vec<Want>);

impl Actions {
    fn begin(&mut self, slot: Slot, action: Action, retry: Retry) {
        self.0.push(Want::Begin(slot, action, retry));
    }
    /// [`crate::Workflow::document`] as it is after this step, on a majority; answered by [`crate::Event::Durable`].
    pub fn checkpoint(&mut self) {
        self.0.push(Want::Checkpoint);
    }
    pub fn write(&mut self, slot: Slot, writes: Vec<LocalWrite>, retry: Retry) {
        self.begin(slot, Action::Write(writes), retry);
    }
    pub fn read(&mut self, slot: Slot, query: Query) {
        self.begin(slot, Action::Read(query), Retry::Never);
    }
    pub fn await_replicated(&mut self, slot: Slot, upto: OpTime, concern: Concern, timeout_ms: Millis) {
        self.begin(slot, Action::Await { upto, concern, timeout_ms }, Retry::Never);
    }
    pub fn call(&mut self, slot: Slot, to: Target, body: DocBuf, retry: Retry) {
        self.begin(slot, Action::Call { to, body }, retry);
    }
    pub fn lock(&mut self, slot: Slot, resource: Resource, level: Level) {
        self.begin(slot, Action::Lock(resource, level), Retry::Never);
    }
    /// The same for a lock that is there to be had sooner or later: the workflow hears no failure.
    pub fn lock_in_the_end(&mut self, slot: Slot, resource: Resource, level: Level) {
        self.begin(slot, Action::Lock(resource, level), Retry::Always);
    }
    /// Gives a lock back; no harm where it is not held.
    pub fn release(&mut self, resource: Resource) {
        self.0.push(Want::Release(resource));
    }
    pub fn enter(&mut self, slot: Slot, section: Section) {
        self.begin(slot, Action::Enter(section), Retry::Never);
    }
    /// Leaves a section; no harm where it was not entered.
    pub fn leave(&mut self, section: Section) {
        self.0.push(Want::Leave(section));
    }
    pub fn rest(&mut self, slot: Slot, ms: Millis) {
        self.begin(slot, Action::Rest(ms), Retry::Always);
    }
    pub fn await_nudge(&mut self, slot: Slot) {
        self.begin(slot, Action::AwaitNudge, Retry::Always);
    }
    pub fn draw(&mut self, slot: Slot) {
        self.begin(slot, Action::Draw, Retry::Always);
    }
    /// The client's last write is at `at`.
    pub fn report(&mut self, at: OpTime) {
        self.0.push(Want::Report(at));
    }
    /// A line for the log.
    pub fn note(&mut self, text: impl Into<String>) {
        self.0.push(Want::Note(text.into()));
    }
    /// Nobody waits for the slot's action any more; what it has done it has done.
    pub fn cancel(&mut self, slot: Slot) {
        self.0.push(Want::Cancel(slot));
    }
    /// The end: the state document goes, and whoever waits gets this. What is under way is cancelled.
    pub fn done(&mut self, result: Result<DocBuf>) {
        self.0.push(Want::Done(result));
    }
}
