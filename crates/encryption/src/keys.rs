//! The data keys of a folder, and what is sealed with them.
//!
//! ```text
//!   data key u64 │ salt, 12 bytes │ count u32 │ the sealed bytes … │ tag, 16 bytes        (little endian)
//!
//!   writing key = HKDF-SHA-256(data key, salt);  nonce = count;  associated data = purpose │ what the caller binds
//! ```
//! A salt is drawn when the keys are opened and whenever its writing key has been used often enough, so a count stands once under
//! its salt.

use pando_base::limits::{SEALED_PER_WRITING_KEY, WRITING_KEYS_KEPT_MAX};
use pando_base::panics::poisoned;
use pando_env::Rng;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Salt};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, RwLock};
use zeroize::Zeroizing;

const SALT: usize = 12;
const HEAD: usize = 8 + SALT + 4;
pub(crate) const TAG: usize = 16;
/// Bytes by which sealed bytes are longer.
pub const OVERHEAD: usize = HEAD + TAG;
const INFO: &[u8] = b"PandoDB writing key";
/// Bytes that a caller can bind; more is a mistake of its.
const WIDEST: usize = 31;

/// What sealed bytes are; nothing opens as something else.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// A block of a table.
    Block = 1,
    /// A record of a log.
    Record = 2,
    /// A page of any other file.
    Page = 3,
    /// A file as a whole.
    File = 4,
}

pub(crate) type Secret = Zeroizing<[u8; 32]>;

#[derive(Clone)]
pub(crate) struct DataKey {
    pub(crate) id: u64,
    pub(crate) made_ms: u64,
    pub(crate) secret: Secret,
}

/// A key that bytes are sealed with from the moment it was derived.
struct Writing {
    salt: [u8; SALT],
    key: LessSafeKey,
    used: AtomicU64,
}

/// For `serverStatus`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    pub cipher: &'static str,
    /// Of the master key.
    pub master_key_id: String,
    pub data_keys: usize,
    /// When the newest data key was made, Unix time in milliseconds.
    pub newest_ms: u64,
}

/// Seals and opens bytes. Shared by everything that writes into one data folder.
pub struct Keys {
    all: BTreeMap<u64, DataKey>,
    newest: u64,
    writing: RwLock<Arc<Writing>>,
    reading: RwLock<BTreeMap<(u64, [u8; SALT]), Arc<LessSafeKey>>>,
    rng: Arc<dyn Rng>,
    master_key_id: String,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keys({} of master key {})", self.all.len(), self.master_key_id)
    }
}

/// Exactly the bytes of an AES-256 key, by HKDF-SHA-256.
pub(crate) fn derived(secret: &[u8; 32], salt: &[u8], info: &[u8]) -> LessSafeKey {
    let parts = [info];
    let prk = Salt::new(HKDF_SHA256, salt).extract(secret);
    let okm = prk.expand(&parts, &AES_256_GCM).expect("HKDF gives 32 bytes");
    LessSafeKey::new(UnboundKey::from(okm))
}

fn nonce(count: u32) -> Nonce {
    let mut bytes = [0; NONCE_LEN];
    bytes[NONCE_LEN - 4..].copy_from_slice(&count.to_be_bytes());
    Nonce::assume_unique_for_key(bytes)
}

/// Associated data: the purpose, then what the caller binds.
struct Bound {
    bytes: [u8; 1 + WIDEST],
    len: usize,
}

impl AsRef<[u8]> for Bound {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

fn associated(purpose: Purpose, bound: &[u8]) -> Aad<Bound> {
    let mut bytes = [0; 1 + WIDEST];
    bytes[0] = purpose as u8;
    bytes[1..=bound.len()].copy_from_slice(bound);
    Aad::from(Bound { bytes, len: 1 + bound.len() })
}

impl Writing {
    fn derive(from: &DataKey, rng: &dyn Rng) -> Writing {
        let mut salt = [0; SALT];
        rng.fill(&mut salt);
        Writing { salt, key: derived(&from.secret, &salt, INFO), used: AtomicU64::new(0) }
    }
}

impl Keys {
    pub(crate) fn new(all: &[DataKey], newest: &DataKey, master_key_id: String, rng: Arc<dyn Rng>) -> Keys {
        let writing = RwLock::new(Arc::new(Writing::derive(newest, &*rng)));
        Keys {
            all: all.iter().map(|k| (k.id, k.clone())).collect(),
            newest: newest.id,
            writing,
            reading: RwLock::default(),
            rng,
            master_key_id,
        }
    }
    /// Names of all data keys, the one that seals from now on first.
    pub fn ids(&self) -> Vec<u64> {
        let others = self.all.keys().copied().filter(|id| *id != self.newest);
        std::iter::once(self.newest).chain(others).collect()
    }
    pub fn status(&self) -> Status {
        Status {
            cipher: "AES256-GCM",
            master_key_id: self.master_key_id.clone(),
            data_keys: self.all.len(),
            newest_ms: self.all[&self.newest].made_ms,
        }
    }

