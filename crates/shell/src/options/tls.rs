//! `net.tls`, and the older names of the same options.

use super::parse::{Refusal, Settings};
use super::table::{Kind, Opt, opt};
use pando_bson::{Bson, Document};
use pando_env::tls::TlsMode;
use pando_tls::Protocol;
use std::path::Path;

use Kind::{Flag, Text};

const OLD: &str = "Older name of the option with tls in place of ssl";

pub(super) const OPTIONS: &[Opt] = &[
    opt("tlsOnNormalPorts", "", Flag, "Older form of --tlsMode requireTLS"),
    opt("tlsMode", "net.tls.mode", Text, "disabled, allowTLS, preferTLS or requireTLS"),
    opt("tlsCertificateKeyFile", "net.tls.certificateKeyFile", Text, "PEM file of certificate and key"),
    opt(
        "tlsCertificateKeyFilePassword",
        "net.tls.certificateKeyFilePassword",
        Text,
        "Password of the key in --tlsCertificateKeyFile",
    ),
    opt("tlsClusterFile", "net.tls.clusterFile", Text, "PEM file of certificate and key for other members"),
    opt("tlsClusterPassword", "net.tls.clusterPassword", Text, "Password of the key in --tlsClusterFile"),
    opt("tlsCAFile", "net.tls.CAFile", Text, "PEM file of the authorities that are believed"),
    opt(
        "tlsClusterCAFile",
        "net.tls.clusterCAFile",
        Text,
        "PEM file of the authorities that are believed of those that connect",
    ),
    opt("tlsCRLFile", "net.tls.CRLFile", Text, "PEM file of revocation lists"),
    opt(
        "tlsDisabledProtocols",
        "net.tls.disabledProtocols",
        Text,
        "Versions to refuse, separated by commas; TLS1_0 and TLS1_1 are not spoken at all",
    ),
    opt(
        "tlsAllowConnectionsWithoutCertificates",
        "net.tls.allowConnectionsWithoutCertificates",
        Flag,
        "Clients need no certificate",
    ),
    opt(
        "tlsAllowInvalidHostnames",
        "net.tls.allowInvalidHostnames",
        Flag,
        "Members' certificates may be of other hosts",
    ),
    opt(
        "tlsAllowInvalidCertificates",
        "net.tls.allowInvalidCertificates",
        Flag,
        "Certificates are not checked; those that are not good stand for nobody",
    ),
    opt("tlsLogVersions", "net.tls.logVersions", Text, "Versions to name in the log, separated by commas"),
    opt("sslOnNormalPorts", "", Flag, OLD),
    opt("sslMode", "net.ssl.mode", Text, "Older name of --tlsMode; requireSSL for requireTLS and so on"),
    opt("sslPEMKeyFile", "net.ssl.PEMKeyFile", Text, "Older name of --tlsCertificateKeyFile"),
    opt("sslPEMKeyPassword", "net.ssl.PEMKeyPassword", Text, "Older name of --tlsCertificateKeyFilePassword"),
    opt("sslClusterFile", "net.ssl.clusterFile", Text, OLD),
    opt("sslClusterPassword", "net.ssl.clusterPassword", Text, OLD),
    opt("sslCAFile", "net.ssl.CAFile", Text, OLD),
    opt("sslClusterCAFile", "net.ssl.clusterCAFile", Text, OLD),
    opt("sslCRLFile", "net.ssl.CRLFile", Text, OLD),
    opt("sslDisabledProtocols", "net.ssl.disabledProtocols", Text, OLD),
    opt("sslAllowConnectionsWithoutCertificates", "net.ssl.allowConnectionsWithoutCertificates", Flag, OLD),
    opt("sslWeakCertificateValidation", "", Flag, "Older name of --tlsAllowConnectionsWithoutCertificates"),
    opt("sslAllowInvalidHostnames", "net.ssl.allowInvalidHostnames", Flag, OLD),
    opt("sslAllowInvalidCertificates", "net.ssl.allowInvalidCertificates", Flag, OLD),
];

