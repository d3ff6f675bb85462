//! Why a call failed: sorted, as the error that a client would see, and with all that the peer said.

use pando_base::codes::class;
use pando_base::redaction::ClientData;
use pando_base::{Error, ErrorCode};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};
use pando_env::tls::HandshakeFailed;
use std::fmt;
use std::io;

/// Fields that the server that passes an error on says itself.
const OF_EVERY_REPLY: [&str; 13] = [
    "ok",
    "errmsg",
    "code",
    "codeName",
    "errorLabels",
    "$clusterTime",
    "$configTime",
    "$topologyTime",
    "operationTime",
    "topologyVersion",
    "$replData",
    "$oplogQueryData",
    "$gleStats",
];

pub type CallResult<T> = Result<T, Failure>;

/// What a failure says about the peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Nobody listens there: the process is gone (or was never there).
    Refused,
    /// A connection that stood was cut: the process died, or the network in between forgot it.
    Reset,
    /// No answer in time. Nothing is known.
    TimedOut,
    /// The host cannot be reached or resolved.
    Unreachable,
    /// This node did not send it: too many calls to that host, or a message that is too large. Says nothing about the peer.
    NotSent,
    /// The peer is there, and one side refused the other's certificate, version or form of TLS.
    Handshake,
    /// The peer answered, with this command error.
    Command,
    /// The peer does not speak as it should.
    Protocol,
}

/// What a failure says about the command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// It did not reach the peer, or the peer refused it before it began.
    NotBegun,
    /// Nobody knows whether it was carried out, nor how much of it.
    Unknown,
    /// Sent again it would fail again.
    Final,
}

/// A failed call.
#[derive(Clone, Debug)]
pub struct Failure {
    pub kind: Kind,
    /// With the labels of the reply, and as its extra fields those that a client is told beside code and text (`errInfo`,
    /// `writeErrors`, `writeConcernError`, `vWanted`, `vReceived`, …).
    pub error: Error,
    /// The peer's reply as it came; `None` where there was none.
    pub reply: Option<DocBuf>,
    /// The command may have been read before its peer was found gone.
    pub was_sent: bool,
}

