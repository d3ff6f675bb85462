//! How members of a cluster prove to each other that they are: with a key of their keyfile or with a certificate. Both may change
//! while the process runs.
//!
//! ```text
//!   mode          shows           takes
//!   keyFile       key             keys
//!   sendKeyFile   key             keys, certificates
//!   sendX509      certificate     keys, certificates
//!   x509          certificate     certificates
//! ```
//! A set goes from one end to the other without a stop when all its members take each step before one of them takes the next.

mod keys;
mod salted;

pub use keys::{ClusterKeys, ReadsKeyfile};
use pando_base::panics::poisoned;
use pando_base::{Error, ErrorCode, Result};
pub use salted::SaltedKeys;
use std::sync::{Arc, RwLock};

/// `security.clusterAuthMode`: what a member proves itself with, and what it takes of others.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum ClusterAuthMode {
    /// Members do not log in to each other.
    #[default]
    Undefined,
    KeyFile,
    SendKeyFile,
    SendX509,
    X509,
}

impl ClusterAuthMode {
    const NAMED: [ClusterAuthMode; 4] = [
        ClusterAuthMode::KeyFile,
        ClusterAuthMode::SendKeyFile,
        ClusterAuthMode::SendX509,
        ClusterAuthMode::X509,
    ];

    pub fn of_name(name: &str) -> Option<ClusterAuthMode> {
        ClusterAuthMode::NAMED.into_iter().find(|mode| mode.name() == name)
    }
    pub fn name(self) -> &'static str {
        match self {
            ClusterAuthMode::Undefined => "undefined",
            ClusterAuthMode::KeyFile => "keyFile",
            ClusterAuthMode::SendKeyFile => "sendKeyFile",
            ClusterAuthMode::SendX509 => "sendX509",
            ClusterAuthMode::X509 => "x509",
        }
    }
    pub fn shows_certificate(self) -> bool {
        matches!(self, ClusterAuthMode::SendX509 | ClusterAuthMode::X509)
    }
    pub fn takes_certificates(self) -> bool {
        matches!(self, ClusterAuthMode::SendKeyFile | ClusterAuthMode::SendX509 | ClusterAuthMode::X509)
    }
    pub fn takes_keys(self) -> bool {
        self != ClusterAuthMode::X509
    }
    /// One step towards certificates, and none back: what a member shows has to be taken by all others.
    fn may_become(self, next: ClusterAuthMode) -> bool {
        next as u8 == self as u8 + 1
    }
}

/// What a member proves itself with on a new connection.
#[derive(Clone, Debug)]
pub enum Shown {
    Key(Arc<ClusterKeys>),
    Certificate,
}

/// Of one process.
#[derive(Debug, Default)]
pub struct ClusterAuth {
    mode: RwLock<ClusterAuthMode>,
    keys: Option<Arc<ClusterKeys>>,
}

impl ClusterAuth {
    pub fn new(mode: ClusterAuthMode, keys: Option<ClusterKeys>) -> ClusterAuth {
        ClusterAuth { mode: RwLock::new(mode), keys: keys.map(Arc::new) }
    }
    pub fn mode(&self) -> ClusterAuthMode {
        *self.mode.read().unwrap_or_else(poisoned)
    }
    /// `None` where members do not log in to each other.
    pub fn shows(&self) -> Option<Shown> {
        match self.mode().shows_certificate() {
            true => Some(Shown::Certificate),
            false => self.keys.clone().map(Shown::Key),
        }
    }
    /// The keys that others may show.
    pub fn takes(&self) -> Option<&ClusterKeys> {
        self.keys.as_deref().filter(|_| self.mode().takes_keys())
    }
    pub fn keys(&self) -> Option<&ClusterKeys> {
        self.keys.as_deref()
    }

    /// `setParameter clusterAuthMode`: for connections from now on. Returns what the mode was. Certificates can only be shown where this server
    /// speaks TLS to others (`dials_tls`).
    pub fn set_mode(&self, name: &str, dials_tls: bool) -> Result<ClusterAuthMode> {
        let bad = |text: String| Err(Error::bad_value(text));
        let Some(next) = ClusterAuthMode::of_name(name) else {
            return bad(format!("Invalid clusterAuthMode '{name}'"));
        };
        if next.takes_certificates() && !dials_tls {
            return bad(
                "Illegal state transition for clusterAuthMode, need to enable SSL for outgoing connections"
                    .to_owned(),
            );
        }
        let mut mode = self.mode.write().unwrap_or_else(poisoned);
        if !mode.may_become(next) {
            let text = format!(
                "Illegal state transition for clusterAuthMode from '{}' to '{}'",
                mode.name(),
                next.name()
            );
            return Err(Error::new(ErrorCode(5_579_202), text));
        }
        Ok(std::mem::replace(&mut *mode, next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_running_server_goes_one_step_towards_certificates_at_a_time() {
        let auth = ClusterAuth::default();
        assert_eq!(auth.set_mode("sendKeyFile", false).unwrap_err().code, ErrorCode::BadValue);
        assert_eq!(auth.set_mode("foo", true).unwrap_err().message, "Invalid clusterAuthMode 'foo'");
        assert_eq!(auth.set_mode("sendKeyFile", true).unwrap_err().code.0, 5_579_202);
        assert_eq!(auth.set_mode("keyFile", false).unwrap().name(), "undefined");
        for refused in ["keyFile", "sendX509", "x509"] {
            assert_eq!(auth.set_mode(refused, true).unwrap_err().code.0, 5_579_202, "{refused}");
        }
        assert_eq!(auth.set_mode("keyFile", false).unwrap_err().code.0, 5_579_202);
        for (was, next) in [("keyFile", "sendKeyFile"), ("sendKeyFile", "sendX509"), ("sendX509", "x509")] {
            assert_eq!(auth.set_mode(next, true).unwrap().name(), was);
        }
        assert_eq!(auth.mode(), ClusterAuthMode::X509);
        assert_eq!(auth.set_mode("sendX509", true).unwrap_err().code.0, 5_579_202);
    }
}
