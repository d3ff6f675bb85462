//! One record of a log file.
//!
//! ```text
//!   length u32 │ crc32c u32 │ timestamp u64 │ synced u32 │ payload …        (little endian)
//!              └─ covers everything after itself ────────┘
//! ```
//!
//! `synced` is the length of this file that was known to be synced when the record was written. It tells a torn
//! tail from damage: when a valid record says that a damaged place before it had been synced, the damage is not
//! the end of an interrupted write, and cutting there would lose acknowledged entries.

pub(crate) const HEADER: usize = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    pub(crate) ts: u64,
    pub(crate) synced: u32,
    pub(crate) payload: &'a [u8],
}

impl Record<'_> {
    pub(crate) fn len(&self) -> usize {
        HEADER + self.payload.len()
    }
}

/// `put` appends the payload.
pub(crate) fn encode(out: &mut Vec<u8>, ts: u64, synced: u32, put: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    let mut head = [0u8; HEADER];
    head[8..16].copy_from_slice(&ts.to_le_bytes());
    head[16..20].copy_from_slice(&synced.to_le_bytes());
    out.extend_from_slice(&head);
    put(out);
    let record = &mut out[start..];
    let len = (record.len() - HEADER) as u32;
    let crc = crc32c::crc32c(&record[8..]);
    record[0..4].copy_from_slice(&len.to_le_bytes());
    record[4..8].copy_from_slice(&crc.to_le_bytes());
}

fn u32_at(b: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*b.get(at..)?.first_chunk()?))
}

/// How many bytes the record at the start of `b` takes, if its head is plausible.
pub(crate) fn length(b: &[u8]) -> Option<usize> {
    let len = u32_at(b, 0)? as usize;
    (len <= pando_base::limits::LOG_RECORD_BYTES_MAX).then_some(HEADER + len)
}

/// The record at the start of `b`; `None` when it is cut off or damaged.
pub(crate) fn decode(b: &[u8]) -> Option<Record<'_>> {
    let len = length(b)?;
    let bytes = b.get(..len)?;
    let ts = u64::from_le_bytes(*bytes[8..].first_chunk()?);
    // An empty area of zeros must not pass for a record.
    if ts == 0 || crc32c::crc32c(&bytes[8..]) != u32_at(bytes, 4)? {
        return None;
    }
    Some(Record { ts, synced: u32_at(bytes, 16)?, payload: &bytes[HEADER..] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_survives_the_round_trip_and_no_flipped_bit_does() {
        let mut b = Vec::new();
        encode(&mut b, 7, 3, |out| out.extend_from_slice(b"hello"));
        assert_eq!(decode(&b), Some(Record { ts: 7, synced: 3, payload: b"hello" }));
        for bit in 0..b.len() * 8 {
            let mut bad = b.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(&bad).is_none(), "bit {bit}");
        }
        assert!(decode(&b[..b.len() - 1]).is_none());
        assert!(decode(&[0; 64]).is_none());
    }
}
