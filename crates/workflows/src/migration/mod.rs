//! Moving a range of a sharded collection to another shard (SH-MIG).
//!
//! ```text
//!   donor:      begin ─► clone ──────────────────────────► commit ─────────► committed ─► over    (move_range)
//!                          │ start     status…   commit ▲     │ config          │ release ▲
//!                          ▼                     entered│     ▼ servers         ▼         │
//!   recipient:           begin ─► prepare ─► clone ─► entered ───────────────────────► over       (receive_range)
//! ```
//! Each arrow that leaves a phase of the upper rows is a state document on a majority.
//!
//! # Who may decide what
//!
//! * **The config servers decide**: a range is moved when `_configsvrCommitChunkMigration` is written there, and by nothing else.
//! * Before its checkpoint `commit` the donor gives up by itself. Behind it the commit may be on its way for any length of time: the donor
//!   gives up only behind a fence (`_configsvrEnsureChunkVersionIsGreaterThan`), and when the config servers say that the range stayed.
//! * Before its checkpoint `entered` the recipient gives up by itself, since no donor commits before it hears of that one. Behind it
//!   the recipient owes its data to the donor's decision: it leaves when the donor says that nothing more can come, and goes by what
//!   the config servers say then.
//! * So an abort need not arrive anywhere, and a late command is of a migration that nobody knows: everything is named by its id.
//! * Whoever gives up has the range deleted where it is not owned; a task to do so is on a majority before the first document comes.
//!
//! A donor forgets a migration that was committed when its recipient has forgotten it. What it says of one that it does not know ("over")
//! it must have confirmed by a majority: a former primary knows of nothing.

mod chunk_size;

pub use chunk_size::ChunkSize;

use crate::{Actions, LocalWrite, Retry, Slot, Target};
use pando_base::{Error, Namespace, Result, Uuid};
use pando_bson::{DocBuf, DocBuilder, RawDoc};

use crate::ddl::{append_majority, doc_at, uuid_at};

/// The services that run the three of them.
pub const DONOR: &str = "MigrationCoordinator";
pub const RECIPIENT: &str = "MigrationRecipient";
pub const DELETER: &str = "RangeDeleter";
/// Each migration has an id of its own, so there is nothing else to be told apart by.
pub fn options(_: &RawDoc) -> DocBuf {
    DocBuf::default()
}

/// Where a donor and a recipient keep their state documents, and where both keep what is to be deleted, all in `config`.
pub const DONOR_COLLECTION: &str = "migrationCoordinators";
pub const RECIPIENT_COLLECTION: &str = "migrationRecipients";
pub const DELETIONS_COLLECTION: &str = "rangeDeletions";

/// Donor to recipient: `{<command>: <ns>, migrationId, …}`.
pub const START: &str = "_recvChunkStart";
/// ─► `{active, state}`: see [`Progress`].
pub const STATUS: &str = "_recvChunkStatus";
/// Answered when the recipient has everything, and a majority has the document that says so.
pub const COMMIT: &str = "_recvChunkCommit";
/// Answered when the recipient has forgotten the migration.
pub const RELEASE: &str = "_recvChunkReleaseCritSec";
pub const ABORT: &str = "_recvChunkAbort";
/// Recipient to donor ─► `{over}`: the config servers will not hear of this migration any more.
pub const IS_OVER: &str = "_shardsvrMigrationIsOver";

/// What a recipient says of itself.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Progress {
    Underway,
    /// It has everything but what is written just now.
    Steady,
    /// It gave up, or knows of nothing.
    Failed,
}

impl Progress {
    pub fn parse(reply: &RawDoc) -> Progress {
        let active = reply.get("active").is_some_and(|v| v.is_truthy());
        match reply.get("state").as_ref().and_then(|v| v.as_str()) {
            _ if !active => Progress::Failed,
            Some("steady") => Progress::Steady,
            Some("fail" | "abort" | "done") | None => Progress::Failed,
            Some(_) => Progress::Underway,
        }
    }
}

/// When a range may be deleted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Clean {
    /// When it is known where it belongs.
    Pending,
    /// Nobody ever saw it here.
    Now,
    /// When readers on secondaries have had their time.
    Delayed,
}

