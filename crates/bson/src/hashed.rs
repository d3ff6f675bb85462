//! The hash of hashed indexes and hashed shard keys: the first eight bytes of an MD5 over the value.
//!
//! Numbers are squashed to 64-bit integers first (1, 1.7 and 1L hash alike), so the hash is not consistent
//! with equality alone but with MongoDB's stored data, which is what counts here. Vectors in the tests come
//! from a real server. Whoever makes keys and whoever looks for them calls this one function: two that agree on
//! nearly every value lose documents.

use crate::compare::{StringOrder, canonical_type};
use crate::decimal128::Rounding;
use crate::raw::{RawDoc, Texts, Value};
use crate::{DocBuilder, Elem, ElementType};
use md5::{Digest, Md5};
use pando_base::limits;

/// The indexed value for `v` without a collation; a missing field hashes as null.
pub fn hashed_key(v: Value<'_>) -> i64 {
    hashed_key_with(v, None)
}

/// The indexed value for `v`, its strings (also those inside of it) by their sort keys in a collation.
pub fn hashed_key_with(v: Value<'_>, order: Option<&dyn StringOrder>) -> i64 {
    let mut one = DocBuilder::new();
    one.value("", v);
    one.finish().first().map_or(0, |e| hash(&e, SEED, order))
}

/// As [`hashed_key`] with another seed than an index has.
pub fn hashed_key_seeded(v: Value<'_>, seed: i32) -> i64 {
    let mut one = DocBuilder::new();
    one.value("", v);
    one.finish().first().map_or(0, |e| hash(&e, seed, None))
}

/// As [`hashed_key`], from an element.
pub fn hashed_key_of(e: &Elem<'_>) -> i64 {
    hash(e, SEED, None)
}

/// Of every index.
const SEED: i32 = 0;

fn hash(e: &Elem<'_>, seed: i32, order: Option<&dyn StringOrder>) -> i64 {
    let mut h = Md5::new();
    h.update(seed.to_le_bytes());
    element(&mut h, e, false, 0, order);
    let digest: [u8; 16] = h.finalize().into();
    let [a, b, c, d, e, f, g, i, ..] = digest;
    i64::from_le_bytes([a, b, c, d, e, f, g, i])
}

/// MongoDB's number of the type class: ours but for the ends.
fn class(ty: ElementType) -> i32 {
    match ty {
        ElementType::MinKey => -1,
        ElementType::Undefined => 0,
        other => i32::from(canonical_type(other)),
    }
}

fn element(h: &mut Md5, e: &Elem<'_>, with_name: bool, depth: usize, order: Option<&dyn StringOrder>) {
    h.update(class(e.ty).to_le_bytes());
    if with_name {
        h.update(e.name_bytes());
        h.update([0]);
    }
    match (e.value(), order) {
        (Value::Document(d) | Value::Array(d), _) => fields(h, d, depth + 1, order),
        (Value::JavaScriptWithScope { code, scope }, _) => {
            h.update(code.as_bytes());
            h.update([0]);
            fields(h, scope, depth + 1, None);
        }
        (Value::String(s), Some(order)) => sort_key(h, s, order),
        (Value::NotUtf8(v), _) => match (v.texts(), order) {
            (Texts::JavaScriptWithScope { code, scope }, _) => {
                h.update(code);
                h.update([0]);
                fields(h, scope, depth + 1, None);
            }
            (Texts::String(s), Some(order)) => sort_key(h, &String::from_utf8_lossy(s), order),
            _ => h.update(v.data()),
        },
        (v, _) if v.is_number() => h.update(squash(v).to_le_bytes()),
        _ => h.update(e.data()),
    }
}

fn sort_key(h: &mut Md5, s: &str, order: &dyn StringOrder) {
    let mut key = Vec::new();
    order.sort_key(s, &mut key);
    h.update((key.len() as u32 + 1).to_le_bytes());
    h.update(&key);
    h.update([0]);
}

fn fields(h: &mut Md5, doc: &RawDoc, depth: usize, order: Option<&dyn StringOrder>) {
    if depth <= limits::BSON_DEPTH_MAX {
        doc.iter().for_each(|e| element(h, &e, true, depth, order));
    }
    // The end of a document counts as an element of class 0.
    h.update(0i32.to_le_bytes());
}

fn squash(v: Value<'_>) -> i64 {
    const TWO_POW_63: f64 = 9_223_372_036_854_775_808.0;
    match v {
        Value::Int32(n) => i64::from(n),
        Value::Int64(n) => n,
        // Exactly 2^63 wraps round; everything above saturates.
        Value::Double(x) if x == TWO_POW_63 => i64::MIN,
        Value::Double(x) => x as i64,
        Value::Decimal128(x) => x.to_i64_saturating(Rounding::HalfEven),
        _ => 0,
    }
}
