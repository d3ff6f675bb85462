//! What anybody may send before a login: the arguments of each such command.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pando_bson::RawDoc;
use pando_command::Request;
use pando_request::settings::login::{AuthenticateArgs, SaslContinueArgs, SaslStartArgs};

fuzz_target!(|data: &[u8]| {
    let Ok(body) = RawDoc::validate(data) else { return };
    if body.iter().next().is_none() {
        return;
    }
    let request = |name| Request {
        name,
        invoked_as: name,
        db: "admin",
        body,
        sequences: &[],
        exhaust_allowed: false,
        legacy: false,
    };
    let _ = SaslStartArgs::parse(&request("saslStart"));
    let _ = SaslContinueArgs::parse(&request("saslContinue"));
    let _ = AuthenticateArgs::parse(&request("authenticate"));
});
