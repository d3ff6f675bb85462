//! Who is let in, and who is dialed: every kind of certificate against every kind of wish.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

mod common;

use common::*;
use pando_env::tls::{Certificates, Peer, TlsMode, TlsVersion};
use pando_tls::Protocol;
use pando_tls::local::{self, Wanted};

use TlsMode::{Allow, Prefer, Require};

const MEMBER: &str = "CN=127.0.0.1,OU=Servers,O=PandoDB";

fn member() -> Wanted {
    Wanted::server(&["127.0.0.1", "localhost"])
}

#[test]
fn modes_say_who_speaks_tls() {
    run(async {
        let mut ca = authority("CA");
        let key = ca.issue(&member()).unwrap().pem;
        let side = |mode| Side::of(mode, &key, &ca.pem());
        let plain = env().net;
        for mode in [Allow, Prefer, Require] {
            let server = side(mode);
            let with_tls = meet(&server.net, &side(Require).net, "localhost").await;
            let settled = with_tls.accepted.unwrap().unwrap();
            assert_eq!(settled.peer, Peer::Proven(MEMBER.to_owned()), "{mode:?}");
            assert_eq!(settled.server_name.as_deref(), Some("localhost"));
            let without = meet(&server.net, &*plain, "localhost").await;
            if mode == Require {
                let text = "The server is configured to only allow SSL connections";
                assert_eq!(without.accepted.unwrap_err(), text);
                assert!(without.dialed.is_err());
            } else {
                assert_eq!((without.accepted.unwrap(), without.dialed), (None, Ok(())), "{mode:?}");
            }
            // What members do among themselves.
            let dialed = meet(&side(Allow).net, &server.net, "localhost").await;
            assert_eq!(dialed.accepted.unwrap().is_some(), mode != Allow, "{mode:?}");
        }
    });
}

#[test]
fn certificates_that_are_not_good_are_refused_at_both_ends() {
    run(async {
        let (mut ca, mut other) = (authority("CA"), authority("Other"));
        let good = ca.issue(&member()).unwrap().pem;
        let at = |from_day, to_day| Wanted { from_day, to_day, ..member() };
        let unknown = "unable to verify the first certificate";
        for (what, key, why) in [
            ("another authority", other.issue(&member()).unwrap().pem, unknown),
            ("expired", ca.issue(&at(-9, -1)).unwrap().pem, "certificate has expired"),
            ("not yet", ca.issue(&at(2, 9)).unwrap().pem, "certificate is not yet valid"),
            ("self-signed", local::self_signed(&member(), now()).unwrap(), unknown),
        ] {
            let bad = Side::of(Require, &key, &ca.pem());
            let fine = Side::of(Require, &good, &ca.pem());
            let wanted = format!("SSL peer certificate validation failed: {why}");
            let dialing = meet(&fine.net, &bad.net, "localhost").await;
            assert_eq!(dialing.accepted.unwrap_err(), wanted, "{what}");
            assert!(dialing.dialed.unwrap_err().starts_with("the peer refused the handshake"), "{what}");
            let dialed = meet(&bad.net, &fine.net, "localhost").await;
            assert_eq!(dialed.dialed.unwrap_err(), wanted, "{what}");
            assert!(dialed.accepted.is_err(), "{what}");
            assert_eq!(fine.failed(), (1, 1), "{what}");
        }
    });
}

#[test]
fn a_certificate_is_good_for_its_purpose_only() {
    run(async {
        let mut ca = authority("CA");
        let good = ca.issue(&member()).unwrap().pem;
        let serving = ca.issue(&Wanted { dials: false, ..member() }).unwrap().pem;
        let dialing = ca.issue(&Wanted { serves: false, ..member() }).unwrap().pem;
        let side = |key: &str| Side::of(Require, key, &ca.pem());
        let why = "SSL peer certificate validation failed: unsuitable certificate purpose";
        assert_eq!(meet(&side(&good).net, &side(&serving).net, "localhost").await.accepted.unwrap_err(), why);
        assert_eq!(meet(&side(&dialing).net, &side(&good).net, "localhost").await.dialed.unwrap_err(), why);
        assert!(meet(&side(&serving).net, &side(&dialing).net, "localhost").await.dialed.is_ok());
    });
}

