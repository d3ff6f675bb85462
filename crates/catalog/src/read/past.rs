//! Definitions as of a time: what a read at a timestamp finds under a name.
//!
//! A majority read on a primary that is cut off must not see the drop or the rename that nobody else has yet, nor may a
//! read at a cluster time find what was made later. Rows of the catalog have versions as all rows have, and what a dropped
//! collection held stays as long as somebody may read behind the drop; so the definition of then is decoded
//! from its row of then. That is rare: nearly always nothing was defined since, which one comparison tells.
//!
//! Views are kept as they are now.

use crate::Catalog;
use crate::schema::collection::Collection;
use crate::schema::durable::{self, Row};
use crate::schema::snapshot::Named;
use pando_base::{Namespace, Result, Timestamp};
use pando_bson::RawDoc;
use pando_storage::{Dir, Ident, ReadAt, Txn};
use std::ops::Bound;
use std::sync::Arc;

impl Catalog {
    /// What `ns` stood for at `at`, which the storage must still know.
    pub fn named_at(&self, ns: &Namespace, at: Timestamp) -> Result<Option<Named>> {
        // The snapshot first: a change tells its time before it appears.
        let now = self.snapshot().get(ns).cloned();
        if at >= self.defined_upto() || ns.is_unreplicated() {
            return Ok(now);
        }
        let txn = self.storage().begin(ReadAt::At(at))?;
        if let Some(Named::Collection(c)) = &now {
            let newest = txn.newest_ts(Ident::CATALOG, &c.uuid.0)?;
            if !c.replicated || newest.is_none_or(|changed| changed <= at) {
                return Ok(now);
            }
        }
        match self.defined_at(&txn, ns)? {
            Some(then) => Ok(Some(Named::Collection(then))),
            None => Ok(now.filter(|n| matches!(n, Named::View(_)))),
        }
    }

    /// The collections that the rows which `txn` sees have in databases that `wanted` names. Indexes that were unfinished then are none.
    pub fn collections_at(&self, txn: &Txn, wanted: impl Fn(&str) -> bool) -> Result<Vec<Arc<Collection>>> {
        let mut rows = txn.scan(Ident::CATALOG, Bound::Unbounded, Bound::Unbounded, Dir::Forward)?;
        let mut found = Vec::new();
        while rows.advance()? {
            let row = RawDoc::trusted(rows.value());
            let db = row.get("ns").and_then(|v| v.as_str()?.split_once('.')).map_or("", |(db, _)| db);
            if wanted(db) {
                let Row { mut parts, outdated, .. } = durable::decode(row, self.now_ms())?;
                // To be made anew here, and as good as any other elsewhere.
                for old in outdated {
                    let index =
                        durable::new_index(old.spec, old.ident, old.format, parts.since, self.now_ms())?;
                    parts.indexes.push(Arc::new(index));
                }
                found.push(parts.assemble()?);
            }
        }
        Ok(found)
    }

    /// The collection that the rows which `txn` sees have under a name.
    fn defined_at(&self, txn: &Txn, ns: &Namespace) -> Result<Option<Arc<Collection>>> {
        let mut rows = txn.scan(Ident::CATALOG, Bound::Unbounded, Bound::Unbounded, Dir::Forward)?;
        while rows.advance()? {
            let row = RawDoc::trusted(rows.value());
            if row.get("ns").and_then(|v| v.as_str()) != Some(ns.as_str()) {
                continue;
            }
            // What was unfinished then, no read of then may use.
            let Row { mut parts, .. } = durable::decode(row, self.now_ms())?;
            if let Some(now) = self.lookup_uuid(parts.uuid) {
                parts.shared = now.shared.clone();
            }
            return parts.assemble().map(Some);
        }
        Ok(None)
    }
}
