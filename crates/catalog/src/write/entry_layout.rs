//! How an entry of an index lies in storage.

use crate::write::length_prefix::{push_with_length, split_length};
use crate::write::record_id::Record;
use pando_base::{Error, Result};

pub(crate) fn with_rid(key: &[u8], record: &Record) -> Vec<u8> {
    let mut k = Vec::with_capacity(key.len() + 10);
    k.extend_from_slice(key);
    record.append_to(&mut k);
    k
}

/// Value of an entry in [`KeyFormat::Bare`]: length of the record key, record key, type bits.
pub(crate) fn bare_value(record: &Record, type_bits: &[u8]) -> Vec<u8> {
    let mut v = Vec::with_capacity(6 + record.key.len() + type_bits.len());
    push_with_length(&mut v, &record.key);
    v.extend_from_slice(type_bits);
    v
}

/// Splits a [`KeyFormat::Bare`] value into record key and type bits.
pub(crate) fn split_bare(value: &[u8]) -> Result<(&[u8], &[u8])> {
    split_length(value).ok_or_else(|| Error::internal("damaged index entry"))
}
