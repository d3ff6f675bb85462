//! Logins by the certificate that a connection's TLS handshake has shown (MONGODB-X509).

use super::Principals;
use super::told::{self, Attempt};
use pando_auth::certificate::{EXTERNAL, X509, are_of_one_cluster};
use pando_auth::login::{LoggedIn, Way};
use pando_auth::{SYSTEM_USER, UserName};
use pando_base::{Error, ErrorCode, Result};
use pando_command::Client;
use pando_env::tls::Peer;

impl Principals {
    /// Logs the client in as the user that its certificate names, who is returned. `user` is whom it says it is.
    pub(crate) fn log_in_by_certificate(
        &self,
        client: &Client,
        db: &str,
        user: Option<&str>,
        speculative: bool,
    ) -> Result<UserName> {
        let subject = match client.secured().map(|s| &s.peer) {
            Some(Peer::Proven(subject)) => Some(subject.as_str()),
            _ => None,
        };
        let shown = UserName::new(user.or(subject).unwrap_or_default(), db);
        let of_member = subject.is_some_and(|subject| self.is_members(subject));
        self.counts.began_by_certificate(speculative, of_member);
        let done = self
            .subject_of(subject, db, user)
            .and_then(|subject| self.admit_subject(client, subject, speculative));
        self.tell(client, told::BY_CERTIFICATE, &Attempt { user: Some(&shown), mechanism: X509 }, &done);
        done.map(|()| shown)
    }

    fn subject_of<'s>(&self, subject: Option<&'s str>, db: &str, user: Option<&str>) -> Result<&'s str> {
        let failed = |text: &'static str| Error::new(ErrorCode::AuthenticationFailed, text);
        if db != EXTERNAL {
            let text = "X.509 authentication must always use the $external database.";
            return Err(Error::new(ErrorCode::ProtocolError, text));
        }
        let subject = subject.ok_or_else(|| failed("No verified subject name available from client"))?;
        if user.is_some_and(|user| user != subject) {
            return Err(failed("There is no x.509 client certificate matching the user."));
        }
        Ok(subject)
    }

    /// A member, where members log in so; else a user of `$external`.
    fn admit_subject(&self, client: &Client, subject: &str, speculative: bool) -> Result<()> {
        let by = Way::Certificate;
        let user = if self.is_members(subject) {
            if !self.config.cluster_auth.mode().takes_certificates() {
                return Err(Error::new(
                    ErrorCode::AuthenticationFailed,
                    "The provided certificate can only be used for cluster authentication, not client authentication. \
                     The current configuration does not allow x.509 cluster authentication, check the --clusterAuthMode \
                     flag",
                ));
            }
            LoggedIn { name: UserName::new(SYSTEM_USER.0, SYSTEM_USER.1), id: None, by, speculative }
        } else {
            let name = UserName::new(subject, EXTERNAL);
            let Some(known) = self.user(&name)? else {
                let text = format!("Could not find user \"{subject}\" for db \"{EXTERNAL}\"");
                return Err(Error::new(ErrorCode::UserNotFound, text));
            };
            let user = LoggedIn { name, id: known.id, by, speculative };
            self.check_admission(client, &user)?;
            user
        };
        let of_member = user.name.is_system();
        client.login().admit(user)?;
        self.counts.succeeded_by_certificate(speculative, of_member);
        Ok(())
    }

    /// Whether a certificate of this subject is a member's.
    pub(crate) fn is_members(&self, subject: &str) -> bool {
        let own = self.config.certificates.as_ref().map(|c| c.own().subject);
        own.is_some_and(|own| are_of_one_cluster(&own, subject))
    }
}
