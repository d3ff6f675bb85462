//! Equality by an index, without planning anew for each document: the short way of an indexed `$lookup`.

use super::foreign::Foreign;
use super::local_values::local_values;
use crate::collation::Collation;
use crate::ctx::QueryCtx;
use crate::expr::FieldPath;
use crate::source::{CollectionInfo, Direction, FieldKind, IndexInfo, IndexKind, IndexScan, Source};
use bytes::Bytes;
use pando_base::Result;
use pando_base::limits::LOOKUP_PROBE_DOCS_MAX;
use pando_bson::keystring::{AFTER, KeyBuilder};
use pando_bson::{ElementType, RawDoc, Value};
use std::sync::Arc;

pub(super) struct Probe {
    index: usize,
    unique: bool,
    info: Arc<CollectionInfo>,
    key: KeyBuilder,
    end: Vec<u8>,
}

/// The index holds each document of the collection under each value of the path.
fn holds_all(i: &IndexInfo, path: &str, ctx: &QueryCtx) -> bool {
    i.kind == IndexKind::Btree
        && !i.hidden
        && !i.sparse
        && i.partial.is_none()
        && i.collation == ctx.collation
        && matches!(i.fields.as_slice(), [f] if f.path == path && f.kind == FieldKind::Ascending)
}

/// Some index starts with the path.
pub(super) fn has_index(info: &CollectionInfo, path: &str) -> bool {
    let by_record = path == "_id" && info.clustered.is_some();
    by_record
        || info
            .indexes
            .iter()
            .any(|i| !i.hidden && i.partial.is_none() && i.fields.first().is_some_and(|f| f.path == path))
}

impl Probe {
    /// The probe for a path, if an index is right for it.
    pub(super) fn new(info: &Arc<CollectionInfo>, path: &str, ctx: &QueryCtx) -> Option<Probe> {
        let numbered = path.split('.').any(|part| part.bytes().all(|b| b.is_ascii_digit()));
        if numbered {
            return None;
        }
        let index = info.indexes.iter().position(|i| holds_all(i, path, ctx))?;
        let unique = info.indexes[index].unique || info.indexes[index].is_id_index();
        Some(Probe { index, unique, info: info.clone(), key: KeyBuilder::default(), end: Vec::new() })
    }

    /// The documents that a document's only value equals; `None` when an ordinary query has to find them.
    pub(super) fn matches(
        &mut self,
        foreign: &mut Foreign,
        doc: &RawDoc,
        local: &FieldPath,
        ctx: &QueryCtx,
    ) -> Result<Option<Vec<Bytes>>> {
        let mut value = None;
        let mut many = false;
        local_values(doc, local, &mut |v| {
            many |= value.is_some();
            value = Some(v);
        });
        let plain = |v: &Value<'_>| {
            use ElementType::{Array, Null, Regex, Undefined};
            !matches!(v.element_type(), Null | Undefined | Array | Regex)
        };
        let Some(v) = value.filter(|v| !many && plain(v)) else { return Ok(None) };
        let Some(source) = foreign.source() else { return Ok(None) };
        if !Arc::ptr_eq(source.collection(), &self.info) || source.owned().is_some() {
            return Ok(None);
        }
        self.key.clear();
        self.key.append_with(v, Collation::order(&ctx.collation));
        if self.unique {
            let rid = source.find_key(self.index, self.key.bytes())?;
            let found = match rid {
                Some(rid) => source.fetch(&rid)?.into_iter().collect(),
                None => Vec::new(),
            };
            return Ok(Some(self.counted(foreign, found)));
        }
        Ok(self.range(source)?.map(|found| self.counted(foreign, found)))
    }

    fn counted(&self, foreign: &mut Foreign, found: Vec<Bytes>) -> Vec<Bytes> {
        let n = found.len() as u64;
        foreign.stats.add_probe(n, &self.info.indexes[self.index].name);
        found
    }

    fn range(&mut self, source: &mut dyn Source) -> Result<Option<Vec<Bytes>>> {
        self.end.clear();
        self.end.extend_from_slice(self.key.bytes());
        self.end.push(AFTER);
        let scan = IndexScan {
            index: self.index,
            start: self.key.bytes(),
            end: &self.end,
            dir: Direction::Forward,
            after: None,
        };
        let mut cursor = source.scan_index(scan)?;
        let mut found = Vec::new();
        while let Some(entry) = cursor.next()? {
            if found.len() == LOOKUP_PROBE_DOCS_MAX {
                return Ok(None);
            }
            let rid = entry.rid;
            found.extend(source.fetch(&rid)?);
        }
        Ok(Some(found))
    }
}