#[test]
fn the_host_that_is_dialed_is_that_of_the_certificate() {
    run(async {
        let mut ca = authority("CA");
        let good = ca.issue(&member()).unwrap().pem;
        let elsewhere = ca.issue(&Wanted::server(&["elsewhere", "10.1.1.1"])).unwrap().pem;
        let common_only = Wanted { hosts: Vec::new(), common: "localhost".to_owned(), ..member() };
        let common_only = ca.issue(&common_only).unwrap().pem;
        let side = |key: &str| Side::of(Require, key, &ca.pem());
        let met = meet(&side(&elsewhere).net, &side(&good).net, "localhost").await;
        let text = "The server certificate does not match the host name. Hostname: localhost does not match SAN(s): \
                    elsewhere, 10.1.1.1, CN: elsewhere";
        assert_eq!(met.dialed.unwrap_err(), text);
        assert!(meet(&side(&good).net, &side(&good).net, "127.0.0.1").await.dialed.is_ok());
        assert!(meet(&side(&common_only).net, &side(&good).net, "localhost").await.dialed.is_ok());
        assert!(meet(&side(&common_only).net, &side(&good).net, "127.0.0.1").await.dialed.is_err());
        // Names are let pass when that is asked for; authorities are not.
        let lax = Side::changed(Require, &good, &ca.pem(), |s| s.allow_invalid_hostnames = true);
        assert!(meet(&side(&elsewhere).net, &lax.net, "localhost").await.dialed.is_ok());
        let stranger = authority("Other").issue(&Wanted::server(&["elsewhere"])).unwrap().pem;
        assert!(meet(&side(&stranger).net, &lax.net, "localhost").await.dialed.is_err());
    });
}

#[test]
fn what_is_not_checked_stands_for_nobody() {
    run(async {
        let mut ca = authority("CA");
        let good = ca.issue(&member()).unwrap().pem;
        let stranger = authority("Other").issue(&member()).unwrap().pem;
        let lax = Side::changed(Require, &good, &ca.pem(), |s| s.allow_invalid_certificates = true);
        let met = meet(&lax.net, &Side::of(Require, &stranger, &authority("x").pem()).net, "localhost").await;
        assert!(met.accepted.is_err(), "the other end checks");
        let unchecked = Side::changed(Require, &stranger, &ca.pem(), |s| s.allow_invalid_certificates = true);
        let met = meet(&lax.net, &unchecked.net, "localhost").await;
        let why = "unable to verify the first certificate".to_owned();
        assert_eq!(met.accepted.unwrap().unwrap().peer, Peer::Unproven(why));
        let met = meet(&lax.net, &Side::of(Require, &good, &ca.pem()).net, "localhost").await;
        assert_eq!(met.accepted.unwrap().unwrap().peer, Peer::Proven(MEMBER.to_owned()));
    });
}

#[test]
fn a_client_without_a_certificate_is_let_in_only_if_that_is_wanted() {
    run(async {
        let mut ca = authority("CA");
        let key = ca.issue(&member()).unwrap().pem;
        let silent = Side::changed(Require, &key, &ca.pem(), |s| s.withhold_certificate = true);
        let met = meet(&Side::of(Require, &key, &ca.pem()).net, &silent.net, "localhost").await;
        assert_eq!(met.accepted.unwrap_err(), "no SSL certificate provided by peer; connection rejected");
        assert!(met.dialed.unwrap_err().starts_with("the peer refused the handshake"));
        let open = Side::changed(Require, &key, &ca.pem(), |s| s.allow_no_certificate = true);
        assert_eq!(
            meet(&open.net, &silent.net, "localhost").await.accepted.unwrap().unwrap().peer,
            Peer::None
        );
        let nobody = Side::changed(Require, &key, &ca.pem(), |s| {
            s.ca_file = None;
            s.allow_invalid_certificates = true;
        });
        let met = meet(&nobody.net, &silent.net, "localhost").await;
        assert_eq!(met.accepted.unwrap().unwrap().peer, Peer::NotAsked);
    });
}

