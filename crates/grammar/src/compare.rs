//! Two servers' answers to the same program.

use crate::draw::Class;
use crate::program::{Call, Program};
use pando_bson::{Bson, Document, extjson};

/// 2024 to 2060: dates that a server made up; programs hold none of them.
const NOW_MS: std::ops::Range<i64> = 1_704_067_200_000..2_840_140_800_000;
const VOLATILE: &[&str] =
    &["$clusterTime", "operationTime", "electionId", "opTime", "codeName", "lastCommittedOpTime", "ok"];

/// How the answers differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    pub kind: &'static str,
    /// Which of the program's commands.
    pub at: usize,
    pub ours: String,
    pub theirs: String,
    /// Codes, "ok" where there is none.
    pub ours_code: String,
    pub theirs_code: String,
}

impl Difference {
    /// The same kind of thing, more or less.
    pub fn is_like(&self, other: &Difference) -> bool {
        self.kind == other.kind && self.ours_code == other.ours_code && self.theirs_code == other.theirs_code
    }
}

/// What may be compared of a program's answers.
#[derive(Clone, Copy, Debug)]
pub struct Care {
    /// Codes and the number of rows only.
    pub loose: bool,
    /// The order inside arrays means nothing.
    pub sets: bool,
    /// Rows have one order.
    pub ordered: bool,
    /// Fields have none: a time series puts measurements together as it likes, and a join in the second engine of the older server
    /// puts a field that was there before behind all others (its first one leaves it in its place).
    pub shuffled: bool,
}

/// Names that make answers differ from run to run.
const RANDOM: &[&str] = &[
    "$rand",
    "$sample",
    "$sampleRate",
    "$$NOW",
    "$$CLUSTER_TIME",
    "$currentDate",
    "$indexStats",
    "$collStats",
    "$currentOp",
    "$planCacheStats",
    "$listLocalSessions",
    "$listSessions",
    "$changeStream",
    "$meta",
    "showRecordId",
    "$_internalUnpackBucket",
    "storageEngine",
];
const SETS: &[&str] = &[
    "$addToSet",
    "$setUnion",
    "$setIntersection",
    "$setDifference",
    "$graphLookup",
    "distinct",
    "mapReduce",
];
const KEEP_ORDER: &[&str] = &[
    "$match",
    "$project",
    "$addFields",
    "$set",
    "$unset",
    "$redact",
    "$replaceRoot",
    "$replaceWith",
    "$limit",
    "$skip",
    "$lookup",
    "$graphLookup",
    "$unwind",
    "$out",
    "$merge",
    "$count",
];
/// What sees the order of rows.
const SEE_ORDER: &[&str] = &[
    "$limit",
    "$skip",
    "$first",
    "$last",
    "$push",
    "$firstN",
    "$lastN",
    "$mergeObjects",
    "$top",
    "$bottom",
    "$topN",
    "$bottomN",
    "$accumulator",
    "$setWindowFields",
    "$fill",
    "$densify",
    "$merge",
    "$bucketAuto",
    "$sum",
    "$avg",
    "$stdDevPop",
    "$stdDevSamp",
    "$addToSet",
    "$min",
    "$max",
    "$minN",
    "$maxN",
    "$group",
    "$count",
];

/// Every name and short text in a value.
fn walk(v: &Bson, f: &mut impl FnMut(&str)) {
    match v {
        Bson::Document(d) => d.iter().for_each(|(k, v)| {
            f(k);
            walk(v, f);
        }),
        Bson::Array(a) => a.iter().for_each(|v| walk(v, f)),
        Bson::String(s) => f(s),
        _ => {}
    }
}

fn has(cmd: &Document, names: &[&str]) -> bool {
    let mut found = false;
    walk(&Bson::Document(cmd.clone()), &mut |s| {
        found |= names.contains(&s)
            || (s.starts_with("$$") && names.iter().any(|n| n.starts_with("$$") && s.starts_with(n)))
    });
    found
}

fn by_id(sort: Option<&Bson>) -> bool {
    sort.and_then(Bson::as_doc).is_some_and(|d| d.contains("_id"))
}

/// Whether rows of a pipeline have one order at the end; and whether something saw rows without one.
fn order_of(stages: &[Bson], mut ordered: bool) -> (bool, bool) {
    let mut blind = false;
    for stage in stages.iter().filter_map(Bson::as_doc) {
        let Some((name, arg)) = stage.iter().next() else { continue };
        let sees = |n: &str| SEE_ORDER.contains(&n);
        let mut inside = sees(name);
        walk(arg, &mut |s| {
            inside |= matches!(name, "$group" | "$bucket" | "$bucketAuto" | "$setWindowFields") && sees(s)
        });
        blind |= inside && !ordered;
        match name {
            "$sort" => ordered = by_id(Some(arg)),
            "$facet" => {
                for (_, inner) in arg.as_doc().into_iter().flat_map(Document::iter) {
                    let (end, saw) = order_of(inner.as_array().unwrap_or_default(), ordered);
                    blind |= saw || !end;
                }
                ordered = true;
            }
            "$lookup" | "$unionWith" | "$graphLookup" => {
                let inner =
                    arg.as_doc().and_then(|d| d.get("pipeline")).and_then(Bson::as_array).unwrap_or_default();
                blind |= order_of(inner, true).1;
                ordered &= name != "$unionWith";
            }
            _ => ordered &= KEEP_ORDER.contains(&name),
        }
    }
    (ordered, blind)
}

