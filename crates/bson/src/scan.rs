//! Finding the end of names: eight bytes at a time, without `unsafe`.

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// Index of the first zero byte.
#[inline]
pub(crate) fn find_nul(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(chunk) = bytes[at..].first_chunk::<8>() {
        let word = u64::from_le_bytes(*chunk);
        // The lowest set bit marks the first zero byte exactly (higher marks may be false).
        let zeros = word.wrapping_sub(ONES) & !word & HIGH;
        if zeros != 0 {
            return Some(at + (zeros.trailing_zeros() / 8) as usize);
        }
        at += 8;
    }
    bytes[at..].iter().position(|b| *b == 0).map(|i| at + i)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_first_nul() {
        for len in 0..40 {
            for nul in 0..len {
                for odd in 0..=len {
                    let mut bytes = vec![b'a'; len];
                    if odd < len {
                        bytes[odd] = 0xC3;
                    }
                    bytes[nul] = 0;
                    assert_eq!(find_nul(&bytes), Some(nul), "{bytes:?}");
                }
            }
            assert_eq!(find_nul(&vec![1u8; len]), None);
        }
    }
}
