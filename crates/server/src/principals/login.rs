//! Logins with a password: the conversation of a connection, from the first message to the user that the connection then has.
//!
//! Whoever talks to the server learns that it failed, and nothing else; the log says why. What is kept of a user is read twice, when the
//! conversation begins and when it has ended: who was dropped meanwhile, or may not log in from there, is not let in.

use super::Principals;
use super::told::{self, Attempt};
use pando_auth::login::{Begun, Failed, LoggedIn, Step, Way};
use pando_auth::roles::Resolved;
use pando_auth::scram::{Answer, ClientFirst, Credentials, NONCE};
use pando_auth::{Mechanism, Peers, Proof, User, UserName};
use pando_base::{Error, ErrorCode, Result};
use pando_command::{Client, Param};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// A first message, and what goes with it.
pub(crate) struct First<'a> {
    pub(crate) db: &'a str,
    pub(crate) mechanism: Mechanism,
    pub(crate) payload: &'a [u8],
    pub(crate) in_text: bool,
    pub(crate) skips_empty: bool,
    /// Sent along with a `hello`.
    pub(crate) speculative: bool,
}

impl Principals {
    /// Begins a conversation.
    pub(crate) fn begin_login(&self, client: &Client, first: &First<'_>) -> Result<Answer> {
        let abandoned = client.login().give_up();
        if let Some((name, mechanism)) = abandoned {
            self.tell_abandoned(client, &name, mechanism.name());
        }
        let begun = ClientFirst::parse(first.payload).map_err(|why| (None, why)).and_then(|message| {
            let name = UserName::new(message.user.as_str(), first.db);
            let known = self.user(&name).map_err(|why| (Some(name.clone()), why))?;
            Ok((message, name, known))
        });
        let (message, name, known) = match begun {
            Ok(begun) => begun,
            Err((name, why)) => {
                return Err(self.failed(client, name.as_ref(), first.mechanism.name(), why));
            }
        };
        if first.speculative
            && let Some(Proof::Password(each)) = known.as_ref().map(|u| &u.proof)
            && !each.contains_key(&first.mechanism)
        {
            // A driver guesses before it knows what the user has, which the same answer tells it. A challenge beside that would be taken up.
            return Err(Error::new(ErrorCode::AuthenticationFailed, "Authentication failed."));
        }
        self.counts.began(first.mechanism, first.speculative, name.is_system());
        let iterations = client.instance.params.int(iterations_of(first.mechanism)) as u32;
        let mut chance = [0; NONCE];
        client.env.rng.fill(&mut chance);
        let id = known.as_ref().and_then(|u| u.id);
        let (found, others) = match name.is_system() {
            true => self.credentials_of_members(client, first.mechanism, iterations),
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
            &self.decoy,
            iterations,
            &chance,
        );
        Ok(answer)
    }

    /// What the client is told, once the log has been told more.
    fn failed(&self, client: &Client, user: Option<&UserName>, mechanism: &str, why: Error) -> Error {
        self.tell(client, told::WITH_PASSWORD, &Attempt { user, mechanism }, &Err(why));
        told::failed()
    }

    /// How long a login waits before it begins, for what has failed from there before.
    pub(crate) fn pause(&self, client: &Client) -> Duration {
        self.failed.pause(told::address_of(client), client.env.clock.mono())
    }

    /// Goes on with the conversation. Returns what to send, and whether as text.
    pub(crate) fn continue_login(
        &self,
        client: &Client,
        number: i32,
        payload: &[u8],
    ) -> Result<(Answer, bool)> {
        let stepped = client.login().step(number, payload);
        match stepped {
            Ok(Step { answer, in_text, proven: None }) => Ok((answer, in_text)),
            Ok(Step { answer, in_text, proven: Some(user) }) => {
                self.admit(client, user)?;
                Ok((answer, in_text))
            }
            Err(Failed { about: None, why }) => Err(why),
            Err(Failed { about, why }) => {
                let mechanism = about.as_ref().map_or("", |(_, m)| m.name());
                Err(self.failed(client, about.as_ref().map(|(name, _)| name), mechanism, why))
            }
        }
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
        let accepted = match self.config.cluster_auth.takes() {
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

    fn admit(&self, client: &Client, user: LoggedIn) -> Result<()> {
        let about = (user.name.clone(), user.by.name());
        let checked = match user.name.is_system() {
            true => Ok(()),
            false => self.check_admission(client, &user),
        };
        if let Err(why) = checked {
            return Err(self.failed(client, Some(&about.0), about.1, why));
        }
        let (speculative, by) = (user.speculative, user.by);
        client.login().admit(user)?;
        if let Way::Password(mechanism) = by {
            self.counts.succeeded(mechanism, speculative, about.0.is_system());
        }
        self.tell(
            client,
            told::WITH_PASSWORD,
            &Attempt { user: Some(&about.0), mechanism: about.1 },
            &Ok(()),
        );
        Ok(())
    }

    /// The user is still there, and may come from where it comes.
    pub(super) fn check_admission(&self, client: &Client, user: &LoggedIn) -> Result<()> {
        let unmet = || {
            let text = "The user's restrictions do not allow a login from there";
            Error::new(ErrorCode::AuthenticationFailed, text)
        };
        let (known, resolved) = self.logged_in(user)?.ok_or_else(|| not_found(&user.name))?;
        let peers = peers_of(client);
        let roles_agree = resolved.restrictions.iter().all(|r| r.are_met(peers));
        if known.restrictions.are_met(peers) && roles_agree { Ok(()) } else { Err(unmet()) }
    }

    /// The user that has logged in and what its roles come to now; `None` when it has been dropped.
    pub(crate) fn logged_in(&self, user: &LoggedIn) -> Result<Option<(User, Resolved)>> {
        let Some(known) = self.user(&user.name)?.filter(|known| known.id == user.id) else { return Ok(None) };
        let resolved = self.roles()?.resolve(&known.roles);
        Ok(Some((known, resolved)))
    }
}

pub(crate) fn iterations_of(mechanism: Mechanism) -> Param {
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

pub(super) fn peers_of(client: &Client) -> Peers {
    let address = |text: Option<&str>| -> Option<IpAddr> { Some(text?.parse::<SocketAddr>().ok()?.ip()) };
    Peers { client: address(client.remote.as_deref()), server: address(client.local.as_deref()) }
}
