//! Encryption at rest: what a server writes into its data folder can be read with its master key only.
//!
//! ```text
//!   master key (a file, or a key service) ──seals──► key store: data keys ──derive──► writing keys ──seal──► bytes on disk
//! ```
//!
//! * The master key seals one small file, the [key store](store), and nothing else: changing it rewrites that file alone.
//! * Data keys never leave the key store. From one of them a *writing key* is derived at each start and after so many uses,
//!   under a salt drawn anew ([`Keys`]); nonces count its uses. So no nonce comes twice under a key, whatever a crash, a cut
//!   log or a copied folder makes of the files.
//! * Sealed bytes name their data key and salt, so that they can be opened wherever they lie. They are bound to what they are
//!   (a block, a record, a page), not to a place in the folder.
//! * Tables and logs seal their own blocks and records (`storage`); every other file goes through [`disk::SealedDisk`].
//!
//! AES-256-GCM and HKDF-SHA-256 by `ring`; nobody else knows of it. What this does not cover: memory, swap, core dumps, the
//! log for people, and somebody who can write into the folder and puts older files back.

pub mod disk;
mod file;
mod keys;
mod master;
pub mod store;

pub use keys::{Keys, OVERHEAD, Purpose, Status};
pub use master::{KeyFiles, MasterKey, MasterKeys};
