//! How clients of a process log in, whoever keeps the users: a member of a set has them in its own data, a router asks its config servers.
//!
//! ```text
//!   saslStart, saslContinue, authenticate, hello ─► [`Logins`]: the conversation of a connection ─► its user
//!                                                     │  ▲
//!                              what is kept of a user ▼  │
//!                                                  [`KeepsUsers`]
//! ```
//! * [`login`] — with a password; [`certificate`] — with the certificate of the connection;
//! * [`failed_logins`] — who guesses is slowed down; [`told`] — what logs have of it; [`counts`] — what `serverStatus` has;
//! * [`commands`] — those that say the same on a server and on a router.

pub mod audit;
mod certificate;
pub mod commands;
mod counts;
mod failed_logins;
pub mod login;
pub mod modes;
pub mod sessions;
pub mod status;
mod told;

pub use login::{is_local, iterations_of, peers_of};

use counts::LoginCounts;
use failed_logins::FailedLogins;
use pando_auth::certificate::are_of_one_cluster;
use pando_auth::login::LoggedIn;
use pando_auth::roles::Resolved;
use pando_auth::scram::Decoy;
use pando_auth::{Authority, ClusterAuth, User, UserName};
use pando_base::Result;
use pando_command::Client;
use pando_env::tls::Certificates;
use pando_env::{BoxFuture, Env, Host};
use std::sync::Arc;

/// A node that can find out who there is.
pub trait KeepsUsers: Send + Sync {
    fn logins(&self) -> &Logins;
    /// The machine underneath.
    fn host(&self) -> &dyn Host;
    /// To find nobody takes as long as to find somebody.
    fn user<'a>(&'a self, name: &'a UserName) -> BoxFuture<'a, Result<Option<User>>>;
    /// The user that has logged in and what its roles come to now; `None` when it has been dropped.
    fn logged_in<'a>(&'a self, user: &'a LoggedIn) -> BoxFuture<'a, Result<Option<(User, Resolved)>>>;
    /// What a client may do now.
    fn authority_of<'a>(&'a self, client: &'a Client) -> BoxFuture<'a, Result<Arc<Authority>>>;
}

/// What a process knows of logins beside the users.
pub struct Logins {
    /// What users that are not there are challenged with.
    decoy: Decoy,
    failed: FailedLogins,
    pub counts: LoginCounts,
    pub cluster_auth: Arc<ClusterAuth>,
    pub certificates: Option<Arc<dyn Certificates>>,
}

impl Logins {
    pub fn new(
        env: &Env,
        cluster_auth: Arc<ClusterAuth>,
        certificates: Option<Arc<dyn Certificates>>,
    ) -> Logins {
        let mut secret = [0; 32];
        env.rng.fill(&mut secret);
        Logins {
            decoy: Decoy::new(&secret),
            failed: FailedLogins::default(),
            counts: LoginCounts::default(),
            cluster_auth,
            certificates,
        }
    }
    /// Whether a certificate of this subject is a member's.
    pub fn is_members(&self, subject: &str) -> bool {
        let own = self.certificates.as_ref().map(|c| c.own().subject);
        own.is_some_and(|own| are_of_one_cluster(&own, subject))
    }
}
