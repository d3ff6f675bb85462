//! What both mechanisms compute, with one of two hashes.

use crate::Mechanism;
use hmac::{Hmac, KeyInit, Mac};
use sha1::{Digest, Sha1};
use sha2::Sha256;
use std::fmt;
use subtle::ConstantTimeEq;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// A digest of a mechanism: a key, a proof or a signature. `==` takes the same time wherever two differ, and `{:?}` shows nothing.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Key {
    bytes: [u8; 32],
    size: usize,
}

impl Key {
    /// `None` when it is not as long as the mechanism's digests.
    pub fn of_bytes(mechanism: Mechanism, from: &[u8]) -> Option<Key> {
        (from.len() == mechanism.size()).then(|| Key::copied(from))
    }
    fn copied(from: &[u8]) -> Key {
        let mut bytes = [0; 32];
        bytes[..from.len()].copy_from_slice(from);
        Key { bytes, size: from.len() }
    }
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.size]
    }
    /// Each bit that differs between the two.
    pub(crate) fn xor(&self, other: &Key) -> Key {
        let mut out = self.clone();
        out.bytes.iter_mut().zip(other.bytes).for_each(|(a, b)| *a ^= b);
        out
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        self.bytes().ct_eq(other.bytes()).into()
    }
}
impl Eq for Key {}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

pub(crate) fn hash(mechanism: Mechanism, text: &[u8]) -> Key {
    match mechanism {
        Mechanism::ScramSha1 => Key::copied(&Sha1::digest(text)),
        Mechanism::ScramSha256 => Key::copied(&Sha256::digest(text)),
    }
}

pub(crate) fn hmac(mechanism: Mechanism, key: &[u8], text: &[u8]) -> Key {
    fn of<M: Mac + KeyInit>(key: &[u8], text: &[u8]) -> Key {
        let mac = <M as KeyInit>::new_from_slice(key).expect("a key of HMAC may have any length");
        Key::copied(&mac.chain_update(text).finalize().into_bytes())
    }
    match mechanism {
        Mechanism::ScramSha1 => of::<Hmac<Sha1>>(key, text),
        Mechanism::ScramSha256 => of::<Hmac<Sha256>>(key, text),
    }
}

/// RFC 5802's `Hi`: the password hashed `iterations` times with its salt.
pub(crate) fn salted(mechanism: Mechanism, password: &[u8], salt: &[u8], iterations: u32) -> Key {
    let mut out = Key { bytes: [0; 32], size: mechanism.size() };
    let room = &mut out.bytes[..mechanism.size()];
    match mechanism {
        Mechanism::ScramSha1 => pbkdf2::pbkdf2_hmac::<Sha1>(password, salt, iterations, room),
        Mechanism::ScramSha256 => pbkdf2::pbkdf2_hmac::<Sha256>(password, salt, iterations, room),
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 5802, section 5: the password "pencil" of its example.
    #[test]
    fn the_example_of_rfc_5802() {
        let salt = pando_bson::extjson::unbase64("QSXCR+Q6sek8bf92").unwrap();
        let salted = salted(Mechanism::ScramSha1, b"pencil", &salt, 4096);
        let server = hmac(Mechanism::ScramSha1, salted.bytes(), b"Server Key");
        let all = "n=user,r=fyko+d2lbbFgONRv9qkxdawL,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096,\
                   c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j";
        let signature = hmac(Mechanism::ScramSha1, server.bytes(), all.as_bytes());
        assert_eq!(pando_bson::extjson::base64(signature.bytes()), "rmF9pqV8S7suAoZWja4dJRkFsKQ=");
    }
}
