//! Random values with a taste for the awkward: type borders, powers of two and ten, near-equal numbers.

#![allow(dead_code)]

use pando_base::Timestamp;
use pando_bson::{Binary, Bson, Decimal128, Document, ObjectId, Regex};

pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        (self.next() >> 11) % n
    }
    pub(crate) fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len() as u64) as usize]
    }
    pub(crate) fn text(&mut self) -> String {
        let alphabet = ['a', 'a', 'b', 'z', '\0', '\u{1}', '\u{2}', 'é', '😀', '\u{7f}'];
        (0..self.below(5)).map(|_| *self.pick(&alphabet)).collect()
    }
    pub(crate) fn name(&mut self) -> String {
        (*self.pick(&["", "a", "b", "ab", "é", "x1"])).to_owned()
    }
    pub(crate) fn int(&mut self) -> i64 {
        let edge = 1i64.checked_shl(self.below(64) as u32).unwrap_or(i64::MAX);
        match self.below(5) {
            0 => self.below(7) as i64 - 3,
            1 => edge.wrapping_add(self.below(3) as i64 - 1),
            2 => edge.wrapping_neg().wrapping_add(self.below(3) as i64 - 1),
            3 => 10i64.pow(self.below(19) as u32).wrapping_add(self.below(3) as i64 - 1),
            _ => self.next() as i64 >> self.below(64),
        }
    }
    pub(crate) fn double(&mut self) -> f64 {
        match self.below(9) {
            0 => f64::from_bits(self.next()),
            1 => self.int() as f64,
            2 => (self.int() as f64).next_up(),
            3 => self.int() as f64 / (1u64 << self.below(60)) as f64,
            4 => *self.pick(&[
                f64::NAN,
                f64::INFINITY,
                f64::NEG_INFINITY,
                0.0,
                -0.0,
                5e-324,
                f64::MAX,
                f64::MIN,
            ]),
            5 => (self.below(2000) as f64 - 1000.0) / 10.0,
            6 => f64::from_bits(self.below(1 << 53)),
            7 => 10f64.powi(self.below(617) as i32 - 308),
            _ => 2f64.powi(self.below(2097) as i32 - 1073),
        }
    }
    /// Digits and exponent; text so that it does not lean on the code under test.
    pub(crate) fn decimal(&mut self) -> Decimal128 {
        let text = match self.below(8) {
            0 => self
                .pick(&["NaN", "Infinity", "-Infinity", "0", "-0", "0E-6176", "0E+6111", "1E-6176"])
                .to_string(),
            1 => format!("{}", self.int()),
            2 => format!("{}E-{}", self.int(), self.below(20)),
            3 => {
                // The exact value of a double, cut to 34 digits, sometimes nudged.
                let exact = format!("{:.40e}", self.double());
                match exact.split_once('e') {
                    Some((m, e)) if m.len() > 35 => {
                        let cut = 35 + usize::from(m.starts_with('-')) - self.below(2) as usize;
                        format!("{}E{e}", &m[..cut])
                    }
                    _ => exact,
                }
            }
            4 => format!("{}E{}", self.below(1 << 20), self.below(700) as i64 - 350),
            5 => format!("{}E{}", self.next() as i64, self.below(12200) as i64 - 6150),
            6 => format!("1{}", "0".repeat(self.below(34) as usize)),
            _ => format!("{}.{:02}", self.below(1000), self.below(100)),
        };
        text.parse().unwrap_or(Decimal128::ZERO)
    }
    pub(crate) fn number(&mut self) -> Bson {
        match self.below(4) {
            0 => Bson::Int32(self.int() as i32),
            1 => Bson::Int64(self.int()),
            2 => Bson::Double(self.double()),
            _ => Bson::Decimal128(self.decimal()),
        }
    }
    pub(crate) fn id(&mut self) -> ObjectId {
        let mut id = [0; 12];
        id[11] = self.below(3) as u8;
        id[0] = self.below(2) as u8 * 0xFF;
        ObjectId(id)
    }
    pub(crate) fn value(&mut self, depth: usize) -> Bson {
        match self.below(if depth == 0 { 20 } else { 26 }) {
            0..=6 => self.number(),
            7 | 8 => Bson::String(self.text()),
            9 => Bson::Symbol(self.text()),
            10 => Bson::Null,
            11 => Bson::Boolean(self.below(2) == 0),
            12 => Bson::ObjectId(self.id()),
            13 => Bson::DateTime(self.int()),
            14 => Bson::Timestamp(Timestamp(self.int() as u64)),
            15 => {
                let len = *self.pick(&[0usize, 1, 2, 254, 255, 256]);
                let byte = self.below(3) as u8 * 0x7F;
                Bson::Binary(Binary { subtype: self.below(3) as u8 * 0x40, bytes: vec![byte; len] })
            }
            16 => Bson::Regex(Regex {
                pattern: self.name(),
                options: (*self.pick(&["", "i", "im", "x"])).to_owned(),
            }),
            17 => Bson::JavaScript(self.text()),
            18 => Bson::DbPointer(self.text(), self.id()),
            19 => self.pick(&[Bson::MinKey, Bson::MaxKey, Bson::Undefined]).clone(),
            20..=22 => Bson::Array((0..self.below(4)).map(|_| self.value(depth - 1)).collect()),
            23 => Bson::JavaScriptWithScope(self.text(), self.document(depth - 1)),
            _ => Bson::Document(self.document(depth - 1)),
        }
    }
    pub(crate) fn document(&mut self, depth: usize) -> Document {
        let fields: Vec<_> = (0..self.below(4)).map(|_| (self.name(), self.value(depth))).collect();
        Document::from(fields)
    }
}