/// What moves, and between whom.
#[derive(Clone, PartialEq, Debug)]
pub struct Migration {
    pub id: Uuid,
    pub ns: Namespace,
    pub uuid: Uuid,
    pub donor: String,
    pub recipient: String,
    pub min: DocBuf,
    pub max: DocBuf,
    /// The pattern of the shard key.
    pub key: DocBuf,
}

impl Migration {
    /// Of a state document, of [`START`], or of a donor's first request (which knows neither collection nor key).
    pub fn parse(doc: &RawDoc) -> Option<Migration> {
        let text = |name: &str| Some(doc.get(name)?.as_str()?.to_owned());
        let range = doc_at(doc, "range")?;
        Some(Migration {
            id: uuid_at(doc, "_id").or_else(|| uuid_at(doc, "migrationId"))?,
            ns: Namespace::parse(&text("nss")?).ok()?,
            uuid: uuid_at(doc, "collectionUuid").unwrap_or(Uuid([0; 16])),
            donor: text("donorShardId")?,
            recipient: text("recipientShardId")?,
            min: doc_at(&range, "min")?,
            max: doc_at(&range, "max")?,
            key: doc_at(doc, "keyPattern").unwrap_or_default(),
        })
    }
    /// Everything but the id.
    pub(crate) fn append(&self, b: &mut DocBuilder) {
        b.str("nss", self.ns.as_str()).uuid("collectionUuid", &self.uuid.0);
        b.str("donorShardId", &self.donor).str("recipientShardId", &self.recipient);
        b.doc("range", |d| {
            d.raw_doc("min", &self.min).raw_doc("max", &self.max);
        });
        b.raw_doc("keyPattern", &self.key);
    }
    /// Of the critical sections of both.
    pub(crate) fn reason(&self) -> DocBuf {
        let mut b = DocBuilder::new();
        b.str("command", "moveRange").uuid("migrationId", &self.id.0);
        b.str("fromShard", &self.donor).str("toShard", &self.recipient);
        b.finish()
    }
    /// A command of one of them to the other.
    pub(crate) fn command(&self, name: &str) -> DocBuilder {
        let mut b = DocBuilder::new();
        b.str(name, self.ns.as_str()).uuid("migrationId", &self.id.0);
        b
    }
    pub(crate) fn call(&self, slot: Slot, to: &str, name: &str, retry: Retry, out: &mut Actions) {
        let mut b = self.command(name);
        append_majority(&mut b, "admin");
        out.call(slot, Target::Shard(to.to_owned()), b.finish(), retry);
    }

    /// The task to delete the range here, which nobody takes up while it is pending.
    pub(crate) fn deletion(&self, when: Clean) -> LocalWrite {
        let mut b = DocBuilder::new();
        b.uuid("_id", &self.id.0);
        self.append(&mut b);
        if when == Clean::Pending {
            b.bool("pending", true);
        }
        b.str("whenToClean", if when == Clean::Now { "now" } else { "delayed" });
        LocalWrite::Put { ns: deletions(), doc: b.finish() }
    }
    pub(crate) fn no_deletion(&self) -> LocalWrite {
        let mut b = DocBuilder::new();
        b.uuid("_id", &self.id.0);
        LocalWrite::Remove { ns: deletions(), id: b.finish() }
    }
    pub(crate) fn enter(&self, block_reads: bool) -> LocalWrite {
        LocalWrite::EnterSection { ns: self.ns.clone(), reason: self.reason(), block_reads }
    }
    pub(crate) fn leave(&self) -> LocalWrite {
        LocalWrite::LeaveSection { ns: self.ns.clone(), reason: self.reason() }
    }
}

/// Whether nobody may take up a deletion yet.
pub fn is_pending(task: &RawDoc) -> bool {
    task.get("pending").is_some_and(|v| v.is_truthy())
}
/// Whether documents of the range may be gone already.
pub fn is_processing(task: &RawDoc) -> bool {
    task.get("processing").is_some_and(|v| v.is_truthy())
}
pub fn deletions() -> Namespace {
    Namespace::unchecked("config", DELETIONS_COLLECTION)
}
pub(crate) fn nonsense(state: &RawDoc) -> Error {
    Error::bad_value(format!("not a state of a migration: {state}"))
}
pub(crate) fn parse(state: &RawDoc) -> Result<Migration> {
    Migration::parse(state).ok_or_else(|| nonsense(state))
}
