//! What a command tells the write path beside the documents.

use pando_base::OpTime;
use pando_bson::RawDoc;
use pando_oplog::entry::ImageKind;

/// What the operation brings to its log entries and checks.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteOp<'a> {
    /// A retryable write's session.
    pub session: Option<SessionRef<'a>>,
    pub bypass_validation: bool,
    /// The server writes what it keeps for itself, whoever asked for that.
    pub of_server: bool,
    pub from_migrate: bool,
    /// What makes room in capped collections is told apart: nothing goes by itself.
    pub untrimmed: bool,
    /// A findAndModify: what a retry of it will return.
    pub image: Option<ImageKind>,
}

/// The session of a retryable write.
#[derive(Clone, Copy, Debug)]
pub struct SessionRef<'a> {
    pub lsid: &'a RawDoc,
    pub txn_number: i64,
    /// The session's last entry for this `txn_number` before this unit; [`OpTime::NULL`] if none.
    pub prev: OpTime,
}
