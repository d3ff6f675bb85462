//! Compressed buckets (`control.version` 2 and 3), as other servers write them: each column is a BSON column. They are
//! read as if they were not compressed; a measurement never goes into one.

use super::TimeSeries;
use pando_base::limits::{UNPACKED_BUCKET_BYTES_MAX, UNPACKED_BUCKET_ROWS_MAX};
use pando_base::{Error, Result};
use pando_bson::column::{Bounds, COLUMN_SUBTYPE, decode};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};
use std::borrow::Cow;

fn version(bucket: &RawDoc) -> Option<i64> {
    bucket.get("control")?.as_doc()?.get("version")?.as_i64()
}

/// Whether the columns are compressed; 5346510 for versions that nobody knows.
pub fn is_compressed(bucket: &RawDoc) -> Result<bool> {
    match version(bucket) {
        None | Some(1) => Ok(false),
        Some(2 | 3) => Ok(true),
        Some(other) => {
            Err(Error::location(5_346_510, format!("a bucket of version {other}: 1, 2 and 3 are known")))
        }
    }
}

/// One column as a bucket of version 1 has it: `{0: …, 1: …}`.
fn column(bytes: &[u8], bytes_max: usize) -> Result<DocBuf> {
    let mut b = DocBuilder::with_capacity(bytes.len() * 4);
    let bounds = Bounds { rows_max: UNPACKED_BUCKET_ROWS_MAX, bytes_max };
    decode(bytes, bounds, &mut |row, ty, data| {
        b.raw(ty, &row.to_string(), data);
    })?;
    Ok(b.finish())
}

/// The bucket with columns as version 1 has them, of those fields that are wanted.
pub fn uncompressed<'b>(bucket: &'b RawDoc, wants: &dyn Fn(&[u8]) -> bool) -> Result<Cow<'b, RawDoc>> {
    if !is_compressed(bucket)? {
        return Ok(Cow::Borrowed(bucket));
    }
    let mut left = UNPACKED_BUCKET_BYTES_MAX;
    let mut columns = DocBuilder::with_capacity(bucket.byte_len() * 4);
    for e in bucket.get("data").and_then(|d| d.as_doc()).into_iter().flatten() {
        if !wants(e.name_bytes()) {
            continue;
        }
        match e.value() {
            Value::Binary { subtype: COLUMN_SUBTYPE, bytes } => {
                let column = column(bytes, left)?;
                left = left.saturating_sub(column.byte_len());
                columns.raw_doc(e.name_bytes(), &column);
            }
            _ => {
                columns.elem(e);
            }
        }
    }
    let columns = columns.finish();
    let mut b = DocBuilder::with_capacity(columns.byte_len() + 1024);
    for e in bucket {
        match (e.name(), e.value()) {
            ("data", _) => b.raw_doc("data", &columns),
            ("control", Value::Document(control)) => b.doc("control", |c| {
                c.i32("version", 1);
                control.iter().filter(|f| f.name() != "version").for_each(|f| {
                    c.elem(f);
                });
            }),
            _ => b.elem(e),
        };
    }
    Ok(Cow::Owned(b.finish()))
}

/// How many measurements a bucket has.
pub fn measurements_in(series: &TimeSeries, bucket: &RawDoc) -> u64 {
    if let Ok(true) = is_compressed(bucket) {
        let told = bucket.get_path("control.count").and_then(|n| n.as_i64());
        return told.and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
    }
    let times = bucket.get("data").and_then(|d| d.as_doc()?.get(&series.time_field)?.as_doc());
    times.map_or(0, |t| t.count() as u64)
}
