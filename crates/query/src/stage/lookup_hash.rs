//! A foreign collection held in memory by the values of one field: what an equality `$lookup` without a useful index
//! reads once instead of once per document.

// Values come from clients, who must not be able to choose keys that collide.
#![allow(clippy::disallowed_types)]

use super::local_values::local_values;
use super::row::Row;
use crate::collation::Collation;
use crate::ctx::QueryCtx;
use crate::expr::FieldPath;
use crate::matcher::{Matcher, Path, any_at};
use bytes::Bytes;
use pando_base::limits::LOOKUP_ENTRY_BYTES;
use pando_base::{Error, Result};
use pando_bson::keystring::KeyBuilder;
use pando_bson::{DocBuilder, RawDoc, Value};
use std::collections::HashMap;

pub(super) struct HashSide {
    pub(super) rows: Vec<Bytes>,
    /// Rows by the key bytes of a value, ascending.
    by_value: HashMap<Box<[u8]>, Vec<u32>>,
    /// Rows that null equals.
    nulls: Vec<u32>,
    path: Path,
    is_null: Matcher,
    ctx: QueryCtx,
    key: KeyBuilder,
    pub(super) bytes: usize,
}

impl HashSide {
    pub(super) fn new(foreign: &str, ctx: &QueryCtx) -> Result<HashSide> {
        let mut null = DocBuilder::new();
        null.null(foreign);
        Ok(HashSide {
            rows: Vec::new(),
            by_value: HashMap::new(),
            nulls: Vec::new(),
            path: Path::new(foreign),
            is_null: Matcher::parse(&null.finish(), ctx)?,
            ctx: ctx.clone(),
            key: KeyBuilder::default(),
            bytes: 0,
        })
    }

    pub(super) fn add(&mut self, row: Row) -> Result<()> {
        let number = self.rows.len() as u32;
        let HashSide { by_value, key, bytes, ctx, .. } = self;
        let mut put = |v: Value<'_>| {
            key.clear();
            key.append_with(v, Collation::order(&ctx.collation));
            match by_value.get_mut(key.bytes()) {
                Some(rows) if rows.last() == Some(&number) => {}
                Some(rows) => {
                    rows.push(number);
                    *bytes += size_of::<u32>();
                }
                None => {
                    *bytes += key.bytes().len() + LOOKUP_ENTRY_BYTES;
                    by_value.insert(key.bytes().into(), vec![number]);
                }
            }
        };
        any_at(row.doc(), &self.path, &mut |e| {
            match e.map(|e| e.value()) {
                None | Some(Value::Null | Value::Undefined) => {}
                Some(v) => put(v),
            }
            false
        });
        if self.is_null.matches(row.doc())? {
            self.nulls.push(number);
        }
        self.bytes += row.bytes().len() + size_of::<Bytes>();
        self.rows.push(row.into_bytes());
        Ok(())
    }

    /// The rows that the values of a document equal, in the collection's order.
    pub(super) fn matches(&mut self, doc: &RawDoc, local: &FieldPath) -> Result<Vec<u32>> {
        let mut found: Vec<u32> = Vec::new();
        let mut lists = 0;
        let mut undefined = false;
        local_values(doc, local, &mut |v| {
            let rows = match v {
                Value::Undefined => {
                    undefined = true;
                    None
                }
                Value::Null => Some(&self.nulls),
                v => {
                    self.key.clear();
                    self.key.append_with(v, Collation::order(&self.ctx.collation));
                    self.by_value.get(self.key.bytes())
                }
            };
            if let Some(rows) = rows {
                found.extend_from_slice(rows);
                lists += 1;
            }
        });
        if lists > 1 {
            found.sort_unstable();
            found.dedup();
        }
        if undefined {
            return Err(Error::bad_value("cannot compare to undefined"));
        }
        Ok(found)
    }
}
