//! What is known of a row beside its document, for `$meta`.

use pando_base::{Error, Result};
use pando_bson::{DocBuf, RawDoc};

/// Goes with a row through plans and pipelines.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// How well a text search liked it.
    pub text_score: Option<f64>,
    /// The values it was sorted by, as an array.
    pub sort_key: Option<DocBuf>,
}

impl Facts {
    pub fn scored(score: f64) -> Box<Facts> {
        Box::new(Facts { text_score: Some(score), ..Facts::default() })
    }
    pub(crate) fn byte_len(&self) -> usize {
        size_of::<Facts>() + self.sort_key.as_ref().map_or(0, |k| k.byte_len())
    }
    /// For a run on disk: a byte that says what is there, then that.
    pub(crate) fn encode(facts: Option<&Facts>, out: &mut Vec<u8>) {
        let none = Facts::default();
        let facts = facts.unwrap_or(&none);
        out.push(u8::from(facts.text_score.is_some()) | u8::from(facts.sort_key.is_some()) << 1);
        if let Some(score) = facts.text_score {
            out.extend_from_slice(&score.to_le_bytes());
        }
        if let Some(key) = &facts.sort_key {
            out.extend_from_slice(&(key.byte_len() as u32).to_le_bytes());
            out.extend_from_slice(key.as_bytes());
        }
    }
    /// Takes what [`Facts::encode`] wrote from the front of `bytes`.
    pub(crate) fn decode(bytes: &mut &[u8]) -> Result<Option<Box<Facts>>> {
        let short = || Error::internal("a sort run on disk is damaged");
        let kinds = take(bytes, 1).ok_or_else(short)?[0];
        if kinds == 0 {
            return Ok(None);
        }
        let mut facts = Facts::default();
        if kinds & 1 != 0 {
            let score = take(bytes, 8).and_then(|b| b.first_chunk().copied()).ok_or_else(short)?;
            facts.text_score = Some(f64::from_le_bytes(score));
        }
        if kinds & 2 != 0 {
            let len = take(bytes, 4).and_then(|b| b.first_chunk().copied()).ok_or_else(short)?;
            let key = take(bytes, u32::from_le_bytes(len) as usize).ok_or_else(short)?;
            facts.sort_key = Some(RawDoc::trusted(key).to_buf());
        }
        Ok(Some(Box::new(facts)))
    }
}

fn take<'a>(bytes: &mut &'a [u8], n: usize) -> Option<&'a [u8]> {
    let (head, rest) = bytes.split_at_checked(n)?;
    *bytes = rest;
    Some(head)
}
