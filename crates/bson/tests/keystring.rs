//! Keys order as values do, come back as the values they were, and bound what starts with them.

mod random;

use pando_bson::keystring::*;
use pando_bson::{Bson, Decimal128, Document, RawDoc, Value, cmp_bson, doc};
use random::Random;
use std::cmp::Ordering;

fn key(fields: &Document, directions: Directions) -> (Vec<u8>, Vec<u8>) {
    let mut b = KeyBuilder::new(directions);
    for e in &*fields.to_raw() {
        b.append_elem(&e, None);
    }
    let bits = b.type_bits().to_vec();
    (b.finish(), bits)
}
fn one(v: &Bson) -> Vec<u8> {
    let mut d = Document::new();
    d.push("", v.clone());
    key(&d, Directions::ASCENDING).0
}
fn dec(s: &str) -> Bson {
    Bson::Decimal128(s.parse().expect("a decimal"))
}

#[test]
fn equal_numbers_of_all_types_share_a_key() {
    for row in [
        vec![Bson::Int32(1), Bson::Int64(1), Bson::Double(1.0), dec("1"), dec("1.00")],
        vec![Bson::Int32(0), Bson::Double(-0.0), dec("-0E+10"), dec("0.000")],
        vec![Bson::Int64(i64::MIN), Bson::Double(-9_223_372_036_854_775_808.0), dec("-9223372036854775808")],
        vec![Bson::Double(f64::NAN), Bson::Double(-f64::NAN), dec("NaN")],
        vec![Bson::Double(f64::INFINITY), dec("Infinity")],
        vec![Bson::Double(2.5), dec("2.5"), dec("2.500")],
        vec![Bson::Double(1e22), dec("1E+22")],
        vec![Bson::Double(0.0009765625), dec("0.0009765625")],
        vec![Bson::Double(-1e-300), Bson::Double(-1e-300)],
    ] {
        for v in &row {
            assert_eq!(one(v), one(&row[0]), "{v:?}");
        }
    }
    assert_ne!(one(&Bson::Double(0.1)), one(&dec("0.1")));
    assert_ne!(one(&Bson::Int64((1 << 53) + 1)), one(&Bson::Double((1u64 << 53) as f64)));
}

#[test]
fn common_keys_are_short() {
    let mut r = Random::new(5);
    assert_eq!(one(&Bson::Int32(5)).len(), 2);
    assert_eq!(one(&Bson::Int32(-100)).len(), 2);
    assert_eq!(one(&Bson::Int64(30_000)).len(), 3);
    assert_eq!(one(&Bson::Double(2.5)).len(), 3);
    assert_eq!(one(&dec("19.99")).len(), 12);
    assert_eq!(one(&Bson::ObjectId(r.id())).len(), 13);
    assert_eq!(one(&Bson::from("abc")).len(), 5);
    for _ in 0..10_000 {
        assert!(one(&Bson::Double(r.double())).len() <= 11);
        assert!(one(&Bson::Decimal128(r.decimal())).len() <= 1 + 2 + 8 + 2 + 17);
    }
}

#[test]
fn numbers_order_by_value_and_come_back() {
    let mut r = Random::new(1);
    let mut sample: Vec<_> = (0..1500).map(|_| r.number()).collect();
    sample.push(dec("1.7976931348623157081452742373170436E+308"));
    sample.push(dec("1.7976931348623157081452742373170435E+308"));
    sample.push(dec("4.940656458412465441765687928682214E-324"));
    sample.push(dec("4.940656458412465441765687928682213E-324"));
    sample.push(dec("9.999999999999999999999999999999999E+6144"));
    sample.push(dec("9223372036854775807.999999999999999"));
    let keys: Vec<_> = sample.iter().map(one).collect();
    for (a, ka) in sample.iter().zip(&keys) {
        for (b, kb) in sample.iter().zip(&keys) {
            assert_eq!(ka.cmp(kb), cmp_bson(a, b), "{a:?} {b:?}");
        }
    }
}

/// Bits that a key and its type bits keep: everything but the payload of NaN.
fn canonical(v: &Bson) -> Bson {
    match v {
        Bson::Double(x) if x.is_nan() => Bson::Double(f64::NAN),
        Bson::Decimal128(x) if x.is_nan() => Bson::Decimal128(Decimal128::NAN),
        Bson::Array(items) => Bson::Array(items.iter().map(canonical).collect()),
        Bson::Document(d) => Bson::Document(canonical_doc(d)),
        Bson::JavaScriptWithScope(code, scope) => {
            Bson::JavaScriptWithScope(code.clone(), canonical_doc(scope))
        }
        other => other.clone(),
    }
}
fn canonical_doc(d: &Document) -> Document {
    Document::from(d.iter().map(|(k, v)| (k.to_owned(), canonical(v))).collect::<Vec<_>>())
}

