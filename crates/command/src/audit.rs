//! The audit log as requests meet it: whose client asks, and whether it was allowed to.
//!
//! ```text
//!   pipeline: allowed ─► authCheck 0, where auditAuthorizationSuccess says so      any answer 13 ─► authCheck 13
//!   client: first hello ─► clientMetadata      leaves while logged in ─► logout      leaves in the middle of a login ─► authenticate 337
//! ```
//! Without an audit log each of these is one look at whether there is one.

use crate::client::Client;
use crate::params::Param;
use crate::request::Request;
use crate::secrets;
use crate::spec::Flags;
use pando_audit::originator::Originator;
use pando_audit::{AuditLog, Event, Place, Who};
use pando_base::limits::AUDIT_ARGS_BYTES_MAX;
use pando_base::{ErrorCode, Uuid};
use pando_bson::{DocBuf, DocBuilder, RawDoc};

const DISCONNECTED: &str = "Implicit logout due to client connection closure";

impl Client {
    /// Records what this client has caused. `event` is made where there is an audit log.
    pub fn audit(&self, event: impl FnOnce() -> Event) {
        if let Some(log) = self.instance.audit() {
            log.record(&self.who(), &event());
        }
    }
    /// The connection is over: so is what was begun on it.
    pub fn left(&self) {
        if self.instance.audit().is_none() {
            return;
        }
        let (user, abandoned) = {
            let mut login = self.login();
            (login.user().map(|u| u.name.clone()), login.give_up())
        };
        if let Some((name, mechanism)) = abandoned {
            self.audit(|| Event::authenticate(&name, mechanism.name(), ErrorCode::AuthenticationAbandoned));
        }
        if let Some(user) = user {
            self.audit(|| Event::logout(DISCONNECTED, &user));
            self.login().forget();
        }
    }
    /// The name of the connection among events.
    fn audited_as(&self) -> Uuid {
        *self.audited_as.get_or_init(|| {
            let mut bytes = [0; 16];
            self.env.rng.fill(&mut bytes);
            Uuid::from_random(bytes)
        })
    }
}

impl Originator for Client {
    fn who(&self) -> Who {
        let asks = self.asks_for();
        let (user, roles) = asks.map(|asks| (asks.user, asks.roles)).unzip();
        Who {
            connection: self.audited_as(),
            local: Place::of(self.local.as_deref()),
            remote: Place::of(self.remote.as_deref()),
            user,
            roles: roles.unwrap_or_default(),
        }
    }
}

/// A command was allowed. What members ask each other is not told.
pub(crate) fn allowed(client: &Client, flags: Flags, req: &Request<'_>) {
    let Some(log) = client.instance.audit() else { return };
    if client.instance.params.bool(Param::auditAuthorizationSuccess) && client.is_connection() {
        let who = client.who();
        if who.user.as_ref().is_none_or(|user| !user.is_system()) {
            log.record(&who, &check_of(log, flags, req, ErrorCode(0)));
        }
    }
}

/// Somebody was told that it may not do this.
pub(crate) fn refused(client: &Client, flags: Flags, req: &Request<'_>) {
    if let Some(log) = client.instance.audit().filter(|_| client.is_connection()) {
        log.record(&client.who(), &check_of(log, flags, req, ErrorCode::Unauthorized));
    }
}

fn check_of(log: &AuditLog, flags: Flags, req: &Request<'_>, result: ErrorCode) -> Event {
    let shown = secrets::shown(req.name, flags, req.db, req.body);
    let ns = match secrets::shown_name(&shown) {
        Some(name) if !flags.has(Flags::NAMES_NOTHING) && !is_of_principals(req.name) => {
            format!("{}.{name}", req.db)
        }
        _ => req.db.to_owned(),
    };
    Event::auth_check(req.name, &ns, &args_of(log, &shown, flags, req), result)
}

/// What it names first is a user or a role.
fn is_of_principals(name: &str) -> bool {
    name.contains("User")
        || name.contains("Role")
        || name.starts_with("usersInfo")
        || name.starts_with("rolesInfo")
}

/// The command as it came, with its sequences, but for secrets and for what goes beyond the bound.
fn args_of(log: &AuditLog, shown: &RawDoc, flags: Flags, req: &Request<'_>) -> DocBuf {
    let mut args = DocBuilder::with_capacity(shown.byte_len());
    let mut left_out = 0;
    for e in shown {
        match args.byte_len() + e.data().len() <= AUDIT_ARGS_BYTES_MAX {
            true => {
                args.elem(e);
            }
            false => left_out += e.data().len(),
        }
    }
    for sequence in
        req.sequences.iter().filter(|_| secrets::shows_documents(req.name, flags, req.db, req.body))
    {
        match args.byte_len() + sequence.bytes.len() <= AUDIT_ARGS_BYTES_MAX {
            true => {
                args.array(sequence.name, |a| {
                    for doc in sequence.docs() {
                        a.raw_doc(doc);
                    }
                });
            }
            false => left_out += sequence.bytes.len(),
        }
    }
    if left_out > 0 {
        log.truncated.inc();
        args.i64("$truncated", left_out as i64);
    }
    args.finish()
}
