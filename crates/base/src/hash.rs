//! Hash maps whose iteration order depends only on their contents and history, so that a simulated run
//! repeats exactly. Not for keys an attacker chooses: those go into a `BTreeMap`.

use std::hash::{BuildHasherDefault, Hasher};

/// FNV-1a with a final mix: short keys, no seed.
#[derive(Clone)]
pub struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for b in bytes {
            self.0 = (self.0 ^ u64::from(*b)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0 ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    fn write_u32(&mut self, n: u32) {
        self.write_u64(u64::from(n));
    }
    fn finish(&self) -> u64 {
        let x = self.0 ^ (self.0 >> 32);
        x.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

// What everybody else must not name: these repeat their order.
#[allow(clippy::disallowed_types)]
pub type HashMap<K, V> = std::collections::HashMap<K, V, BuildHasherDefault<Fnv>>;
#[allow(clippy::disallowed_types)]
pub type HashSet<K> = std::collections::HashSet<K, BuildHasherDefault<Fnv>>;