impl Failure {
    /// Of this node, or of what came instead of a reply.
    pub fn new(kind: Kind, error: Error) -> Failure {
        Failure { kind, error, reply: None, was_sent: false }
    }
    pub(crate) fn io(peer: &str, e: &io::Error) -> Failure {
        use io::ErrorKind::*;
        if let Some(why) = HandshakeFailed::in_error(e) {
            let text = format!("Error connecting to {peer} :: caused by :: {why}");
            return Failure::new(Kind::Handshake, Error::new(ErrorCode::SSLHandshakeFailed, text));
        }
        let kind = match e.kind() {
            ConnectionRefused => Kind::Refused,
            ConnectionReset | ConnectionAborted | BrokenPipe | UnexpectedEof | NotConnected => Kind::Reset,
            TimedOut => return Failure::timed_out(peer),
            _ => Kind::Unreachable,
        };
        let text = match kind {
            Kind::Refused => format!("Error connecting to {peer} :: caused by :: Connection refused"),
            Kind::Reset => format!("Connection closed by peer {peer}"),
            _ => format!("Error connecting to {peer} :: caused by :: {e}"),
        };
        Failure::new(kind, Error::new(ErrorCode::HostUnreachable, text))
    }
    /// The connection was cut behind the command, and nobody listens there any more: the process is gone, and what it did first
    /// nobody knows.
    pub(crate) fn gone_behind(peer: &str, e: &io::Error) -> Failure {
        Failure { was_sent: true, ..Failure::io(peer, e) }
    }
    pub(crate) fn timed_out(peer: &str) -> Failure {
        let text = format!("Request to {peer} timed out");
        Failure::new(Kind::TimedOut, Error::new(ErrorCode::NetworkTimeout, text))
    }
    pub(crate) fn protocol(peer: &str, what: &str) -> Failure {
        let text = format!("Unexpected message from {peer}: {what}");
        Failure::new(Kind::Protocol, Error::new(ErrorCode::ProtocolError, text))
    }
    /// The queue of calls to this host is full.
    pub(crate) fn queue_full(peer: &str, waiting: usize) -> Failure {
        let text = format!("Too many calls wait for a connection to {peer}: {waiting}");
        Failure::new(Kind::NotSent, Error::new(ErrorCode::PooledConnectionAcquisitionRejected, text))
    }
    /// No connection to this host became free in time.
    pub(crate) fn no_connection(peer: &str) -> Failure {
        let text = format!("Couldn't get a connection to {peer} within the time limit");
        let code = ErrorCode::PooledConnectionAcquisitionExceededTimeLimit;
        Failure::new(Kind::NotSent, Error::new(code, text))
    }
    pub(crate) fn too_large(peer: &str, bytes: usize, max: usize) -> Failure {
        let text = format!("A message of {bytes} bytes is too large for {peer}, which takes {max}");
        Failure::new(Kind::NotSent, Error::new(ErrorCode::BSONObjectTooLarge, text))
    }
    /// The error of a reply with `ok: 0`.
    pub(crate) fn of_reply(reply: &RawDoc) -> Failure {
        // Some mistakes are told without one.
        let code = reply.get("code").and_then(|v| v.as_i64()).unwrap_or(i64::from(ErrorCode::OK.0));
        let text = reply.get("errmsg").and_then(|v| v.as_str()).unwrap_or_default().to_owned();
        let mut error = Error::location(code as i32, text);
        if let Some(labels) = reply.get("errorLabels").and_then(|v| v.as_array()) {
            error.labels.extend(labels.iter().filter_map(|e| e.value().as_str().map(str::to_owned)));
        }
        let mut extra = DocBuilder::new();
        for e in reply.iter().filter(|e| !OF_EVERY_REPLY.contains(&e.name())) {
            extra.value(e.name_bytes(), e.value());
        }
        let extra = extra.finish();
        if !extra.is_empty() {
            error = error.with_extra(extra.as_bytes().to_vec());
        }
        Failure { reply: Some(reply.to_buf()), ..Failure::new(Kind::Command, error) }
    }
    pub fn code(&self) -> ErrorCode {
        self.error.code
    }
    /// A field of the peer's reply.
    pub fn field(&self, name: &str) -> Option<Value<'_>> {
        self.reply.as_ref()?.get(name)
    }
    pub fn has_label(&self, label: &str) -> bool {
        self.error.labels.iter().any(|l| l == label)
    }
    /// The connection cannot be used any more.
    pub fn breaks_connection(&self) -> bool {
        !matches!(self.kind, Kind::Command | Kind::NotSent)
    }
    /// What became of the command. A command of several writes may have done some of them before it was refused.
    pub fn effect(&self) -> Effect {
        let code = self.code();
        match self.kind {
            Kind::Refused if self.was_sent => Effect::Unknown,
            Kind::Refused | Kind::Handshake => Effect::NotBegun,
            Kind::Reset | Kind::TimedOut | Kind::Unreachable => Effect::Unknown,
            Kind::Protocol => Effect::Final,
            Kind::NotSent | Kind::Command if code.is(class::OVERLOAD) => Effect::NotBegun,
            Kind::NotSent if code.is(class::RETRIABLE) => Effect::NotBegun,
            Kind::NotSent => Effect::Final,
            Kind::Command if code.is(class::NOT_PRIMARY) => Effect::NotBegun,
            Kind::Command if code.is(class::RETRIABLE) || self.has_label("RetryableWriteError") => {
                Effect::Unknown
            }
            Kind::Command => Effect::Final,
        }
    }
}

impl From<Failure> for Error {
    fn from(f: Failure) -> Error {
        f.error
    }
}

