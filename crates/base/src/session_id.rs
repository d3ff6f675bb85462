//! Which session an operation belongs to.
//!
//! ```text
//!   {id, uid}                           a client's session: clients choose 16 bytes, and two users may choose the same
//!   {id, uid, txnUUID}                  a session that a server opens within it, for a transaction of its own
//!   {id, uid, txnNumber, txnUUID}       the same, for a transaction that carries out the client's retryable write `txnNumber`
//! ```
//! A client's session is the parent, those within it are its children. Each has its own numbers, writes and transactions: what
//! one has done says nothing of another.

/// SHA-256 of the empty user name: the owner of a session for which nobody has logged in.
pub const NO_USER_DIGEST: [u8; 32] = [
    0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24, 0x27,
    0xae, 0x41, 0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55,
];

/// A logical session's identity (`lsid`), all of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SessionId {
    pub id: [u8; 16],
    /// Digest of the user; servers compute it, only internal clients send it.
    pub uid: [u8; 32],
    /// Of a child session.
    pub child: Option<Child>,
}

/// What a child session has beside its parent's identity.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Child {
    /// `txnUUID`
    pub uuid: [u8; 16],
    /// `txnNumber` of the parent's retryable write that is carried out; `None` for a transaction of the server's own.
    pub txn_number: Option<i64>,
}

impl SessionId {
    /// A parent for which nobody has logged in.
    pub const fn of(id: [u8; 16]) -> SessionId {
        SessionId::of_user(id, NO_USER_DIGEST)
    }
    /// A parent.
    pub const fn of_user(id: [u8; 16], uid: [u8; 32]) -> SessionId {
        SessionId { id, uid, child: None }
    }
    /// The session that this one is within.
    pub const fn parent(&self) -> Option<SessionId> {
        match self.child {
            Some(_) => Some(SessionId::of_user(self.id, self.uid)),
            None => None,
        }
    }
    /// As a key of rows: 16 bytes of a parent without a user, as it was when there was nothing else; 48 of one with a user; 64 and
    /// 72 of children.
    pub fn key(&self) -> Vec<u8> {
        let mut key = self.id.to_vec();
        if self.uid != NO_USER_DIGEST || self.child.is_some() {
            key.extend(self.uid);
        }
        if let Some(child) = self.child {
            key.extend(child.uuid);
            key.extend(child.txn_number.map(i64::to_be_bytes).iter().flatten());
        }
        key
    }
    pub fn from_key(key: &[u8]) -> Option<SessionId> {
        let (id, rest) = key.split_first_chunk()?;
        if rest.is_empty() {
            return Some(SessionId::of(*id));
        }
        let (uid, rest) = rest.split_first_chunk()?;
        if rest.is_empty() {
            return Some(SessionId::of_user(*id, *uid));
        }
        let (uuid, rest) = rest.split_first_chunk()?;
        let txn_number = match rest {
            [] => None,
            number => Some(i64::from_be_bytes(number.try_into().ok()?)),
        };
        Some(SessionId { id: *id, uid: *uid, child: Some(Child { uuid: *uuid, txn_number }) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_tells_the_whole_session() {
        let child = |txn_number| Some(Child { uuid: [3; 16], txn_number });
        let user = SessionId::of_user([1; 16], [2; 32]);
        let all = [
            SessionId::of([1; 16]),
            user,
            SessionId { child: child(None), ..SessionId::of([1; 16]) },
            SessionId { child: child(None), ..user },
            SessionId { child: child(Some(-5)), ..user },
            SessionId { child: child(Some(7)), ..user },
        ];
        for (i, id) in all.iter().enumerate() {
            assert_eq!(SessionId::from_key(&id.key()), Some(*id));
            assert!(all[..i].iter().all(|other| other.key() != id.key()), "{id:?}");
        }
        assert_eq!(SessionId::of([1; 16]).key(), [1; 16]);
        for n in [0, 15, 17, 47, 49, 63, 65, 71, 73] {
            assert_eq!(SessionId::from_key(&vec![1; n]), None, "{n} bytes");
        }
    }

    #[test]
    fn a_child_knows_its_parent_and_is_another_session() {
        let parent = SessionId::of_user([1; 16], [2; 32]);
        let child = SessionId { child: Some(Child { uuid: [3; 16], txn_number: Some(1) }), ..parent };
        assert_eq!((child.parent(), parent.parent()), (Some(parent), None));
        assert_ne!(child, parent);
    }
}
