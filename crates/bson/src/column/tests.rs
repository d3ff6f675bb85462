//! Columns that a real server made, and bytes that nobody made.

use super::{Bounds, decode};
use crate::raw::{DocBuf, RawDoc, Value};
use crate::types::ElementType;
use std::collections::BTreeMap;

const BOUNDS: Bounds = Bounds { rows_max: 2000, bytes_max: 1 << 20 };

/// What buckets of a MongoDB 6.0.5 hold and how they are told: name, bucket, measurements, in hexadecimal.
const RECORDED: &str = include_str!("recorded.txt");

fn unhex(text: &str) -> Vec<u8> {
    let digit = |b: u8| (b as char).to_digit(16).unwrap() as u8;
    text.as_bytes().chunks(2).map(|p| digit(p[0]) << 4 | digit(p[1])).collect()
}

struct Recorded {
    name: &'static str,
    bucket: DocBuf,
    rows: Vec<DocBuf>,
}

fn recorded() -> Vec<Recorded> {
    let one = |line: &'static str| {
        let mut parts = line.split('\t');
        let (name, bucket, all) = (parts.next()?, unhex(parts.next()?), unhex(parts.next()?));
        let (mut rows, mut rest) = (Vec::new(), &all[..]);
        while !rest.is_empty() {
            let doc = RawDoc::validate_prefix(rest).unwrap();
            rows.push(doc.to_buf());
            rest = &rest[doc.byte_len()..];
        }
        Some(Recorded { name, bucket: RawDoc::validate(&bucket).unwrap().to_buf(), rows })
    };
    RECORDED.lines().filter_map(one).collect()
}

fn columns(bucket: &RawDoc) -> Vec<(String, &[u8])> {
    let data = bucket.get("data").and_then(|d| d.as_doc()).unwrap();
    data.iter()
        .map(|e| match e.value() {
            Value::Binary { subtype: 7, bytes } => (e.name().to_owned(), bytes),
            _ => panic!("{} is no column", e.name()),
        })
        .collect()
}

type Rows = BTreeMap<usize, (ElementType, Vec<u8>)>;

fn rows_of(column: &[u8]) -> pando_base::Result<(usize, Rows)> {
    let mut out = BTreeMap::new();
    let n = decode(column, BOUNDS, &mut |row, ty, data| {
        out.insert(row, (ty, data.to_vec()));
    })?;
    Ok((n, out))
}

#[test]
fn columns_of_a_real_server_give_what_it_gave() {
    let all = recorded();
    assert!(all.len() > 50);
    let mut wrong = Vec::new();
    for r in &all {
        for (field, column) in columns(&r.bucket) {
            // Not all fields are recorded.
            if !r.rows.iter().any(|d| d.elem(&field).is_some()) {
                continue;
            }
            let wanted: Rows = r
                .rows
                .iter()
                .enumerate()
                .filter_map(|(i, d)| d.elem(&field).map(|e| (i, (e.ty, e.data().to_vec()))))
                .collect();
            match rows_of(column) {
                Ok((n, found)) => {
                    if let Some(i) = (0..r.rows.len().max(n)).find(|i| found.get(i) != wanted.get(i)) {
                        let (f, w) = (found.get(&i), wanted.get(&i));
                        wrong.push(format!("{}.{field} row {i} of {n}: {f:?} for {w:?}", r.name));
                    }
                }
                Err(e) => wrong.push(format!("{}.{field}: {e}", r.name)),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn malformed_columns_are_errors() {
    for (bytes, why) in [
        (&[][..], "no end"),
        (&[0x10, 0, 1, 0, 0, 0], "no end behind a value"),
        (&[0x10, 0, 1, 0], "half a value"),
        (&[0x10, b'a', 0, 1, 0, 0, 0, 0], "a name"),
        (&[0, 0], "bytes behind the end"),
        (&[0x80, 1, 0, 0], "half a block"),
        (&[0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0], "selector 0"),
        (&[0x80, 0xE, 0, 0, 0, 0, 0, 0, 0, 0], "a difference to nothing"),
        (&[0x08, 0, 0, 0x80, 0x4E, 0, 0, 0, 0, 0, 0, 0, 0], "a boolean of 2"),
        (&[0xE0, 0], "an unknown control byte"),
        (&[0xF1, 5, 0, 0, 0, 0, 0, 0], "nothing in the reference document"),
    ] {
        assert_eq!(rows_of(bytes).unwrap_err().code.0, 22, "{why}");
    }
}

#[test]
fn repetitions_are_bounded() {
    // Int32 7, then blocks that repeat it 1,920 times each.
    let column = |blocks: u8| {
        let mut out = vec![0x10, 0, 7, 0, 0, 0, 0x80 | (blocks - 1)];
        (0..blocks).for_each(|_| out.extend([0xFF, 0, 0, 0, 0, 0, 0, 0]));
        out.push(0);
        out
    };
    assert_eq!(rows_of(&column(1)).unwrap().0, 1921);
    assert_eq!(rows_of(&column(2)).unwrap_err().code.0, 22);
    let few = Bounds { rows_max: usize::MAX, bytes_max: 1000 };
    assert_eq!(decode(&column(1), few, &mut |_, _, _| {}).unwrap_err().code.0, 22);
}

/// A small generator of numbers, so that every run tries the same.
fn random(state: &mut u64) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize
}

#[test]
fn no_bytes_make_it_panic_or_give_what_is_no_bson() {
    let all = recorded();
    let mut seeds: Vec<Vec<u8>> = Vec::new();
    all.iter().for_each(|r| seeds.extend(columns(&r.bucket).into_iter().map(|(_, c)| c.to_vec())));
    let (mut state, mut read) = (11, 0);
    for round in 0..60_000 {
        let mut bytes = match round % 5 {
            0 => (0..random(&mut state) % 40).map(|_| random(&mut state) as u8).collect(),
            _ => seeds[random(&mut state) % seeds.len()].clone(),
        };
        for _ in 0..=random(&mut state) % 4 {
            if bytes.is_empty() {
                break;
            }
            let at = random(&mut state) % bytes.len();
            match random(&mut state) % 4 {
                0 => bytes.truncate(at),
                1 => bytes.insert(at, random(&mut state) as u8),
                2 => bytes[at] ^= 1 << (random(&mut state) % 8),
                _ => bytes[at] = random(&mut state) as u8,
            }
        }
        let Ok((_, rows)) = rows_of(&bytes) else { continue };
        read += 1;
        for (ty, data) in rows.values() {
            super::check(*ty, data).unwrap();
        }
    }
    assert!(read > 1000, "{read}");
}
