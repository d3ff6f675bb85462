//! A 64-bit hash consistent with equality in [`crate::compare`]: values that compare equal hash equal,
//! whatever their numeric types.
//!
//! Pass a `seed` of your own where a client chooses the keys ($group, distinct), so that collisions cannot
//! be prepared in advance.

use crate::compare::{StringOrder, canonical_type};
use crate::decimal128::{Num, prefix_of_decimal, prefix_of_f64, strip_zeros};
use crate::owned::Bson;
use crate::raw::{RawDoc, Texts, Value};
use crate::types::ElementType;
use pando_base::limits;

/// Hash of a value without a seed.
pub fn hash_value(v: Value<'_>) -> u64 {
    hash_value_with(v, 0, None)
}

/// Hash of a value; strings that `order` holds equal hash equal.
pub fn hash_value_with(v: Value<'_>, seed: u64, order: Option<&dyn StringOrder>) -> u64 {
    let mut h = Hash { state: seed ^ 0x9e37_79b9_7f4a_7c15, order };
    h.value(v, 0);
    h.state
}

/// Hash of an owned value, equal to that of the same value in bytes.
pub fn hash_bson(v: &Bson) -> u64 {
    hash_bson_with(v, 0, None)
}

pub fn hash_bson_with(v: &Bson, seed: u64, order: Option<&dyn StringOrder>) -> u64 {
    let mut h = Hash { state: seed ^ 0x9e37_79b9_7f4a_7c15, order };
    h.bson(v, 0);
    h.state
}

struct Hash<'a> {
    state: u64,
    order: Option<&'a dyn StringOrder>,
}

impl Hash<'_> {
    /// Folds in one word: a 64×64→128 multiplication, halves xored.
    #[inline]
    fn word(&mut self, n: u64) {
        let wide = u128::from(self.state ^ n) * 0xe703_7ed1_a0b4_28db;
        self.state =
            (wide as u64 ^ (wide >> 64) as u64).wrapping_add(0x2545_f491_4f6c_dd1d ^ n.rotate_left(32));
    }
    fn bytes(&mut self, bytes: &[u8]) {
        let mut chunks = bytes.chunks_exact(8);
        for chunk in &mut chunks {
            self.word(u64::from_le_bytes(chunk.try_into().unwrap_or_default()));
        }
        let mut last = [0; 8];
        last[..chunks.remainder().len()].copy_from_slice(chunks.remainder());
        self.word(u64::from_le_bytes(last));
        self.word(bytes.len() as u64);
    }
    fn class(&mut self, ty: ElementType) {
        self.word(u64::from(canonical_type(ty)));
    }
    fn text(&mut self, s: &str) {
        match self.order {
            None => self.bytes(s.as_bytes()),
            Some(order) => {
                let mut key = Vec::with_capacity(s.len() * 2);
                order.sort_key(s, &mut key);
                self.bytes(&key);
            }
        }
    }
    fn value(&mut self, v: Value<'_>, depth: usize) {
        use Value::*;
        self.class(v.element_type());
        match v {
            Double(x) => self.double(x),
            Int32(n) => self.word(i64::from(n) as u64),
            Int64(n) => self.word(n as u64),
            Decimal128(x) => self.decimal(x.unpack()),
            String(s) | Symbol(s) => self.text(s),
            JavaScript(s) => self.bytes(s.as_bytes()),
            Document(d) => self.fields(d, true, depth + 1),
            Array(d) => self.fields(d, false, depth + 1),
            JavaScriptWithScope { code, scope } => {
                self.bytes(code.as_bytes());
                self.fields(scope, true, depth + 1);
            }
            Binary { subtype, bytes } => {
                self.word(u64::from(subtype));
                self.bytes(bytes);
            }
            ObjectId(o) => self.bytes(&o.0),
            Boolean(b) => self.word(u64::from(b)),
            DateTime(ms) => self.word(ms as u64),
            Timestamp(t) => self.word(t.0),
            Regex { pattern, options } => {
                self.bytes(pattern.as_bytes());
                self.bytes(options.as_bytes());
            }
            DbPointer { ns, id } => {
                self.bytes(ns.as_bytes());
                self.bytes(&id.0);
            }
            NotUtf8(v) => self.texts(v.texts(), depth),
            Undefined | Null | MinKey | MaxKey => {}
        }
    }
    /// As the same value whose texts are UTF-8.
    #[cold]
    fn texts(&mut self, v: Texts<'_>, depth: usize) {
        match v {
            Texts::String(s) | Texts::Symbol(s) if self.order.is_some() => {
                self.text(&std::string::String::from_utf8_lossy(s));
            }
            Texts::String(s) | Texts::Symbol(s) | Texts::JavaScript(s) => self.bytes(s),
            Texts::JavaScriptWithScope { code, scope } => {
                self.bytes(code);
                self.fields(scope, true, depth + 1);
            }
            Texts::Regex { pattern, options } => {
                self.bytes(pattern);
                self.bytes(options);
            }
            Texts::DbPointer { ns, id } => {
                self.bytes(ns);
                self.bytes(&id.0);
            }
        }
    }
    fn fields(&mut self, doc: &RawDoc, names: bool, depth: usize) {
        if depth > limits::BSON_DEPTH_MAX {
            return;
        }
        for e in doc {
            if names {
                self.bytes(e.name_bytes());
            }
            self.value(e.value(), depth);
        }
        self.word(u64::MAX);
    }
    fn bson(&mut self, v: &Bson, depth: usize) {
        if let Some(scalar) = v.scalar() {
            return self.value(scalar, depth);
        }
        self.class(v.element_type());
        if depth >= limits::BSON_DEPTH_MAX {
            return;
        }
        match v {
            Bson::Array(items) => items.iter().for_each(|item| self.bson(item, depth + 1)),
            Bson::Document(d) => self.document(d, depth),
            Bson::JavaScriptWithScope(code, scope) => {
                self.bytes(code.as_bytes());
                self.document(scope, depth);
            }
            _ => {}
        }
        self.word(u64::MAX);
    }
    fn document(&mut self, d: &crate::Document, depth: usize) {
        for (name, item) in d.fields() {
            self.bytes(name.as_bytes());
            self.bson(item, depth + 1);
        }
    }
    /// Whole numbers of the `i64` range hash as that integer, all others by their exact binary prefix.
    fn double(&mut self, x: f64) {
        if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&x) && x.fract() == 0.0 {
            self.word(x as i64 as u64);
        } else if x.is_nan() {
            self.word(1);
        } else if x.is_infinite() {
            self.word(2 + u64::from(x < 0.0));
        } else {
            let p = prefix_of_f64(x.abs());
            self.prefixed(x < 0.0, p.exponent, p.mantissa);
        }
    }
    fn prefixed(&mut self, negative: bool, exponent: i32, mantissa: u64) {
        self.word((exponent as u64) << 1 | u64::from(negative));
        self.word(mantissa);
    }
    fn decimal(&mut self, x: Num) {
        let (negative, coefficient, exponent) = match x {
            Num::Nan => return self.word(1),
            Num::Infinity { negative } => return self.word(2 + u64::from(negative)),
            Num::Finite { negative, coefficient, exponent } => (negative, coefficient, exponent),
        };
        let (c, e) = strip_zeros(coefficient, exponent);
        if let Some(n) = whole(negative, c, e) {
            return self.word(n as u64);
        }
        let p = prefix_of_decimal(c, e);
        self.prefixed(negative, p.exponent, p.mantissa);
        if p.cut {
            // No double equals it: the digits tell it from other decimals.
            self.word(c as u64);
            self.word((c >> 64) as u64 ^ (e as u64) << 32);
        }
    }
}