/// Keys under which one option may stand, the preferred one first.
struct Names(&'static str, &'static [&'static str]);

const ON_NORMAL_PORTS: Names = Names("tlsOnNormalPorts", &["sslOnNormalPorts"]);
const MODE: Names = Names("net.tls.mode", &["net.ssl.mode"]);
const KEY_FILE: Names = Names("net.tls.certificateKeyFile", &["net.ssl.PEMKeyFile"]);
const KEY_PASSWORD: Names = Names("net.tls.certificateKeyFilePassword", &["net.ssl.PEMKeyPassword"]);
const CLUSTER_FILE: Names = Names("net.tls.clusterFile", &["net.ssl.clusterFile"]);
const CLUSTER_PASSWORD: Names = Names("net.tls.clusterPassword", &["net.ssl.clusterPassword"]);
const CA_FILE: Names = Names("net.tls.CAFile", &["net.ssl.CAFile"]);
const CLUSTER_CA_FILE: Names = Names("net.tls.clusterCAFile", &["net.ssl.clusterCAFile"]);
const CRL_FILE: Names = Names("net.tls.CRLFile", &["net.ssl.CRLFile"]);
const DISABLED: Names = Names("net.tls.disabledProtocols", &["net.ssl.disabledProtocols"]);
const WITHOUT_CERTIFICATES: Names = Names(
    "net.tls.allowConnectionsWithoutCertificates",
    &["net.ssl.allowConnectionsWithoutCertificates", "sslWeakCertificateValidation"],
);
const INVALID_HOSTNAMES: Names = Names("net.tls.allowInvalidHostnames", &["net.ssl.allowInvalidHostnames"]);
const INVALID_CERTIFICATES: Names =
    Names("net.tls.allowInvalidCertificates", &["net.ssl.allowInvalidCertificates"]);
/// They mean something with TLS only, and a server that had them and no TLS would be less safe than somebody thinks.
const NEED_TLS: [&Names; 11] = [
    &KEY_FILE,
    &KEY_PASSWORD,
    &CLUSTER_FILE,
    &CLUSTER_PASSWORD,
    &CA_FILE,
    &CLUSTER_CA_FILE,
    &CRL_FILE,
    &DISABLED,
    &WITHOUT_CERTIFICATES,
    &INVALID_HOSTNAMES,
    &INVALID_CERTIFICATES,
];

impl Names {
    fn all(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.0).chain(self.1.iter().copied())
    }
    /// An option that is given under two names says two things.
    fn key(&self, s: &Settings) -> Result<Option<&'static str>, Refusal> {
        let mut given = self.all().filter(|k| s.text(k).is_some() || s.given_flag(k).is_some());
        match (given.next(), given.next()) {
            (first, None) => Ok(first),
            (_, Some(second)) => {
                let name = OPTIONS.iter().find(|o| o.key() == second).map_or(second, |o| o.cli);
                Err(format!("Error parsing command line:  Multiple occurrences of option \"{name}\""))
            }
        }
    }
    fn text<'s>(&self, s: &'s Settings) -> Result<Option<&'s str>, Refusal> {
        Ok(self.key(s)?.and_then(|k| s.text(k)))
    }
    fn flag(&self, s: &Settings) -> Result<bool, Refusal> {
        Ok(self.key(s)?.is_some_and(|k| s.flag(k)))
    }
}

/// What the options say of TLS; `None` without it.
pub(super) fn read(s: &Settings, cwd: &Path) -> Result<Option<pando_tls::Settings>, Refusal> {
    let mode = mode(s)?;
    if mode == TlsMode::Disabled {
        for names in NEED_TLS {
            if names.text(s)?.is_some() || names.flag(s)? {
                let text =
                    "need to enable TLS via the sslMode/tlsMode flag when using TLS configuration parameters";
                return Err(bad(text));
            }
        }
        protocols(s.text("net.tls.logVersions"), "tlsLogVersions", false)?;
        return Ok(None);
    }
    let path = |names: Names| Ok::<_, Refusal>(names.text(s)?.map(|p| cwd.join(p)));
    let secret = |names: Names| Ok::<_, Refusal>(names.text(s)?.map(|p| p.to_owned().into()));
    let tls = pando_tls::Settings {
        mode,
        certificate_key_file: path(KEY_FILE)?,
        certificate_key_password: secret(KEY_PASSWORD)?,
        cluster_file: path(CLUSTER_FILE)?,
        cluster_password: secret(CLUSTER_PASSWORD)?,
        ca_file: path(CA_FILE)?,
        cluster_ca_file: path(CLUSTER_CA_FILE)?,
        crl_file: path(CRL_FILE)?,
        disabled: protocols(DISABLED.text(s)?, "disabledProtocols", true)?,
        log_versions: protocols(s.text("net.tls.logVersions"), "tlsLogVersions", false)?,
        allow_no_certificate: WITHOUT_CERTIFICATES.flag(s)?,
        allow_invalid_certificates: INVALID_CERTIFICATES.flag(s)?,
        allow_invalid_hostnames: INVALID_HOSTNAMES.flag(s)?,
        ..pando_tls::Settings::default()
    };
    if tls.certificate_key_file.is_none() {
        return Err(bad("need tlsCertificateKeyFile or certificateSelector when TLS is enabled"));
    }
    if tls.ca_file.is_none() && tls.crl_file.is_some() {
        return Err(bad("need tlsCAFile with tlsCRLFile"));
    }
    // Nobody could be checked then, members among themselves included; who wants that says so.
    if tls.ca_file.is_none() && !tls.allow_invalid_certificates {
        return Err(bad(
            "The use of TLS without specifying a chain of trust is no longer supported: give a tlsCAFile",
        ));
    }
    Ok(Some(tls))
}

