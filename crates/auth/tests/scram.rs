//! Whole conversations, and the examples of the RFCs.
#![allow(clippy::unwrap_used)]

use pando_auth::scram::{Client, ClientFirst, Credentials, Decoy, Server};
use pando_auth::{Mechanism, Password};
use pando_base::{Error, ErrorCode, Result};
use pando_bson::extjson::unbase64;

fn decoy() -> Decoy {
    Decoy::new(&[7; 32])
}

fn credentials(m: Mechanism, user: &str, password: &str) -> Credentials {
    Credentials::of_password(m, user, &Password::new(password), &[9; 28][..m.salt_size()], 4096).unwrap()
}

/// A server that challenged the user "user" of the database "test".
fn challenged(m: Mechanism, found: Result<Credentials>, first: &[u8], skips: bool) -> (Server, Vec<u8>) {
    let first = ClientFirst::parse(first).unwrap();
    let (server, answer) = Server::challenge(m, first, "test", found, &decoy(), 4096, &[3; 24], skips);
    assert!(!answer.done);
    (server, answer.payload)
}

fn conversation(m: Mechanism, stored: &str, typed: &str) -> Result<()> {
    let (mut client, first) = Client::start(m, "user", Password::new(typed), &[1; 24]);
    let (mut server, challenge) = challenged(m, Ok(credentials(m, "user", stored)), &first, false);
    let answer = server.step(&client.prove(&challenge)?)?;
    assert!(!answer.done);
    client.verify(&answer.payload)?;
    assert!(server.step(b"")?.done);
    server.step(b"").unwrap_err();
    Ok(())
}

#[test]
fn the_right_password_is_believed_and_a_wrong_one_is_not() {
    for m in Mechanism::ALL {
        conversation(m, "pencil", "pencil").unwrap();
        let e = conversation(m, "pencil", "pencil ").unwrap_err();
        assert_eq!(e.code, ErrorCode::AuthenticationFailed);
    }
}

#[test]
fn passwords_are_compared_in_their_normal_form_with_sha_256_only() {
    // RFC 4013: a soft hyphen is left out, a Roman numeral is its letters, a wide space is a space.
    for (stored, typed) in [("I\u{AD}X", "IX"), ("\u{2168}", "IX"), ("a\u{a0}b", "a b")] {
        conversation(Mechanism::ScramSha256, stored, typed).unwrap();
        conversation(Mechanism::ScramSha1, stored, typed).unwrap_err();
    }
    let odd = Password::new("a\u{7}b");
    Credentials::of_password(Mechanism::ScramSha256, "u", &odd, &[1; 28], 4096).unwrap_err();
    Credentials::of_password(Mechanism::ScramSha1, "u", &odd, &[1; 16], 4096).unwrap();
}

#[test]
fn who_skips_the_empty_message_is_done_one_message_earlier() {
    let m = Mechanism::ScramSha256;
    let (mut client, first) = Client::start(m, "user", Password::new("pencil"), &[1; 24]);
    let (mut server, challenge) = challenged(m, Ok(credentials(m, "user", "pencil")), &first, true);
    assert!(server.step(&client.prove(&challenge).unwrap()).unwrap().done);
    server.step(b"").unwrap_err();
}

#[test]
fn a_user_that_is_not_there_fails_where_a_wrong_password_fails() {
    for m in Mechanism::ALL {
        let none =
            || Err(Error::new(ErrorCode::UserNotFound, "Could not find user \"user\" for db \"test\""));
        let (mut client, first) = Client::start(m, "user", Password::new("x"), &[1; 24]);
        let (mut server, challenge) = challenged(m, none(), &first, true);
        let (_, again) = challenged(m, none(), &first, true);
        assert_eq!(challenge, again, "its salt is always the same");
        let (_, real) = challenged(m, Ok(credentials(m, "user", "pencil")), &first, true);
        assert_eq!(challenge.len(), real.len());
        let e = server.step(&client.prove(&challenge).unwrap()).unwrap_err();
        assert_eq!(e.code, ErrorCode::UserNotFound, "for the log");
        let (_, other) = Client::start(m, "other", Password::new("x"), &[1; 24]);
        assert_ne!(challenged(m, none(), &other, true).1, challenge, "and another name's is another");
    }
}

