//! Paths, names and constants.

use super::Gen;
use super::kind::K;
use super::values;
use pando_bson::{Bson, Document, ElementType};

/// Fields of the documents by the kind of their values.
fn fields(kind: K) -> &'static [&'static str] {
    match kind {
        K::Num => &["n", "i", "l", "d", "c", "a", "o.x", "_id"],
        K::Int => &["i", "l", "o.x", "_id", "n"],
        K::Str => &["s", "u", "o.y"],
        K::Arr => &["a", "as", "ao", "e", "aa"],
        K::ObjArr => &["ao"],
        K::StrArr => &["as"],
        K::Obj => &["o", "z", "g"],
        K::Date => &["t", "t", "oid"],
        K::Bool => &["b"],
        K::Ts => &["ts"],
        K::Bin => &["bin"],
        _ => &[
            "n", "i", "l", "d", "c", "s", "u", "t", "b", "a", "as", "ao", "aa", "o", "o.x", "o.y", "m", "m",
            "z", "g", "p", "oid", "ts", "bin", "e", "nul", "_id", "nope", "ao.k", "ao.v", "aa.0", "o.nope",
            "m.a", "a.0", "as.1", "r",
        ],
    }
}

pub(super) const ODD_PATHS: &[&str] = &[
    "",
    ".",
    "a.",
    ".a",
    "a..b",
    "$a",
    "a.$b",
    "a.$",
    "a.$[]",
    "a.$[x]",
    "_id.x",
    "a.b.c.d.e.f",
    "0",
    "a.-1",
];

const UNITS: &[&str] =
    &["year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond", "days", ""];
const ZONES: &[&str] = &[
    "UTC",
    "GMT",
    "Europe/Berlin",
    "America/New_York",
    "+01:00",
    "-0530",
    "+14",
    "Asia/Kolkata",
    "Z",
    "x",
    "",
];
const DATE_FORMATS: &[&str] = &[
    "%Y-%m-%d",
    "%Y-%m-%dT%H:%M:%S.%LZ",
    "%G-%V-%u",
    "%j %w %U",
    "%z %Z",
    "%d/%b/%Y",
    "%B %%",
    "%",
    "%Q",
    "",
    "%Y%m%d %H",
];
/// Regular expressions.
const PATTERNS: &[&str] =
    &["a", "^a", "(a)(b)?", "[", "b$", "(?i)A", "\\d+", "", ".", "(?<n>a)", "a{2,1}", "é"];
const FLAGS: &[&str] = &["", "i", "m", "s", "x", "im", "u", "g"];
const SCRIPTS: &[&str] = &[
    "function() { return 1; }",
    "function(a, b) { return a; }",
    "function(x) { return typeof x; }",
    "function() { throw 'x'; }",
    "function(",
];
/// Names that stand for several types, or for none.
const OTHER_TYPES: &[&str] = &["number", "x", ""];

impl Gen {
    pub(super) fn path_of(&mut self, kind: K) -> String {
        if self.is_wild() {
            return self.rng.pick(ODD_PATHS).to_owned();
        }
        self.rng.pick(fields(kind)).to_owned()
    }

    pub(super) fn field(&mut self) -> String {
        match self.rng.below(12) {
            0 => self.rng.pick(ODD_PATHS).to_owned(),
            1 => values::text(&mut self.rng).to_owned(),
            _ => self.rng.pick(&["n", "i", "s", "a", "o", "m", "x", "new", "t", "ao"]).to_owned(),
        }
    }

    /// A constant of a kind.
    pub(super) fn constant(&mut self, kind: K) -> Bson {
        let r = &mut self.rng;
        match kind {
            K::Num | K::CNum => values::number(r),
            K::Int | K::CInt => match r.below(8) {
                0 => values::number(r),
                1 => values::int(r),
                2 => Bson::Int64(i64::from(values::small(r))),
                3 => Bson::Double(f64::from(values::small(r))),
                _ => Bson::Int32(values::small(r)),
            },
            K::Str | K::CStr => Bson::String(values::text(r).trim_start_matches('$').to_owned()),
            K::Arr | K::CArr => values::array(r, 2),
            K::StrArr => Bson::Array((0..r.below(4)).map(|_| Bson::from(values::text(r))).collect()),
            K::ObjArr => self.pairs(),
            K::Obj | K::CObj | K::Doc => Bson::Document(values::document(r, 2)),
            K::Date | K::CDate => values::date(r),
            K::Bool | K::CBool => Bson::Boolean(r.percent(50)),
            K::Ts | K::CTs => values::timestamp(r),
            K::Bin => values::binary(r),
            _ => values::any(r, 2),
        }
    }

    fn pairs(&mut self) -> Bson {
        let n = self.rng.below(4);
        Bson::Array(
            (0..n)
                .map(|_| {
                    let k = values::text(&mut self.rng);
                    let mut d = Document::new();
                    d.push("k", k);
                    d.push("v", values::any(&mut self.rng, 1));
                    Bson::Document(d)
                })
                .collect(),
        )
    }

    pub(super) fn words(&mut self, kind: K) -> Bson {
        let r = &mut self.rng;
        Bson::from(match kind {
            K::Unit => r.pick(UNITS),
            K::Zone => r.pick(ZONES),
            K::DateFormat => r.pick(DATE_FORMATS),
            K::Pattern => r.pick(PATTERNS),
            K::Flags => r.pick(FLAGS),
            K::Js => r.pick(SCRIPTS),
            K::JsonType => match r.below(ElementType::ALL.len() + OTHER_TYPES.len()) {
                at if at < ElementType::ALL.len() => ElementType::ALL[at].name(),
                at => OTHER_TYPES[at - ElementType::ALL.len()],
            },
            _ => "x",
        })
    }
}
