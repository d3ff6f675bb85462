//! Finding the end of names: eight bytes at a time, without `unsafe`.

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// Index of the first zero byte.
#[inline]
pub(crate) fn find_nul(bytes: &[u8]) -> Option<usize> {
    scan(bytes).map(|(len, _)| len)
}

/// Index of the first zero byte, and whether everything before it is ASCII.
#[inline]
pub(crate) fn scan(bytes: &[u8]) -> Option<(usize, bool)> {
    let mut at = 0;
    let mut high = 0;
    while let Some(chunk) = bytes[at..].first_chunk::<8>() {
        let word = u64::from_le_bytes(*chunk);
        // The lowest set bit marks the first zero byte exactly (higher marks may be false).
        let zeros = word.wrapping_sub(ONES) & !word & HIGH;
        if zeros != 0 {
            let bit = zeros.trailing_zeros();
            high |= word & HIGH & (1u64 << bit).wrapping_sub(1);
            return Some((at + (bit / 8) as usize, high == 0));
        }
        high |= word & HIGH;
        at += 8;
    }
    for (i, b) in bytes[at..].iter().enumerate() {
        if *b == 0 {
            return Some((at + i, high == 0));
        }
        high |= u64::from(*b) & 0x80;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_first_nul_and_knows_ascii() {
        for len in 0..40 {
            for nul in 0..len {
                for odd in 0..=len {
                    let mut bytes = vec![b'a'; len];
                    if odd < len {
                        bytes[odd] = 0xC3;
                    }
                    bytes[nul] = 0;
                    assert_eq!(scan(&bytes), Some((nul, odd >= nul)), "{bytes:?}");
                }
            }
            assert_eq!(scan(&vec![1u8; len]), None);
        }
    }
}