#[test]
fn a_message_that_was_changed_on_its_way_is_not_believed() {
    let m = Mechanism::ScramSha256;
    let (mut client, first) = Client::start(m, "user", Password::new("pencil"), &[1; 24]);
    let (_, challenge) = challenged(m, Ok(credentials(m, "user", "pencil")), &first, true);
    let proof = client.prove(&challenge).unwrap();
    for at in 0..proof.len() {
        let (mut server, _) = challenged(m, Ok(credentials(m, "user", "pencil")), &first, true);
        let mut changed = proof.clone();
        changed[at] ^= 1;
        assert!(server.step(&changed).is_err(), "byte {at}");
        assert!(server.step(&proof).is_err(), "and there is no second try");
    }
    // Without its padding it is the same proof.
    for cut in 0..proof.len() - 1 {
        let (mut server, _) = challenged(m, Ok(credentials(m, "user", "pencil")), &first, true);
        assert!(server.step(&proof[..cut]).is_err(), "{cut} bytes");
    }
}

#[test]
fn a_client_believes_no_server_that_does_not_know_the_password() {
    let m = Mechanism::ScramSha256;
    let (mut client, first) = Client::start(m, "user", Password::new("pencil"), &[1; 24]);
    client.verify(b"v=AAAA").unwrap_err();
    let (_, challenge) = challenged(m, Ok(credentials(m, "user", "pencil")), &first, true);
    client.prove(&challenge).unwrap();
    for wrong in
        [&b""[..], b"v=", b"v=AAAA", b"e=other-error", b"v=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="]
    {
        client.verify(wrong).unwrap_err();
    }
    for wrong in ["", "r=x,s=AAAA,i=4096", "r=AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB,s=AAAA,i=4096"] {
        client.prove(wrong.as_bytes()).unwrap_err();
    }
    let nonce = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBx";
    for wrong in ["s=AAAA,i=1", "s=AAAA,i=4294967295", "s=,i=4096", "s=AAAA,i=x", "i=4096,s=AAAA"] {
        client.prove(format!("r={nonce},{wrong}").as_bytes()).unwrap_err();
    }
}

#[test]
fn credentials_survive_their_document() {
    for m in Mechanism::ALL {
        let c = credentials(m, "user", "pencil");
        assert_eq!(Credentials::of_document(m, &c.document()), Some(c.clone()));
        let mut odd = c.document();
        odd.set("storedKey", "AAAA");
        assert_eq!(Credentials::of_document(m, &odd), None);
        let mut odd = c.document();
        odd.set("iterationCount", -1);
        assert_eq!(Credentials::of_document(m, &odd), None);
        assert!(!format!("{c:?}").contains(&format!("{:?}", 9u8).repeat(3)));
    }
}

/// What a client says to a server's challenge, and the server's proof: an example from outside.
fn example(m: Mechanism, nonce: &str, challenge: &str, last: &str, proof: &str) {
    let (mut client, first) = Client::start(m, "user", Password::new("pencil"), &unbase64(nonce).unwrap());
    assert_eq!(String::from_utf8(first).unwrap(), format!("n,,n=user,r={nonce}"));
    assert_eq!(String::from_utf8(client.prove(challenge.as_bytes()).unwrap()).unwrap(), last);
    client.verify(proof.as_bytes()).unwrap();
}

/// RFC 7677, section 3.
#[test]
fn the_example_of_rfc_7677() {
    let nonces = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
    example(
        Mechanism::ScramSha256,
        "rOprNGfwEbeRWgbNEkqO",
        &format!("r={nonces},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"),
        &format!("c=biws,r={nonces},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="),
        "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
    );
}

/// The example of the drivers' specification: the password of SCRAM-SHA-1 is a digest of user and password.
#[test]
fn the_example_of_the_drivers() {
    let nonces = "fyko+d2lbbFgONRv9qkxdawLHo+Vgk7qvUOKUwuWLIWg4l/9SraGMHEE";
    example(
        Mechanism::ScramSha1,
        "fyko+d2lbbFgONRv9qkxdawL",
        &format!("r={nonces},s=rQ9ZY3MntBeuP3E1TDVC4w==,i=10000"),
        &format!("c=biws,r={nonces},p=MC2T8BvbmWRckDw8oWl5IVghwCY="),
        "v=UMWeI25JD1yNYZRMpZ4VHvhZ9e0=",
    );
}