#[test]
fn clients_may_have_an_authority_of_their_own() {
    run(async {
        let (mut ca, mut clients) = (authority("CA"), authority("Clients"));
        let key = ca.issue(&member()).unwrap().pem;
        let files = Files::default();
        files.put("key.pem", key.clone());
        files.put("ca.pem", ca.pem());
        files.put("clients.pem", clients.pem());
        let mut of_clients = settings(Require);
        of_clients.cluster_ca_file = Some("clients.pem".into());
        let server = Side::new(&files, of_clients);
        let client = clients.issue(&Wanted::client("somebody")).unwrap().pem;
        let met = meet(&server.net, &Side::of(Require, &client, &ca.pem()).net, "localhost").await;
        let subject = "CN=somebody,OU=Clients,O=PandoDB".to_owned();
        assert_eq!(met.accepted.unwrap().unwrap().peer, Peer::Proven(subject));
        assert!(
            meet(&server.net, &Side::of(Require, &key, &ca.pem()).net, "localhost").await.accepted.is_err()
        );
    });
}

#[test]
fn what_was_taken_back_is_refused_and_a_list_has_to_be_current() {
    run(async {
        let mut ca = authority("CA");
        let (good, bad) = (ca.issue(&member()).unwrap(), ca.issue(&member()).unwrap());
        let with_list = |list: String| {
            let files = Files::default();
            files.put("key.pem", good.pem.clone());
            files.put("ca.pem", ca.pem());
            files.put("crl.pem", list);
            let mut settings = settings(Require);
            settings.crl_file = Some("crl.pem".into());
            Side::new(&files, settings)
        };
        let current = with_list(ca.revoke(&[bad.serial], -1, 9).unwrap());
        let side = |key: &str| Side::of(Require, key, &ca.pem());
        let refused = |met: Met| met.accepted.unwrap_err();
        let text = |why: &str| format!("SSL peer certificate validation failed: {why}");
        assert!(meet(&current.net, &side(&good.pem).net, "localhost").await.dialed.is_ok());
        let met = meet(&current.net, &side(&bad.pem).net, "localhost").await;
        assert_eq!(refused(met), text("certificate revoked"));
        let met = meet(&side(&bad.pem).net, &current.net, "localhost").await;
        assert_eq!(met.dialed.unwrap_err(), text("certificate revoked"));
        let old = with_list(ca.revoke(&[], -9, -1).unwrap());
        assert_eq!(refused(meet(&old.net, &side(&good.pem).net, "localhost").await), text("CRL has expired"));
        let foreign = with_list(authority("Other").revoke(&[], -1, 9).unwrap());
        let met = meet(&foreign.net, &side(&good.pem).net, "localhost").await;
        assert_eq!(refused(met), text("unable to get certificate CRL"));
    });
}

#[test]
fn a_certificate_that_is_believed_itself_needs_no_authority() {
    run(async {
        let own = local::self_signed(&member(), now()).unwrap();
        let side = Side::of(Require, &own, &own);
        assert!(meet(&side.net, &side.net, "localhost").await.dialed.is_ok());
        let old = local::self_signed(&Wanted { from_day: -9, to_day: -1, ..member() }, now()).unwrap();
        let side = Side::of(Require, &old, &old);
        let met = meet(&side.net, &side.net, "localhost").await;
        assert!(met.dialed.unwrap_err().ends_with("certificate has expired"));
    });
}