fn whole(negative: bool, coefficient: u128, exponent: i32) -> Option<i64> {
    let power = 10i128.checked_pow(u32::try_from(exponent).ok()?)?;
    let magnitude = i128::try_from(coefficient).ok()?.checked_mul(power)?;
    i64::try_from(if negative { -magnitude } else { magnitude }).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decimal128::pack_exact;
    use crate::doc;

    #[test]
    fn equal_numbers_hash_equal_across_types() {
        let dec = |n, c, e| Value::Decimal128(pack_exact(n, c, e));
        for row in [
            vec![Value::Int32(-7), Value::Int64(-7), Value::Double(-7.0), dec(true, 700, -2)],
            vec![Value::Int32(0), Value::Double(-0.0), dec(true, 0, 9)],
            vec![Value::Double(0.5), dec(false, 5, -1)],
            vec![Value::Double(1e22), dec(false, 1, 22)],
            vec![Value::Double(-9_223_372_036_854_775_808.0), Value::Int64(i64::MIN)],
            vec![Value::Double(f64::NAN), Value::Decimal128(crate::Decimal128::NAN)],
            vec![Value::String("x"), Value::Symbol("x")],
        ] {
            for v in &row {
                assert_eq!(hash_value(*v), hash_value(row[0]), "{v:?}");
                assert_eq!(hash_bson(&Bson::from(*v)), hash_value(row[0]), "{v:?}");
            }
        }
    }

    #[test]
    fn trees_hash_like_their_bytes_and_neighbours_differ() {
        let a = doc! { "a": [1, { "b": "x" }], "c": 1.5 };
        let raw = a.to_raw();
        assert_eq!(hash_bson(&Bson::Document(a)), hash_value(Value::Document(&raw)));
        let mut seen = std::collections::BTreeSet::new();
        for i in 0..10_000 {
            assert!(seen.insert(hash_value(Value::Int32(i))));
            assert!(seen.insert(hash_value(Value::String(&i.to_string()))));
        }
        let (x, y) = (doc! { "a": [[1], 2] }.to_raw(), doc! { "a": [[1, 2]] }.to_raw());
        assert_ne!(hash_value(Value::Document(&x)), hash_value(Value::Document(&y)));
    }
}
