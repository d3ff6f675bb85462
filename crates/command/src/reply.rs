//! Replies: what a handler returns, and how errors become documents.

use crate::generic_args::GenericArgs;
use crate::node::{ReplyTimes, TopologyVersion};
use pando_base::codes::class;
use pando_base::{Error, ErrorCode};
use pando_bson::{DocBuf, DocBuilder, RawDoc};

/// Bytes left free in front of every reply document: message header (16), flags (4) and section kind (1),
/// so that a batch of 16 MiB is framed without copying it.
pub const HEADROOM: usize = 21;

/// What a handler returns. The pipeline adds `ok` and the times.
pub struct Reply {
    pub body: DocBuilder,
    /// For exhaust streams: what to run next without hearing from the client.
    pub next: Option<Next>,
}

/// The next step of an exhaust stream.
#[derive(Debug)]
pub enum Next {
    /// The same request again (getMore).
    Again,
    /// This body instead (hello with the newer topologyVersion).
    With(DocBuf),
}

impl Default for Reply {
    fn default() -> Self {
        Reply::new()
    }
}

impl Reply {
    /// An empty reply; handlers write into `reply.body`.
    pub fn new() -> Reply {
        Reply::with_capacity(256)
    }
    /// `bytes` is a guess of the body's size.
    pub fn with_capacity(bytes: usize) -> Reply {
        let mut buf = Vec::with_capacity(HEADROOM + bytes + 128);
        buf.resize(HEADROOM, 0);
        Reply { body: DocBuilder::append_to(buf), next: None }
    }
    /// Copies a finished document.
    pub fn from_doc(doc: &RawDoc) -> Reply {
        let mut reply = Reply::with_capacity(doc.byte_len());
        reply.body.elems_of(doc);
        reply
    }
}

/// A reply ready for framing: [`HEADROOM`] free bytes, then the document.
pub struct Encoded {
    pub buf: Vec<u8>,
}

impl Encoded {
    /// Frames a finished document.
    pub fn copy_of(doc: &RawDoc) -> Encoded {
        let mut buf = vec![0; HEADROOM];
        buf.extend_from_slice(doc.as_bytes());
        Encoded { buf }
    }
    pub fn doc(&self) -> &RawDoc {
        RawDoc::trusted(self.buf.get(HEADROOM..).unwrap_or_default())
    }
}

// tour: insert 9/9
// tour: find 9/9
pub(crate) fn append_times(b: &mut DocBuilder, times: Option<ReplyTimes>) {
    let Some(t) = times else { return };
    crate::cluster_time::append(b, t.cluster_time, &t.signature);
    b.timestamp("operationTime", t.operation_time);
}

/// `errorLabels` that follow from an error's class and the kind of operation.
pub(crate) fn labels_of(
    code: ErrorCode,
    command: &str,
    args: &GenericArgs,
    change_stream: bool,
) -> Vec<String> {
    let mut labels = Vec::new();
    let ends_txn = crate::transaction_rules::ends_transaction(command);
    let retriable = code.is(class::RETRIABLE);
    if retriable && (args.is_retryable_write() || ends_txn) {
        labels.push("RetryableWriteError".to_owned());
    }
    if args.in_txn() {
        // Of an end that did not arrive nobody can tell whether it took place; where transactions of that kind are not supported, a
        // new one is not either.
        let anew = retriable && !ends_txn && code != ErrorCode::InternalTransactionNotSupported;
        if code.is(class::TRANSIENT_IN_TXN) || anew {
            labels.push("TransientTransactionError".to_owned());
        }
    }
    if change_stream && (retriable || code.is(class::RESUMABLE)) {
        labels.push("ResumableChangeStreamError".to_owned());
    }
    if code.is(class::OVERLOAD) {
        labels.push("SystemOverloadedError".to_owned());
        labels.push("RetryableError".to_owned());
    }
    labels
}

