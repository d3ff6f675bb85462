//! The one user of a set whose members ask for logins, and how a client logs in as it.

use crate::client::Client;
use pando_auth::scram;
use pando_auth::{Mechanism, Password, SaltedKeys};
use pando_bson::{Binary, Bson, Document, RawDoc, Value, doc};
use std::io;
use std::sync::{Arc, OnceLock};

const USER: &str = "sim";
const PASSWORD: &str = "of the simulation";
/// What members prove themselves to each other with.
pub(crate) const KEYFILE: &str = "a2V5IG9mIHRoZSBzaW11bGF0aW9u";
/// Of hashing, the fewest that a server takes: logins are many, and what they cost is not what is looked at.
pub(crate) const ITERATIONS: &str = "5000";
/// Of a refusal for want of a login.
const UNAUTHORIZED: i64 = 13;

/// The first command of whoever is on the same machine: from then on everybody logs in.
pub(crate) fn create_user() -> Document {
    let mut body = doc! { "createUser": USER, "pwd": PASSWORD };
    body.push("roles", Bson::Array(vec!["__system".into()]));
    body.push("writeConcern", doc! { "w": "majority" });
    body.push("$db", "admin");
    body
}

pub(crate) fn is_asked_for(reply: &RawDoc) -> bool {
    reply.get("code").and_then(|v| v.as_i64()) == Some(UNAUTHORIZED)
}

/// Whether the server let it in: a member that has not got the user yet does not.
pub(crate) async fn run(client: &mut Client) -> io::Result<bool> {
    static SALTED: OnceLock<Arc<SaltedKeys>> = OnceLock::new();
    let (scram, first) =
        scram::Client::start(Mechanism::ScramSha256, USER, Password::new(PASSWORD), &client.nonce());
    let mut scram = scram.keeping(SALTED.get_or_init(Arc::default).clone());
    let mut start = doc! { "saslStart": 1, "mechanism": "SCRAM-SHA-256" };
    start.push("payload", binary(first));
    start.push("options", doc! { "skipEmptyExchange": true });
    start.push("$db", "admin");
    let challenge = client.run(&start.to_raw()).await?;
    let Some(payload) = payload_of(&challenge) else { return Ok(false) };
    let proof = scram.prove(payload).map_err(|e| io::Error::other(e.to_string()))?;
    let mut on = doc! { "saslContinue": 1, "conversationId": 1 };
    on.push("payload", binary(proof));
    on.push("$db", "admin");
    let last = client.run(&on.to_raw()).await?;
    let Some(payload) = payload_of(&last) else { return Ok(false) };
    Ok(scram.verify(payload).is_ok())
}

fn binary(bytes: Vec<u8>) -> Bson {
    Bson::Binary(Binary { subtype: 0, bytes })
}
fn payload_of(reply: &RawDoc) -> Option<&[u8]> {
    match reply.get("payload") {
        Some(Value::Binary { bytes, .. }) => Some(bytes),
        _ => None,
    }
}