    /// The key that seals, and a count that nobody else gets.
    fn next(&self) -> (Arc<Writing>, u32) {
        loop {
            let writing = self.writing.read().unwrap_or_else(poisoned).clone();
            let count = writing.used.fetch_add(1, Relaxed);
            if count < SEALED_PER_WRITING_KEY {
                return (writing, count as u32);
            }
            let mut current = self.writing.write().unwrap_or_else(poisoned);
            if Arc::ptr_eq(&current, &writing) {
                *current = Arc::new(Writing::derive(&self.all[&self.newest], &*self.rng));
            }
        }
    }

    /// Appends to `out` what opens to `data`, [`OVERHEAD`] bytes longer. Whoever opens it names the same purpose and `bound`.
    pub fn seal(&self, purpose: Purpose, bound: &[u8], data: &[u8], out: &mut Vec<u8>) {
        let (writing, count) = self.next();
        out.reserve(data.len() + OVERHEAD);
        out.extend_from_slice(&self.newest.to_le_bytes());
        out.extend_from_slice(&writing.salt);
        out.extend_from_slice(&count.to_le_bytes());
        let start = out.len();
        out.extend_from_slice(data);
        let tag = writing.key.seal_in_place_separate_tag(
            nonce(count),
            associated(purpose, bound),
            &mut out[start..],
        );
        // Refused are 64 GiB and more, which no caller has.
        out.extend_from_slice(tag.expect("bytes that AES-GCM can seal").as_ref());
    }

