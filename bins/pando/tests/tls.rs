//! `pando up --tls` and the other subcommands against it, as a user sees them.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

mod up;

use std::process::Output;
use up::Up;

#[test]
fn a_server_with_certificates_of_its_own_is_dumped_and_loaded() {
    use std::os::unix::fs::PermissionsExt;
    let up = Up::start("tls", &["--tls"]);
    assert!(up.uri.contains("tls=true&tlsCAFile="), "{}", up.uri);
    for file in ["ca.pem", "server.pem", "client.pem"] {
        let mode = std::fs::metadata(up.dir.join("pando-data/tls").join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    let ca = ["--tls", "--tlsCAFile", "pando-data/tls/ca.pem"];
    let said = |out: &Output| String::from_utf8_lossy(&out.stderr).into_owned();
    let plain = up.run(&["dump", "--archive", "plain"]);
    assert!(!plain.status.success());
    let dumped = up.run(&[&["dump", "--archive", "all"], &ca[..]].concat());
    assert!(dumped.status.success(), "{}", said(&dumped));
    // By the names of MongoDB's tools, and with a certificate.
    let tools =
        ["--ssl", "--sslCAFile", "pando-data/tls/ca.pem", "--sslPEMKeyFile", "pando-data/tls/client.pem"];
    let loaded = up.run(&[&["load", "--archive", "all", "--drop"], &tools[..]].concat());
    assert!(loaded.status.success(), "{}", said(&loaded));
    let saved = up.run(&[&["backup", "--out", "saved"], &ca[..]].concat());
    assert!(saved.status.success(), "{}", said(&saved));
    for (args, text) in [
        (&["dump", "--archive", "x", "--tls"][..], "--tls needs --tlsCAFile"),
        (&["dump", "--archive", "x", "--tlsCAFile", "y"], "--tlsCAFile goes together with --tls"),
        (
            &["dump", "--archive", "x", "--tls", "--tlsCAFile", "none"],
            "cannot read certificate authority file: none",
        ),
        (
            &["dump", "--archive", "x", "--tls", "--tlsCAFile", "pando-data/tls/client.pem"],
            "unable to verify the first certificate",
        ),
    ] {
        let out = up.run(args);
        assert!(!out.status.success() && said(&out).contains(text), "{args:?}: {}", said(&out));
    }
}
