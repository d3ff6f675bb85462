//! `$clusterTime`: a time that servers and clients hand on, and the proof that a server has made it (T-CC-2, T-CC-3).
//!
//! ```text
//! admin.system.keys ─► Keys ─┬─ sign(time)          ─► reply
//!                            └─ check(time, proof)  ◄─ request
//! ```
//! Whoever could make up a time could push all clocks of a set to their end. Keys are made by the primary, a generation
//! ahead, and each is good until a cluster time of its own. Nothing here reads a clock or a collection.

use hmac::{Hmac, KeyInit, Mac};
use pando_base::{Error, ErrorCode, Result, Timestamp, limits};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};
use sha1::Sha1;

/// Bytes of a key and of a proof.
pub const BYTES: usize = 20;
/// Times that differ in these bits only have one proof, so that not every reply costs one. They are of one second.
const SAME_PROOF: u64 = (1 << 18) - 1;
const PURPOSE: &str = "HMAC";

/// `signature` of a `$clusterTime`; zeros where nothing is signed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Signature {
    pub hash: [u8; BYTES],
    pub key_id: i64,
}

impl Signature {
    /// What is not there counts as zero: no key has that number.
    pub fn parse(doc: &RawDoc) -> Signature {
        let hash = match doc.get("hash") {
            Some(Value::Binary { bytes, .. }) => bytes.try_into().unwrap_or_default(),
            _ => [0; BYTES],
        };
        Signature { hash, key_id: doc.get("keyId").and_then(|v| v.as_i64()).unwrap_or_default() }
    }
    fn append(&self, d: &mut DocBuilder) {
        d.binary("hash", 0, &self.hash).i64("keyId", self.key_id);
    }
}

/// `$clusterTime` of a reply, or of a request to another node.
pub fn append(b: &mut DocBuilder, time: Timestamp, signature: &Signature) {
    b.doc("$clusterTime", |c| {
        c.timestamp("clusterTime", time);
        c.doc("signature", |s| signature.append(s));
    });
}

/// A document of `admin.system.keys`.
#[derive(Clone, PartialEq, Eq)]
pub struct Key {
    pub id: i64,
    pub secret: [u8; BYTES],
    /// It signs times before this one.
    pub expires_at: Timestamp,
}

impl Key {
    pub fn parse(doc: &RawDoc) -> Option<Key> {
        let (Some(Value::Int64(id)), Some(Value::Timestamp(expires_at))) =
            (doc.get("_id"), doc.get("expiresAt"))
        else {
            return None;
        };
        let Some(Value::Binary { bytes, .. }) = doc.get("key") else { return None };
        let ours = doc.get("purpose").and_then(|v| v.as_str()) == Some(PURPOSE);
        ours.then_some(Key { id, secret: bytes.try_into().ok()?, expires_at })
    }
    pub fn to_doc(&self) -> DocBuf {
        let mut b = DocBuilder::new();
        b.i64("_id", self.id).str("purpose", PURPOSE);
        b.binary("key", 0, &self.secret).timestamp("expiresAt", self.expires_at);
        b.finish()
    }
    fn mac(&self, time: Timestamp) -> Hmac<Sha1> {
        let mut mac = Hmac::<Sha1>::new_from_slice(&self.secret).expect("keys of any length");
        mac.update(&(time.0 | SAME_PROOF).to_le_bytes());
        mac
    }
}

/// The keys that a server knows, and the proof that it gave last.
#[derive(Default)]
pub struct Keys {
    by_end: Vec<Key>,
    last: Option<(u64, Signature)>,
}

