//! As whom a connection logs in.

use pando_auth::{ClusterAuth, Mechanism, Password};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub enum LoginAs {
    /// As a member, if members do.
    Member(Arc<ClusterAuth>),
    User(Arc<UserLogin>),
}

impl Default for LoginAs {
    fn default() -> LoginAs {
        LoginAs::Member(Arc::default())
    }
}

/// A user of the command line.
#[derive(Debug)]
pub struct UserLogin {
    pub name: String,
    /// Where the user was created.
    pub db: String,
    pub by: By,
}

impl UserLogin {
    pub(crate) fn password(&self) -> Password {
        match &self.by {
            By::Password(password, _) => password.clone(),
            By::Certificate => Password::new(""),
        }
    }
    pub(crate) fn mechanism(&self) -> Option<Mechanism> {
        match &self.by {
            By::Password(_, mechanism) => *mechanism,
            By::Certificate => None,
        }
    }
}

#[derive(Debug)]
pub enum By {
    /// With this mechanism, or the best one that the user has.
    Password(Password, Option<Mechanism>),
    /// That of the TLS handshake.
    Certificate,
}