/// Whether some join, at any depth, gives the documents of its pipeline in no order.
fn joins_anyhow(stages: &[Bson]) -> bool {
    stages.iter().filter_map(Bson::as_doc).filter_map(|s| s.iter().next()).any(|(name, arg)| {
        let Some(spec) = arg.as_doc() else { return false };
        match name {
            "$facet" => spec.iter().any(|(_, inner)| joins_anyhow(inner.as_array().unwrap_or_default())),
            "$lookup" | "$unionWith" => {
                let inner = spec.get("pipeline").and_then(Bson::as_array).unwrap_or_default();
                name == "$lookup" && !order_of(inner, true).0 || joins_anyhow(inner)
            }
            _ => false,
        }
    })
}

/// What of a program's answers is fixed.
pub fn care_of(p: &Program) -> Care {
    let cmd = &p.test.cmd;
    let series = has(cmd, &["series", "w_series"]);
    let shuffled = series || has(cmd, &["$lookup"]);
    let mut care = Care { loose: false, sets: has(cmd, SETS) || series, ordered: false, shuffled };
    care.loose = has(cmd, RANDOM) || matches!(p.class, Class::Server | Class::Admin);
    match p.test.name() {
        "aggregate" => {
            let stages = cmd.get("pipeline").and_then(Bson::as_array).unwrap_or_default();
            let (ordered, blind) = order_of(stages, false);
            care.ordered = ordered;
            care.sets |= joins_anyhow(stages);
            // The first of rows without an order are any.
            let partly = cmd.get("cursor").and_then(Bson::as_doc).is_some_and(|c| c.contains("batchSize"));
            care.loose |= blind || partly && !ordered;
        }
        "find" => {
            care.ordered = by_id(cmd.get("sort"));
            let partly =
                ["limit", "skip", "batchSize", "singleBatch", "max", "min"].iter().any(|n| cmd.contains(n));
            care.loose |= partly && !care.ordered;
        }
        "count" | "distinct" | "insert" | "update" | "delete" | "findAndModify" => {}
        "bulkWrite" | "create" | "createIndexes" | "collMod" | "drop" | "dropIndexes"
        | "renameCollection" => {}
        "convertToCapped" | "cloneCollectionAsCapped" | "dropDatabase" | "listIndexes" | "killCursors" => {}
        _ => care.loose = true,
    }
    care
}

/// Whether only error codes of one of the program's commands count.
pub fn is_loose_at(p: &Program, at: usize, care: Care) -> bool {
    if at == p.prep.len() {
        return care.loose;
    }
    // What a loose write left behind is as loose.
    at > p.prep.len() && care.loose
}

fn normal(v: &Bson, sets: bool) -> Bson {
    match v {
        Bson::ObjectId(id) if id.0[0] >= 0x60 => "<oid>".into(),
        Bson::DateTime(ms) if NOW_MS.contains(ms) => "<now>".into(),
        Bson::Timestamp(t) if NOW_MS.contains(&(i64::from(t.secs()) * 1000)) => "<ts>".into(),
        Bson::Binary(b) if b.subtype == 4 && b.bytes.len() == 16 && b.bytes.iter().any(|x| *x > 16) => {
            "<uuid>".into()
        }
        Bson::Document(d) => Bson::Document(normal_doc(d, sets)),
        Bson::Array(a) => {
            let mut list: Vec<Bson> = a.iter().map(|v| normal(v, sets)).collect();
            if sets {
                list.sort_by_cached_key(line);
            }
            Bson::Array(list)
        }
        other => other.clone(),
    }
}

fn normal_doc(d: &Document, sets: bool) -> Document {
    Document::from(d.iter().map(|(k, v)| (k.to_owned(), normal(v, sets))).collect::<Vec<_>>())
}

/// One line of text that stands for the value.
pub fn line(v: &Bson) -> String {
    extjson::to_canonical(&Document::from(vec![("v".to_owned(), v.clone())]).to_raw())
}

/// The rows of a reply with a cursor.
pub fn rows(reply: &Document) -> Option<Vec<Bson>> {
    let cursor = reply.get("cursor")?.as_doc()?;
    let batch = cursor.get("firstBatch").or_else(|| cursor.get("nextBatch"))?.as_array()?;
    Some(batch.to_vec())
}

