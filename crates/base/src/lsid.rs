//! Whose session, and which: clients choose 16 bytes, and two users may choose the same.

/// SHA-256 of the empty user name: the owner of a session for which nobody has logged in.
pub const NO_USER_DIGEST: [u8; 32] = [
    0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24, 0x27,
    0xae, 0x41, 0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55,
];

/// A logical session's identity, all of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Lsid {
    pub id: [u8; 16],
    /// Digest of the user; servers compute it, only internal clients send it.
    pub uid: [u8; 32],
}

impl Lsid {
    /// One for which nobody has logged in.
    pub const fn of(id: [u8; 16]) -> Lsid {
        Lsid { id, uid: NO_USER_DIGEST }
    }
    /// As a key of rows. Without a user it is the 16 bytes alone, as it was when there was nothing else.
    pub fn key(&self) -> Vec<u8> {
        let owner: &[u8] = if self.uid == NO_USER_DIGEST { &[] } else { &self.uid };
        [&self.id[..], owner].concat()
    }
    pub fn from_key(key: &[u8]) -> Option<Lsid> {
        let (id, owner) = key.split_first_chunk()?;
        let uid = if owner.is_empty() { NO_USER_DIGEST } else { owner.try_into().ok()? };
        Some(Lsid { id: *id, uid })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_tells_the_whole_session() {
        for lsid in [Lsid::of([1; 16]), Lsid { id: [1; 16], uid: [2; 32] }] {
            assert_eq!(Lsid::from_key(&lsid.key()), Some(lsid));
        }
        assert_eq!(Lsid::of([1; 16]).key(), [1; 16]);
        assert_eq!((Lsid::from_key(&[1; 15]), Lsid::from_key(&[1; 17])), (None, None));
    }
}