#[test]
fn versions_can_be_turned_off_and_named_in_the_log() {
    run(async {
        let mut ca = authority("CA");
        let key = ca.issue(&member()).unwrap().pem;
        let without = |p: Protocol| {
            Side::changed(Require, &key, &ca.pem(), |s| {
                s.disabled = vec![p];
                s.log_versions = vec![Protocol::V1_2];
            })
        };
        let (old, new) = (without(Protocol::V1_3), without(Protocol::V1_2));
        let settled = meet(&old.net, &old.net, "localhost").await.accepted.unwrap().unwrap();
        assert_eq!((settled.version, settled.log_version), (TlsVersion::V1_2, true));
        let settled = meet(&new.net, &new.net, "localhost").await.accepted.unwrap().unwrap();
        assert_eq!((settled.version, settled.log_version), (TlsVersion::V1_3, false));
        let met = meet(&new.net, &old.net, "localhost").await;
        assert_eq!(met.accepted.unwrap_err(), "SSL handshake failed, as client requested disabled protocol");
        assert!(met.dialed.is_err());
    });
}

#[test]
fn rotation_takes_all_files_or_none() {
    run(async {
        let (mut first, mut second) = (authority("First"), authority("Second"));
        let files = Files::default();
        files.put("key.pem", first.issue(&member()).unwrap().pem);
        files.put("ca.pem", first.pem());
        let server = Side::new(&files, settings(Require));
        let before = Side::of(Require, &first.issue(&member()).unwrap().pem, &first.pem());
        let after = Side::of(Require, &second.issue(&member()).unwrap().pem, &second.pem());
        assert!(meet(&server.net, &before.net, "localhost").await.dialed.is_ok());
        // Half of it: the new key is there, the new authority cannot be read.
        files.put("key.pem", second.issue(&member()).unwrap().pem);
        files.put("ca.pem", "garbage");
        let refused = server.tls.rotate(&pando_env::Log::none()).await.unwrap_err();
        assert!(refused.message.starts_with("cannot read certificate authority file: ca.pem"), "{refused}");
        assert!(meet(&server.net, &before.net, "localhost").await.dialed.is_ok());
        assert!(meet(&server.net, &after.net, "localhost").await.dialed.is_err());
        files.put("ca.pem", second.pem());
        server.tls.rotate(&pando_env::Log::none()).await.unwrap();
        assert!(meet(&server.net, &after.net, "localhost").await.dialed.is_ok());
        assert!(meet(&server.net, &before.net, "localhost").await.dialed.is_err());
        files.remove("key.pem");
        assert_eq!(
            server.tls.rotate(&pando_env::Log::none()).await.unwrap_err().message,
            "Can not set up PEM key file."
        );
        assert!(meet(&server.net, &after.net, "localhost").await.dialed.is_ok());
    });
}

#[test]
fn files_that_cannot_be_used_are_told_with_mongodbs_words() {
    let mut ca = authority("CA");
    let key = ca.issue(&member()).unwrap().pem;
    let other = ca.issue(&member()).unwrap().pem;
    let at = key.find("-----BEGIN PRIVATE").unwrap();
    let swapped = key[..at].to_owned() + &other[other.find("-----BEGIN PRIVATE").unwrap()..];
    let no_key = "Can not set up PEM key file.";
    let cut = key[..at - 80].to_owned();
    for (key, ca, text) in [
        ("garbage", &*ca.pem(), no_key),
        ("", &ca.pem(), no_key),
        (&key[..at], &ca.pem(), no_key),
        (&key[at..], &ca.pem(), no_key),
        (&swapped, &ca.pem(), no_key),
        (&cut, &ca.pem(), no_key),
        (&key, "", "cannot read certificate authority file: ca.pem error:PEM routines::no start line"),
        (
            &key,
            &key[at..],
            "cannot read certificate authority file: ca.pem error:PEM routines::no start line",
        ),
    ] {
        let files = Files::default();
        files.put("key.pem", key);
        files.put("ca.pem", ca);
        let loaded = pando_tls::Tls::load(in_runtime(), settings(Require), files.reader());
        let error = loaded.err().unwrap();
        assert_eq!((error.code, &*error.message), (pando_base::ErrorCode::InvalidSSLConfiguration, text));
    }
}

fn in_runtime() -> pando_env::Env {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _in = runtime.enter();
    env()
}
