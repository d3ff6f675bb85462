//! Record ids at the end of keys: ordered by `memcmp`, and found from the last byte backwards.
//!
//! A number has 4 bits in its first byte, 8 in each middle byte and 4 in its last; both end bytes say how
//! many middle bytes there are. The first byte stays between 0x10 and 0x8F, clear of the bounds' marks.
//! A clustered collection's record id is itself a key: its bytes, then their length, seven bits to a byte.

/// Appends a record id, which must not be negative.
pub fn append_record_id(key: &mut Vec<u8>, id: i64) {
    debug_assert!(id >= 0);
    let id = id as u64;
    let bits = 64 - id.leading_zeros();
    let middle = bits.saturating_sub(8).div_ceil(8);
    // Up to 8 bits in the two ends and 56 in the middle make all 64.
    key.push((middle as u8 + 1) << 4 | (id >> (8 * middle + 4)) as u8 & 0x0F);
    for i in (0..middle).rev() {
        key.push((id >> (8 * i + 4)) as u8);
    }
    key.push((id as u8) << 4 | middle as u8);
}

/// Splits a key into its fields and its record id; `None` when the end is not one.
pub fn split_record_id(key: &[u8]) -> Option<(&[u8], i64)> {
    let middle = usize::from(key.last()? & 0x0F);
    let (fields, id) = key.split_at_checked(key.len().checked_sub(middle + 2)?)?;
    let (first, rest) = id.split_first()?;
    let (last, between) = rest.split_last()?;
    if middle > 7 || usize::from(first >> 4) != middle + 1 {
        return None;
    }
    let high = between.iter().fold(u64::from(first & 0x0F), |n, b| n << 8 | u64::from(*b));
    Some((fields, (high << 4 | u64::from(last >> 4)) as i64))
}

/// Appends a record id that is itself a key.
pub fn append_record_key(key: &mut Vec<u8>, record: &[u8]) {
    key.extend_from_slice(record);
    let len = record.len() as u32;
    let groups = (32 - len.leading_zeros()).div_ceil(7).max(1);
    for i in (0..groups).rev() {
        // From the end, a set high bit says that another group comes before.
        let more = if i < groups - 1 { 0x80 } else { 0 };
        key.push((len >> (7 * i)) as u8 & 0x7F | more);
    }
}

/// Splits a key into its fields and the record key behind them.
pub fn split_record_key(key: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut len = 0usize;
    let mut at = key.len();
    for shift in (0..35).step_by(7) {
        at = at.checked_sub(1)?;
        len |= usize::from(key[at] & 0x7F) << shift;
        if key[at] & 0x80 == 0 {
            let start = at.checked_sub(len)?;
            return Some((&key[..start], &key[start..at]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_ids_keep_their_order_and_come_back() {
        let mut ids = vec![0, 1, 15, 16, 255, 256, 4095, 4096, 65535, 65536, i64::MAX - 1, i64::MAX];
        ids.extend((0..63).flat_map(|b| [(1i64 << b) - 1, 1 << b]));
        ids.sort_unstable();
        ids.dedup();
        let keys: Vec<_> = ids
            .iter()
            .map(|id| {
                let mut k = b"field".to_vec();
                append_record_id(&mut k, *id);
                assert_eq!(split_record_id(&k), Some((&b"field"[..], *id)));
                assert!((0x10..0x90).contains(&k[5]));
                k
            })
            .collect();
        assert!(keys.windows(2).all(|w| w[0] < w[1]));
        assert_eq!(keys[0].len(), 7);
        assert_eq!(split_record_id(&[]), None);
        assert_eq!(split_record_id(&[0x05]), None);
        assert_eq!(split_record_id(&[0x20, 0x00]), None);
    }

    #[test]
    fn record_keys_of_any_length_come_back() {
        for len in [0usize, 1, 12, 127, 128, 16383, 16384, 70000] {
            let record = vec![0xAB; len];
            let mut k = b"field".to_vec();
            append_record_key(&mut k, &record);
            assert_eq!(split_record_key(&k), Some((&b"field"[..], &record[..])));
        }
        assert_eq!(split_record_key(&[0x7F]), None);
        assert_eq!(split_record_key(&[0x80; 10]), None);
    }
}
