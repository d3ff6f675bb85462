//! Logins with a password: the conversation of a connection, from the first message to the user that the connection then has.
//!
//! Whoever talks to the server learns that it failed, and nothing else; the log says why. What is kept of a user is read twice, when the
//! conversation begins and when it has ended: who was dropped meanwhile, or may not log in from there, is not let in.

use crate::told::{self, Attempt};
use crate::{KeepsUsers, Logins};
use pando_auth::login::{Begun, Failed, LoggedIn, Step, Way};
use pando_auth::scram::{Answer, ClientFirst, Credentials, NONCE};
use pando_auth::{Mechanism, Peers, Proof, User, UserName};
use pando_base::{Error, ErrorCode, Result};
use pando_command::{Client, Param};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// A first message, and what goes with it.
pub struct First<'a> {
    pub db: &'a str,
    pub mechanism: Mechanism,
    pub payload: &'a [u8],
    pub in_text: bool,
    pub skips_empty: bool,
    /// Sent along with a `hello`.
    pub speculative: bool,
}

impl dyn KeepsUsers + '_ {
    /// Begins a conversation.
    pub(crate) async fn begin_login(&self, client: &Client, first: &First<'_>) -> Result<Answer> {
        let abandoned = client.login().give_up();
        if let Some((name, mechanism)) = abandoned {
            self.tell_abandoned(client, &name, mechanism.name()).await;
        }
        let mechanism = first.mechanism.name();
        let message = match ClientFirst::parse(first.payload) {
            Ok(message) => message,
            Err(why) => return Err(self.failed(client, None, mechanism, why).await),
        };
        let name = UserName::new(message.user.as_str(), first.db);
        let known = match name.is_system() {
            // Nobody keeps it.
            true => None,
            false => match self.user(&name).await {
                Ok(known) => known,
                Err(why) => return Err(self.failed(client, Some(&name), mechanism, why).await),
            },
        };
        if first.speculative
            && let Some(Proof::Password(each)) = known.as_ref().map(|u| &u.proof)
            && !each.contains_key(&first.mechanism)
        {
            // A driver guesses before it knows what the user has, which the same answer tells it. A challenge beside that would be taken up.
            return Err(Error::new(ErrorCode::AuthenticationFailed, "Authentication failed."));
        }
        self.logins().counts.began(first.mechanism, first.speculative, name.is_system());
        let iterations = client.instance.params.int(iterations_of(first.mechanism)) as u32;
        let mut chance = [0; NONCE];
        client.env.rng.fill(&mut chance);
        let id = known.as_ref().and_then(|u| u.id);
        let (found, others) = match name.is_system() {
            true => self.logins().credentials_of_members(client, first.mechanism, iterations),
            false => (credentials(known.as_ref(), &name, first.mechanism), Vec::new()),
        };
        let answer = client.login().begin(
            Begun {
                name,
                id,
                mechanism: first.mechanism,
                first: message,
                found,
                others,
                speculative: first.speculative,
                skips_empty: first.skips_empty,
                in_text: first.in_text,
            },
            &self.logins().decoy,
            iterations,
            &chance,
        );
        Ok(answer)
    }

    /// What the client is told, once the log has been told more.
    async fn failed(&self, client: &Client, user: Option<&UserName>, mechanism: &str, why: Error) -> Error {
        self.tell(client, told::WITH_PASSWORD, &Attempt { user, mechanism }, &Err(why)).await;
        told::failed()
    }

    /// Goes on with the conversation. Returns what to send, and whether as text.
    pub(crate) async fn continue_login(
        &self,
        client: &Client,
        number: i32,
        payload: &[u8],
    ) -> Result<(Answer, bool)> {
        let stepped = client.login().step(number, payload);
        match stepped {
            Ok(Step { answer, in_text, proven: None }) => Ok((answer, in_text)),
            Ok(Step { answer, in_text, proven: Some(user) }) => {
                self.admit(client, user).await?;
                Ok((answer, in_text))
            }
            Err(Failed { about: None, why }) => Err(why),
            Err(Failed { about, why }) => {
                let mechanism = about.as_ref().map_or("", |(_, m)| m.name());
                Err(self.failed(client, about.as_ref().map(|(name, _)| name), mechanism, why).await)
            }
        }
    }

    async fn admit(&self, client: &Client, user: LoggedIn) -> Result<()> {
        let about = (user.name.clone(), user.by.name());
        let checked = match user.name.is_system() {
            true => Ok(()),
            false => self.check_admission(client, &user).await,
        };
        if let Err(why) = checked {
            return Err(self.failed(client, Some(&about.0), about.1, why).await);
        }
        let (speculative, by) = (user.speculative, user.by);
        client.login().admit(user)?;
        if let Way::Password(mechanism) = by {
            self.logins().counts.succeeded(mechanism, speculative, about.0.is_system());
        }
        let attempt = Attempt { user: Some(&about.0), mechanism: about.1 };
        self.tell(client, told::WITH_PASSWORD, &attempt, &Ok(())).await;
        Ok(())
    }

    /// The user is still there, and may come from where it comes.
    pub(crate) async fn check_admission(&self, client: &Client, user: &LoggedIn) -> Result<()> {
        let unmet = || {
            let text = "The user's restrictions do not allow a login from there";
            Error::new(ErrorCode::AuthenticationFailed, text)
        };
        let (known, resolved) = self.logged_in(user).await?.ok_or_else(|| not_found(&user.name))?;
        let peers = peers_of(client);
        let roles_agree = resolved.restrictions.iter().all(|r| r.are_met(peers));
        if known.restrictions.are_met(peers) && roles_agree { Ok(()) } else { Err(unmet()) }
    }
}