    /// Opens in place and returns where the data lies; `None` when this was not sealed so, or by a key that is not known.
    pub fn open(&self, purpose: Purpose, bound: &[u8], sealed: &mut [u8]) -> Option<Range<usize>> {
        let (head, rest) = sealed.split_first_chunk_mut::<HEAD>()?;
        let [id, salt, count] = [&head[..8], &head[8..8 + SALT], &head[8 + SALT..]];
        let (id, salt) = (u64::from_le_bytes(id.try_into().ok()?), salt.try_into().ok()?);
        let count = u32::from_le_bytes(count.try_into().ok()?);
        let key = self.reading_key(id, salt)?;
        let data = key.open_in_place(nonce(count), associated(purpose, bound), rest).ok()?.len();
        Some(HEAD..HEAD + data)
    }
    fn reading_key(&self, id: u64, salt: [u8; SALT]) -> Option<Arc<LessSafeKey>> {
        if let Some(key) = self.reading.read().unwrap_or_else(poisoned).get(&(id, salt)) {
            return Some(key.clone());
        }
        let key = Arc::new(derived(&self.all.get(&id)?.secret, &salt, INFO));
        let mut kept = self.reading.write().unwrap_or_else(poisoned);
        if kept.len() >= WRITING_KEYS_KEPT_MAX {
            kept.clear();
        }
        kept.insert((id, salt), key.clone());
        Some(key)
    }
    /// As [`Keys::open`], for bytes that others hold.
    pub fn opened(&self, purpose: Purpose, bound: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let mut bytes = sealed.to_vec();
        let data = self.open(purpose, bound, &mut bytes)?;
        bytes.truncate(data.end);
        bytes.drain(..data.start);
        Some(bytes)
    }
    pub(crate) fn fill(&self, bytes: &mut [u8]) {
        self.rng.fill(bytes);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Counts; draws of its own for each test.
    pub(crate) struct Counting(pub(crate) AtomicU64);

    impl Rng for Counting {
        fn next_u64(&self) -> u64 {
            self.0.fetch_add(1, Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        }
    }

    pub(crate) fn key(id: u64, byte: u8) -> DataKey {
        DataKey { id, made_ms: 1, secret: Zeroizing::new([byte; 32]) }
    }
    pub(crate) fn keys(seed: u64) -> Keys {
        let key = key(7, 3);
        Keys::new(std::slice::from_ref(&key), &key, "m".into(), Arc::new(Counting(AtomicU64::new(seed))))
    }
    fn sealed(keys: &Keys, data: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        keys.seal(Purpose::Record, b"here", data, &mut out);
        out
    }

    #[test]
    fn what_is_sealed_opens_as_what_it_was_and_as_nothing_else() {
        let (a, b) = (keys(1), keys(99));
        for data in [&b""[..], b"x", &[5; 70_000]] {
            let bytes = sealed(&a, data);
            assert_eq!(bytes.len(), data.len() + OVERHEAD);
            // Another process with the same data key.
            assert_eq!(b.opened(Purpose::Record, b"here", &bytes).as_deref(), Some(data));
            assert_eq!(b.opened(Purpose::Block, b"here", &bytes), None);
            assert_eq!(b.opened(Purpose::Record, b"there", &bytes), None);
        }
    }

    #[test]
    fn no_flipped_bit_and_no_missing_byte_opens() {
        let keys = keys(1);
        let bytes = sealed(&keys, b"hello");
        for bit in 0..bytes.len() * 8 {
            let mut bad = bytes.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(keys.opened(Purpose::Record, b"here", &bad), None, "bit {bit}");
        }
        for len in 0..bytes.len() {
            assert_eq!(keys.opened(Purpose::Record, b"here", &bytes[..len]), None, "{len} bytes");
        }
    }

    #[test]
    fn no_salt_and_count_come_twice_and_a_used_up_key_is_replaced() {
        let keys = keys(1);
        let mut seen = BTreeSet::new();
        for round in 0..40 {
            if round % 10 == 9 {
                let writing = keys.writing.read().unwrap().clone();
                writing.used.store(SEALED_PER_WRITING_KEY - 1, Relaxed);
            }
            let bytes = sealed(&keys, b"same");
            assert!(seen.insert(bytes[8..HEAD].to_vec()), "round {round}");
            assert_eq!(keys.opened(Purpose::Record, b"here", &bytes).as_deref(), Some(&b"same"[..]));
        }
        let salts: BTreeSet<_> = seen.iter().map(|s| s[..SALT].to_vec()).collect();
        assert_eq!(salts.len(), 4);
    }

    #[test]
    fn bytes_of_a_data_key_that_is_not_known_do_not_open() {
        let other = key(8, 3);
        let other = Keys::new(
            std::slice::from_ref(&other),
            &other,
            "m".into(),
            Arc::new(Counting(AtomicU64::new(1))),
        );
        assert_eq!(keys(1).opened(Purpose::Record, b"here", &sealed(&other, b"x")), None);
    }

    fn hex(text: &str) -> Vec<u8> {
        (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap()).collect()
    }

    /// Test case 1 of RFC 5869, and case 14 of the GCM specification's appendix B (AES-256, one block of zeros).
    #[test]
    fn the_algorithms_are_those_of_the_standards() {
        struct Len(usize);
        impl ring::hkdf::KeyType for Len {
            fn len(&self) -> usize {
                self.0
            }
        }
        let prk = Salt::new(HKDF_SHA256, &hex("000102030405060708090a0b0c")).extract(&[0x0b; 22]);
        let info = hex("f0f1f2f3f4f5f6f7f8f9");
        let mut okm = [0; 42];
        prk.expand(&[&info], Len(42)).unwrap().fill(&mut okm).unwrap();
        let want = "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865";
        assert_eq!(okm.to_vec(), hex(want));

        let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &[0; 32]).unwrap());
        let mut block = vec![0; 16];
        key.seal_in_place_append_tag(nonce(0), Aad::empty(), &mut block).unwrap();
        assert_eq!(block, hex("cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919"));
    }

    /// A folder that was written stays readable: the derivation and the layout never change.
    #[test]
    fn bytes_of_an_earlier_version_open() {
        let bytes =
            hex("0700000000000000157c4a7fb979379e2af894fe00000000be9b0101236456749298aa01cc5810c6c030906b");
        assert_eq!(sealed(&keys(1), b"kept"), bytes);
        assert_eq!(keys(2).opened(Purpose::Record, b"here", &bytes).as_deref(), Some(&b"kept"[..]));
    }
}
