//! Who has to log in, and what members log in to each other with.

use super::encryption::{self, Encryption};
use super::{Refusal, Settings};
use pando_auth::ClusterAuthMode;
use std::path::{Path, PathBuf};

/// `security` of the configuration.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Security {
    /// Clients have to log in, and may do what they have been granted.
    pub authorization: bool,
    pub key_file: Option<PathBuf>,
    pub cluster_auth: ClusterAuthMode,
    pub encryption: Option<Encryption>,
}

/// From checked settings; relative paths are taken from `cwd`.
pub(super) fn of_settings(s: &Settings, cwd: &Path) -> Result<Security, Refusal> {
    let key_file = s.text("security.keyFile").map(|p| cwd.join(p));
    let wanted = match s.text("security.authorization") {
        Some("enabled") => Some(true),
        Some("disabled") => Some(false),
        Some(other) => {
            return Err(format!(
                "Bad value for security.authorization: {other}; expected 'enabled' or 'disabled'"
            ));
        }
        None if s.flag("auth") => Some(true),
        None if s.flag("noauth") => Some(false),
        None => None,
    };
    if s.flag("auth") && s.flag("noauth") {
        return Err("BadValue: auth is not allowed when noauth is specified".to_owned());
    }
    if s.flag("noauth") && key_file.is_some() {
        return Err("BadValue: security.keyFile is not allowed when noauth is specified".to_owned());
    }
    let cluster_auth = match s.text("security.clusterAuthMode") {
        None if key_file.is_some() => ClusterAuthMode::KeyFile,
        None => ClusterAuthMode::Undefined,
        Some(name) => ClusterAuthMode::of_name(name)
            .ok_or_else(|| format!("BadValue: unsupported value for clusterAuthMode {name}"))?,
    };
    check_cluster_auth(s, cluster_auth, key_file.is_some())?;
    let in_transition = s.flag("security.transitionToAuth");
    let among_members = key_file.is_some() || cluster_auth.shows_certificate();
    if in_transition && !among_members {
        return Err(
            "BadValue: --transitionToAuth must be used with keyFile or x509 authentication".to_owned()
        );
    }
    if in_transition && wanted == Some(true) {
        return Err("BadValue: --transitionToAuth cannot be used with --auth".to_owned());
    }
    // Members that ask each other who they are ask clients, too.
    let authorization = wanted.unwrap_or(among_members && !in_transition);
    let encryption = encryption::of_settings(s, cwd)?;
    Ok(Security { authorization, key_file, cluster_auth, encryption })
}

/// Certificates are shown where members speak TLS to each other, and keys where there are some.
fn check_cluster_auth(s: &Settings, mode: ClusterAuthMode, has_keys: bool) -> Result<(), Refusal> {
    let tls = s.text("net.tls.mode").or(s.text("net.ssl.mode")).unwrap_or("disabled");
    let dials = tls.starts_with("prefer") || tls.starts_with("require");
    if mode.takes_certificates() && !dials {
        return Err(format!("BadValue: cannot have x.509 cluster authentication in {tls} mode"));
    }
    if matches!(mode, ClusterAuthMode::SendKeyFile | ClusterAuthMode::SendX509) && !has_keys {
        return Err("BadValue: clusterAuthMode sendKeyFile and sendX509 need a keyFile".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::parse::command_line;

    fn of(line: &str) -> Result<Security, Refusal> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        of_settings(&command_line(&words)?, Path::new("/etc"))
    }

    #[test]
    fn a_keyfile_implies_that_clients_log_in() {
        assert_eq!(of("").unwrap(), Security::default());
        let key_file = Some(PathBuf::from("/etc/k"));
        assert_eq!(
            of("--keyFile k").unwrap(),
            Security {
                authorization: true,
                key_file: key_file.clone(),
                cluster_auth: ClusterAuthMode::KeyFile,
                encryption: None
            }
        );
        let open = Security {
            authorization: false,
            key_file,
            cluster_auth: ClusterAuthMode::KeyFile,
            encryption: None,
        };
        assert_eq!(of("--keyFile k --transitionToAuth").unwrap(), open);
        assert!(of("--auth").unwrap().authorization);
        assert!(of("--clusterAuthMode x509 --tlsMode requireTLS").unwrap().authorization);
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        for line in [
            "--auth --noauth",
            "--keyFile k --noauth",
            "--transitionToAuth",
            "--transitionToAuth --keyFile k --auth",
            "--clusterAuthMode x509",
            "--clusterAuthMode x509 --tlsMode allowTLS",
            "--clusterAuthMode sendX509 --tlsMode requireTLS",
            "--clusterAuthMode nonsense",
        ] {
            assert!(of(line).is_err(), "{line}");
        }
    }
}
