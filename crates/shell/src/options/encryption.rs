//! Encryption at rest: the options, and what they mean together. The files themselves are read at the start.

use super::table::{Kind, Opt, opt, refused};
use super::{Refusal, Settings};
use std::path::{Path, PathBuf};

/// What `--enableEncryption` was given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Encryption {
    pub key_file: PathBuf,
    /// The key that `key_file` replaces, while the key store may still be sealed with it.
    pub replaced_key_file: Option<PathBuf>,
    /// From this start on another data key seals.
    pub new_data_key: bool,
}

const KEY_SERVICE: &str = "key services are not supported yet: give a key file (--encryptionKeyFile)";

pub(super) const OPTIONS: &[Opt] = &[
    opt(
        "enableEncryption",
        "security.enableEncryption",
        Kind::Flag,
        "Encrypt the data folder from its first start on",
    ),
    opt(
        "encryptionKeyFile",
        "security.encryptionKeyFile",
        Kind::Text,
        "Master key: 32 bytes in base64, readable by this user alone",
    ),
    opt(
        "encryptionCipherMode",
        "security.encryptionCipherMode",
        Kind::Text,
        "AES256-GCM, the only one and the default",
    ),
    opt(
        "encryptionReplacedKeyFile",
        "security.encryptionReplacedKeyFile",
        Kind::Text,
        "Master key until now: this start replaces it by that of --encryptionKeyFile",
    ),
    opt(
        "encryptionNewDataKey",
        "security.encryptionNewDataKey",
        Kind::Flag,
        "Encrypt with another data key from this start on; older files stay readable",
    ),
    refused("kmipServerName", "security.kmip.serverName", Kind::Text, KEY_SERVICE),
    refused("kmipKeyIdentifier", "security.kmip.keyIdentifier", Kind::Text, KEY_SERVICE),
    refused("kmipRotateMasterKey", "security.kmip.rotateMasterKey", Kind::Flag, KEY_SERVICE),
];

/// From checked settings; relative paths are taken from `cwd`.
pub(super) fn of_settings(s: &Settings, cwd: &Path) -> Result<Option<Encryption>, Refusal> {
    let path = |name: &str| s.text(name).map(|p| cwd.join(p));
    let (key_file, replaced_key_file) =
        (path("security.encryptionKeyFile"), path("security.encryptionReplacedKeyFile"));
    let (mode, new_data_key) =
        (s.text("security.encryptionCipherMode"), s.flag("security.encryptionNewDataKey"));
    if !s.flag("security.enableEncryption") {
        let given = key_file.is_some() || replaced_key_file.is_some() || mode.is_some() || new_data_key;
        let text = "BadValue: the options of encryption at rest need --enableEncryption";
        return if given { Err(text.to_owned()) } else { Ok(None) };
    }
    match mode {
        None | Some("AES256-GCM") => {}
        Some("AES256-CBC") => {
            let text = "BadValue: encryptionCipherMode AES256-CBC is not supported, since it does not notice changed \
                        bytes: use AES256-GCM";
            return Err(text.to_owned());
        }
        Some(other) => {
            return Err(format!("BadValue: unknown encryptionCipherMode {other}: use AES256-GCM"));
        }
    }
    let Some(key_file) = key_file else {
        return Err("BadValue: --enableEncryption needs a master key: --encryptionKeyFile".to_owned());
    };
    Ok(Some(Encryption { key_file, replaced_key_file, new_data_key }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::parse::{command_line, config_file};

    fn of(line: &str) -> Result<Option<Encryption>, Refusal> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        of_settings(&command_line(&words)?, Path::new("/etc"))
    }

    #[test]
    fn a_key_file_encrypts_the_folder() {
        assert_eq!(of("").unwrap(), None);
        let plain =
            Encryption { key_file: PathBuf::from("/etc/k"), replaced_key_file: None, new_data_key: false };
        assert_eq!(of("--enableEncryption --encryptionKeyFile k").unwrap(), Some(plain.clone()));
        let line = "--enableEncryption --encryptionKeyFile k --encryptionCipherMode AES256-GCM \
                    --encryptionReplacedKeyFile old --encryptionNewDataKey";
        let all = Encryption {
            replaced_key_file: Some(PathBuf::from("/etc/old")),
            new_data_key: true,
            ..plain.clone()
        };
        assert_eq!(of(line).unwrap(), Some(all));
        let file = "security:\n  enableEncryption: true\n  encryptionKeyFile: k\n";
        assert_eq!(of_settings(&config_file(file).unwrap(), Path::new("/etc")).unwrap(), Some(plain));
    }

    #[test]
    fn what_is_missing_or_not_supported_is_told() {
        for (line, told) in [
            ("--enableEncryption", "--encryptionKeyFile"),
            ("--encryptionKeyFile k", "--enableEncryption"),
            ("--encryptionNewDataKey", "--enableEncryption"),
            ("--enableEncryption --encryptionKeyFile k --encryptionCipherMode AES256-CBC", "use AES256-GCM"),
            ("--enableEncryption --encryptionKeyFile k --encryptionCipherMode rot13", "use AES256-GCM"),
            ("--enableEncryption --kmipServerName h", "key services are not supported"),
        ] {
            let refusal = of(line).expect_err(line);
            assert!(refusal.contains(told), "{line}: {refusal}");
        }
    }
}
