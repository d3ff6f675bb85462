//! What is told of logins: a line of the log, and an event of the audit log.
//!
//! ```text
//!   a login that succeeded ─► a line, an event        one that failed ─► an event, and a line unless there were many from there
//! ```
//! Whoever guesses passwords writes lines of the log as fast as it guesses. So many a minute are written of one address; the next one
//! says how many were left out before it. The audit log has all of them.

use crate::KeepsUsers;
use crate::login::peers_of;
use pando_audit::Event;
use pando_auth::UserName;
use pando_base::{Error, ErrorCode, Result};
use pando_command::Client;
use pando_env::Component;
use std::net::{IpAddr, Ipv4Addr};

/// Who tried, so far as it was said, and how.
pub(crate) struct Attempt<'a> {
    pub(crate) user: Option<&'a UserName>,
    pub(crate) mechanism: &'a str,
}

/// Ids of the lines: success, failure.
type Ids = (i32, i32);
pub(crate) const WITH_PASSWORD: Ids = (5_286_306, 5_286_307);
pub(crate) const BY_CERTIFICATE: Ids = (20_429, 20_428);

impl dyn KeepsUsers + '_ {
    /// Tells how a login ended. The client learns of `outcome` what its caller makes of it.
    pub(crate) async fn tell(&self, client: &Client, ids: Ids, attempt: &Attempt<'_>, outcome: &Result<()>) {
        let result = match outcome {
            Ok(()) => ErrorCode(0),
            Err(why) => told_as(why.code),
        };
        self.audit_login(client, attempt, result).await;
        let logins = self.logins();
        let left_out = match outcome {
            Ok(()) => 0,
            Err(_) => match logins.failed.note(address_of(client), client.env.clock.mono()) {
                Some(left_out) => left_out,
                None => return logins.counts.failures_not_logged.inc(),
            },
        };
        let (id, text) = match outcome {
            Ok(()) => (ids.0, "Successfully authenticated"),
            Err(_) => (ids.1, "Failed to authenticate"),
        };
        client.env.log.info(Component::Access, id, text, |a| {
            a.str("client", client.remote.as_deref().unwrap_or_default());
            if let Some(name) = attempt.user {
                a.str("mechanism", attempt.mechanism).str("user", &name.user).str("db", &name.db);
            }
            if let Err(why) = outcome {
                a.data("error", &why);
            }
            if left_out > 0 {
                a.u64("failuresLeftOut", u64::from(left_out));
            }
        });
    }

    /// A login that was begun and never ended: the client has begun another.
    pub(crate) async fn tell_abandoned(&self, client: &Client, user: &UserName, mechanism: &'static str) {
        let attempt = Attempt { user: Some(user), mechanism };
        self.audit_login(client, &attempt, ErrorCode::AuthenticationAbandoned).await;
    }

    /// A mechanism that this server does not speak.
    pub(crate) async fn tell_unavailable(&self, client: &Client, db: &str, mechanism: &str) {
        let nobody = UserName::new("", db);
        let attempt = Attempt { user: Some(&nobody), mechanism };
        self.audit_login(client, &attempt, ErrorCode::MechanismUnavailable).await;
    }

    async fn audit_login(&self, client: &Client, attempt: &Attempt<'_>, result: ErrorCode) {
        if client.instance.audit().is_none() {
            return;
        }
        // The roles of who has just logged in are part of the event; what cannot be read of them is its own error later.
        let _ = self.authority_of(client).await;
        let nobody = UserName::new("", "");
        let user = attempt.user.unwrap_or(&nobody);
        client.audit(|| Event::authenticate(user, attempt.mechanism, result));
    }
}

/// Logs out who is logged in for this database.
pub(crate) fn log_out(client: &Client, db: &str) {
    // Its roles are part of the event.
    let who = client.instance.audit().map(|log| (log, pando_audit::originator::Originator::who(client)));
    let left = client.login().leave(db);
    if let (Some((log, who)), Some(user)) = (who, left) {
        log.record(&who, &Event::logout(&format!("Explicit logout from {db}"), &user));
    }
}

/// Whatever made a login fail is one number to whoever reads the audit log.
fn told_as(code: ErrorCode) -> ErrorCode {
    match code {
        ErrorCode::MechanismUnavailable => code,
        _ => ErrorCode::AuthenticationFailed,
    }
}

/// Clients without an address share one.
pub(crate) fn address_of(client: &Client) -> IpAddr {
    peers_of(client).client.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED))
}

/// The error that a client is given for every failure.
pub(crate) fn failed() -> Error {
    Error::new(ErrorCode::AuthenticationFailed, "Authentication failed.")
}
