//! Why a call failed.

use pando_base::{Error, ErrorCode};
use pando_bson::{DocBuilder, RawDoc};
use std::fmt;
use std::io;

/// Fields that the server that passes an error on says itself.
const OF_EVERY_REPLY: [&str; 9] = [
    "ok",
    "errmsg",
    "code",
    "codeName",
    "errorLabels",
    "$clusterTime",
    "operationTime",
    "topologyVersion",
    "$replData",
];

pub type Outcome<T> = Result<T, Failure>;

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
    /// The peer answered, with this command error.
    Command,
    /// The peer does not speak as it should.
    Protocol,
}

/// A failed call: its kind, and the error that a client would see.
#[derive(Clone, Debug)]
pub struct Failure {
    pub kind: Kind,
    pub error: Error,
}

impl Failure {
    pub(crate) fn io(peer: &str, e: &io::Error) -> Failure {
        use io::ErrorKind::*;
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
        Failure { kind, error: Error::new(ErrorCode::HostUnreachable, text) }
    }
    pub(crate) fn timed_out(peer: &str) -> Failure {
        let text = format!("Request to {peer} timed out");
        Failure { kind: Kind::TimedOut, error: Error::new(ErrorCode::NetworkTimeout, text) }
    }
    pub(crate) fn protocol(peer: &str, what: &str) -> Failure {
        let text = format!("Unexpected message from {peer}: {what}");
        Failure { kind: Kind::Protocol, error: Error::new(ErrorCode::ProtocolError, text) }
    }
    /// The error of a reply with `ok: 0`.
    pub(crate) fn of_reply(reply: &RawDoc) -> Failure {
        let code = reply.get("code").and_then(|v| v.as_i64()).unwrap_or(i64::from(ErrorCode::UnknownError.0));
        let text = reply.get("errmsg").and_then(|v| v.as_str()).unwrap_or_default().to_owned();
        let mut error = Error::location(code as i32, text);
        if let Some(labels) = reply.get("errorLabels").and_then(|v| v.as_array()) {
            error.labels.extend(labels.iter().filter_map(|e| e.value().as_str().map(str::to_owned)));
        }
        // What a client is told beside code and text.
        let mut extra = DocBuilder::new();
        for e in reply.iter().filter(|e| !OF_EVERY_REPLY.contains(&e.name())) {
            extra.value(e.name(), e.value());
        }
        let extra = extra.finish();
        if !extra.is_empty() {
            error = error.with_extra(extra.as_bytes().to_vec());
        }
        Failure { kind: Kind::Command, error }
    }
    pub fn code(&self) -> ErrorCode {
        self.error.code
    }
    /// The connection cannot be used any more.
    pub fn breaks_connection(&self) -> bool {
        self.kind != Kind::Command
    }
}

impl From<Failure> for Error {
    fn from(f: Failure) -> Error {
        f.error
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
    use pando_bson::doc;

    #[test]
    fn an_error_keeps_its_labels_and_what_is_said_beside_it() {
        let reply = doc! {
            "ok": 0.0, "errmsg": "stale", "code": 13388, "codeName": "StaleConfig", "ns": "a.b",
            "vReceived": { "e": 1 }, "errorLabels": ["TransientTransactionError"], "operationTime": 1
        };
        let f = Failure::of_reply(&reply.to_raw());
        assert_eq!((f.kind, f.error.code.0), (Kind::Command, 13388));
        assert_eq!(f.error.labels, ["TransientTransactionError"]);
        let extra = RawDoc::validate(&f.error.extra).unwrap();
        assert_eq!(extra.iter().map(|e| e.name().to_owned()).collect::<Vec<_>>(), ["ns", "vReceived"]);
    }
}
