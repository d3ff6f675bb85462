//! Record keys behind their length, in values of index entries and in side tables.

/// Says that the length follows in four bytes: record keys of clustered collections can be long.
const LONG_LENGTH: u16 = u16::MAX;

/// Appends a record key behind its length.
pub(crate) fn push_with_length(out: &mut Vec<u8>, record: &[u8]) {
    match u16::try_from(record.len()) {
        Ok(n) if n < LONG_LENGTH => out.extend_from_slice(&n.to_be_bytes()),
        _ => {
            out.extend_from_slice(&LONG_LENGTH.to_be_bytes());
            out.extend_from_slice(&(record.len() as u32).to_be_bytes());
        }
    }
    out.extend_from_slice(record);
}

/// A record key that lies behind its length, and the rest.
pub(crate) fn split_length(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (n, rest) = bytes.split_first_chunk::<2>()?;
    match u16::from_be_bytes(*n) {
        LONG_LENGTH => {
            let (n, rest) = rest.split_first_chunk::<4>()?;
            rest.split_at_checked(u32::from_be_bytes(*n) as usize)
        }
        n => rest.split_at_checked(usize::from(n)),
    }
}
