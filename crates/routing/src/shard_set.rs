//! A set of a collection's shards, by their numbers in its chunk map.

/// Bits; grows with the highest number.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ShardSet {
    words: Vec<u64>,
    len: usize,
}

impl ShardSet {
    pub fn new() -> ShardSet {
        ShardSet::default()
    }
    /// Whether it was not there yet.
    pub fn insert(&mut self, shard: u32) -> bool {
        let (word, bit) = (shard as usize / 64, 1u64 << (shard % 64));
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        self.len += usize::from(new);
        new
    }
    pub fn contains(&self, shard: u32) -> bool {
        self.words.get(shard as usize / 64).is_some_and(|w| w & (1 << (shard % 64)) != 0)
    }
    pub fn len(&self) -> usize {
        self.len
    }
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// In ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.words.iter().enumerate().flat_map(|(i, w)| {
            let bits = (0..64).filter(move |b| w & (1 << b) != 0);
            bits.map(move |b| i as u32 * 64 + b)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_counted_once() {
        let mut s = ShardSet::new();
        assert!(s.insert(900) && s.insert(3) && !s.insert(900) && s.insert(63) && s.insert(64));
        assert_eq!(s.iter().collect::<Vec<_>>(), [3, 63, 64, 900]);
        assert!(s.len() == 4 && s.contains(64) && !s.contains(65) && !s.contains(5000));
    }
}
