//! What TLS settles on a connection, and what a server asks of its certificates. The real one is the crate `tls`; a world
//! without it has plain connections only.

use crate::{BoxFuture, Log};
use pando_base::Millis;
use std::fmt;
use std::io;

/// `net.tls.mode`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub enum TlsMode {
    #[default]
    Disabled,
    /// Clients may; connections to other members do not.
    Allow,
    /// Clients may; connections to other members do.
    Prefer,
    /// Everybody does.
    Require,
}

impl TlsMode {
    pub const ALL: [TlsMode; 4] = [TlsMode::Disabled, TlsMode::Allow, TlsMode::Prefer, TlsMode::Require];
    /// MongoDB's name.
    pub fn name(self) -> &'static str {
        match self {
            TlsMode::Disabled => "disabled",
            TlsMode::Allow => "allowTLS",
            TlsMode::Prefer => "preferTLS",
            TlsMode::Require => "requireTLS",
        }
    }
    pub fn from_name(name: &str) -> Option<TlsMode> {
        TlsMode::ALL.into_iter().find(|m| m.name() == name)
    }
    /// Whether connections to other members use TLS.
    pub fn dials(self) -> bool {
        self >= TlsMode::Prefer
    }
    /// The only changes that a running server takes: upwards, one step at a time.
    pub fn may_become(self, next: TlsMode) -> bool {
        matches!((self, next), (TlsMode::Allow, TlsMode::Prefer) | (TlsMode::Prefer, TlsMode::Require))
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TlsVersion {
    V1_2,
    V1_3,
}

impl TlsVersion {
    /// As logs and statistics name it.
    pub fn name(self) -> &'static str {
        match self {
            TlsVersion::V1_2 => "1.2",
            TlsVersion::V1_3 => "1.3",
        }
    }
}

/// What a handshake settled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Secured {
    pub version: TlsVersion,
    /// The host name that the client asked for.
    pub server_name: Option<String>,
    pub peer: Peer,
    /// The log is to name the version (`--tlsLogVersions`).
    pub log_version: bool,
}

/// Who is at the other end, as far as its certificate says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Peer {
    /// Nobody asked for a certificate.
    NotAsked,
    /// It was asked and showed none.
    None,
    /// Its certificate is good: the subject as RFC 2253 spells it.
    Proven(String),
    /// Its certificate is not good and let pass (`--tlsAllowInvalidCertificates`): it stands for nobody. Why it is not good.
    Unproven(String),
}

/// What the first bytes of a connection are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum First {
    Tls,
    Plain,
    /// Too few to tell.
    Unknown,
}

impl First {
    /// A record of TLS that carries a handshake begins with these two bytes, and so may the length of a message. The message says
    /// what it is in its fourth word, where a handshake has random bytes.
    pub fn of(bytes: &[u8]) -> First {
        const RECORD: [u8; 2] = [0x16, 0x03];
        const HEADER: usize = 16;
        if !bytes.starts_with(&RECORD[..bytes.len().min(2)]) {
            return First::Plain;
        }
        let Some(header) = bytes.first_chunk::<HEADER>() else { return First::Unknown };
        let word =
            |at: usize| i32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let request = matches!(word(8), 0 | -1) && matches!(word(12), 1 | 2001..=2013);
        if request { First::Plain } else { First::Tls }
    }
}

/// A handshake that failed, in words. The process at the other end is alive: it spoke.
#[derive(Debug)]
pub struct HandshakeFailed(pub String);

impl HandshakeFailed {
    pub fn error(text: impl Into<String>) -> io::Error {
        io::Error::other(HandshakeFailed(text.into()))
    }
    /// The words, if that is what an error is.
    pub fn in_error(e: &io::Error) -> Option<&str> {
        e.get_ref()?.downcast_ref::<HandshakeFailed>().map(|f| f.0.as_str())
    }
}

impl fmt::Display for HandshakeFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for HandshakeFailed {}

/// A server's own certificate, as statistics show it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OwnCertificate {
    /// RFC 2253.
    pub subject: String,
    pub has_authority: bool,
    pub expires_ms: Millis,
}

/// The certificates of a server that speaks TLS.
pub trait Certificates: Send + Sync {
    fn mode(&self) -> TlsMode;
    /// For connections from now on.
    fn set_mode(&self, mode: TlsMode);
    fn own(&self) -> OwnCertificate;
    /// Handshakes that failed: of those that connected, and of those that were dialed.
    fn failed(&self) -> (u64, u64);
    /// Reads all files again; connections from now on use them. What cannot be used changes nothing, and is told to the log.
    fn rotate(&self, log: &Log) -> BoxFuture<'_, Result<(), pando_base::Error>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handshake_is_told_from_a_message_whose_length_begins_like_one() {
        assert_eq!(First::of(&[]), First::Unknown);
        assert_eq!(First::of(&[0x16]), First::Unknown);
        assert_eq!(First::of(&[0x16, 3, 1, 2, 0, 1]), First::Unknown);
        assert_eq!(First::of(&[0x17]), First::Plain);
        assert_eq!(First::of(b"GET / HTTP/1.1"), First::Plain);
        let mut hello = vec![0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3];
        hello.extend([0xa5; 40]);
        assert_eq!(First::of(&hello), First::Tls);
        let mut message = vec![0x16, 3, 1, 0, 7, 0, 0, 0, 0, 0, 0, 0];
        message.extend(2013i32.to_le_bytes());
        assert_eq!(First::of(&message), First::Plain);
    }

    #[test]
    fn a_running_server_takes_one_step_upwards() {
        use TlsMode::*;
        let allowed = |a: TlsMode| TlsMode::ALL.into_iter().filter(|b| a.may_become(*b)).collect::<Vec<_>>();
        assert_eq!(TlsMode::ALL.map(allowed), [vec![], vec![Prefer], vec![Require], vec![]]);
        assert_eq!(TlsMode::from_name("preferTLS"), Some(Prefer));
        assert_eq!(TlsMode::ALL.map(TlsMode::dials), [false, false, true, true]);
    }
}
