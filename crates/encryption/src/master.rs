//! Where the master key comes from: files now, a key service by the same trait.

use crate::keys::Secret;
use pando_base::{Error, Result};
use pando_bson::extjson::unbase64;
use ring::hkdf::{HKDF_SHA256, Salt};
use std::fmt;
use zeroize::{Zeroize, Zeroizing};

/// Seals a key store. 32 bytes, overwritten in memory when dropped.
#[derive(Clone)]
pub struct MasterKey(Secret);

impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MasterKey({})", self.fingerprint())
    }
}

impl MasterKey {
    pub fn new(bytes: [u8; 32]) -> MasterKey {
        MasterKey(Zeroizing::new(bytes))
    }
    /// The text of a key file: 32 bytes in base64, with white space around them. `name` is the file's, for the error.
    pub fn parse(name: &str, text: &str) -> Result<MasterKey> {
        let wrong = || {
            Error::bad_value(format!(
                "the encryption key file {name} has to hold 32 bytes in base64 (openssl rand -base64 32)"
            ))
        };
        let mut bytes = unbase64(text.trim()).ok_or_else(wrong)?;
        let key = <[u8; 32]>::try_from(&bytes[..]).map(MasterKey::new).map_err(|_| wrong());
        bytes.zeroize();
        key
    }
    pub(crate) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
    /// Tells keys apart and says nothing of them: sixteen digits.
    pub fn fingerprint(&self) -> String {
        let prk = Salt::new(HKDF_SHA256, b"PandoDB").extract(&*self.0);
        let mut out = [0; 32];
        let okm = prk.expand(&[b"fingerprint of a master key"], HKDF_SHA256);
        okm.and_then(|okm| okm.fill(&mut out)).expect("HKDF gives 32 bytes");
        out[..8].iter().map(|b| format!("{b:02x}")).collect()
    }
}

/// A source of master keys, shaped as a key service is (KMIP: Get, Create).
pub trait MasterKeys: Send + Sync {
    /// The key of this name, or `None` when the source has none. An error when it cannot be asked.
    fn get(&self, id: &str) -> Result<Option<MasterKey>>;
    /// A key to seal a key store with, and its name.
    fn create(&self) -> Result<(String, MasterKey)>;
    /// Whether a key store that is sealed with the key `id` shall be sealed with another one ([`MasterKeys::create`]).
    fn replaces(&self, id: &str) -> bool;
    /// What this source is, for a message: "the key file /etc/key".
    fn describe(&self) -> String;
}

/// The key of a file, and that of another one which it replaces. Their names are their fingerprints.
pub struct KeyFiles {
    pub path: String,
    pub key: MasterKey,
    pub replaced: Option<MasterKey>,
}

impl MasterKeys for KeyFiles {
    fn get(&self, id: &str) -> Result<Option<MasterKey>> {
        let known = [Some(&self.key), self.replaced.as_ref()];
        Ok(known.into_iter().flatten().find(|key| key.fingerprint() == id).cloned())
    }
    fn create(&self) -> Result<(String, MasterKey)> {
        Ok((self.key.fingerprint(), self.key.clone()))
    }
    fn replaces(&self, id: &str) -> bool {
        self.key.fingerprint() != id
    }
    fn describe(&self) -> String {
        format!("the key file {} (key {})", self.path, self.key.fingerprint())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_file_holds_32_bytes_in_base64() {
        let text = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n";
        let key = MasterKey::parse("k", text).expect("a key");
        assert_eq!(key.bytes()[..4], [0, 1, 2, 3]);
        for wrong in ["", "AAEC", "not base64!", &"A".repeat(64)] {
            let e = MasterKey::parse("/etc/k", wrong).expect_err("no key");
            assert!(e.message.contains("/etc/k") && e.message.contains("32 bytes"), "{e}");
        }
    }

    #[test]
    fn a_key_shows_its_fingerprint_and_nothing_else() {
        let key = MasterKey::new([1; 32]);
        assert_eq!(format!("{key:?}"), format!("MasterKey({})", key.fingerprint()));
        assert_ne!(key.fingerprint(), MasterKey::new([2; 32]).fingerprint());
        assert_eq!(key.fingerprint().len(), 16);
    }
}
