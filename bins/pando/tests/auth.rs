//! `pando up --auth` and the other subcommands against it, as a user sees them.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

mod up;

use std::io::Write;
use std::process::{Output, Stdio};
use up::{Up, pando};

fn said(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned()
}

#[test]
fn the_first_user_is_shown_once_and_may_do_everything() {
    use std::os::unix::fs::PermissionsExt;
    let mut up = Up::start("auth", &["--auth"]);
    let mode = std::fs::metadata(up.dir.join("pando-data/keyfile")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let user = up.uri.strip_prefix("mongodb://admin:").unwrap().split('@').next().unwrap().to_owned();
    assert_eq!(user.len(), 24, "{user}");
    let as_admin = ["-u", "admin", "-p", &user];

    let nobody = up.run(&["dump", "--archive", "none"]);
    assert!(
        !nobody.status.success() && said(&nobody).contains("requires authentication"),
        "{}",
        said(&nobody)
    );
    let wrong = up.run(&["dump", "--archive", "none", "--username", "admin", "--password", "guess"]);
    assert!(!wrong.status.success() && said(&wrong).contains("Authentication failed"), "{}", said(&wrong));
    for (args, file) in
        [(&["dump", "--archive", "all"][..], "all"), (&["backup", "--out", "saved"], "saved/backup.json")]
    {
        let out = up.run(&[args, &as_admin[..]].concat());
        assert!(out.status.success(), "{args:?}: {}", said(&out));
        assert!(args[0] != "dump" || up.dir.join(file).exists());
    }
    let by_sha1 = ["load", "--archive", "all", "--drop", "--authenticationMechanism", "SCRAM-SHA-1"];
    let loaded = up.run(&[&by_sha1[..], &as_admin[..]].concat());
    assert!(loaded.status.success(), "{}", said(&loaded));

    // The next start makes no user; the password may come over the standard input.
    up.again(&["--auth"]);
    assert!(up.uri.starts_with("mongodb://admin:<password>@127.0.0.1:"), "{}", up.uri);
    let mut asked = pando(&up.dir, &["dump", "--archive", "again", "-u", "admin", "--host", &up.host()]);
    let mut asked = asked.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    asked.stdin.take().unwrap().write_all(format!("{user}\n").as_bytes()).unwrap();
    let out = asked.wait_with_output().unwrap();
    assert!(out.status.success(), "{}", said(&out));
}