impl Logins {
    /// How long a login waits before it begins, for what has failed from there before.
    pub(crate) fn pause(&self, client: &Client) -> Duration {
        self.failed.pause(told::address_of(client), client.env.clock.mono())
    }

    /// What members prove themselves with: one of the keyfile's keys.
    fn credentials_of_members(
        &self,
        client: &Client,
        mechanism: Mechanism,
        iterations: u32,
    ) -> (Result<Credentials>, Vec<Credentials>) {
        let mut salt = [0; 28];
        client.env.rng.fill(&mut salt);
        let none =
            || Error::new(ErrorCode::AuthenticationFailed, "This server was started without a keyfile");
        let accepted = match self.cluster_auth.takes() {
            Some(keys) => keys.accepted(mechanism, &salt, iterations),
            None => Err(none()),
        };
        match accepted {
            Err(why) => (Err(why), Vec::new()),
            Ok(all) => match all.split_first() {
                Some((first, others)) => (Ok(first.clone()), others.to_vec()),
                None => (Err(none()), Vec::new()),
            },
        }
    }
}

/// The parameter that says how often a new password is hashed.
pub fn iterations_of(mechanism: Mechanism) -> Param {
    match mechanism {
        Mechanism::ScramSha1 => Param::scramIterationCount,
        Mechanism::ScramSha256 => Param::scramSHA256IterationCount,
    }
}

fn credentials(known: Option<&User>, name: &UserName, mechanism: Mechanism) -> Result<Credentials> {
    match known.map(|u| &u.proof) {
        Some(Proof::Password(each)) => each.get(&mechanism).cloned().ok_or_else(|| {
            let text = format!(
                "Unable to use {} based authentication for user without any {} credentials registered",
                mechanism.name(),
                mechanism.name()
            );
            Error::new(ErrorCode::AuthenticationFailed, text)
        }),
        _ => Err(not_found(name)),
    }
}

fn not_found(name: &UserName) -> Error {
    let text = format!("Could not find user \"{}\" for db \"{}\"", name.user, name.db);
    Error::new(ErrorCode::AuthenticationFailed, text)
}

/// Where a connection is from, and where it came in.
pub fn peers_of(client: &Client) -> Peers {
    let address = |text: Option<&str>| -> Option<IpAddr> { Some(text?.parse::<SocketAddr>().ok()?.ip()) };
    Peers { client: address(client.remote.as_deref()), server: address(client.local.as_deref()) }
}

/// Whether a client is on the same machine.
pub fn is_local(client: &Client) -> bool {
    match client.remote.as_deref().map(str::parse::<SocketAddr>) {
        Some(Ok(at)) => at.ip().to_canonical().is_loopback(),
        // A socket in the file system.
        Some(Err(_)) => true,
        None => false,
    }
}
