//! What a shard owns, as plans see it (SYS-215, SH-OWN-2).

use pando_base::Timestamp;
use pando_bson::RawDoc;
use pando_bson::keystring::KeyBuilder;
use pando_query::matcher::Matcher;
use pando_query::source::Owned;
use pando_routing::target::point_of;
use pando_routing::{ChunkRef, KeyRange, Ownership};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};

/// Tells documents of this shard from orphans. It keeps the table alive that it judges by.
#[derive(Debug)]
pub struct OwnedDocuments {
    ownership: Ownership,
    fields: Vec<String>,
    scratch: Mutex<KeyBuilder>,
    newest_move: OnceLock<Timestamp>,
    /// Something that it tells to be owned is being deleted.
    outlived: AtomicBool,
}

impl OwnedDocuments {
    pub fn new(ownership: Ownership) -> OwnedDocuments {
        let fields = ownership.table.collection.key.fields();
        let fields = fields.iter().map(|f| f.path.to_string()).collect();
        OwnedDocuments {
            ownership,
            fields,
            scratch: Mutex::default(),
            newest_move: OnceLock::new(),
            outlived: AtomicBool::new(false),
        }
    }
    pub fn ownership(&self) -> &Ownership {
        &self.ownership
    }
    /// Whoever reads by it has to be told: documents that it shows may be gone.
    pub(crate) fn outlive(&self) {
        self.outlived.store(true, Ordering::Release);
    }
    pub fn is_outlived(&self) -> bool {
        self.outlived.load(Ordering::Acquire)
    }
    /// Whether it owns something of a range.
    pub(crate) fn owns_of(&self, range: &KeyRange) -> bool {
        let own = |c: ChunkRef<'_>| c.shard() == self.ownership.shard() && range.meets(c.start(), c.end());
        self.ownership.table.chunks.iter().any(own)
    }
    /// Whether something has moved to or from this shard since: what was here then is not what is owned now.
    pub fn has_moved_since(&self, at: Timestamp) -> bool {
        *self.newest_move.get_or_init(|| self.ownership.newest_move()) > at
    }
}

impl Owned for OwnedDocuments {
    fn fields(&self) -> &[String] {
        &self.fields
    }
    fn owns(&self, doc: &RawDoc) -> bool {
        // Almost always free: a builder saves the allocation.
        match self.scratch.try_lock() {
            Ok(mut scratch) => self.ownership.owns(doc, &mut scratch),
            Err(_) => self.ownership.owns(doc, &mut KeyBuilder::default()),
        }
    }
    fn is_pinned_by(&self, matcher: &Matcher) -> bool {
        let key = &self.ownership.table.collection.key;
        matches!(point_of(key, matcher, &mut KeyBuilder::default()), Ok(Some(_)))
    }
}
