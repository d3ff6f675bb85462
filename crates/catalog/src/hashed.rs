//! The hash behind hashed indexes and hashed sharding: the first eight bytes of an MD5 over the value, numbers
//! squashed to 64-bit integers, so that 3, 3.0 and 3.7 hash alike. Same numbers as MongoDB's.

use md5::{Digest, Md5};
use pando_bson::compare::StringOrder;
use pando_bson::{Decimal128, Elem, ElementType, RawDoc, Value};

/// The hash of a value; strings go through the collation's sort key first.
pub fn hash_value(v: Value<'_>, order: Option<&dyn StringOrder>) -> i64 {
    let mut h = Md5::new();
    h.update(0i32.to_le_bytes());
    add_value(&mut h, v, None, order);
    let digest: [u8; 16] = h.finalize().into();
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    i64::from_le_bytes(first)
}

/// MongoDB's number for the class of a type.
fn class(ty: ElementType) -> i32 {
    match ty {
        ElementType::MinKey => -1,
        ElementType::MaxKey => 127,
        ElementType::Undefined => 0,
        ElementType::Null => 5,
        ElementType::Double | ElementType::Int32 | ElementType::Int64 | ElementType::Decimal128 => 10,
        ElementType::String | ElementType::Symbol => 15,
        ElementType::Document => 20,
        ElementType::Array => 25,
        ElementType::Binary => 30,
        ElementType::ObjectId => 35,
        ElementType::Boolean => 40,
        ElementType::DateTime => 45,
        ElementType::Timestamp => 47,
        ElementType::Regex => 50,
        ElementType::DbPointer => 55,
        ElementType::JavaScript => 60,
        ElementType::JavaScriptWithScope => 65,
    }
}

fn add_value(h: &mut Md5, v: Value<'_>, name: Option<&[u8]>, order: Option<&dyn StringOrder>) {
    h.update(class(v.element_type()).to_le_bytes());
    if let Some(name) = name {
        h.update(name);
        h.update([0]);
    }
    match v {
        Value::Document(d) | Value::Array(d) => add_fields(h, d, order),
        Value::JavaScriptWithScope { code, scope } => {
            h.update(code.as_bytes());
            h.update([0]);
            add_fields(h, scope, order);
        }
        Value::String(s) if order.is_some() => {
            let mut key = Vec::new();
            if let Some(o) = order {
                o.sort_key(s, &mut key);
            }
            h.update((key.len() as u32 + 1).to_le_bytes());
            h.update(&key);
            h.update([0]);
        }
        v if v.is_number() => h.update(whole_number(v).to_le_bytes()),
        v => {
            let mut b = pando_bson::DocBuilder::new();
            b.value("", v);
            let doc = b.finish();
            h.update(doc.first().map(|e| e.data()).unwrap_or_default());
        }
    }
}

fn add_fields(h: &mut Md5, d: &RawDoc, order: Option<&dyn StringOrder>) {
    for e in d {
        let e: Elem<'_> = e;
        add_value(h, e.value(), Some(e.name_bytes()), order);
    }
    // The terminating element: class 0, no name, no value.
    h.update(0i32.to_le_bytes());
}

/// Cut to a 64-bit integer; out of range goes to the nearest bound, NaN to 0.
fn whole_number(v: Value<'_>) -> i64 {
    match v {
        Value::Int32(n) => i64::from(n),
        Value::Int64(n) => n,
        Value::Double(d) => d as i64,
        Value::Decimal128(d) => decimal_to_i64(d),
        _ => 0,
    }
}

/// Truncates; the fields are those of the BID encoding.
fn decimal_to_i64(d: Decimal128) -> i64 {
    let bits = u128::from_le_bytes(d.0);
    let negative = bits >> 127 != 0;
    if (bits >> 125) & 0b11 == 0b11 {
        // Infinities go to the bounds; NaN and non-canonical coefficients count as zero.
        let infinite = (bits >> 122) & 0x1F == 0b11110;
        return if !infinite {
            0
        } else if negative {
            i64::MIN
        } else {
            i64::MAX
        };
    }
    let exponent = ((bits >> 113) & 0x3FFF) as i32 - 6176;
    let mut whole = bits & ((1 << 113) - 1);
    for _ in 0..exponent.unsigned_abs() {
        if whole == 0 {
            break;
        }
        whole = if exponent < 0 { whole / 10 } else { whole.saturating_mul(10) };
        if whole > 1 << 64 && exponent > 0 {
            break;
        }
    }
    let magnitude = i64::try_from(whole).unwrap_or(i64::MAX);
    if negative { -magnitude } else { magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_bson::{ObjectId, doc};

    #[test]
    fn hashes_are_mongodbs() {
        let nested = doc! { "a": 1, "b": { "c": "x" } }.to_raw();
        let array = doc! { "0": 1, "1": "y" }.to_raw();
        let oid = ObjectId::from_hex("0123456789ab0123456789ab").unwrap();
        let cases = [
            (Value::Int32(1), 5902408780260971510),
            (Value::Double(1.7), 5902408780260971510),
            (Value::Int64(5), 4470791281878691347),
            (Value::String("abc"), 8478485326885698097),
            (Value::Null, 2338878944348059895),
            (Value::Boolean(true), 6405873908747105701),
            (Value::Boolean(false), 6289544573401934092),
            (Value::Document(&nested), 3140165265723222620),
            (Value::Array(&array), 6701849490456919490),
            (Value::ObjectId(oid), 3804076977809945664),
            (Value::Timestamp(pando_base::Timestamp::new(1, 2)), 6130793394493442031),
            (Value::Binary { subtype: 0, bytes: b"abc" }, -5469096009886218469),
            (Value::Regex { pattern: "a", options: "i" }, -1736204118293582337),
            (Value::MinKey, 7961148599568647290),
            (Value::MaxKey, 5504842513779440750),
            (Value::JavaScript("f"), 5961458073249776817),
            (Value::Double(f64::NAN), 4854801880128277513),
            (Value::Double(1e30), 921523596458303250),
            (Value::String(""), 2049396243249673340),
        ];
        for (v, expected) in cases {
            assert_eq!(hash_value(v, None), expected, "{v}");
        }
    }
}
