//! Logins by the certificate that a connection's TLS handshake has shown (MONGODB-X509).

use crate::KeepsUsers;
use crate::told::{self, Attempt};
use pando_auth::certificate::{EXTERNAL, X509};
use pando_auth::login::{LoggedIn, Way};
use pando_auth::{SYSTEM_USER, UserName};
use pando_base::{Error, ErrorCode, Result};
use pando_command::Client;
use pando_env::tls::Peer;

impl dyn KeepsUsers + '_ {
    /// Logs the client in as the user that its certificate names, who is returned. `user` is whom it says it is.
    pub(crate) async fn log_in_by_certificate(
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
        let logins = self.logins();
        let of_member = subject.is_some_and(|subject| logins.is_members(subject));
        logins.counts.began_by_certificate(speculative, of_member);
        let done = match subject_of(subject, db, user) {
            Ok(subject) => self.admit_subject(client, subject, speculative).await,
            Err(why) => Err(why),
        };
        let attempt = Attempt { user: Some(&shown), mechanism: X509 };
        self.tell(client, told::BY_CERTIFICATE, &attempt, &done).await;
        done.map(|()| shown)
    }

    /// A member, where members log in so; else a user of `$external`.
    async fn admit_subject(&self, client: &Client, subject: &str, speculative: bool) -> Result<()> {
        let (by, logins) = (Way::Certificate, self.logins());
        let user = if logins.is_members(subject) {
            if !logins.cluster_auth.mode().takes_certificates() {
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
            let Some(known) = self.user(&name).await? else {
                let text = format!("Could not find user \"{subject}\" for db \"{EXTERNAL}\"");
                return Err(Error::new(ErrorCode::UserNotFound, text));
            };
            let user = LoggedIn { name, id: known.id, by, speculative };
            self.check_admission(client, &user).await?;
            user
        };
        let of_member = user.name.is_system();
        client.login().admit(user)?;
        logins.counts.succeeded_by_certificate(speculative, of_member);
        Ok(())
    }
}

fn subject_of<'s>(subject: Option<&'s str>, db: &str, user: Option<&str>) -> Result<&'s str> {
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
