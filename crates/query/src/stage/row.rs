//! A document on its way through a pipeline, with what is known of it beside its fields.

use crate::facts::Facts;
use crate::sort::Payload;
use bytes::Bytes;
use pando_base::Result;
use pando_bson::{DocBuf, DocBuilder, Elem, RawDoc};
use std::collections::BTreeSet;

/// A document on its way through a pipeline.
#[derive(Clone, Debug)]
pub struct Row {
    bytes: Bytes,
    facts: Option<Box<Facts>>,
}

impl Row {
    pub fn new(bytes: Bytes) -> Row {
        Row { bytes, facts: None }
    }
    pub fn with_facts(self, facts: Option<Box<Facts>>) -> Row {
        Row { facts, ..self }
    }
    pub fn facts(&self) -> Option<&Facts> {
        self.facts.as_deref()
    }
    /// The document of another row, with what is known of this one.
    pub(crate) fn becomes(&self, next: Row) -> Row {
        next.with_facts(self.facts.clone())
    }
    /// With these fields only.
    pub(super) fn narrowed(self, keep: Option<&BTreeSet<String>>) -> Row {
        let Some(keep) = keep else { return self };
        let mut b = DocBuilder::with_capacity(128);
        keep_only(self.doc(), keep, &mut b);
        self.becomes(b.finish().into())
    }
    #[inline]
    pub fn doc(&self) -> &RawDoc {
        RawDoc::trusted(&self.bytes)
    }
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }
    pub fn into_bytes(self) -> Bytes {
        self.bytes
    }
}

impl From<DocBuf> for Row {
    fn from(doc: DocBuf) -> Row {
        Row::new(Bytes::from(doc.into_bytes()))
    }
}

impl Payload for Row {
    fn byte_len(&self) -> usize {
        self.bytes().len() + self.facts().map_or(0, Facts::byte_len)
    }
    fn encode(&self, out: &mut Vec<u8>) {
        Facts::encode(self.facts(), out);
        out.extend_from_slice(self.bytes());
    }
    fn decode(mut bytes: &[u8]) -> Result<Row> {
        let facts = Facts::decode(&mut bytes)?;
        Ok(Row::new(Bytes::copy_from_slice(bytes)).with_facts(facts))
    }
}

const FEW_FIELDS: usize = 8;

/// Copies the fields of these names.
pub(super) fn keep_only(doc: &RawDoc, keep: &BTreeSet<String>, b: &mut DocBuilder) {
    // Few names are compared one by one, as they lie.
    let few = keep.len() <= FEW_FIELDS;
    let kept = |e: &Elem<'_>| match few {
        true => keep.iter().any(|name| e.is_named(name.as_bytes())),
        false => keep.contains(e.name()),
    };
    doc.iter().filter(kept).for_each(|e| {
        b.elem(e);
    });
}