fn bad(text: &str) -> Refusal {
    format!("BadValue: {text}")
}

fn mode(s: &Settings) -> Result<TlsMode, Refusal> {
    if MODE.all().all(|k| s.text(k).is_some()) {
        return Err(bad("tlsMode and sslMode are the same option: give one of them"));
    }
    let on_normal_ports = ON_NORMAL_PORTS.flag(s)?;
    let given = match (s.text(MODE.0), s.text(MODE.1[0])) {
        (Some(name), _) => Some(TlsMode::from_name(name).ok_or(name)),
        (_, Some(name)) => Some(TlsMode::from_name(&name.replace("SSL", "TLS")).ok_or(name)),
        _ => None,
    };
    match given {
        Some(Err(name)) => Err(bad(&format!("unsupported value for tlsMode {name}"))),
        Some(Ok(mode)) if on_normal_ports && mode != TlsMode::Require => {
            Err(bad("tlsOnNormalPorts means tlsMode requireTLS: give one of them"))
        }
        Some(Ok(mode)) => Ok(mode),
        None if on_normal_ports => Ok(TlsMode::Require),
        None => Ok(TlsMode::Disabled),
    }
}

/// Versions between commas. What disables them may say `none`, and `noTLS1_0` for `TLS1_0`.
fn protocols(text: Option<&str>, option: &str, disables: bool) -> Result<Vec<Protocol>, Refusal> {
    let Some(text) = text.filter(|t| !(disables && *t == "none")) else { return Ok(Vec::new()) };
    let version = |name: &str| {
        let plain = if disables { name.strip_prefix("no").unwrap_or(name) } else { name };
        Protocol::from_name(plain).ok_or_else(|| bad(&format!("Unrecognized {option} '{name}'")))
    };
    text.split(',').map(str::trim).map(version).collect()
}

const SECRETS: [&Names; 2] = [&KEY_PASSWORD, &CLUSTER_PASSWORD];
const HIDDEN: &str = "<password>";

/// Without the passwords, as logs and `getCmdLineOpts` show a command line.
pub(super) fn without_secrets(argv: Vec<String>) -> Vec<String> {
    let names: Vec<&str> = OPTIONS
        .iter()
        .filter(|o| SECRETS.iter().any(|s| s.all().any(|k| k == o.key())))
        .map(|o| o.cli)
        .collect();
    let mut next_is_secret = false;
    let mut shown = Vec::new();
    for arg in argv {
        let name = arg.trim_start_matches('-');
        let (name, has_value) = name.split_once('=').map_or((name, false), |(name, _)| (name, true));
        let names_one = arg.starts_with('-') && names.contains(&name);
        shown.push(match (std::mem::take(&mut next_is_secret), names_one && has_value) {
            (true, _) => HIDDEN.to_owned(),
            (_, true) => format!("--{name}={HIDDEN}"),
            _ => {
                next_is_secret = names_one;
                arg
            }
        });
    }
    shown
}

/// The secrets themselves.
pub fn secrets_of(argv: &[String]) -> Vec<&str> {
    let shown = without_secrets(argv.to_vec());
    let differs = argv.iter().zip(shown).filter(|(arg, shown)| *arg != shown);
    differs
        .map(|(arg, shown)| match shown == HIDDEN {
            true => arg.as_str(),
            false => arg.split_once('=').map_or("", |(_, secret)| secret),
        })
        .collect()
}

/// The same of the settings as a tree.
pub(super) fn hide_secrets(parsed: &mut Document) {
    SECRETS.iter().flat_map(|s| s.all()).for_each(|key| hide(parsed, key));
}