/// A peer's words may repeat what a client said.
impl ClientData for Failure {
    fn push_json(&self, out: &mut String, redacted: bool) {
        self.error.push_json(out, redacted);
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.message.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_bson::{Document, doc};

    fn names(doc: &RawDoc) -> Vec<String> {
        doc.iter().map(|e| e.name().to_owned()).collect()
    }

    #[test]
    fn a_stale_routers_error_keeps_what_was_wanted_and_all_else_is_in_the_reply() {
        let reply = doc! {
            "ok": 0.0, "errmsg": "stale", "code": 13388, "codeName": "StaleConfig", "ns": "a.b",
            "vReceived": { "e": 1 }, "vWanted": { "e": 2 }, "shardId": "s1",
            "errorLabels": ["TransientTransactionError"], "operationTime": 1,
            "$clusterTime": { "clusterTime": 2 }, "$configTime": 3, "$topologyTime": 4,
            "topologyVersion": { "counter": 5 }, "$replData": { "term": 6 }
        }
        .to_raw();
        let f = Failure::of_reply(&reply);
        assert_eq!((f.kind, f.error.code.0), (Kind::Command, 13388));
        assert!(f.has_label("TransientTransactionError") && !f.has_label("RetryableWriteError"));
        let extra = RawDoc::validate(&f.error.extra).unwrap();
        assert_eq!(names(extra), ["ns", "vReceived", "vWanted", "shardId"]);
        assert_eq!(f.reply.as_deref().map(RawDoc::as_bytes), Some(reply.as_bytes()), "byte for byte");
        let said = |outer: &str, inner: &str| f.field(outer)?.as_doc()?.get(inner)?.as_i64();
        assert_eq!(said("vWanted", "e"), Some(2));
        assert_eq!(said("topologyVersion", "counter"), Some(5));
        assert_eq!(said("$replData", "term"), Some(6));
    }

    #[test]
    fn errors_of_single_writes_and_of_the_write_concern_go_on_to_the_client() {
        let reply = doc! {
            "ok": 0.0, "errmsg": "no", "code": 121, "errInfo": { "failingDocumentId": 1 },
            "writeErrors": [{ "index": 0, "code": 11000 }], "writeConcernError": { "code": 64 }
        };
        let error = Error::from(Failure::of_reply(&reply.to_raw()));
        let extra = RawDoc::validate(&error.extra).unwrap();
        assert_eq!(names(extra), ["errInfo", "writeErrors", "writeConcernError"]);
    }

    fn effect_of(code: i32, labels: Vec<pando_bson::Bson>) -> Effect {
        let mut reply = Document::new();
        reply.push("ok", 0.0);
        reply.push("code", code);
        reply.push("errorLabels", labels);
        Failure::of_reply(&reply.to_raw()).effect()
    }

    #[test]
    fn what_became_of_the_command_follows_from_kind_code_and_labels() {
        let io = |kind: io::ErrorKind| Failure::io("h", &kind.into()).effect();
        assert_eq!(io(io::ErrorKind::ConnectionRefused), Effect::NotBegun);
        // The same seen behind a command that was sent: it may have been carried out, and is not sent to the next primary.
        let gone = Failure::gone_behind("h", &io::ErrorKind::ConnectionRefused.into());
        assert_eq!((gone.kind, gone.effect()), (Kind::Refused, Effect::Unknown));
        assert_eq!(io(io::ErrorKind::ConnectionReset), Effect::Unknown);
        assert_eq!(io(io::ErrorKind::TimedOut), Effect::Unknown);
        let refused = Failure::io("h", &HandshakeFailed::error("wrong host"));
        assert_eq!((refused.kind, refused.effect()), (Kind::Handshake, Effect::NotBegun));
        assert_eq!(refused.error.message, "Error connecting to h :: caused by :: wrong host");
        assert_eq!(Failure::protocol("h", "x").effect(), Effect::Final);
        assert_eq!(Failure::queue_full("h", 9).effect(), Effect::NotBegun);
        assert_eq!(Failure::no_connection("h").effect(), Effect::NotBegun);
        assert_eq!(Failure::too_large("h", 9, 8).effect(), Effect::Final);
        assert_eq!(effect_of(10107, vec![]), Effect::NotBegun, "refused at the door");
        assert_eq!(effect_of(462, vec![]), Effect::NotBegun, "refused under load");
        assert_eq!(effect_of(11602, vec![]), Effect::Unknown, "ended in the middle");
        assert_eq!(effect_of(13388, vec![]), Effect::Final, "to be targeted again, not sent again");
        assert_eq!(effect_of(112, vec!["RetryableWriteError".into()]), Effect::Unknown);
        assert_eq!(effect_of(11000, vec![]), Effect::Final);
    }
}
