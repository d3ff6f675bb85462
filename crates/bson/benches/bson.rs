//! Inner loops of the document layer. `cargo bench -p pando-bson`; figures are nanoseconds per call.

#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

use pando_bson::keystring::{KeyBuilder, KeyReader};
use pando_bson::{DocBuf, RawDoc, Value, cmp_docs, doc, hash_value};
use std::hint::black_box;
use std::time::{Duration, Instant};

fn run(name: &str, bytes: usize, mut f: impl FnMut()) {
    let filter = std::env::args().nth(1).filter(|a| !a.starts_with('-'));
    if filter.is_some_and(|want| !name.contains(&want)) {
        return;
    }
    let mut calls = 1u32;
    // Best of several batches of about 20 ms.
    let mut best = f64::MAX;
    for _ in 0..15 {
        let start = Instant::now();
        for _ in 0..calls {
            f();
        }
        let took = start.elapsed();
        if took < Duration::from_millis(20) {
            calls = calls.saturating_mul(2);
            continue;
        }
        best = best.min(took.as_nanos() as f64 / f64::from(calls));
    }
    if best == f64::MAX {
        for _ in 0..20 {
            let start = Instant::now();
            for _ in 0..calls {
                f();
            }
            let took = start.elapsed();
            best = best.min(took.as_nanos() as f64 / f64::from(calls));
            if took < Duration::from_millis(20) {
                calls = calls.saturating_mul(2);
                best = f64::MAX;
            }
        }
    }
    let rate = if bytes > 0 { format!("{:8.0} MB/s", bytes as f64 * 1000.0 / best) } else { String::new() };
    println!("{name:<36} {best:>10.1} ns {rate}");
}

/// Twenty fields, some 430 bytes: a typical order record.
fn order() -> DocBuf {
    doc! {
        "_id": 123456i64, "customer": "C-0098123", "status": "shipped", "total": 199.99, "currency": "EUR",
        "created": 1700000000000i64, "updated": 1700000100000i64, "paid": true, "gift": false, "weight": 1.25,
        "address": { "street": "Long Road 12", "city": "Uppsala", "zip": "75310", "country": "SE" },
        "items": [{ "sku": "A-1", "qty": 2, "price": 50.0 }, { "sku": "B-7", "qty": 1, "price": 99.99 }],
        "tags": ["a", "b", "c"], "note": "leave at the door, please ring twice", "rank": 17, "score": 0.5,
        "region": "north", "channel": "web", "attempts": 1, "version": 3
    }
    .to_raw()
}

fn main() {
    let doc = order();
    let len = doc.byte_len();
    println!("document of {len} bytes");
    run("validate order", len, || {
        black_box(RawDoc::validate(black_box(doc.as_bytes())).is_ok());
    });
    let kib = doc! { "_id": 1, "x": "a".repeat(1000) }.to_raw();
    run("validate 1 KiB string", kib.byte_len(), || {
        black_box(RawDoc::validate(black_box(kib.as_bytes())).is_ok());
    });
    run("walk order", len, || {
        black_box(black_box(&doc).iter().map(|e| e.data().len()).sum::<usize>());
    });
    run("walk and decode order", len, || {
        black_box(black_box(&doc).iter().map(|e| e.value().is_number() as usize).sum::<usize>());
    });
    run("get last field", 0, || {
        black_box(black_box(&doc).get("version"));
    });
    let other = order();
    run("compare equal orders", len, || {
        black_box(cmp_docs(black_box(&doc), black_box(&other)));
    });
    run("hash order", len, || {
        black_box(hash_value(black_box(Value::Document(&doc))));
    });
    run("hash int", 0, || {
        black_box(hash_value(black_box(Value::Int32(5))));
    });

    let id = pando_bson::ObjectId([7; 12]);
    let dec = "19.99".parse().unwrap();
    for (name, v) in [
        ("key int32", Value::Int32(123_456)),
        ("key int64", Value::Int64(1 << 40)),
        ("key object id", Value::ObjectId(id)),
        ("key short string", Value::String("C-0098123")),
        ("key double 199.99", Value::Double(199.99)),
        ("key decimal 19.99", Value::Decimal128(dec)),
        ("key date", Value::DateTime(1_700_000_000_000)),
    ] {
        let mut k = KeyBuilder::default();
        run(name, 0, || {
            k.clear();
            k.append(black_box(v)).append_record_id(black_box(123_456));
            black_box(k.bytes());
        });
        let mut key = KeyBuilder::default();
        key.append(v);
        run(&format!("{name}, read back"), 0, || {
            let mut out = pando_bson::DocBuilder::new();
            let mut r = KeyReader::new(black_box(key.bytes()), Default::default(), key.type_bits());
            black_box(r.next_into(&mut out, "a").is_ok());
        });
    }
}
