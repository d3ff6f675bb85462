//! Expressions: every operator of the table, with arguments mostly of the kinds that it takes.

use super::kind::{F, K, may, need};
use super::values;
use super::{Gen, Group};
use pando_bson::{Bson, Document};

/// How an operator takes its arguments.
#[derive(Clone, Copy)]
enum Shape {
    /// A list; the last kind is that of all further ones.
    List(&'static [K]),
    /// One argument, listed or not.
    One(K),
    /// A document with fields.
    Form(&'static [F]),
}
use Shape::{Form, List, One};

const N: &[K] = &[K::Num];
const NN: &[K] = &[K::Num, K::Num];
const ANY: &[K] = &[K::Any, K::Any];
const DATED: Shape =
    Shape::One(K::OneOf(&[K::Date, K::Date, K::Spec(&[need!("date", K::Date), may!("timezone", K::Zone)])]));
const PLACE: &[K] = &[K::Str, K::Str, K::Int, K::Int];
const TRIM: &[F] = &[need!("input", K::Str), may!("chars", K::Str)];
const REGEX: &[F] = &[need!("input", K::Str), need!("regex", K::Pattern), may!("options", K::Flags)];
const REPLACE: &[F] = &[need!("input", K::Str), need!("find", K::Str), need!("replacement", K::Str)];
const SOME: &[F] = &[need!("input", K::Arr), need!("n", K::Int)];
const QUANTILE: K = K::Word(&["approximate"]);
const WEEKDAY: K = K::Word(&["mon", "sunday", "Fri", "x"]);
const DATE_STEP: &[F] = &[
    need!("startDate", K::Date),
    need!("unit", K::Unit),
    need!("amount", K::Int),
    may!("timezone", K::Zone),
];
const TYPE: K = K::OneOf(&[
    K::Word(&[
        "double", "string", "objectId", "bool", "date", "int", "long", "decimal", "array", "minKey",
        "missing",
    ]),
    K::CInt,
    K::CNum,
]);

/// Operator, what it gives, its arguments. Operators that are missing here take anything.
const TABLE: &[(&str, K, Shape)] = &[
    ("$add", K::Num, List(&[K::Num, K::Num, K::OneOf(&[K::Num, K::Num, K::Date])])),
    ("$subtract", K::Num, List(&[K::Num, K::Num])),
    ("$multiply", K::Num, List(NN)),
    ("$divide", K::Num, List(NN)),
    ("$mod", K::Num, List(NN)),
    ("$abs", K::Num, List(N)),
    ("$ceil", K::Num, List(N)),
    ("$exp", K::Num, List(N)),
    ("$floor", K::Num, List(N)),
    ("$ln", K::Num, List(N)),
    ("$log", K::Num, List(NN)),
    ("$log10", K::Num, List(N)),
    ("$pow", K::Num, List(NN)),
    ("$round", K::Num, List(&[K::Num, K::Int])),
    ("$sqrt", K::Num, List(N)),
    ("$trunc", K::Num, List(&[K::Num, K::Int])),
    ("$bitAnd", K::Int, List(&[K::Int, K::Int])),
    ("$bitOr", K::Int, List(&[K::Int, K::Int])),
    ("$bitXor", K::Int, List(&[K::Int, K::Int])),
    ("$bitNot", K::Int, List(&[K::Int])),
    ("$acos", K::Num, List(N)),
    ("$acosh", K::Num, List(N)),
    ("$asin", K::Num, List(N)),
    ("$asinh", K::Num, List(N)),
    ("$atan", K::Num, List(N)),
    ("$atan2", K::Num, List(NN)),
    ("$atanh", K::Num, List(N)),
    ("$cos", K::Num, List(N)),
    ("$cosh", K::Num, List(N)),
    ("$degreesToRadians", K::Num, List(N)),
    ("$radiansToDegrees", K::Num, List(N)),
    ("$sin", K::Num, List(N)),
    ("$sinh", K::Num, List(N)),
    ("$tan", K::Num, List(N)),
    ("$tanh", K::Num, List(N)),
    ("$avg", K::Num, List(NN)),
    ("$max", K::Any, List(ANY)),
    ("$min", K::Any, List(ANY)),
    ("$stdDevPop", K::Num, List(NN)),
    ("$stdDevSamp", K::Num, List(NN)),
    ("$sum", K::Num, List(NN)),
    ("$arrayElemAt", K::Any, List(&[K::Arr, K::Int])),
    ("$concatArrays", K::Arr, List(&[K::Arr, K::Arr])),
    (
        "$filter",
        K::Arr,
        Form(&[need!("input", K::Arr), may!("as", K::Var), need!("cond", K::Bool), may!("limit", K::Int)]),
    ),
    ("$first", K::Any, List(&[K::Arr])),
    ("$firstN", K::Arr, Form(SOME)),
    ("$in", K::Bool, List(&[K::Any, K::Arr])),
    ("$indexOfArray", K::Int, List(&[K::Arr, K::Any, K::Int, K::Int])),
    ("$isArray", K::Bool, List(&[K::Any])),
    ("$last", K::Any, List(&[K::Arr])),
    ("$lastN", K::Arr, Form(SOME)),
    ("$map", K::Arr, Form(&[need!("input", K::Arr), may!("as", K::Var), need!("in", K::Any)])),
    ("$maxN", K::Arr, Form(SOME)),
    ("$minN", K::Arr, Form(SOME)),
    ("$range", K::Arr, List(&[K::Int, K::Int, K::Int])),
    ("$reduce", K::Any, Form(&[need!("input", K::Arr), need!("initialValue", K::Any), need!("in", K::Any)])),
    ("$reverseArray", K::Arr, List(&[K::Arr])),
    ("$size", K::Int, List(&[K::Arr])),
    ("$slice", K::Arr, List(&[K::Arr, K::Int, K::Int])),
    (
        "$sortArray",
        K::Arr,
        Form(&[need!("input", K::Arr), need!("sortBy", K::OneOf(&[K::Sort, K::N(1), K::N(-1)]))]),
    ),
    (
        "$zip",
        K::Arr,
        Form(&[
            need!("inputs", K::List(&K::Arr)),
            may!("useLongestLength", K::CBool),
            may!("defaults", K::CArr),
        ]),
    ),
    ("$allElementsTrue", K::Bool, List(&[K::Arr])),
    ("$anyElementTrue", K::Bool, List(&[K::Arr])),
    ("$setDifference", K::Arr, List(&[K::Arr, K::Arr])),
    ("$setEquals", K::Bool, List(&[K::Arr, K::Arr])),
    ("$setIntersection", K::Arr, List(&[K::Arr, K::Arr])),
    ("$setIsSubset", K::Bool, List(&[K::Arr, K::Arr])),
    ("$setUnion", K::Arr, List(&[K::Arr, K::Arr])),
    ("$and", K::Bool, List(&[K::Bool, K::Any])),
    ("$or", K::Bool, List(&[K::Bool, K::Any])),
    ("$not", K::Bool, List(&[K::Any])),
    ("$cmp", K::Int, List(ANY)),
    ("$eq", K::Bool, List(ANY)),
    ("$ne", K::Bool, List(ANY)),
    ("$gt", K::Bool, List(ANY)),
    ("$gte", K::Bool, List(ANY)),
    ("$lt", K::Bool, List(ANY)),
    ("$lte", K::Bool, List(ANY)),
    ("$concat", K::Str, List(&[K::Str, K::Str])),
    ("$indexOfBytes", K::Int, List(PLACE)),
    ("$indexOfCP", K::Int, List(PLACE)),
    ("$ltrim", K::Str, Form(TRIM)),
    ("$rtrim", K::Str, Form(TRIM)),
    ("$trim", K::Str, Form(TRIM)),
    ("$regexFind", K::Obj, Form(REGEX)),
    ("$regexFindAll", K::ObjArr, Form(REGEX)),
    ("$regexMatch", K::Bool, Form(REGEX)),
    ("$replaceAll", K::Str, Form(REPLACE)),
    ("$replaceOne", K::Str, Form(REPLACE)),
    ("$split", K::StrArr, List(&[K::Str, K::Str])),
    ("$strLenBytes", K::Int, List(&[K::Str])),
    ("$strLenCP", K::Int, List(&[K::Str])),
    ("$strcasecmp", K::Int, List(&[K::Str, K::Str])),
    ("$substr", K::Str, List(&[K::Str, K::Int, K::Int])),
    ("$substrBytes", K::Str, List(&[K::Str, K::Int, K::Int])),
    ("$substrCP", K::Str, List(&[K::Str, K::Int, K::Int])),
    ("$toLower", K::Str, List(&[K::Str])),
    ("$toUpper", K::Str, List(&[K::Str])),
    ("$arrayToObject", K::Obj, One(K::OneOf(&[K::ObjArr, K::Arr]))),
    (
        "$getField",
        K::Any,
        One(K::OneOf(&[K::Field, K::Spec(&[need!("field", K::Field), may!("input", K::Obj)])])),
    ),
    ("$mergeObjects", K::Obj, List(&[K::Obj, K::Obj])),
    ("$objectToArray", K::ObjArr, List(&[K::Obj])),
    ("$setField", K::Obj, Form(&[need!("field", K::Field), need!("input", K::Obj), need!("value", K::Any)])),
    ("$unsetField", K::Obj, Form(&[need!("field", K::Field), need!("input", K::Obj)])),
    ("$dateAdd", K::Date, Form(DATE_STEP)),
    ("$dateSubtract", K::Date, Form(DATE_STEP)),
    (
        "$dateDiff",
        K::Int,
        Form(&[
            need!("startDate", K::Date),
            need!("endDate", K::Date),
            need!("unit", K::Unit),
            may!("timezone", K::Zone),
            may!("startOfWeek", WEEKDAY),
        ]),
    ),
    (
        "$dateFromParts",
        K::Date,
        Form(&[
            need!("year", K::Int),
            may!("month", K::Int),
            may!("day", K::Int),
            may!("hour", K::Int),
            may!("minute", K::Int),
            may!("second", K::Int),
            may!("millisecond", K::Int),
            may!("timezone", K::Zone),
            may!("isoWeekYear", K::Int),
            may!("isoWeek", K::Int),
            may!("isoDayOfWeek", K::Int),
        ]),
    ),
    (
        "$dateFromString",
        K::Date,
        Form(&[
            need!("dateString", K::Str),
            may!("format", K::DateFormat),
            may!("timezone", K::Zone),
            may!("onError", K::Any),
            may!("onNull", K::Any),
        ]),
    ),
    (
        "$dateToParts",
        K::Obj,
        Form(&[need!("date", K::Date), may!("timezone", K::Zone), may!("iso8601", K::Bool)]),
    ),
    (
        "$dateToString",
        K::Str,
        Form(&[
            need!("date", K::Date),
            may!("format", K::DateFormat),
            may!("timezone", K::Zone),
            may!("onNull", K::Any),
        ]),
    ),
    (
        "$dateTrunc",
        K::Date,
        Form(&[
            need!("date", K::Date),
            need!("unit", K::Unit),
            may!("binSize", K::Int),
            may!("timezone", K::Zone),
            may!("startOfWeek", WEEKDAY),
        ]),
    ),
    ("$dayOfMonth", K::Int, DATED),
    ("$dayOfWeek", K::Int, DATED),
    ("$dayOfYear", K::Int, DATED),
    ("$hour", K::Int, DATED),
    ("$isoDayOfWeek", K::Int, DATED),
    ("$isoWeek", K::Int, DATED),
    ("$isoWeekYear", K::Int, DATED),
    ("$millisecond", K::Int, DATED),
    ("$minute", K::Int, DATED),
    ("$month", K::Int, DATED),
    ("$second", K::Int, DATED),
    ("$week", K::Int, DATED),
    ("$year", K::Int, DATED),
    (
        "$convert",
        K::Any,
        Form(&[need!("input", K::Any), need!("to", TYPE), may!("onError", K::Any), may!("onNull", K::Any)]),
    ),
    ("$toBool", K::Bool, One(K::Any)),
    ("$toDate", K::Date, One(K::Any)),
    ("$toDecimal", K::Num, One(K::Any)),
    ("$toDouble", K::Num, One(K::Any)),
    ("$toInt", K::Int, One(K::Any)),
    ("$toLong", K::Num, One(K::Any)),
    ("$toObjectId", K::Any, One(K::Any)),
    ("$toString", K::Str, One(K::Any)),
    ("$binarySize", K::Int, List(&[K::OneOf(&[K::Str, K::Bin])])),
    ("$bsonSize", K::Int, List(&[K::Obj])),
    (
        "$function",
        K::Any,
        Form(&[need!("body", K::Js), need!("args", K::List(&K::Any)), need!("lang", K::Word(&["js"]))]),
    ),
    ("$isNumber", K::Bool, List(&[K::Any])),
    ("$median", K::Num, Form(&[need!("input", K::Arr), need!("method", QUANTILE)])),
    (
        "$meta",
        K::Any,
        One(K::Word(&["textScore", "indexKey", "recordId", "sortKey", "geoNearDistance", "x"])),
    ),
    (
        "$percentile",
        K::Arr,
        Form(&[need!("input", K::Arr), need!("p", K::List(&K::CNum)), need!("method", QUANTILE)]),
    ),
    ("$rand", K::Num, One(K::Empty)),
    ("$tsIncrement", K::Int, List(&[K::Ts])),
    ("$tsSecond", K::Int, List(&[K::Ts])),
    ("$type", K::Str, List(&[K::Any])),
    (
        "$cond",
        K::Any,
        One(K::OneOf(&[
            K::Tuple(&[K::Bool, K::Any, K::Any]),
            K::Spec(&[need!("if", K::Bool), need!("then", K::Any), need!("else", K::Any)]),
        ])),
    ),
    ("$ifNull", K::Any, List(ANY)),
    (
        "$switch",
        K::Any,
        Form(&[
            need!("branches", K::List(&K::Spec(&[need!("case", K::Bool), need!("then", K::Any)]))),
            may!("default", K::Any),
        ]),
    ),
    ("$let", K::Any, Form(&[need!("vars", K::Lets), need!("in", K::Any)])),
    ("$literal", K::Any, One(K::CAny)),
    ("$const", K::Any, One(K::CAny)),
];

/// The kind and shape of an operator.
fn row(name: &str) -> Option<(K, Shape)> {
    TABLE.iter().find(|(n, ..)| *n == name).map(|(_, gives, shape)| (*gives, *shape))
}

/// Whether an operator's result is of use where `wanted` is.
fn serves(gives: K, wanted: K) -> bool {
    use std::mem::discriminant as of;
    matches!((gives, wanted), (_, K::Any) | (K::Any, _) | (K::Int, K::Num) | (K::ObjArr | K::StrArr, K::Arr))
        || of(&gives) == of(&wanted)
}

/// Operators whose answers differ from run to run or reach beyond the query.
const RARE: &[&str] = &["$rand", "$function"];

impl Gen {
    /// An operator that suits the kind; any at times.
    fn operator_for(&mut self, wanted: K) -> (&'static str, Option<(usize, usize)>) {
        for _ in 0..60 {
            let op = self.names.expressions[self.rng.below(self.names.expressions.len())];
            if RARE.contains(&op.name) && !self.rng.once_in(8) {
                continue;
            }
            let gives = row(op.name).map_or(K::Any, |(gives, _)| gives);
            if serves(gives, wanted) || self.rng.once_in(40) {
                return (op.name, op.arity);
            }
        }
        let op = self.names.expressions[self.rng.below(self.names.expressions.len())];
        (op.name, op.arity)
    }

    /// An expression of `depth` levels of operators at most.
    pub(super) fn expression(&mut self, wanted: K, depth: u32) -> Bson {
        if self.is_wild() {
            return match self.rng.below(3) {
                0 => values::any(&mut self.rng, 2),
                1 => self.dollar(K::Any),
                _ => self.operator(K::Any, depth.saturating_sub(1)),
            };
        }
        if self.rng.once_in(20_000) {
            return self.nested();
        }
        if depth == 0 || self.rng.percent(25) {
            return self.leaf(wanted);
        }
        match self.rng.below(30) {
            0 => Bson::Array((0..self.rng.below(4)).map(|_| self.expression(K::Any, depth - 1)).collect()),
            1 => self.plain_object(depth - 1),
            _ => self.operator(wanted, depth - 1),
        }
    }

    /// Operators in many levels, about as many as a document may have.
    fn nested(&mut self) -> Bson {
        let op = self.rng.pick(&[
            "$not",
            "$add",
            "$and",
            "$or",
            "$concatArrays",
            "$multiply",
            "$ifNull",
            "$mergeObjects",
            "$max",
        ]);
        let list = self.rng.percent(50);
        let levels = self.rng.pick(&[40, 90, 100, 170, 200]);
        let mut v = self.leaf(K::Any);
        for _ in 0..levels {
            let arg = match list {
                true => Bson::Array(vec![v, self.constant(K::Num)]),
                false => v,
            };
            v = Document::from(vec![(op.to_owned(), arg)]).into();
        }
        v
    }

    fn plain_object(&mut self, depth: u32) -> Bson {
        let mut d = Document::new();
        for name in ["p", "q", "r"].into_iter().take(self.rng.below(3) + 1) {
            let v = self.expression(K::Any, depth);
            d.push(name, v);
        }
        Bson::Document(d)
    }

    /// `{$operator: arguments}`.
    pub(super) fn operator(&mut self, wanted: K, depth: u32) -> Bson {
        let (name, arity) = self.operator_for(wanted);
        let arg = self.argument(name, arity, depth);
        self.drawn.push((Group::Expression, name));
        Bson::Document(vec![(name.to_owned(), arg)].into())
    }

    /// What stands behind an operator's name.
    pub(super) fn argument(&mut self, name: &str, arity: Option<(usize, usize)>, depth: u32) -> Bson {
        match row(name).map(|(_, shape)| shape) {
            Some(Form(fields)) => self.form(fields, depth),
            Some(One(kind)) => {
                let v = self.value(kind, depth);
                if self.rng.once_in(12) { Bson::Array(vec![v]) } else { v }
            }
            Some(List(kinds)) => self.arguments(kinds, arity, depth),
            None => self.arguments(&[K::Any], arity, depth),
        }
    }

    fn arguments(&mut self, kinds: &[K], arity: Option<(usize, usize)>, depth: u32) -> Bson {
        let (min, max) = arity.unwrap_or((1, 4));
        let mut n = min + self.rng.below(max.min(min.max(2) + 1).max(min) - min + 1);
        if self.is_wild() {
            n = self.rng.below(6);
        }
        let mut list: Vec<Bson> = Vec::new();
        for i in 0..n {
            let kind = kinds[i.min(kinds.len() - 1)];
            // Constants of any type stand beside what is computed.
            list.push(match self.rng.once_in(25) {
                true => self.constant(K::CAny),
                false => self.value(kind, depth),
            });
        }
        if n == 1 && self.rng.percent(50) {
            return list.remove(0);
        }
        Bson::Array(list)
    }

    /// A path, a constant or a variable.
    fn leaf(&mut self, wanted: K) -> Bson {
        match self.rng.below(20) {
            0..=9 => self.dollar(wanted),
            10 | 11 => self.variable(),
            _ => self.constant(wanted),
        }
    }

    /// `"$path"` of a field that holds such values.
    pub(super) fn dollar(&mut self, wanted: K) -> Bson {
        let path = self.path_of(wanted);
        Bson::String(format!("${path}"))
    }

    fn variable(&mut self) -> Bson {
        const SYSTEM: &[&str] = &["$$ROOT", "$$CURRENT", "$$REMOVE", "$$ROOT.n", "$$CURRENT.o.x"];
        let mut name = match self.vars.is_empty() || self.rng.once_in(6) {
            true => self.rng.pick(SYSTEM).to_owned(),
            false => format!("$${}", self.vars[self.rng.below(self.vars.len())]),
        };
        if self.rng.once_in(60) {
            name = self
                .rng
                .pick(&["$$NOW", "$$CLUSTER_TIME", "$$nope", "$$", "$$SEARCH_META", "$$KEEP"])
                .to_owned();
        }
        Bson::String(name)
    }
}