impl Keys {
    pub fn new(mut keys: Vec<Key>) -> Keys {
        keys.sort_by_key(|k| (k.expires_at, k.id));
        Keys { by_end: keys, last: None }
    }
    /// The key that signs `time`.
    fn for_signing(&self, time: Timestamp) -> Option<&Key> {
        self.by_end.iter().find(|k| k.expires_at > time)
    }
    /// `None` when no key is good for `time`.
    pub fn sign(&mut self, time: Timestamp) -> Option<Signature> {
        let range = time.0 | SAME_PROOF;
        if let Some((_, signature)) = self.last.filter(|(of, _)| *of == range) {
            return Some(signature);
        }
        let key = self.for_signing(time)?;
        let hash = key.mac(time).finalize().into_bytes().into();
        let signature = Signature { hash, key_id: key.id };
        self.last = Some((range, signature));
        Some(signature)
    }
    /// Code 211 for a key that is not known or not good for `time`, 204 for a time that the key's holders did not sign.
    pub fn check(&self, time: Timestamp, signature: &Signature) -> Result<()> {
        let known = self.by_end.iter().find(|k| k.id == signature.key_id && k.expires_at > time);
        let Some(key) = known else {
            return Err(Error::new(
                ErrorCode::KeyNotFound,
                format!(
                    "No keys found for HMAC that is valid for time: {time} with id: {}",
                    signature.key_id
                ),
            ));
        };
        key.mac(time)
            .verify_slice(&signature.hash)
            .map_err(|_| Error::new(ErrorCode::TimeProofMismatch, "Proof does not match the cluster time"))
    }
    /// The keys to be made now: one that is good now, and the one behind it. `secret` makes their bytes.
    pub fn missing(
        &self,
        now: Timestamp,
        interval_secs: u32,
        mut secret: impl FnMut() -> [u8; BYTES],
    ) -> Vec<Key> {
        let newest = self.by_end.iter().map(|k| k.id).max().unwrap_or(0);
        let first_id = newest.max(now.0 as i64) + 1;
        let behind = |end: Timestamp| Timestamp::new(end.secs().saturating_add(interval_secs), 0);
        let mut made: Vec<Key> = Vec::new();
        let mut good = self.by_end.iter().filter(|k| k.expires_at > now).map(|k| k.expires_at);
        let mut end = now;
        for n in 0..limits::CLUSTER_TIME_KEYS_AHEAD {
            end = good.next().unwrap_or_else(|| {
                let key = Key { id: first_id + n as i64, secret: secret(), expires_at: behind(end) };
                made.push(key);
                behind(end)
            });
        }
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u32 = 24 * 3600;
    fn at(secs: u32) -> Timestamp {
        Timestamp::new(secs, 1)
    }
    fn key(id: i64, end: u32) -> Key {
        Key { id, secret: [id as u8; BYTES], expires_at: at(end) }
    }
    fn code(keys: &Keys, time: Timestamp, s: Signature) -> i32 {
        keys.check(time, &s).map_or_else(|e| e.code.0, |()| 0)
    }

    #[test]
    fn a_time_that_nobody_signed_is_refused() {
        let mut keys = Keys::new(vec![key(2, 200), key(1, 100)]);
        let s = keys.sign(at(50)).unwrap();
        assert_eq!((s.key_id, code(&keys, at(50), s)), (1, 0));
        assert_eq!(code(&keys, at(51), s), 204, "another time");
        assert_eq!(code(&keys, at(50), Signature { key_id: 2, ..s }), 204, "another key");
        assert_eq!(code(&keys, at(50), Signature { key_id: 3, ..s }), 211);
        assert_eq!(code(&keys, at(50), Signature::default()), 211, "unsigned");
        let mut bent = s;
        bent.hash[0] ^= 1;
        assert_eq!(code(&keys, at(50), bent), 204);
    }
    #[test]
    fn the_next_key_signs_when_the_first_has_ended() {
        let mut keys = Keys::new(vec![key(1, 100), key(2, 200)]);
        let old = keys.sign(at(99)).unwrap();
        let new = keys.sign(at(150)).unwrap();
        assert_eq!((old.key_id, new.key_id), (1, 2));
        assert_eq!(code(&keys, at(99), old), 0, "still good for the times that it signed");
        assert_eq!(code(&keys, at(150), Signature { key_id: 1, ..new }), 211, "not for later ones");
        assert_eq!(keys.sign(at(200)), None);
    }
    #[test]
    fn keys_are_made_a_generation_ahead() {
        let secret = || [7; BYTES];
        let ends = |made: &[Key]| made.iter().map(|k| k.expires_at.secs()).collect::<Vec<_>>();
        let first = Keys::default().missing(at(1000), DAY, secret);
        assert_eq!(ends(&first), [1000 + DAY, 1000 + 2 * DAY]);
        assert!(first[0].id < first[1].id);
        let keys = Keys::new(first.clone());
        assert!(keys.missing(at(1000), DAY, secret).is_empty());
        let later = at(1001 + DAY);
        let next = keys.missing(later, DAY, secret);
        assert_eq!(ends(&next), [1000 + 3 * DAY]);
        assert!(next[0].id > first[1].id);
        // After a long rest none is good.
        assert_eq!(keys.missing(at(1000 + 9 * DAY), DAY, secret).len(), 2);
    }
    #[test]
    fn a_key_is_what_its_document_says() {
        let k = key(5, 9);
        assert!(Key::parse(&k.to_doc()) == Some(k));
        assert!(Key::parse(RawDoc::empty()).is_none());
    }
    #[test]
    fn times_of_a_second_share_a_proof() {
        let mut keys = Keys::new(vec![key(1, u32::MAX)]);
        let a = keys.sign(Timestamp::new(5, 1)).unwrap();
        assert_eq!(keys.sign(Timestamp::new(5, 9)).unwrap(), a);
        assert_ne!(keys.sign(Timestamp::new(6, 1)).unwrap(), a);
    }
}
