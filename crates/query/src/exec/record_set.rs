//! Records that a plan has met already, so that it gives each only once.
//!
//! Ids of one collection lie close together, so they are kept as a bitmap in pieces of 65,536: a piece with few
//! members is a sorted list of two bytes each, a fuller one 8 KiB of bits. A hundred million records of one
//! collection take about 12 MiB. Keys of clustered collections are kept whole.

use crate::source::RecordId;
use bytes::Bytes;
use pando_base::limits::RECORD_SET_BYTES_MAX;
use pando_base::{Error, ErrorCode, HashMap, HashSet, Result};

#[derive(Default)]
pub(super) struct RecordSet {
    /// By the id without its last 16 bits.
    pieces: HashMap<i64, Piece>,
    keys: HashSet<Bytes>,
    bytes: usize,
}

enum Piece {
    Few(Vec<u16>),
    Many(Box<[u64; WORDS]>),
}

/// 65,536 bits.
const WORDS: usize = 1024;
/// With more members a list would be larger than the bits.
const FEW: usize = 4096;
/// Bytes of a piece or a key in its table.
const SLOT_COST: usize = 64;

impl Piece {
    /// Whether the member was not there, and by how many bytes the piece grew.
    fn insert(&mut self, low: u16) -> (bool, usize) {
        match self {
            Piece::Few(list) => {
                let Err(at) = list.binary_search(&low) else { return (false, 0) };
                if list.len() < FEW {
                    list.insert(at, low);
                    return (true, size_of::<u16>());
                }
                let mut bits = Box::new([0u64; WORDS]);
                for n in list.iter().chain([&low]) {
                    set(&mut bits, *n);
                }
                *self = Piece::Many(bits);
                (true, 0)
            }
            Piece::Many(bits) => (set(bits, low), 0),
        }
    }
}

fn set(bits: &mut [u64; WORDS], n: u16) -> bool {
    let (word, bit) = (usize::from(n >> 6), 1u64 << (n & 63));
    let new = bits[word] & bit == 0;
    bits[word] |= bit;
    new
}

impl RecordSet {
    pub(super) fn held_bytes(&self) -> u64 {
        self.bytes as u64
    }
    /// True when the record was not in the set. Code 146 when the set grows over its bound.
    pub(super) fn insert(&mut self, rid: &RecordId) -> Result<bool> {
        let new = match rid {
            RecordId::Long(n) => {
                let piece = self.pieces.entry(n >> 16).or_insert_with(|| {
                    self.bytes += SLOT_COST;
                    Piece::Few(Vec::new())
                });
                let (new, grew) = piece.insert(*n as u16);
                self.bytes += grew;
                new
            }
            RecordId::Key(key) => {
                let new = self.keys.insert(key.clone());
                if new {
                    self.bytes += SLOT_COST + key.len();
                }
                new
            }
        };
        if self.bytes > RECORD_SET_BYTES_MAX {
            return Err(Error::new(
                ErrorCode::ExceededMemoryLimit,
                format!(
                    "The records that this plan must tell apart take more than {RECORD_SET_BYTES_MAX} bytes"
                ),
            ));
        }
        Ok(new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_told_apart_in_lists_bits_and_keys() {
        let mut set = RecordSet::default();
        let ids = || (-70_000i64..70_000).step_by(7).chain([i64::MIN, i64::MAX]);
        for n in ids() {
            assert!(set.insert(&RecordId::Long(n)).is_ok_and(|new| new), "{n}");
        }
        for n in ids() {
            assert!(set.insert(&RecordId::Long(n)).is_ok_and(|new| !new), "{n}");
        }
        assert!(set.insert(&RecordId::Long(-69_999)).is_ok_and(|new| new));
        let key = RecordId::Key(Bytes::from_static(b"k"));
        assert_eq!((set.insert(&key).ok(), set.insert(&key).ok()), (Some(true), Some(false)));
    }

    #[test]
    fn neighbours_cost_bits_and_strangers_end_at_the_bound() {
        let mut set = RecordSet::default();
        for n in 0..1_000_000 {
            assert!(set.insert(&RecordId::Long(n)).is_ok_and(|new| new));
        }
        assert!(set.bytes < 300_000, "{}", set.bytes);
        let refused = (0..2_000_000).find_map(|n| set.insert(&RecordId::Long(n << 20)).err());
        assert_eq!(refused.map(|e| e.code), Some(ErrorCode::ExceededMemoryLimit));
    }
}
