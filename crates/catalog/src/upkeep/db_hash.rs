//! `dbHash`: an MD5 per collection, over its documents in `_id` order, and one over all of them. Members of a set
//! that hold the same data give the same numbers.

use crate::Catalog;
use crate::schema::collection::{Collection, KeyFormat};
use crate::write::entry_layout::split_bare;
use crate::write::interrupt::Interrupt;
use md5::{Digest, Md5};
use pando_base::{Error, Result, Uuid, patience};
use pando_storage::{Dir, ReadAt, Txn};
use std::fmt::Write;
use std::ops::Bound;

/// Documents hashed between two yields.
const STEP: usize = 1000;
/// Bytes hashed in one step of work.
const BYTES_PER_STEP: usize = 8;

/// What `dbHash` tells.
#[derive(Clone, Debug, Default)]
pub struct DbHash {
    /// Name, UUID and hash of each collection, by name.
    pub collections: Vec<(String, Uuid, String)>,
    pub capped: Vec<String>,
    pub md5: String,
}

fn hex(h: Md5) -> String {
    let digest: [u8; 16] = h.finalize().into();
    digest.iter().fold(String::with_capacity(32), |mut s, b| {
        let _ = write!(s, "{b:02x}");
        s
    })
}

fn is_hashed(coll: &Collection) -> bool {
    let name = coll.ns.coll();
    !name.starts_with("tmp.mr.") && name != "system.profile" && coll.is_stored()
}

impl Catalog {
    /// Hashes a database's collections (all, or those named) as of `at`.
    pub async fn db_hash(
        &self,
        db: &str,
        only: &[&str],
        at: ReadAt,
        interrupt: &dyn Interrupt,
    ) -> Result<DbHash> {
        let txn = self.storage().begin(at)?;
        let mut out = DbHash::default();
        let mut all = Md5::new();
        for coll in self.snapshot().collections(db) {
            let name = coll.ns.coll().to_owned();
            if !is_hashed(&coll) || (!only.is_empty() && !only.contains(&name.as_str())) {
                continue;
            }
            let hash = self.hash_collection(&coll, &txn, interrupt).await?;
            all.update(hash.as_bytes());
            if coll.is_capped() {
                out.capped.push(name.clone());
            }
            out.collections.push((name, coll.uuid, hash));
        }
        out.md5 = hex(all);
        Ok(out)
    }

    async fn hash_collection(
        &self,
        coll: &Collection,
        txn: &Txn,
        interrupt: &dyn Interrupt,
    ) -> Result<String> {
        let mut h = Md5::new();
        let mut n = 0usize;
        // Record order where it is the order of _id, or the only order that means something.
        let by_index = if coll.is_clustered() || coll.is_capped() { None } else { coll.id_index() };
        let ident = by_index.map_or(coll.records, |i| i.ident);
        debug_assert!(by_index.is_none_or(|i| i.format == KeyFormat::Bare));
        let mut cursor = txn.scan(ident, Bound::Unbounded, Bound::Unbounded, Dir::Forward)?;
        while let Some((_, value)) = cursor.next()? {
            if by_index.is_some() {
                let doc = txn
                    .get(coll.records, split_bare(&value)?.0)?
                    .ok_or_else(|| Error::internal("an index entry without its record"))?;
                h.update(&*doc);
                patience::spend(doc.len() / BYTES_PER_STEP)?;
            } else {
                h.update(&*value);
                patience::spend(value.len() / BYTES_PER_STEP)?;
            }
            n += 1;
            if n.is_multiple_of(STEP) {
                interrupt.check()?;
                self.env().tasks.yield_now().await;
            }
        }
        Ok(hex(h))
    }
}
