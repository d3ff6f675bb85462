//! `$sum`, `$avg`, `$count`, and the exact summing they share with `$add`.
//!
//! Integers are summed exactly, doubles with a second double that carries what the first cannot, so the order of
//! the addends does not show. Decimals are summed apart and joined at the end.

use super::Accumulator;
use crate::ctx::QueryCtx;
use crate::expr::Val;
use crate::number::Number;
use pando_base::Result;
use pando_bson::decimal128::Rounding;
use pando_bson::{Bson, Decimal128, DocBuilder, Document, Value};

/// A running total.
#[derive(Clone, Debug, Default)]
pub(crate) struct Total {
    /// All ints and longs.
    whole: i128,
    /// Doubles: the sum and its error.
    high: f64,
    low: f64,
    /// What an ordinary addition gives once it is no number any more.
    special: f64,
    decimal: Option<Decimal128>,
    widest: Width,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Width {
    #[default]
    Int,
    Long,
    Double,
    Decimal,
}

impl Total {
    #[inline]
    pub(crate) fn add(&mut self, n: Number) {
        match n {
            Number::Int(n) => self.whole += i128::from(n),
            Number::Long(n) => {
                self.whole += i128::from(n);
                self.widest = self.widest.max(Width::Long);
            }
            Number::Double(d) => {
                self.add_double(d);
                self.widest = self.widest.max(Width::Double);
            }
            Number::Decimal(d) => {
                // From zero on, not from the first of them: its exponent and the sign of zeros show.
                self.decimal = Some(self.decimal.unwrap_or(Decimal128::ZERO) + d);
                self.widest = Width::Decimal;
            }
        }
    }
    /// Takes a finite number out again. The result's type is then that of the numbers left.
    pub(crate) fn remove(&mut self, n: Number, left: Width) {
        match n {
            Number::Int(n) => self.whole -= i128::from(n),
            Number::Long(n) => self.whole -= i128::from(n),
            Number::Double(d) => self.add_double(-d),
            Number::Decimal(d) => self.decimal = self.decimal.map(|sum| sum - d),
        }
        self.widest = left;
    }
    fn add_double(&mut self, d: f64) {
        self.special += d;
        // Knuth's two-sum: `high + error` is exactly the sum of both.
        let sum = self.high + d;
        let part = sum - self.high;
        let error = (self.high - (sum - part)) + (d - part);
        self.high = sum;
        self.low += error;
    }
    /// The part without decimals as a double.
    pub(crate) fn to_f64(&self) -> f64 {
        let mut all = self.clone();
        // An i128 is the sum of doubles: three pieces of up to 43 bits.
        let mut rest = self.whole;
        for shift in [86, 43, 0] {
            let piece = rest >> shift;
            rest -= piece << shift;
            all.add_double(piece as f64 * (2f64).powi(shift));
        }
        let sum = all.high + all.low;
        // Infinities make the error a NaN, though the plain sum is well defined.
        if sum.is_finite() { sum } else { all.special }
    }
    fn to_decimal_without_decimals(&self) -> Decimal128 {
        let whole = decimal_of_i128(self.whole);
        if self.high == 0.0 && self.low == 0.0 && self.special == 0.0 {
            return whole;
        }
        let doubles = if (self.high + self.low).is_finite() {
            Decimal128::from_f64_precise(self.high) + Decimal128::from_f64_precise(self.low)
        } else {
            Decimal128::from_f64(self.special)
        };
        doubles + whole
    }
    pub(crate) fn number(&self) -> Number {
        match self.widest {
            Width::Int => match i32::try_from(self.whole) {
                Ok(n) => Number::Int(n),
                Err(_) => self.long(),
            },
            Width::Long => self.long(),
            Width::Double => Number::Double(self.to_f64()),
            Width::Decimal => Number::Decimal(self.decimal_total()),
        }
    }
    fn long(&self) -> Number {
        i64::try_from(self.whole).map_or_else(|_| Number::Double(self.to_f64()), Number::Long)
    }
    pub(crate) fn decimal_total(&self) -> Decimal128 {
        let rest = self.to_decimal_without_decimals();
        match self.decimal {
            Some(d) if rest.is_zero() => d,
            Some(d) => d + rest,
            None => rest,
        }
    }
    /// The nearest whole number, from the middle towards zero; with decimals from the middle to the even one, and what does
    /// not fit is the least of all, as MongoDB has it.
    pub(crate) fn milliseconds(&self) -> Option<i64> {
        if self.has_decimal() {
            return Some(self.decimal_total().to_i64(Rounding::HalfEven).unwrap_or(i64::MIN));
        }
        let doubles = self.high + self.low;
        if !doubles.is_finite() || doubles.abs() >= 2f64.powi(100) {
            return None;
        }
        // Whole doubles are exact; others are small, and so is their error.
        let below = doubles.floor();
        let over = (self.high - below) + self.low;
        let n = self.whole + below as i128;
        let up = over > 0.5 || over == 0.5 && n < 0;
        i64::try_from(n + i128::from(up)).ok()
    }
    /// What the decimals among the numbers make together.
    pub(crate) fn decimal_part(&self) -> Decimal128 {
        self.decimal.unwrap_or(Decimal128::ZERO)
    }
    pub(crate) fn has_decimal(&self) -> bool {
        self.decimal.is_some()
    }
    /// The total over a count: a double, or a decimal.
    pub(crate) fn mean(&self, count: i64) -> Number {
        if self.has_decimal() {
            return Number::Decimal(self.decimal_total() / Decimal128::from_i64(count));
        }
        Number::Double(self.to_f64() / count as f64)
    }

