//! What a shard owns, as plans see it (SYS-215, SH-OWN-2).

use pando_bson::RawDoc;
use pando_bson::keystring::KeyBuilder;
use pando_query::matcher::Matcher;
use pando_query::source::Owned;
use pando_routing::Ownership;
use pando_routing::target::point_of;
use std::sync::Mutex;

/// Tells documents of this shard from orphans. It keeps the table alive that it judges by.
#[derive(Debug)]
pub struct OwnedDocuments {
    ownership: Ownership,
    fields: Vec<String>,
    scratch: Mutex<KeyBuilder>,
}

impl OwnedDocuments {
    pub fn new(ownership: Ownership) -> OwnedDocuments {
        let fields = ownership.table.collection.key.fields();
        let fields = fields.iter().map(|f| f.path.to_string()).collect();
        OwnedDocuments { ownership, fields, scratch: Mutex::default() }
    }
    pub fn ownership(&self) -> &Ownership {
        &self.ownership
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
