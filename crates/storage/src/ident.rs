//! Names of record stores and indexes inside the engine.
//!
//! An ident is a number, not a file: all record stores share one tree, all indexes another, and the ident is the
//! first four bytes of the engine key. Ten thousand collections cost ten thousand prefixes.

/// What an ident holds, which decides the tree it lives in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IdentKind {
    Records,
    Index,
}

/// A record store or an index. Even numbers are record stores, odd ones indexes; numbers are never reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Ident(pub u32);

impl Ident {
    /// Idents below this are fixed by name and never handed out.
    pub const FIRST_FREE: u32 = 32;
    /// The catalog's own rows.
    pub const CATALOG: Ident = Ident(2);
    /// Small server state: markers, sizes and counts.
    pub const META: Ident = Ident(4);

    pub fn kind(self) -> IdentKind {
        if self.0 & 1 == 0 { IdentKind::Records } else { IdentKind::Index }
    }
}
