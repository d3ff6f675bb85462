//! A conversation whose messages are anybody's: nobody who does not know the password is let in, and what the client's part is sent by a server
//! that lies is no harm.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pando_auth::scram::{Client, ClientFirst, Credentials, Decoy, Server};
use pando_auth::{Mechanism, Password};
use std::sync::OnceLock;

/// The fewest rounds that a server may ask for; more of them only take longer.
const ITERATIONS: u32 = 4096;

fn stored(m: Mechanism) -> Credentials {
    static ALL: OnceLock<[Credentials; 2]> = OnceLock::new();
    let of = |m: Mechanism| {
        Credentials::of_password(m, "user", &Password::new("a secret"), &[7; 28][..m.salt_size()], ITERATIONS).unwrap()
    };
    let all = ALL.get_or_init(|| Mechanism::ALL.map(of));
    all[Mechanism::ALL.iter().position(|each| *each == m).unwrap()].clone()
}

fuzz_target!(|data: &[u8]| {
    let Some(([choice, len], rest)) = data.split_first_chunk::<2>() else { return };
    let mechanism = Mechanism::ALL[usize::from(*choice) % 2];
    let (first, rest) = rest.split_at(usize::from(*len).min(rest.len()));
    if choice & 4 != 0 {
        let (mut client, _) = Client::start(mechanism, "user", Password::new("a secret"), &[9; 18]);
        // Rounds are bounded, and take a while each: what is asked for is not what is looked at.
        if !has_many_rounds(first) && client.prove(first).is_ok() {
            assert!(client.verify(rest).is_err(), "a server that knows no password was believed");
        }
        return;
    }
    let Ok(message) = ClientFirst::parse(first) else { return };
    let found = match choice & 2 {
        0 => Ok(stored(mechanism)),
        _ => Err(pando_base::Error::bad_value("there is none")),
    };
    let (decoy, skips) = (Decoy::new(&[3; 32]), choice & 8 != 0);
    let (mut server, _) = Server::challenge(mechanism, message, "admin", found, &decoy, ITERATIONS, &[1; 24], skips);
    for part in rest.split(|b| *b == 0).take(4) {
        if let Ok(answer) = server.step(part) {
            panic!("let in: {}", String::from_utf8_lossy(&answer.payload));
        }
    }
});

fn has_many_rounds(challenge: &[u8]) -> bool {
    let text = String::from_utf8_lossy(challenge);
    text.split(",i=").skip(1).any(|n| n.chars().take_while(char::is_ascii_digit).count() > 4)
}
