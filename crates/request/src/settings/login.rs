//! `saslStart` and `saslContinue`: a login in several messages.

use crate::declare::kinds::{Anything, Object, SafeBool, Text};
use crate::declare::{Kind, arguments, kind};
use pando_base::{Error, ErrorCode, Result};
use pando_bson::extjson::unbase64;
use pando_bson::shape::{Null, Shape};
use pando_bson::{Bson, DocBuilder, Value};

/// The number of a conversation.
#[derive(Debug)]
pub struct Conversation;
impl Kind for Conversation {
    type Of<'a> = i32;
    const SHAPE: Shape = Shape::Int;
    fn read(v: Value<'_>) -> Option<i32> {
        match v {
            Value::Int32(n) => Some(n),
            _ => None,
        }
    }
    fn spell(n: &i32, name: &str, b: &mut DocBuilder) {
        b.i32(name, *n);
    }
}

kind! {
    /// A message of a conversation, which is looked at among the other arguments.
    pub Payload like Anything { SHAPE: Shape::Checked { like: &[Shape::Word(&["YQ==", "YWI="])], check: check_payload }, NULL: Null::Value }
}
fn check_payload(_: &str, v: &Value<'_>) -> Result<()> {
    payload(v).map(drop)
}

arguments! {
    /// What `saslStart` asks for.
    pub struct SaslStartArgs of "saslStart" as "saslStart", refusing {
        "mechanism" mechanism: required Text,
        "payload" payload: required Payload,
        "autoAuthorize" auto_authorize: optional SafeBool,
        "options" options: optional Object,
    }
}
arguments! {
    /// What `saslContinue` goes on with.
    pub struct SaslContinueArgs of "saslContinue" as "saslContinue", refusing {
        "conversationId" conversation: required Conversation,
        "payload" payload: required Payload,
    }
}

arguments! {
    /// What `authenticate` asks for.
    pub struct AuthenticateArgs of "authenticate" as "authenticate", refusing {
        "mechanism" mechanism: required Text,
        "user" user: optional Text,
    }
}

/// A message of a conversation, and whether it came as text: then the answer goes as text, too.
pub fn payload(v: &Value<'_>) -> Result<(Vec<u8>, bool)> {
    match v {
        Value::Binary { subtype: 0, bytes } => Ok((bytes.to_vec(), false)),
        Value::Binary { .. } => Err(Error::bad_value("SASLPayload must be binary data of subtype 0")),
        Value::String(text) => match unbase64(text) {
            Some(bytes) => Ok((bytes, true)),
            None if text.len() % 4 != 0 => {
                Err(Error::location(10270, "Failed decoding SASL payload: invalid base64"))
            }
            None => Err(Error::location(40537, "Failed decoding SASL payload: Invalid base64 character")),
        },
        other => {
            let text =
                format!("Invalid SASLPayload type. Expected Base64 or BinData, got: {}", other.type_name());
            Err(Error::bad_value(text))
        }
    }
}

/// `options.skipEmptyExchange`
pub fn skips_empty_exchange(args: &SaslStartArgs<'_>) -> bool {
    args.options
        .and_then(|o| o.get("skipEmptyExchange"))
        .is_some_and(|v| matches!(Bson::from(v), Bson::Boolean(true)))
}

/// 334 for what nobody can log in with here.
pub fn unavailable(mechanism: &str) -> Error {
    let text = format!("Received authentication for mechanism {mechanism} which is not enabled");
    Error::new(ErrorCode::MechanismUnavailable, text)
}