    fn save(&self, b: &mut DocBuilder) {
        b.binary("w", 0, &self.whole.to_le_bytes());
        b.f64("h", self.high).f64("l", self.low).f64("s", self.special);
        if let Some(d) = self.decimal {
            b.decimal("d", d);
        }
        b.i32("t", self.widest as i32);
    }
    /// As MongoDB's servers send it: `[type, sum, error]`, and the decimals if there are any. Older ones send a number.
    fn restore_theirs(&mut self, sent: Value<'_>) {
        let Value::Array(list) = sent else {
            return Number::of(sent).into_iter().for_each(|n| self.add(n));
        };
        for (at, e) in list.iter().enumerate() {
            match (at, e.value()) {
                (0, v) => {
                    let widest = match v.as_i64() {
                        Some(16) => Width::Int,
                        Some(18) => Width::Long,
                        _ => Width::Double,
                    };
                    self.widest = self.widest.max(widest);
                }
                (_, Value::Double(d)) => self.add_part(d),
                (_, Value::Decimal128(d)) => self.add(Number::Decimal(d)),
                _ => {}
            }
        }
    }
    /// A double that may stand for whole numbers: those are summed as such, which changes nothing for doubles.
    fn add_part(&mut self, d: f64) {
        if d.fract() == 0.0 && d.abs() < 2f64.powi(100) {
            self.whole += d as i128;
        } else {
            self.add_double(d);
        }
    }
    fn restore(&mut self, saved: &Document) {
        if let Some(Bson::Binary(w)) = saved.get("w")
            && let Ok(bytes) = <[u8; 16]>::try_from(&w.bytes[..])
        {
            self.whole += i128::from_le_bytes(bytes);
        }
        let double = |name| saved.get(name).and_then(Bson::as_f64).unwrap_or(0.0);
        let special = self.special + double("s");
        self.add_double(double("h"));
        self.low += double("l");
        self.special = special;
        if let Some(Bson::Decimal128(d)) = saved.get("d") {
            self.decimal = Some(self.decimal.map_or(*d, |sum| sum + *d));
        }
        let widest = match saved.get("t").and_then(Bson::as_i64) {
            Some(0) => Width::Int,
            Some(1) => Width::Long,
            Some(2) => Width::Double,
            _ => Width::Decimal,
        };
        self.widest = self.widest.max(widest);
    }
}

fn decimal_of_i128(n: i128) -> Decimal128 {
    match i64::try_from(n) {
        Ok(n) => Decimal128::from_i64(n),
        Err(_) => {
            // More than 64 bits only after billions of addends; two exact halves.
            let unit = 1i128 << 62;
            let high = Decimal128::from_i64((n / unit) as i64);
            high * Decimal128::from_i64(unit as i64) + Decimal128::from_i64((n % unit) as i64)
        }
    }
}

/// `$sum`; ignores what is no number.
#[derive(Default)]
pub(crate) struct Sum(Total);

impl Accumulator for Sum {
    #[inline]
    fn add(&mut self, v: Val<'_>, _: &QueryCtx) -> Result<()> {
        if let Some(n) = v.value().and_then(Number::of) {
            self.0.add(n);
        }
        Ok(())
    }
    fn result(&mut self) -> Result<Val<'static>> {
        Ok(Val::Ref(self.0.number().value()))
    }
    fn partial(&mut self) -> Result<Val<'static>> {
        let mut b = DocBuilder::new();
        self.0.save(&mut b);
        Ok(Val::Doc(b.finish()))
    }
    fn merge(&mut self, partial: Val<'_>, _: &QueryCtx) -> Result<()> {
        match (partial.as_doc(), partial.value()) {
            (Some(d), _) => self.0.restore(&Document::from(d)),
            (None, Some(theirs)) => self.0.restore_theirs(theirs),
            (None, None) => {}
        }
        Ok(())
    }
}

