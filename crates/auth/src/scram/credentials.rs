//! What a server keeps of a password.

use super::digest::{Key, hash, hmac, salted};
use crate::{Mechanism, Password};
use md5::{Digest, Md5};
use pando_base::limits::{SCRAM_ITERATIONS_MAX, SCRAM_SALT_BYTES_MAX};
use pando_base::{Error, ErrorCode, Result};
use pando_bson::extjson::{base64, unbase64};
use pando_bson::{Bson, Document, doc};

/// A user's credentials in one mechanism, as `credentials.<mechanism>` of a user's document holds them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Credentials {
    pub(crate) iterations: u32,
    pub(crate) salt: Vec<u8>,
    pub(crate) stored_key: Key,
    pub(crate) server_key: Key,
}

impl Credentials {
    /// Of a password, with a salt that is new ([`Mechanism::salt_size`] bytes of chance). Takes milliseconds, on purpose.
    pub fn of_password(
        mechanism: Mechanism,
        user: &str,
        password: &Password,
        salt: &[u8],
        iterations: u32,
    ) -> Result<Credentials> {
        let salted = salted_password(mechanism, user, password, salt, iterations)?;
        Ok(Credentials::of_salted(mechanism, &salted, salt, iterations))
    }

    /// Of what older clients made of user and password before they sent it (`digestPassword: false`): SCRAM-SHA-1 alone takes it.
    pub fn of_digest(digest: &Password, salt: &[u8], iterations: u32) -> Credentials {
        let mechanism = Mechanism::ScramSha1;
        let salted = salted(mechanism, digest.text().as_bytes(), salt, iterations);
        Credentials::of_salted(mechanism, &salted, salt, iterations)
    }

    pub(crate) fn of_salted(mechanism: Mechanism, salted: &Key, salt: &[u8], iterations: u32) -> Credentials {
        Credentials {
            iterations,
            salt: salt.to_vec(),
            stored_key: hash(mechanism, client_key(mechanism, salted).bytes()),
            server_key: server_key(mechanism, salted),
        }
    }

    /// `{iterationCount: <int>, salt: <base64>, storedKey: <base64>, serverKey: <base64>}`
    pub fn document(&self) -> Document {
        doc! {
            "iterationCount": self.iterations.min(i32::MAX as u32) as i32,
            "salt": base64(&self.salt),
            "storedKey": base64(self.stored_key.bytes()),
            "serverKey": base64(self.server_key.bytes()),
        }
    }

    /// The reverse of [`Credentials::document`]; `None` for what is no such document.
    pub fn of_document(mechanism: Mechanism, d: &Document) -> Option<Credentials> {
        let bytes = |name: &str| d.get(name).and_then(Bson::as_str).and_then(unbase64);
        let iterations = d.get("iterationCount").and_then(|n| n.as_i64())?;
        let iterations = u32::try_from(iterations).ok().filter(|n| (1..=SCRAM_ITERATIONS_MAX).contains(n))?;
        Some(Credentials {
            iterations,
            salt: bytes("salt").filter(|s| !s.is_empty() && s.len() <= SCRAM_SALT_BYTES_MAX)?,
            stored_key: Key::of_bytes(mechanism, &bytes("storedKey")?)?,
            server_key: Key::of_bytes(mechanism, &bytes("serverKey")?)?,
        })
    }
}

/// A secret from which the credentials of users that are not there are made: the same for a name as long as the secret is, and nobody's
/// password.
#[derive(Clone, Debug)]
pub struct Decoy {
    secret: Key,
}

impl Decoy {
    /// Of 32 bytes of chance.
    pub fn new(secret: &[u8; 32]) -> Decoy {
        Decoy { secret: hash(Mechanism::ScramSha256, secret) }
    }

    /// What a user of that name would be challenged with.
    pub(crate) fn credentials(
        &self,
        mechanism: Mechanism,
        user: &str,
        db: &str,
        iterations: u32,
    ) -> Credentials {
        let of = |what: &str| {
            let name = format!("{what}\0{}\0{db}\0{user}", mechanism.name());
            hmac(Mechanism::ScramSha256, self.secret.bytes(), name.as_bytes())
        };
        let key = |what: &str| hash(mechanism, of(what).bytes());
        Credentials {
            iterations,
            salt: of("salt").bytes()[..mechanism.salt_size()].to_vec(),
            stored_key: key("stored"),
            server_key: key("server"),
        }
    }
}

/// The password as each mechanism hashes it: SCRAM-SHA-1 takes a digest of user and password that older clients sent, SCRAM-SHA-256 the
/// password in the normal form of RFC 4013.
pub(crate) fn salted_password(
    mechanism: Mechanism,
    user: &str,
    password: &Password,
    salt: &[u8],
    iterations: u32,
) -> Result<Key> {
    match mechanism {
        Mechanism::ScramSha1 => {
            let digest = Md5::digest(format!("{user}:mongo:{}", password.text()));
            let hex: String = digest.iter().map(|b| format!("{b:02x}")).collect();
            Ok(salted(mechanism, hex.as_bytes(), salt, iterations))
        }
        Mechanism::ScramSha256 => {
            let prepared = stringprep::saslprep(password.text()).map_err(|e| {
                Error::new(ErrorCode::BadValue, format!("Error preflighting UTF-8 password: {e}"))
            })?;
            Ok(salted(mechanism, prepared.as_bytes(), salt, iterations))
        }
    }
}

pub(crate) fn client_key(mechanism: Mechanism, salted: &Key) -> Key {
    hmac(mechanism, salted.bytes(), b"Client Key")
}
pub(crate) fn server_key(mechanism: Mechanism, salted: &Key) -> Key {
    hmac(mechanism, salted.bytes(), b"Server Key")
}