/// Those of a write concern error: the operation itself took place, so there is no transaction to begin anew.
pub(crate) fn labels_of_late(code: ErrorCode, command: &str, args: &GenericArgs) -> Vec<String> {
    let mut labels = labels_of(code, command, args, false);
    labels.retain(|l| l != "TransientTransactionError");
    labels
}

/// True for the errors that tell drivers the topology changed: the reply carries `topologyVersion`. Not those of a
/// shutdown: a driver would take one that came with a version it knows for old news.
pub(crate) fn tells_topology(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::NotWritablePrimary
            | ErrorCode::NotPrimaryNoSecondaryOk
            | ErrorCode::InterruptedDueToReplStateChange
            | ErrorCode::NotPrimaryOrSecondary
            | ErrorCode::PrimarySteppedDown
    )
}

/// The body of an error reply: labels, topologyVersion, `ok: 0`, errmsg, code, codeName, extra fields.
pub(crate) fn error_body(e: &Error, labels: &[String], topology: Option<TopologyVersion>) -> DocBuilder {
    let mut b = Reply::new().body;
    if !labels.is_empty() {
        b.array("errorLabels", |a| {
            for label in labels {
                a.str(label);
            }
        });
    }
    if let Some(tv) = topology.filter(|_| tells_topology(e.code)) {
        append_topology(&mut b, tv);
    }
    b.f64("ok", 0.0);
    b.str("errmsg", &e.message);
    if e.code != ErrorCode::OK {
        b.i32("code", e.code.0);
        b.str("codeName", &e.code.name());
    }
    if !e.extra.is_empty() {
        b.elems_of(RawDoc::trusted(&e.extra));
    }
    b
}

/// `topologyVersion: {processId, counter}`.
pub fn append_topology(b: &mut DocBuilder, tv: TopologyVersion) {
    b.doc("topologyVersion", |t| {
        t.object_id("processId", tv.process_id);
        t.i64("counter", tv.counter);
    });
}

/// A whole error reply outside the pipeline (malformed messages).
pub fn error_reply(e: &Error) -> Encoded {
    Encoded { buf: error_body(e, &e.labels, None).into_buffer() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_without_a_code_shows_none() {
        let names = |e: &Error| {
            let body = Encoded { buf: error_body(e, &[], None).into_buffer() };
            body.doc().iter().map(|x| x.name().to_owned()).collect::<Vec<_>>().join(",")
        };
        assert_eq!(names(&Error::uncoded("no")), "ok,errmsg");
        assert_eq!(names(&Error::bad_value("no")), "ok,errmsg,code,codeName");
    }

    #[test]
    fn labels_follow_the_class_and_the_kind_of_operation() {
        let none = GenericArgs::default();
        let write = GenericArgs { txn_number: Some(1), ..GenericArgs::default() };
        let txn = GenericArgs { txn_number: Some(1), autocommit: Some(false), ..GenericArgs::default() };
        let of = |code, command: &str, args: &GenericArgs| labels_of(code, command, args, false).join(",");
        assert_eq!(of(ErrorCode::ShutdownInProgress, "insert", &none), "");
        assert_eq!(of(ErrorCode::ShutdownInProgress, "insert", &write), "RetryableWriteError");
        assert_eq!(of(ErrorCode::DuplicateKey, "insert", &write), "");
        assert_eq!(of(ErrorCode::WriteConflict, "insert", &txn), "TransientTransactionError");
        assert_eq!(of(ErrorCode::ShutdownInProgress, "commitTransaction", &txn), "RetryableWriteError");
        assert_eq!(of(ErrorCode::InternalTransactionNotSupported, "insert", &write), "RetryableWriteError");
        assert_eq!(of(ErrorCode::InternalTransactionNotSupported, "insert", &txn), "");
        assert_eq!(
            labels_of(ErrorCode::CursorNotFound, "getMore", &none, true),
            ["ResumableChangeStreamError"]
        );
    }
}
