//! `auditLog`: what is recorded, and where.

use super::table::{Kind::Text, Opt, opt, refused};
use super::{Refusal, Settings};
use pando_audit::{Filter, Format};
use std::path::{Path, PathBuf};

const RUNTIME: &str = "not supported: the audit log is configured by options of each server";

pub(super) const OPTIONS: &[Opt] = &[
    opt("auditDestination", "auditLog.destination", Text, "Where audit events go: file, syslog or console"),
    opt("auditFormat", "auditLog.format", Text, "Form of events in a file: JSON or BSON"),
    opt("auditPath", "auditLog.path", Text, "File of the audit log"),
    opt("auditFilter", "auditLog.filter", Text, "Query in JSON; events that match it are recorded"),
    refused("", "auditLog.runtimeConfiguration", super::table::Kind::Flag, RUNTIME),
    refused("auditEncryptionKeyIdentifier", "auditLog.auditEncryptionKeyIdentifier", Text, "not supported"),
    refused("auditCompressionMode", "auditLog.compressionMode", Text, "not supported"),
    refused("auditSchema", "auditLog.schema", Text, "not supported: events have MongoDB's own form"),
];

/// Where events go.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Destination {
    Console,
    Syslog,
    File {
        path: PathBuf,
        /// `--logRotate reopen`: a rotation opens the name again.
        reopen: bool,
    },
}

/// What is asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Audit {
    pub destination: Destination,
    pub format: Format,
    /// A query in JSON, which has been read without a mistake.
    pub filter: Option<String>,
}

/// From checked settings; relative paths are taken from `cwd`. `None` without a destination.
pub(super) fn of_settings(s: &Settings, cwd: &Path) -> Result<Option<Audit>, Refusal> {
    let format = match s.text("auditLog.format") {
        None => None,
        Some("JSON") => Some(Format::Json),
        Some("BSON") => Some(Format::Bson),
        Some(other) => {
            return Err(format!("BadValue: invalid auditFormat {other}: expected JSON or BSON"));
        }
    };
    let path = s.text("auditLog.path");
    let filter = s.text("auditLog.filter").map(str::to_owned);
    let destination = match s.text("auditLog.destination") {
        None => {
            let given = [
                ("--auditFormat", format.is_some()),
                ("--auditPath", path.is_some()),
                ("--auditFilter", filter.is_some()),
            ];
            return match given.iter().find(|(_, given)| *given) {
                Some((name, _)) => Err(format!("BadValue: {name} has to be used with --auditDestination")),
                None => Ok(None),
            };
        }
        Some("file") => match (path, format) {
            (Some(path), Some(_)) => Destination::File {
                path: cwd.join(path),
                reopen: s.text("systemLog.logRotate") == Some("reopen"),
            },
            (None, _) => return Err("BadValue: --auditDestination file needs --auditPath".to_owned()),
            (_, None) => return Err("BadValue: --auditDestination file needs --auditFormat".to_owned()),
        },
        Some("console") => Destination::Console,
        Some("syslog") => Destination::Syslog,
        Some(other) => {
            return Err(format!(
                "BadValue: invalid auditDestination {other}: expected file, syslog or console"
            ));
        }
    };
    if !matches!(destination, Destination::File { .. }) {
        if path.is_some() {
            return Err("BadValue: --auditPath can only be used with --auditDestination file".to_owned());
        }
        if format == Some(Format::Bson) {
            let text = "BadValue: --auditFormat BSON can only be used with --auditDestination file";
            return Err(text.to_owned());
        }
    }
    if let Some(filter) = &filter {
        Filter::parse(filter).map_err(|e| format!("BadValue: {}", e.message))?;
    }
    Ok(Some(Audit { destination, format: format.unwrap_or_default(), filter }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::parse::{command_line, config_file};

    fn of(words: &[&str]) -> Result<Option<Audit>, Refusal> {
        let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
        of_settings(&command_line(&words)?, Path::new("/var"))
    }

    #[test]
    fn options_by_both_names() {
        assert_eq!(of(&[]), Ok(None));
        let file = |reopen| Audit {
            destination: Destination::File { path: "/var/a.json".into(), reopen },
            format: Format::Json,
            filter: None,
        };
        let words = ["--auditDestination", "file", "--auditFormat", "JSON", "--auditPath", "a.json"];
        assert_eq!(of(&words), Ok(Some(file(false))));
        let text = "systemLog:\n  logRotate: reopen\n  logAppend: true\n  destination: file\n  path: l\nauditLog:\n  \
                    destination: file\n  format: JSON\n  path: a.json\n";
        assert_eq!(of_settings(&config_file(text).unwrap(), Path::new("/var")), Ok(Some(file(true))));
        let words = ["--auditDestination", "console", "--auditFilter", "{atype: 'authCheck'}"];
        let console = of(&words).unwrap().unwrap();
        assert_eq!(console.destination, Destination::Console);
        let text = "auditLog:\n  destination: syslog\n  filter: '{ atype: { $in: [ \"createUser\" ] } }'\n";
        let syslog = of_settings(&config_file(text).unwrap(), Path::new("/")).unwrap().unwrap();
        assert_eq!(syslog.destination, Destination::Syslog);
        assert!(syslog.filter.is_some());
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        for (words, says) in [
            (&["--auditPath", "a"][..], "has to be used with --auditDestination"),
            (&["--auditFilter", "{}"], "has to be used with --auditDestination"),
            (&["--auditDestination", "pigeon"], "expected file, syslog or console"),
            (&["--auditDestination", "file", "--auditFormat", "JSON"], "needs --auditPath"),
            (&["--auditDestination", "file", "--auditPath", "a"], "needs --auditFormat"),
            (&["--auditDestination", "console", "--auditPath", "a"], "can only be used with"),
            (&["--auditDestination", "syslog", "--auditFormat", "BSON"], "can only be used with"),
            (&["--auditDestination", "console", "--auditFormat", "XML"], "expected JSON or BSON"),
            (&["--auditDestination", "console", "--auditFilter", "{a"], "Failed to parse the audit filter"),
            (
                &["--auditDestination", "console", "--auditFilter", "{a: {$nope: 1}}"],
                "unknown operator: $nope",
            ),
            (&["--auditDestination", "console", "--auditFilter", "{$where: '1'}"], "Failed to parse"),
            (
                &["--auditDestination", "console", "--auditFilter", "{$text: {$search: 'a'}}"],
                "Failed to parse",
            ),
        ] {
            let refused = of(words).unwrap_err();
            assert!(refused.contains(says), "{words:?}: {refused}");
        }
    }
}