/// `$avg`; null over nothing.
#[derive(Default)]
pub(crate) struct Avg {
    total: Total,
    count: i64,
}

impl Accumulator for Avg {
    fn add(&mut self, v: Val<'_>, _: &QueryCtx) -> Result<()> {
        if let Some(n) = v.value().and_then(Number::of) {
            self.total.add(n);
            self.count += 1;
        }
        Ok(())
    }
    fn result(&mut self) -> Result<Val<'static>> {
        if self.count == 0 {
            return Ok(Val::NULL);
        }
        Ok(Val::Ref(self.total.mean(self.count).value()))
    }
    fn partial(&mut self) -> Result<Val<'static>> {
        let mut b = DocBuilder::new();
        self.total.save(&mut b);
        b.i64("n", self.count);
        Ok(Val::Doc(b.finish()))
    }
    fn merge(&mut self, partial: Val<'_>, _: &QueryCtx) -> Result<()> {
        let Some(d) = partial.as_doc() else { return Ok(()) };
        if let Some(count) = d.get("count").and_then(|n| n.as_i64()) {
            // As MongoDB's servers send it.
            d.get("ps").or_else(|| d.get("subTotal")).into_iter().for_each(|v| self.total.restore_theirs(v));
            self.count += count;
        } else {
            self.total.restore(&Document::from(d));
            self.count += d.get("n").and_then(|n: Value<'_>| n.as_i64()).unwrap_or(0);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_bson::extjson::parse;

    fn merged(mut acc: impl Accumulator, states: &[&str]) -> String {
        for state in states {
            let holder = parse(&format!("{{\"s\": {state}}}")).unwrap().to_raw();
            acc.merge(Val::option(holder.get("s")), &QueryCtx::default()).unwrap();
        }
        acc.result().unwrap().value().map(|v| v.to_string()).unwrap_or_default()
    }

    #[test]
    fn states_of_mongodbs_servers_are_understood() {
        assert_eq!(merged(Sum::default(), &["[16, 15.0, 0.0]", "[16, 2.0, 0.0]"]), "17");
        assert_eq!(merged(Sum::default(), &["[1, 1.5, 0.0]", "[16, 2.0, 0.0]", "4"]), "7.5");
        let decimals = r#"[16, 1.0, 0.0, {"$numberDecimal": "0.5"}]"#;
        assert!(merged(Sum::default(), &[decimals]).contains("1.5"));
        let average = r#"{"subTotal": 3.0, "count": 2, "subTotalError": 0.0, "ps": [16, 3.0, 0.0]}"#;
        assert_eq!(merged(Avg::default(), &[average, average]), "1.5");
        assert_eq!(
            merged(Avg::default(), &[r#"{"subTotal": 0.0, "count": 0, "ps": [16, 0.0, 0.0]}"#]),
            "null"
        );
    }
}
