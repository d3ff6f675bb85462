//! Filters, geometries and JSON schemas.

use super::kind::{F, K, may, need};
use super::{Gen, Group, values};
use pando_bson::{Bson, Document};

fn one(name: &str, v: impl Into<Bson>) -> Document {
    Document::from(vec![(name.to_owned(), v.into())])
}

const GEO_WITHIN: K = K::OneOf(&[
    K::Spec(&[need!("$geometry", K::Geometry)]),
    K::Spec(&[need!("$box", K::Tuple(&[K::Tuple(&[K::CNum, K::CNum]), K::Tuple(&[K::CNum, K::CNum])]))]),
    K::Spec(&[need!("$polygon", K::List(&K::Tuple(&[K::CNum, K::CNum])))]),
    K::Spec(&[need!("$center", K::Tuple(&[K::Tuple(&[K::CNum, K::CNum]), K::CNum]))]),
    K::Spec(&[need!("$centerSphere", K::Tuple(&[K::Tuple(&[K::CNum, K::CNum]), K::CNum]))]),
]);
const NEAR: K = K::OneOf(&[
    K::Spec(&[need!("$geometry", K::Geometry), may!("$maxDistance", K::CNum), may!("$minDistance", K::CNum)]),
    K::Tuple(&[K::CNum, K::CNum]),
    K::Tuple(&[K::CNum, K::CNum, K::CNum]),
]);
const BITS: K = K::OneOf(&[K::CInt, K::List(&K::CInt), K::Bin]);
const SUB: K = K::Schema;
const SCHEMA: &[F] = &[
    may!("bsonType", K::OneOf(&[K::JsonType, K::List(&K::JsonType)])),
    may!("type", K::Word(&["object", "string", "number", "array", "boolean", "null", "integer"])),
    may!("required", K::List(&K::Field)),
    may!("properties", K::Map(&SUB)),
    may!("minimum", K::CNum),
    may!("maximum", K::CNum),
    may!("exclusiveMinimum", K::CBool),
    may!("exclusiveMaximum", K::CBool),
    may!("multipleOf", K::CNum),
    may!("minLength", K::CInt),
    may!("maxLength", K::CInt),
    may!("pattern", K::Pattern),
    may!("items", K::OneOf(&[SUB, K::List(&SUB)])),
    may!("additionalItems", K::CBool),
    may!("minItems", K::CInt),
    may!("maxItems", K::CInt),
    may!("uniqueItems", K::CBool),
    may!("minProperties", K::CInt),
    may!("maxProperties", K::CInt),
    may!("additionalProperties", K::OneOf(&[K::CBool, SUB])),
    may!("patternProperties", K::Map(&SUB)),
    may!("dependencies", K::Map(&K::List(&K::Field))),
    may!("enum", K::List(&K::CAny)),
    may!("allOf", K::List(&SUB)),
    may!("anyOf", K::List(&SUB)),
    may!("oneOf", K::List(&SUB)),
    may!("not", SUB),
    may!("title", K::CStr),
    may!("description", K::CStr),
];

impl Gen {
    pub(super) fn filter(&mut self, depth: u32) -> Document {
        let mut d = Document::new();
        if self.rng.once_in(10_000) {
            let op = self.rng.pick(&["$and", "$or", "$nor"]);
            d = one("i", 1);
            for _ in 0..self.rng.pick(&[20, 50, 90, 100]) {
                d = one(op, vec![Bson::Document(d), one("n", 1).into()]);
            }
        }
        for _ in 0..self.rng.pick(&[0, 1, 1, 1, 1, 2, 2, 3]) {
            let (name, v) = match self.rng.below(10) {
                0..=2 if depth > 0 => self.keyword(depth - 1),
                _ => (self.path_of(K::Any), self.field_filter(depth)),
            };
            if !d.contains(&name) {
                d.push(name, v);
            }
        }
        d
    }

    /// `$or`, `$expr` and what else stands at the top.
    fn keyword(&mut self, depth: u32) -> (String, Bson) {
        let mut name = self.rng.pick(self.names.keywords);
        if name == "$where" && !self.rng.once_in(5) {
            name = "$expr";
        }
        if name == "$text" && !self.rng.once_in(3) {
            name = "$or";
        }
        self.drawn.push((Group::Filter, name));
        let kind = match name {
            "$and" | "$or" | "$nor" => K::List(&K::Filter),
            "$comment" => K::CAny,
            "$expr" => K::OneOf(&[K::Bool, K::Bool, K::Any]),
            "$jsonSchema" => K::Schema,
            "$sampleRate" => K::CNum,
            "$alwaysTrue" | "$alwaysFalse" => K::N(1),
            "$where" => K::OneOf(&[K::Js, K::Word(&["this.i > 1", "return true", "this.a.length", "("])]),
            "$text" => K::Spec(&[
                need!(
                    "$search",
                    K::OneOf(&[K::CStr, K::Word(&["dog cat", "\"dog\" -abc", "-a", "abc DEF"])])
                ),
                may!("$language", K::Word(&["english", "none", "german", "x"])),
                may!("$caseSensitive", K::CBool),
                may!("$diacriticSensitive", K::CBool),
            ]),
            _ => K::CAny,
        };
        (name.to_owned(), self.value(kind, depth.min(3)))
    }

    /// What a field is to be.
    pub(super) fn field_filter(&mut self, depth: u32) -> Bson {
        if self.rng.percent(25) {
            return values::any(&mut self.rng, 2);
        }
        let mut d = Document::new();
        for _ in 0..self.rng.pick(&[1, 1, 1, 2]) {
            let (name, v) = self.condition(depth);
            if !d.contains(name) {
                d.push(name, v);
            }
            if name == "$regex" && self.rng.percent(30) {
                let v = self.value(K::Flags, 0);
                d.push("$options", v);
                self.drawn.push((Group::Filter, "$options"));
            }
        }
        Bson::Document(d)
    }

