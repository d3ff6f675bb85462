//! Values of every BSON type, with the ends of their ranges.

use crate::rng::Rng;
use pando_base::Timestamp;
use pando_bson::{Binary, Bson, Decimal128, DocBuilder, Document, Name, ObjectId, Regex};

const INTS: &[i32] = &[0, 1, -1, 2, 3, 5, 7, -7, 10, 100, 1000, i32::MIN, i32::MAX];
const SMALL: &[i32] = &[0, 1, 1, 2, 2, 3, 4, 5, 10, -1];
const LONGS: &[i64] = &[
    0,
    1,
    -1,
    3,
    1 << 31,
    -(1 << 31) - 1,
    (1 << 53) - 1,
    (1 << 53) + 1,
    i64::MAX,
    i64::MIN,
    i64::MAX - 1,
    1_000_000_007,
];
const DOUBLES: &[f64] = &[
    0.0,
    -0.0,
    1.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    3.0,
    0.1,
    1e10,
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::MAX,
    5e-324,
    2_147_483_648.0,
    9_223_372_036_854_775_808.0,
    -9_223_372_036_854_775_808.0,
    9_007_199_254_740_993.0,
    1e-10,
    180.0,
];
const DECIMALS: &[&str] = &[
    "0",
    "-0",
    "1",
    "0.1",
    "1.50",
    "2.5",
    "-2.51",
    "NaN",
    "Infinity",
    "-Infinity",
    "9.999999999999999999999999999999999E+6144",
    "-9.999999999999999999999999999999999E+6144",
    "1E-6176",
    "-1E-6176",
    "0E-6176",
    "0E+6111",
    "1E+6111",
    "9223372036854775807",
    "9223372036854775808",
    "1234567890.123456789012345678901234",
    "3.141592653589793238462643383279503",
];
const STRINGS: &[&str] = &[
    "",
    "a",
    "A",
    "b",
    "abc",
    "ABC",
    "abc def",
    "é",
    "ß",
    "日本語",
    "a\u{0}b",
    "a.b",
    "$a",
    "$",
    "123",
    "-12.5",
    "0x1F",
    "NaN",
    "true",
    " trim me ",
    "2020-01-01T00:00:00Z",
    "2020-02-30",
    "ffffffffffffffffffffffff",
    "5f00000000000000000000aa",
    "(a",
    "a,b,,c",
    "dog cat",
    "i\u{307}",
    "😀x",
];
/// Dates outside the years in which this runs: those are taken for "now".
const DATES: &[i64] = &[
    0,
    -1,
    1_577_836_800_000,
    1_582_934_400_123,
    1_600_300_800_000,
    951_782_400_000,
    -62_135_596_800_000,
    253_402_300_799_999,
    i64::MAX,
    i64::MIN,
    -1_000_000_000_000,
];

/// Minus NaN, which has no text of its own.
fn minus_nan() -> Decimal128 {
    let mut bytes = [0; 16];
    bytes[15] = 0xFC;
    Decimal128(bytes)
}

