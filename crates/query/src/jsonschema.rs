//! `$jsonSchema`.

use crate::ctx::QueryCtx;
use pando_base::{Error, ErrorCode, Result};
use pando_bson::{DocBuf, RawDoc};

#[derive(Debug)]
pub struct Schema {
    source: DocBuf,
}

impl Schema {
    pub fn parse(schema: &RawDoc, _ctx: &QueryCtx) -> Result<Schema> {
        if !schema.is_empty() {
            return Err(Error::new(ErrorCode::NotImplemented, "$jsonSchema is not supported by this server"));
        }
        Ok(Schema { source: schema.to_buf() })
    }
    pub fn source(&self) -> &RawDoc {
        &self.source
    }
    pub fn accepts(&self, _doc: &RawDoc) -> bool {
        true
    }
}
