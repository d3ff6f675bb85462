//! As whom the tool logs in, by the names of MongoDB's tools.

use crate::args::Args;
use pando_auth::{Mechanism, Password};
use pando_rpc::{By, LoginAs, UserLogin};
use std::io::{BufRead, IsTerminal, Write};
use std::sync::Arc;

pub(crate) const VALUES: &[&str] =
    &["username|u", "password|p", "authenticationDatabase", "authenticationMechanism"];

/// What the options say. A password that is not among them is asked for.
pub(crate) fn given(args: &Args) -> Result<LoginAs, String> {
    let name = args.get("username").unwrap_or_default().to_owned();
    let db = args.get("authenticationDatabase").unwrap_or("admin").to_owned();
    let mechanism = match args.get("authenticationMechanism") {
        Some("MONGODB-X509") if args.has("password") => {
            return Err("--authenticationMechanism MONGODB-X509 takes no password".to_owned());
        }
        Some("MONGODB-X509") => {
            let by = By::Certificate;
            return Ok(LoginAs::User(Arc::new(UserLogin { name, db: "$external".to_owned(), by })));
        }
        Some(name) => Some(Mechanism::of_name(name).ok_or_else(|| {
            format!("there is no mechanism {name}: SCRAM-SHA-256, SCRAM-SHA-1 or MONGODB-X509")
        })?),
        None => None,
    };
    if name.is_empty() {
        return match ["password", "authenticationDatabase", "authenticationMechanism"]
            .iter()
            .find(|n| args.has(n))
        {
            Some(option) => Err(format!("--{option} goes together with --username")),
            None => Ok(LoginAs::default()),
        };
    }
    let password = match args.get("password") {
        Some(given) => Password::new(given),
        None => ask()?,
    };
    Ok(LoginAs::User(Arc::new(UserLogin { name, db, by: By::Password(password, mechanism) })))
}

/// From the terminal, unseen, or as a line of the standard input.
fn ask() -> Result<Password, String> {
    let stdin = std::io::stdin();
    let shown = stdin.is_terminal().then(|| hide(&stdin)).transpose()?;
    let mut line = String::new();
    let read = stdin.lock().read_line(&mut line);
    if let Some(shown) = shown {
        let _ = rustix::termios::tcsetattr(&stdin, rustix::termios::OptionalActions::Now, &shown);
        eprintln!();
    }
    read.map_err(|e| format!("the password cannot be read: {e}"))?;
    let password = Password::new(line.trim_end_matches(['\r', '\n']));
    zeroize::Zeroize::zeroize(&mut line);
    if password.is_empty() { Err("there is no password".to_owned()) } else { Ok(password) }
}

/// What the terminal was before.
fn hide(stdin: &std::io::Stdin) -> Result<rustix::termios::Termios, String> {
    use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
    eprint!("Enter password: ");
    let _ = std::io::stderr().flush();
    let before = tcgetattr(stdin).map_err(|e| e.to_string())?;
    let mut hidden = before.clone();
    hidden.local_modes.remove(LocalModes::ECHO);
    tcsetattr(stdin, OptionalActions::Now, &hidden).map_err(|e| e.to_string())?;
    Ok(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &str) -> Result<LoginAs, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        given(&Args::parse(&words, &[], &[])?)
    }

    #[test]
    fn options_say_as_whom() {
        assert!(matches!(said("").unwrap(), LoginAs::Member(_)));
        let LoginAs::User(user) = said("-u ann -p x --authenticationDatabase test").unwrap() else {
            panic!("nobody")
        };
        assert_eq!((user.name.as_str(), user.db.as_str()), ("ann", "test"));
        assert!(matches!(user.by, By::Password(_, None)));
        let LoginAs::User(user) = said("--authenticationMechanism MONGODB-X509").unwrap() else {
            panic!("nobody")
        };
        assert_eq!(user.db, "$external");
        for bad in [
            "-p x",
            "--authenticationDatabase a",
            "-u a -p x --authenticationMechanism PLAIN",
            "--authenticationMechanism MONGODB-X509 -p x",
        ] {
            assert!(said(bad).is_err(), "{bad}");
        }
    }
}