pub(super) fn int(r: &mut Rng) -> Bson {
    Bson::Int32(r.pick(INTS))
}
pub(super) fn small(r: &mut Rng) -> i32 {
    r.pick(SMALL)
}
pub(super) fn decimal(r: &mut Rng) -> Bson {
    if r.once_in(30) {
        return Bson::Decimal128(minus_nan());
    }
    Bson::Decimal128(r.pick(DECIMALS).parse().unwrap_or(minus_nan()))
}
pub(super) fn number(r: &mut Rng) -> Bson {
    match r.below(8) {
        0..=2 => Bson::Int32(small(r)),
        3 => int(r),
        4 => Bson::Int64(r.pick(LONGS)),
        5 | 6 => Bson::Double(r.pick(DOUBLES)),
        _ => decimal(r),
    }
}
pub(super) fn text(r: &mut Rng) -> &'static str {
    r.pick(STRINGS)
}
/// A string that is stored, and no text. Cases that are written down as JSON show U+FFFD for it.
fn not_utf8(r: &mut Rng) -> Bson {
    let mut b = DocBuilder::new();
    b.string_bytes(
        "",
        r.pick(&[b"\xFF".as_slice(), b"a\xFF", b"\xC3", b"\xE2\x82", b"b\x80c", b"\xED\xA0\x80"]),
    );
    b.finish().first().map_or(Bson::Null, |e| Bson::from(e.value()))
}
pub(super) fn date(r: &mut Rng) -> Bson {
    Bson::DateTime(r.pick(DATES))
}
pub(super) fn object_id(r: &mut Rng) -> Bson {
    Bson::ObjectId(ObjectId([0x5f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, r.below(3) as u8]))
}
pub(super) fn timestamp(r: &mut Rng) -> Bson {
    let secs = r.pick(&[0, 1, 1_600_000_000, u32::MAX, i32::MAX as u32]);
    Bson::Timestamp(Timestamp::new(secs, r.pick(&[0, 1, u32::MAX])))
}
pub(super) fn binary(r: &mut Rng) -> Bson {
    let subtype = r.pick(&[0u8, 0, 4, 5, 128]);
    let n = if subtype == 4 || subtype == 5 { 16 } else { r.pick(&[0, 1, 3, 16]) };
    Bson::Binary(Binary { subtype, bytes: vec![r.pick(&[0u8, 1, 255]); n] })
}
pub(super) fn regex(r: &mut Rng) -> Bson {
    let pattern = r.pick(&["a", "^a", "b$", ".*", "", "[a-c]+", "(a)(b)?"]).to_owned();
    Bson::Regex(Regex { pattern, options: r.pick(&["", "i", "ms", "x"]).to_owned() })
}

/// A value of any type; `depth` levels of documents and arrays at most.
pub(super) fn any(r: &mut Rng, depth: u32) -> Bson {
    match r.below(if depth == 0 { 20 } else { 26 }) {
        0..=5 => number(r),
        6 if r.once_in(30) => not_utf8(r),
        6..=8 => Bson::String(text(r).to_owned()),
        9 => Bson::Null,
        10 => Bson::Boolean(r.percent(50)),
        11 => date(r),
        12 => object_id(r),
        13 => timestamp(r),
        14 => binary(r),
        15 => regex(r),
        16 => r_pick(r, &[Bson::MinKey, Bson::MaxKey]),
        17 => Bson::Undefined,
        18 => match r.below(3) {
            0 => Bson::JavaScript("function() { return 1; }".to_owned()),
            1 => Bson::Symbol(text(r).to_owned()),
            _ => Bson::DbPointer("df.x".to_owned(), ObjectId([1; 12])),
        },
        19 => Bson::JavaScriptWithScope("x".to_owned(), Document::new()),
        20..=22 => array(r, depth - 1),
        _ => Bson::Document(document(r, depth - 1)),
    }
}

fn r_pick(r: &mut Rng, from: &[Bson]) -> Bson {
    from[r.below(from.len())].clone()
}

pub(super) fn array(r: &mut Rng, depth: u32) -> Bson {
    let n = r.pick(&[0, 1, 2, 2, 3, 5]);
    Bson::Array((0..n).map(|_| any(r, depth)).collect())
}

pub(super) fn document(r: &mut Rng, depth: u32) -> Document {
    let mut d = Document::new();
    for _ in 0..r.pick(&[0, 1, 1, 2, 3]) {
        let name = match r.once_in(120) {
            true => Name::from(b"n\xFF".as_slice()),
            false => r.pick(&["a", "b", "x", "k", "v", "_id", "x", "y", "0", "", "a.b", "$a"]).into(),
        };
        if !d.contains(&name) {
            d.push(name, any(r, depth));
        }
    }
    d
}

/// A document or an array in many levels.
pub(super) fn deep(r: &mut Rng) -> Bson {
    let levels = r.pick(&[50, 99, 100, 101, 150, 178, 190]);
    let mut v = Bson::Int32(1);
    let arrays = r.percent(50);
    for _ in 0..levels {
        v = match arrays {
            true => Bson::Array(vec![v]),
            false => Bson::Document(vec![("a".to_owned(), v)].into()),
        };
    }
    v
}

/// A text about as long as a document may be.
pub(super) fn long(r: &mut Rng) -> Bson {
    let bytes = r.pick(&[100_000usize, 1 << 20, 8_000_000, 16_000_000, 16_777_000]);
    Bson::String(r.pick(&["a", "é"]).repeat(bytes / 2))
}