    fn condition(&mut self, depth: u32) -> (&'static str, Bson) {
        let mut name = self.rng.pick(self.names.filters);
        if matches!(name, "$near" | "$nearSphere" | "$geoNear" | "$options") && !self.rng.once_in(4) {
            name = "$eq";
        }
        if depth == 0 && matches!(name, "$not" | "$all" | "$elemMatch") {
            name = "$in";
        }
        self.drawn.push((Group::Filter, name));
        let kind = match name {
            "$in" | "$nin" => K::CArr,
            "$exists" => K::OneOf(&[K::CBool, K::CBool, K::CAny]),
            "$type" => K::OneOf(&[K::JsonType, K::CInt, K::List(&K::JsonType)]),
            "$size" => K::CInt,
            "$mod" => K::Tuple(&[K::CNum, K::CNum]),
            "$regex" => K::OneOf(&[K::Pattern, K::Pattern, K::CAny]),
            "$options" => K::Flags,
            "$not" => K::FieldFilter,
            "$all" => K::OneOf(&[K::CArr, K::List(&K::Spec(&[need!("$elemMatch", K::Filter)]))]),
            "$elemMatch" => K::OneOf(&[K::Filter, K::FieldFilter]),
            "$bitsAllSet" | "$bitsAllClear" | "$bitsAnySet" | "$bitsAnyClear" => BITS,
            "$near" | "$nearSphere" | "$geoNear" => NEAR,
            "$geoWithin" | "$within" => GEO_WITHIN,
            "$geoIntersects" => K::Spec(&[need!("$geometry", K::Geometry)]),
            _ => K::CAny,
        };
        (name, self.value(kind, depth.saturating_sub(1)))
    }

    pub(super) fn geometry(&mut self) -> Bson {
        let r = &mut self.rng;
        let point = |r: &mut crate::rng::Rng| {
            let lng = r.pick(&[0.0, 1.0, 2.5, -180.0, 180.0, 10.0, -0.0, 181.0]);
            let lat = r.pick(&[0.0, 1.0, 2.5, -90.0, 90.0, 10.0, 50.0]);
            Bson::Array(vec![Bson::Double(lng), Bson::Double(lat)])
        };
        let square = |x: f64, y: f64, w: f64| {
            let corner = |a: f64, b: f64| Bson::Array(vec![Bson::Double(a), Bson::Double(b)]);
            Bson::Array(vec![
                corner(x, y),
                corner(x + w, y),
                corner(x + w, y + w),
                corner(x, y + w),
                corner(x, y),
            ])
        };
        let (kind, places) = match r.below(7) {
            0..=2 => ("Point", point(r)),
            3 => ("LineString", Bson::Array((0..r.below(4)).map(|_| point(r)).collect())),
            4 => ("MultiPoint", Bson::Array((0..r.below(4)).map(|_| point(r)).collect())),
            5 => {
                let x = r.pick(&[-10.0, 0.0, 1.0, 170.0]);
                (
                    "Polygon",
                    Bson::Array(vec![square(x, r.pick(&[-10.0, 0.0, 80.0]), r.pick(&[0.0, 3.0, 20.0]))]),
                )
            }
            _ => {
                let polygon = Bson::Array(vec![square(0.0, 0.0, 5.0)]);
                ("MultiPolygon", Bson::Array(vec![polygon]))
            }
        };
        let mut d = one("type", kind);
        d.push("coordinates", places);
        Bson::Document(d)
    }

    pub(super) fn schema(&mut self, depth: u32) -> Bson {
        let mut d = Document::new();
        for _ in 0..self.rng.pick(&[1, 1, 2, 3]) {
            let f = self.rng.pick(SCHEMA);
            if depth == 0 && !matches!(f.kind, K::CNum | K::CInt | K::CBool | K::CStr) {
                continue;
            }
            if !d.contains(f.name) {
                let v = self.value(f.kind, depth.saturating_sub(1));
                d.push(f.name, v);
            }
        }
        Bson::Document(d)
    }

    pub(super) fn sort(&mut self) -> Document {
        let mut d = Document::new();
        for _ in 0..self.rng.pick(&[1, 1, 1, 2]) {
            let path = self.path_of(K::Any);
            let way = match self.rng.below(14) {
                0 => Bson::Double(-1.0),
                1 => Bson::Int64(1),
                2 if self.rng.once_in(4) => one("$meta", "textScore").into(),
                n if n % 2 == 0 => Bson::Int32(1),
                _ => Bson::Int32(-1),
            };
            if !d.contains(&path) {
                d.push(path, way);
            }
        }
        d
    }

    pub(super) fn projection(&mut self, depth: u32) -> Document {
        let mut d = Document::new();
        let excludes = self.rng.percent(25);
        for _ in 0..self.rng.pick(&[1, 1, 2, 3]) {
            let path = self.path_of(K::Any);
            let v = match self.rng.below(12) {
                0..=3 => Bson::Int32(i32::from(!excludes)),
                4 => Bson::Boolean(!excludes),
                5 => one("$slice", self.value(K::OneOf(&[K::CInt, K::Tuple(&[K::CInt, K::CInt])]), 0)).into(),
                6 => one("$elemMatch", self.value(K::OneOf(&[K::Filter, K::FieldFilter]), 1)).into(),
                7 => one("$meta", self.value(K::Word(&["textScore", "sortKey", "recordId", "indexKey"]), 0))
                    .into(),
                _ => self.expression(K::Any, depth),
            };
            if !d.contains(&path) {
                d.push(path, v);
            }
        }
        if self.rng.percent(20) {
            d.set("_id", 0);
        }
        d
    }
}