#[test]
fn compound_keys_order_field_by_field_in_their_directions_and_come_back() {
    let mut r = Random::new(2);
    for _ in 0..25_000 {
        let fields = 1 + r.below(3) as usize;
        let directions = Directions(r.below(8) as u32);
        let mut make = |like: Option<&Document>| {
            let mut d = Document::new();
            for i in 0..fields {
                let same = like.and_then(|l| l.fields().get(i)).filter(|_| r.below(2) == 0);
                let v = same.map_or_else(|| r.value(2), |(_, v)| v.clone());
                d.push(format!("f{i}"), v);
            }
            d
        };
        let a = make(None);
        let b = make(Some(&a));
        let mut expect = Ordering::Equal;
        for i in 0..fields {
            let by = cmp_bson(&a.fields()[i].1, &b.fields()[i].1);
            let by = if directions.is_descending(i) { by.reverse() } else { by };
            expect = expect.then(by);
        }
        let ((ka, bits), (kb, _)) = (key(&a, directions), key(&b, directions));
        assert_eq!(ka.cmp(&kb), expect, "{a:?}\n{b:?} {directions:?}");
        if expect != Ordering::Equal {
            assert!(!ka.starts_with(&kb) && !kb.starts_with(&ka), "{a:?} {b:?}");
        }

        let mut reader = KeyReader::new(&ka, directions, &bits);
        let mut skipper = reader.clone();
        for (_, v) in a.iter() {
            let back = reader.next_value().unwrap().unwrap();
            let expect = canonical(v);
            // Compared as bytes: == on doubles would let -0.0 pass for 0.0.
            assert_eq!(doc_of(&back), doc_of(&expect), "{back:?} {expect:?}");
            assert!(skipper.skip().unwrap());
            assert_eq!(skipper.position(), reader.position(), "{v:?}");
        }
        assert!(reader.next_value().unwrap().is_none());
        assert!(!skipper.skip().unwrap());
    }
}

fn doc_of(v: &Bson) -> Vec<u8> {
    let mut d = Document::new();
    d.push("v", v.clone());
    d.to_raw().into_bytes()
}

#[test]
fn bounds_enclose_exactly_the_keys_with_their_fields() {
    let mut r = Random::new(3);
    for _ in 0..10_000 {
        let directions = Directions(r.below(4) as u32);
        let (a, b, rest) = (r.value(1), r.value(1), r.value(1));
        let prefix = |v: &Bson| {
            let mut k = KeyBuilder::new(directions);
            let raw = doc_of(v);
            k.append_elem(&RawDoc::trusted(&raw).first().unwrap(), None);
            k
        };
        let mut entry = prefix(&b);
        let raw = doc_of(&rest);
        entry
            .append_elem(&RawDoc::trusted(&raw).first().unwrap(), None)
            .append_record_id(r.below(1 << 40) as i64);
        let entry = entry.finish();
        let mut by = cmp_bson(&b, &a);
        if directions.is_descending(0) {
            by = by.reverse();
        }
        assert_eq!(entry < prefix(&a).finish_before(), by == Ordering::Less, "{a:?} {b:?}");
        assert_eq!(entry > prefix(&a).finish_after(), by == Ordering::Greater, "{a:?} {b:?}");
    }
}

#[test]
fn malformed_keys_are_refused_without_panic() {
    let mut r = Random::new(4);
    let (mut good, mut bad) = (0, 0);
    for round in 0..60_000 {
        let mut bytes: Vec<u8> = if round % 2 == 0 {
            (0..r.below(24)).map(|_| r.next() as u8).collect()
        } else {
            let d = doc! { "a": 1 };
            let mut d = d;
            d.set("a", r.value(2));
            let mut k = key(&d, Directions::ASCENDING).0;
            let at = r.below(k.len() as u64) as usize;
            k[at] = k[at].wrapping_add(1 + r.below(255) as u8);
            k
        };
        bytes.truncate(bytes.len() - (r.below(3) as usize).min(bytes.len()));
        let bits: Vec<u8> = (0..4).map(|_| r.next() as u8).collect();
        let mut reader = KeyReader::new(&bytes, Directions(r.below(2) as u32), &bits);
        let mut skipper = reader.clone();
        loop {
            match reader.next_value() {
                Ok(Some(_)) => good += 1,
                Ok(None) => break,
                Err(_) => {
                    bad += 1;
                    break;
                }
            }
        }
        while let Ok(true) = skipper.skip() {}
        let _ = (split_record_id(&bytes), split_record_key(&bytes));
    }
    assert!(good > 1000 && bad > 1000);
}

#[test]
fn collated_strings_order_by_their_sort_keys() {
    struct NoCase;
    impl pando_bson::StringOrder for NoCase {
        fn cmp(&self, a: &str, b: &str) -> Ordering {
            a.to_lowercase().cmp(&b.to_lowercase())
        }
        fn sort_key(&self, s: &str, out: &mut Vec<u8>) {
            out.extend_from_slice(s.to_lowercase().as_bytes());
        }
    }
    let build = |s: &str| {
        let mut k = KeyBuilder::default();
        let inner = doc! { "x": s }.to_raw();
        k.append_with(Value::String(s), Some(&NoCase)).append_with(Value::Document(&inner), Some(&NoCase));
        k.finish()
    };
    assert_eq!(build("ABC"), build("abc"));
    assert!(build("abc") < build("B"));
}

#[test]
fn patterns_give_directions_and_names() {
    let pattern = doc! { "a": 1, "b": -1, "c": "hashed", "d": -1.0 }.to_raw();
    let directions = Directions::from_pattern(&pattern);
    assert_eq!(directions, Directions(0b1010));
    let fields = doc! { "a": 5i64, "b": "x" };
    let (k, bits) = key(&fields, directions);
    assert_eq!(key_document(&k, directions, &bits, &pattern).unwrap(), fields.to_raw());
}
