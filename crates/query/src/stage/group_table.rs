//! The hash table of `$group`: from key bytes to group numbers 0, 1, 2, ...
//!
//! Keys lie end to end in one buffer, slots hold group numbers, so looking a key up allocates nothing. The hash is
//! seeded per operation: nobody can prepare keys that collide.

pub(super) struct GroupTable {
    /// Group number + 1, 0 = empty; a power of two of them, at most half full.
    slots: Vec<u32>,
    hashes: Vec<u64>,
    /// Where each key ends in `keys`.
    ends: Vec<usize>,
    keys: Vec<u8>,
    seed: u64,
}

const FIRST_SLOTS: usize = 64;
/// Slot pair, hash and end of one key.
pub(super) const GROUP_OVERHEAD_BYTES: usize = 24;

impl GroupTable {
    pub(super) fn new(seed: u64) -> GroupTable {
        GroupTable {
            slots: vec![0; FIRST_SLOTS],
            hashes: Vec::new(),
            ends: Vec::new(),
            keys: Vec::new(),
            seed,
        }
    }
    pub(super) fn len(&self) -> usize {
        self.hashes.len()
    }
    pub(super) fn key(&self, group: usize) -> &[u8] {
        let start = if group == 0 { 0 } else { self.ends[group - 1] };
        &self.keys[start..self.ends[group]]
    }
    /// The group of this key, and whether it is new.
    #[inline]
    pub(super) fn find_or_add(&mut self, key: &[u8]) -> (usize, bool) {
        let hash = hash(self.seed, key);
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            match self.slots[at] {
                0 => break,
                n => {
                    let group = n as usize - 1;
                    if self.hashes[group] == hash && self.key(group) == key {
                        return (group, false);
                    }
                }
            }
            at = (at + 1) & mask;
        }
        let group = self.hashes.len();
        self.slots[at] = group as u32 + 1;
        self.hashes.push(hash);
        self.keys.extend_from_slice(key);
        self.ends.push(self.keys.len());
        if (group + 1) * 2 > self.slots.len() {
            self.grow();
        }
        (group, true)
    }

    fn grow(&mut self) {
        let mask = self.slots.len() * 2 - 1;
        let mut slots = vec![0u32; mask + 1];
        for (group, hash) in self.hashes.iter().enumerate() {
            let mut at = *hash as usize & mask;
            while slots[at] != 0 {
                at = (at + 1) & mask;
            }
            slots[at] = group as u32 + 1;
        }
        self.slots = slots;
    }
}

/// Eight bytes at a time, multiplied and folded.
fn hash(seed: u64, key: &[u8]) -> u64 {
    const K: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |h: u64, w: u64| {
        let product = u128::from(h ^ w).wrapping_mul(u128::from(K | 1));
        (product as u64) ^ (product >> 64) as u64
    };
    let mut h = seed ^ (key.len() as u64).wrapping_mul(K);
    let mut chunks = key.chunks_exact(8);
    for c in &mut chunks {
        h = mix(h, u64::from_le_bytes([c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7]]));
    }
    let mut last = [0u8; 8];
    last[..chunks.remainder().len()].copy_from_slice(chunks.remainder());
    mix(mix(h, u64::from_le_bytes(last)), K)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_one_number_whatever_the_growth() {
        let mut t = GroupTable::new(7);
        for round in 0..2 {
            for i in 0..10_000u32 {
                let key = format!("key {i}");
                assert_eq!(t.find_or_add(key.as_bytes()), (i as usize, round == 0));
            }
        }
        assert_eq!(t.len(), 10_000);
        assert_eq!(t.key(77), b"key 77");
        assert_eq!(t.find_or_add(b""), (10_000, true));
        assert_eq!(t.find_or_add(b""), (10_000, false));
    }
}
