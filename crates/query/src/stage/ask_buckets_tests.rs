//! Buckets that are asked first give the same measurements as buckets that are all unpacked.

use super::{bucket_filter, measurements};
use crate::ctx::QueryCtx;
use crate::matcher::Matcher;
use crate::timeseries::{Bucket, TimeSeries};
use pando_bson::{Bson, DocBuf, Document, ObjectId, doc};

fn series() -> TimeSeries {
    TimeSeries::parse(&doc! { "timeField": "t", "metaField": "m" }.to_raw()).unwrap()
}

/// A small generator of numbers, so that every run asks the same.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }
    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
    fn int(&mut self) -> i32 {
        self.below(9) as i32 - 3
    }
    fn scalar(&mut self) -> Bson {
        match self.below(16) {
            0..7 => Bson::Int32(self.int()),
            7 => Bson::Int64(self.int().into()),
            8 => Bson::Double(f64::from(self.int()) / 2.0),
            9 => Bson::Double(f64::NAN),
            10 | 11 => Bson::String(self.of(&["", "a", "ab", "b"]).to_owned()),
            12 => Bson::Boolean(self.below(2) == 0),
            13 => Bson::DateTime(self.below(4) as i64),
            14 => Bson::Null,
            _ => Bson::ObjectId(ObjectId([self.below(3) as u8; 12])),
        }
    }
    fn object(&mut self) -> Bson {
        let v = if self.below(4) == 0 { self.array() } else { self.scalar() };
        Bson::Document(doc! { "y": v })
    }
    fn array(&mut self) -> Bson {
        let objects = self.below(3) == 0;
        let n = self.below(3);
        Bson::Array((0..n).map(|_| if objects { self.object() } else { self.scalar() }).collect())
    }
    fn value(&mut self) -> Bson {
        match self.below(10) {
            0..6 => self.scalar(),
            6..8 => self.object(),
            _ => self.array(),
        }
    }
    /// Of one kind often, so that buckets can be left out.
    fn column(&mut self) -> Vec<Option<Bson>> {
        let kind = self.below(4);
        let n = 1 + self.below(4);
        let one = |r: &mut Random| match kind {
            0 => Some(Bson::Int32(r.int())),
            1 => Some(r.object()),
            2 => (r.below(4) > 0).then(|| r.scalar()),
            _ => (r.below(4) > 0).then(|| r.value()),
        };
        (0..n).map(|_| one(self)).collect()
    }
    fn condition(&mut self) -> Document {
        let path = self.of(&["x", "x", "x", "x.y", "x.y", "x.0"]);
        let op = self.of(&["$eq", "$gt", "$gte", "$lt", "$lte"]);
        match self.below(8) {
            0 => {
                let n = self.below(3);
                let list: Vec<Bson> = (0..n).map(|_| self.scalar()).collect();
                named(path, Bson::Document(doc! { "$in": list }))
            }
            1 | 2 => {
                let (field, v) = (Bson::String(format!("${path}")), self.scalar());
                let args = if self.below(2) == 0 { vec![v, field] } else { vec![field, v] };
                doc! { "$expr": Bson::Document(named(op, Bson::Array(args))) }
            }
            _ => named(path, Bson::Document(named(op, self.value()))),
        }
    }
    fn filter(&mut self) -> Document {
        let name = self.of(&["", "", "$and", "$or", "$or", "$nor"]);
        if name.is_empty() {
            return self.condition();
        }
        let n = 1 + self.below(2);
        named(name, Bson::Array((0..n).map(|_| Bson::Document(self.condition())).collect()))
    }
}

fn named(name: &str, v: Bson) -> Document {
    let mut d = Document::new();
    d.push(name, v);
    d
}

fn bucket(values: &[Option<Bson>]) -> DocBuf {
    let s = series();
    let mut bucket = None;
    for (i, v) in values.iter().enumerate() {
        let mut d = doc! { "t": Bson::DateTime(i as i64), "m": 1 };
        if let Some(v) = v {
            d.push("x", v.clone());
        }
        let d = d.to_raw();
        bucket.get_or_insert_with(|| Bucket::new(&s, &d, ObjectId([1; 12])).unwrap()).add(&s, &d);
    }
    bucket.unwrap().to_doc()
}

#[test]
fn a_bucket_that_is_left_out_has_no_measurement_that_matches() {
    let (s, ctx, mut r) = (series(), QueryCtx::default(), Random(7));
    let (mut left_out, mut matching) = (0, 0);
    for _ in 0..20_000 {
        let (filter, bucket) = (r.filter().to_raw(), bucket(&r.column()));
        let Ok(wanted) = Matcher::parse(&filter, &ctx) else { continue };
        let asked = bucket_filter(&s, &filter, false);
        let kept = Matcher::parse(&asked, &ctx).unwrap().matches(&bucket).unwrap();
        let any = measurements(&s, &bucket).unwrap().iter().any(|m| wanted.matches(m).unwrap());
        assert!(kept || !any, "{bucket}\n{filter}\n{asked}");
        left_out += u32::from(!kept);
        matching += u32::from(any);
    }
    assert!(left_out > 5000 && matching > 3000, "{left_out} left out, {matching} with matches");
}

#[test]
fn buckets_out_of_range_are_left_out() {
    let b = bucket(&[Some(Bson::Int32(3)), None, Some(Bson::Int32(7))]);
    let kept = |filter: Document| {
        let filter = bucket_filter(&series(), &filter.to_raw(), false);
        Matcher::parse(&filter, &QueryCtx::default()).unwrap().matches(&b).unwrap()
    };
    assert!(kept(doc! { "x": 5 }) && kept(doc! { "x": { "$gte": 7 } }) && kept(doc! { "x": { "$lte": 3 } }));
    assert!(!kept(doc! { "x": 8 }) && !kept(doc! { "x": { "$gt": 7 } }) && !kept(doc! { "x": { "$lt": 3 } }));
    assert!(!kept(doc! { "x": "a" }) && !kept(doc! { "x": { "$gt": "" } }) && !kept(doc! { "z": 1 }));
    assert!(!kept(doc! { "x": { "$in": [1, 9] } }) || kept(doc! { "x": { "$in": [1, 2] } }));
    assert!(!kept(doc! { "$expr": { "$gt": ["$x", 7] } }) && kept(doc! { "$expr": { "$lt": ["$x", 1] } }));
    assert!(kept(doc! { "$or": [{ "x": 9 }, { "y": { "$exists": false } }] }));
}