fn hide(at: &mut Document, key: &str) {
    match key.split_once('.') {
        Some((head, rest)) => {
            if let Some(Bson::Document(inner)) = at.get_mut(head) {
                hide(inner, rest);
            }
        }
        None => {
            if let Some(value) = at.get_mut(key) {
                *value = Bson::from(HIDDEN);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::super::parse::{command_line, config_file};
    use super::*;

    fn config(line: &str) -> Result<Config, Refusal> {
        let args: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
        Config::from_settings(&command_line(&args)?, args, Path::new("/w"))
    }
    fn tls(line: &str) -> pando_tls::Settings {
        config(line).unwrap().tls.unwrap()
    }

    #[test]
    fn every_name_leads_to_the_same_settings() {
        let new = tls(
            "--tlsMode requireTLS --tlsCertificateKeyFile s.pem --tlsCAFile ca.pem --tlsClusterFile c.pem",
        );
        assert_eq!(new.certificate_key_file.as_deref(), Some(Path::new("/w/s.pem")));
        assert_eq!(new.ca_file.as_deref(), Some(Path::new("/w/ca.pem")));
        assert_eq!(new.cluster_file.as_deref(), Some(Path::new("/w/c.pem")));
        let old = tls(
            "--sslMode requireSSL --sslPEMKeyFile s.pem --sslCAFile ca.pem --sslWeakCertificateValidation",
        );
        assert_eq!((old.mode, old.certificate_key_file), (TlsMode::Require, new.certificate_key_file));
        assert!(old.allow_no_certificate && !new.allow_no_certificate);
        let file = "net:\n  tls:\n    mode: preferTLS\n    certificateKeyFile: s.pem\n    CAFile: ca.pem\n    \
                    allowInvalidHostnames: true\n    disabledProtocols: noTLS1_0,TLS1_2\n    logVersions: TLS1_3\n";
        let c = Config::from_settings(&config_file(file).unwrap(), Vec::new(), Path::new("/w")).unwrap();
        let c = c.tls.unwrap();
        assert_eq!((c.mode, c.disabled), (TlsMode::Prefer, vec![Protocol::V1_0, Protocol::V1_2]));
        assert!(c.allow_invalid_hostnames && c.log_versions == [Protocol::V1_3]);
        assert!(config("--port 1").unwrap().tls.is_none());
        assert!(config("--tlsMode disabled").unwrap().tls.is_none());
    }

    // The words are those of a server 6.0.5, but for the two names of one option, and for TLS without an authority.
    #[test]
    fn what_is_not_clear_is_refused() {
        const KEY: &str = "--tlsMode requireTLS --tlsCertificateKeyFile s.pem";
        for (line, text) in [
            (
                "--tlsMode requireTLS".to_owned(),
                "need tlsCertificateKeyFile or certificateSelector when TLS is enabled",
            ),
            ("--tlsMode foo".to_owned(), "unsupported value for tlsMode foo"),
            ("--tlsMode requireSSL".to_owned(), "unsupported value for tlsMode requireSSL"),
            ("--tlsCAFile ca.pem".to_owned(), "need to enable TLS via the sslMode/tlsMode flag when using"),
            (
                "--tlsMode disabled --tlsCRLFile x".to_owned(),
                "need to enable TLS via the sslMode/tlsMode flag when using",
            ),
            (
                "--tlsDisabledProtocols TLS1_0".to_owned(),
                "need to enable TLS via the sslMode/tlsMode flag when using",
            ),
            (format!("{KEY} --tlsCRLFile x"), "need tlsCAFile with tlsCRLFile"),
            (KEY.to_owned(), "The use of TLS without specifying a chain of trust is no longer supported"),
            (
                format!("{KEY} --tlsCAFile c --tlsDisabledProtocols foo"),
                "Unrecognized disabledProtocols 'foo'",
            ),
            (
                format!("{KEY} --tlsCAFile c --tlsDisabledProtocols none,TLS1_0"),
                "Unrecognized disabledProtocols 'none'",
            ),
            (format!("{KEY} --tlsCAFile c --tlsLogVersions none"), "Unrecognized tlsLogVersions 'none'"),
            (format!("{KEY} --tlsCAFile c --sslMode disabled"), "tlsMode and sslMode are the same option"),
            (
                format!("{KEY} --tlsCAFile c --sslPEMKeyFile s"),
                "Multiple occurrences of option \"sslPEMKeyFile\"",
            ),
            ("--tlsOnNormalPorts --tlsMode allowTLS".to_owned(), "tlsOnNormalPorts means tlsMode requireTLS"),
            ("--tlsFIPSMode".to_owned(), "unrecognised option '--tlsFIPSMode'"),
            (
                "--tlsCertificateSelector subject=x".to_owned(),
                "unrecognised option '--tlsCertificateSelector'",
            ),
        ] {
            let said = config(&line).unwrap_err();
            assert!(said.contains(text), "{line}: {said}");
        }
        assert!(config(&format!("{KEY} --tlsAllowInvalidCertificates")).is_ok());
    }

    #[test]
    fn passwords_are_shown_nowhere() {
        let c = config(
            "--tlsMode requireTLS --tlsCertificateKeyFile s --tlsCAFile c --tlsCertificateKeyFilePassword pw1 \
             --tlsClusterPassword=pw2 --dbpath pw",
        )
        .unwrap();
        let password = |p: &Option<_>| p.as_ref().map(|p: &zeroize::Zeroizing<String>| p.to_string());
        let tls = c.tls.as_ref().unwrap();
        assert_eq!(password(&tls.certificate_key_password).as_deref(), Some("pw1"));
        assert_eq!(password(&tls.cluster_password).as_deref(), Some("pw2"));
        let shown = format!("{c:?}");
        assert!(!shown.contains("pw1") && !shown.contains("pw2"), "{shown}");
        assert!(c.argv.contains(&"--tlsClusterPassword=<password>".to_owned()));
    }
}