/// The code of an error, that of the first write error, or "ok".
pub(crate) fn code(reply: &Document) -> String {
    if reply.get("ok").and_then(Bson::as_f64) == Some(1.0) {
        let write = reply.get("writeErrors").and_then(Bson::as_array).and_then(<[Bson]>::first);
        return match write.and_then(Bson::as_doc).and_then(|e| e.get("code")).and_then(Bson::as_i64) {
            Some(code) => format!("write {code}"),
            None => "ok".to_owned(),
        };
    }
    reply.get("code").and_then(Bson::as_i64).map_or("none".to_owned(), |c| c.to_string())
}

fn short(text: String) -> String {
    match text.char_indices().nth(20_000) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

/// Texts of errors have their own rules; only codes of write errors count.
fn without_texts(v: Document) -> Document {
    let fields = v.into_fields().into_iter().filter(|(k, _)| !VOLATILE.contains(&k.as_str()));
    let plain = fields.map(|(k, v)| match (k.as_str(), v) {
        ("writeErrors", Bson::Array(list)) => {
            let codes = list.iter().filter_map(Bson::as_doc).map(|e| {
                let mut d = Document::new();
                for name in ["index", "code"] {
                    if let Some(v) = e.get(name) {
                        d.push(name, v.clone());
                    }
                }
                Bson::Document(d)
            });
            (k, Bson::Array(codes.collect()))
        }
        ("writeConcernError", Bson::Document(d)) => (k, d.get("code").cloned().unwrap_or(Bson::Null)),
        (_, v) => (k, v),
    });
    Document::from(plain.collect::<Vec<_>>())
}

/// The difference between two replies to one call.
pub fn compare(
    call: &Call,
    at: usize,
    loose: bool,
    care: Care,
    ours: &Document,
    theirs: &Document,
) -> Option<Difference> {
    let (a, b) = (code(ours), code(theirs));
    let found = |kind: &'static str, x: String, y: String| {
        Some(Difference {
            kind,
            at,
            ours: short(x),
            theirs: short(y),
            ours_code: a.clone(),
            theirs_code: b.clone(),
        })
    };
    let told = |d: &Document| match d.get("errmsg").and_then(Bson::as_str) {
        Some(text) => text.to_owned(),
        None => extjson::to_relaxed(&without_texts(d.clone()).to_raw()),
    };
    if a != b {
        return found("code", told(ours), told(theirs));
    }
    if a != "ok" && !a.starts_with("write") {
        return None;
    }
    match (rows(ours), rows(theirs)) {
        (Some(x), Some(y)) => {
            if x.len() != y.len() && !(loose && call.name() != "aggregate") {
                let volatile = loose && has(&call.cmd, RANDOM);
                if !volatile {
                    return found("rows", list(&x), list(&y));
                }
            }
            if loose
                || call.name().starts_with("list")
                    && call.name() != "listIndexes"
                    && call.db != crate::data::DDL_DB
            {
                return None;
            }
            let (x, y) = (normal_rows(call, &x, care), normal_rows(call, &y, care));
            if care.ordered && x != y {
                let (mut p, mut q) = (x.clone(), y.clone());
                p.sort();
                q.sort();
                let kind = if p == q { "order" } else { kind_of(call, care, ours, theirs) };
                return found(kind, x.join("\n"), y.join("\n"));
            }
            let (mut x, mut y) = (x, y);
            x.sort();
            y.sort();
            let kind = kind_of(call, care, ours, theirs);
            if x != y { found(kind, x.join("\n"), y.join("\n")) } else { None }
        }
        _ if loose => None,
        _ => {
            let (x, y) = (without_texts(ours.clone()), without_texts(theirs.clone()));
            let (x, y) =
                (Bson::Document(normal_doc(&x, care.sets)), Bson::Document(normal_doc(&y, care.sets)));
            let (x, y) = (fields_sorted(x), fields_sorted(y));
            if line(&x) != line(&y) { found("result", line(&x), line(&y)) } else { None }
        }
    }
}

/// Of rows that differ: whether it is only their fields' order.
fn kind_of(call: &Call, care: Care, ours: &Document, theirs: &Document) -> &'static str {
    let sorted = |d: &Document| {
        let mut all = normal_rows(call, &rows(d).unwrap_or_default(), Care { shuffled: true, ..care });
        all.sort();
        all
    };
    if sorted(ours) == sorted(theirs) { "fields" } else { "result" }
}

fn list(rows: &[Bson]) -> String {
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn normal_rows(call: &Call, rows: &[Bson], care: Care) -> Vec<String> {
    let listing = call.name().starts_with("list");
    rows.iter()
        .map(|r| {
            let r = normal(r, care.sets);
            line(&if listing || care.shuffled { fields_sorted(r) } else { r })
        })
        .collect()
}

/// Fields of replies come in no promised order.
fn fields_sorted(v: Bson) -> Bson {
    match v {
        Bson::Document(d) => {
            let mut fields = d.into_fields();
            fields.sort_by(|a, b| a.0.cmp(&b.0));
            Bson::Document(fields.into_iter().map(|(k, v)| (k, fields_sorted(v))).collect::<Vec<_>>().into())
        }
        Bson::Array(a) => Bson::Array(a.into_iter().map(fields_sorted).collect()),
        other => other,
    }
}
