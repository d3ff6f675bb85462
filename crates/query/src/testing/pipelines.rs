//! Replays recorded aggregations against the stages of this crate, with a small quota, so that each stage is
//! interrupted and resumed many times.

use super::golden::{canonical, docs_of, folder};
use super::mem::MemSource;
use crate::collation::Collation;
use crate::ctx::{QueryCtx, Random, SeededRandom, Variables};
use crate::exec::{Executor, Quota, Resources, Step as ExecStep};
use crate::source::Source;
use crate::stage::{Collections, Elsewhere, Input, Opened, Pipeline, Row, RunEnv, Runner, Step, Target};
use pando_base::{Error, Result};
use pando_bson::extjson::{parse, to_canonical};
use pando_bson::{ArrayBuilder, Bson, DocBuf, Document, RawDoc};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

/// How joins get at other collections.
#[derive(Clone, Copy, PartialEq)]
enum Reach {
    AtOnce,
    /// When one is to be opened, every other time it is "not yet".
    Late,
    /// They lie on another node, which says "not yet" before each row.
    Elsewhere,
}

/// All data sets by name.
struct World {
    all: Document,
    built: Mutex<BTreeMap<String, MemSource>>,
    reach: Reach,
    chance: SeededRandom,
    /// How often somebody was told "not yet".
    put_off: AtomicUsize,
    me: Weak<World>,
}

impl World {
    fn load(reach: Reach) -> Arc<World> {
        let text = std::fs::read_to_string(folder().join("setups.json")).unwrap();
        Arc::new_cyclic(|me| World {
            all: parse(&text).unwrap(),
            built: Mutex::default(),
            reach,
            chance: SeededRandom::new(1),
            put_off: AtomicUsize::new(0),
            me: me.clone(),
        })
    }
    fn put_off(&self) {
        self.put_off.fetch_add(1, Ordering::Relaxed);
    }
    fn source(&self, name: &str) -> Option<MemSource> {
        let setup = self.all.get(name).and_then(Bson::as_doc)?;
        if setup.contains("on") {
            return None;
        }
        let mut built = self.built.lock().unwrap();
        let source = built.entry(name.to_owned()).or_insert_with(|| {
            let indexes = setup.get("indexes").and_then(Bson::as_array).unwrap_or_default();
            let indexes: Vec<Document> = indexes.iter().map(|i| i.as_doc().unwrap().clone()).collect();
            MemSource::new(&docs_of(&self.all, name), &indexes)
        });
        Some(source.clone())
    }
}

impl Collections for World {
    fn resolve(&self, ns: &str) -> Result<Target> {
        let name = ns.split_once('.').unwrap().1;
        let setup = self.all.get(name).and_then(Bson::as_doc);
        let Some(on) = setup.and_then(|s| s.get("on")).and_then(Bson::as_str) else {
            return Ok(Target { ns: ns.to_owned(), view: None, collation: None });
        };
        let stages = setup.unwrap().get("options").and_then(Bson::as_doc).unwrap().get("pipeline").unwrap();
        let mut a = ArrayBuilder::new();
        stages.as_array().unwrap().iter().for_each(|s| {
            a.bson(s);
        });
        Ok(Target { ns: format!("df.{on}"), view: Some(a.finish()), collation: None })
    }
    fn open(&self, ns: &str) -> Result<Opened> {
        // By chance, so that of joins within joins all get their turn at last.
        if self.reach != Reach::AtOnce && self.chance.next_u64().is_multiple_of(2) {
            self.put_off();
            return Ok(Opened::NotYet);
        }
        let Some(source) = self.source(ns.split_once('.').unwrap().1) else { return Ok(Opened::Missing) };
        Ok(match self.reach {
            Reach::Elsewhere => {
                Opened::Elsewhere(Box::new(Node { source, world: self.me.upgrade().unwrap() }))
            }
            Reach::AtOnce | Reach::Late => Opened::Here(Box::new(source)),
        })
    }
}

/// Another node, with one of the data sets.
struct Node {
    source: MemSource,
    world: Arc<World>,
}

/// What it sends.
struct Sent {
    exec: Executor,
    source: MemSource,
    runner: Runner,
    world: Arc<World>,
    ready: bool,
}

impl Elsewhere for Node {
    fn run(&mut self, stages: &RawDoc, q: &QueryCtx) -> Result<Box<dyn Input + Send>> {
        let mut pipeline = Pipeline::parse_forwarded(stages, q)?;
        let query = pipeline.take_find().into_query("df.x", self.source.collection(), q, None)?;
        let exec = Executor::new(query, &self.source, Resources::default())?;
        let runner = pipeline.start(&RunEnv { spill: None, collections: Some(self.world.clone()) })?;
        let (source, world) = (self.source.clone(), self.world.clone());
        Ok(Box::new(Sent { exec, source, runner, world, ready: false }))
    }
}

impl Input for Sent {
    fn next(&mut self) -> Result<Step> {
        self.ready = !self.ready;
        if self.ready {
            self.world.put_off();
            return Ok(Step::NeedYield);
        }
        let (exec, src, quota) = (&mut self.exec, &mut self.source, &mut Quota::new(50));
        self.runner.next(&mut Rows { exec, src, quota })
    }
}

pub(super) struct Rows<'a> {
    pub(super) exec: &'a mut Executor,
    pub(super) src: &'a mut MemSource,
    pub(super) quota: &'a mut Quota,
}

impl Input for Rows<'_> {
    fn next(&mut self) -> Result<Step> {
        Ok(match self.exec.next(self.src, self.quota)? {
            ExecStep::Row(row) if row.doc.is_empty() => Step::Row(Row::from(DocBuf::new())),
            ExecStep::Row(row) => Step::Row(Row::new(row.doc)),
            ExecStep::NeedYield => Step::NeedYield,
            ExecStep::Eof => Step::Eof,
        })
    }
}

fn run(world: &Arc<World>, cmd: &RawDoc) -> Result<Vec<DocBuf>> {
    let mut vars = Variables { db: "df".to_owned(), ..Variables::default() };
    if let Some(let_vars) = cmd.get("let").and_then(|v| v.as_doc()) {
        vars.let_vars = Document::from(let_vars)
            .into_fields()
            .into_iter()
            .map(|(k, v)| (k.to_string(), Some(v)))
            .collect();
    }
    let collation = cmd.get("collation").and_then(|v| v.as_doc()).map(Collation::parse).transpose()?;
    let ctx = QueryCtx { vars: Arc::new(vars), ..QueryCtx::default() }.with_collation(collation.flatten());
    let parsed = Pipeline::parse(cmd.get("pipeline").unwrap().as_array().unwrap(), &ctx)?;
    // Another server would have got it like this.
    let mut pipeline = Pipeline::parse_forwarded(&parsed.spelled(), &ctx)?;
    assert!(pipeline == parsed, "{parsed:?} became {pipeline:?}");
    let mut src = cmd.first().unwrap().value().as_str().and_then(|n| world.source(n));
    let mut exec = None;
    if let Some(src) = &src {
        let query = pipeline.take_find().into_query("df.x", src.collection(), &ctx, None)?;
        exec = Some(Executor::new(query, src, Resources::default())?);
    }
    let mut runner = pipeline.start(&RunEnv { spill: None, collections: Some(world.clone()) })?;
    let mut out = Vec::new();
    let (mut quota, mut yields) = (Quota::new(7), 0);
    loop {
        let step = match (&mut exec, &mut src) {
            (Some(exec), Some(src)) => runner.next(&mut Rows { exec, src, quota: &mut quota })?,
            _ => runner.next(&mut std::iter::empty())?,
        };
        match step {
            Step::Row(row) => out.push(row.doc().to_buf()),
            Step::Eof => return Ok(out),
            Step::NeedYield => {
                quota = Quota::new(7);
                yields += 1;
                if yields % 5 == 0 || world.reach != Reach::AtOnce {
                    runner.save();
                }
            }
        }
    }
}

fn wanted(world: &World, case: &Document, expect: &Document) -> Vec<DocBuf> {
    let setup = case.get("setup").and_then(Bson::as_str).unwrap();
    let list = |name: &str| expect.get(name).and_then(Bson::as_array);
    if let Some(docs) = list("docs") {
        return docs.iter().map(|d| d.as_doc().unwrap().to_raw()).collect();
    }
    let only = list("only_ids");
    let docs = if only.is_some() { Vec::new() } else { docs_of(&world.all, setup) };
    let ids = only.or(list("ids")).unwrap();
    ids.iter()
        .map(|id| {
            let doc = docs.iter().find(|d| d.get("_id").is_some_and(|i| pando_bson::cmp_bson(i, id).is_eq()));
            doc.map_or_else(
                || Document::from(vec![("_id".to_owned(), id.clone())]).to_raw(),
                Document::to_raw,
            )
        })
        .collect()
}

/// What is wrong with a case's answer.
fn check(world: &Arc<World>, case: &Document) -> Option<String> {
    let cmd = case.get("cmd").and_then(Bson::as_doc).unwrap().to_raw();
    let expect = case.get("expect").and_then(Bson::as_doc).unwrap();
    let unordered = case.contains("unordered");
    match (run(world, &cmd), expect.get("err").and_then(Bson::as_array)) {
        (Err(e), Some(err)) if Some(i64::from(e.code.0)) == err[0].as_i64() => None,
        (Err(e), err) => Some(format!("got    {} {}\n   wanted {err:?}", e.code.0, e.message)),
        (Ok(rows), Some(err)) => Some(format!("got    {} rows\n   wanted {err:?}", rows.len())),
        (Ok(rows), None) => {
            let (got, want) =
                (canonical(&rows, unordered), canonical(&wanted(world, case, expect), unordered));
            if got == want {
                return None;
            }
            let at = got.iter().zip(&want).position(|(a, b)| a != b).unwrap_or(got.len().min(want.len()));
            let show = |rows: &[String]| rows.get(at).cloned().unwrap_or_default();
            Some(format!("row {at}\n   got    {}\n   wanted {}", show(&got), show(&want)))
        }
    }
}

/// Cases by topic that differ for a reason that `explained.json` gives.
fn explained() -> Vec<String> {
    let text = std::fs::read_to_string(folder().join("../explained.json")).unwrap();
    let entries = pando_bson::extjson::parse_value(&text).unwrap();
    let cases = entries.as_array().unwrap().iter().filter_map(|e| e.as_doc()?.get("cases")?.as_array());
    cases.flatten().filter_map(Bson::as_str).map(str::to_owned).collect()
}

fn replay(topics: &[&str]) {
    replay_from(&World::load(Reach::AtOnce), topics);
}

fn replay_from(world: &Arc<World>, topics: &[&str]) {
    let explained = explained();
    let show = std::env::var("GOLDEN_SHOW").ok().and_then(|n| n.parse().ok()).unwrap_or(20);
    let (mut ran, mut wrong) = (0, 0);
    for topic in topics {
        let text = std::fs::read_to_string(folder().join(format!("{topic}.jsonl"))).unwrap();
        for line in text.lines() {
            let case = parse(line).unwrap();
            let id = case.get("id").and_then(Bson::as_str).unwrap();
            let aggregates = case.get("cmd").and_then(Bson::as_doc).is_some_and(|c| c.contains("aggregate"));
            if !aggregates || case.contains("raw") || explained.iter().any(|e| e == id) {
                continue;
            }
            ran += 1;
            if let Some(difference) = check(world, &case) {
                wrong += 1;
                if wrong <= show {
                    let cmd = case.get("cmd").and_then(Bson::as_doc).unwrap().to_raw();
                    println!("WRONG {id} {}\n   {difference}", to_canonical(&cmd));
                }
            }
        }
    }
    println!("{topics:?}: {ran} ran, {wrong} wrong");
    assert!(ran > 0 && wrong == 0);
}

#[test]
fn joins_answer_as_the_real_server() {
    replay(&["agg.lookup", "agg.union", "agg.graph"]);
}

#[test]
fn joins_answer_as_the_real_server_when_the_other_collection_is_not_there_yet() {
    for reach in [Reach::Late, Reach::Elsewhere] {
        let world = World::load(reach);
        replay_from(&world, &["agg.lookup", "agg.union", "agg.graph"]);
        let put_off = world.put_off.load(Ordering::Relaxed);
        assert!(put_off > 500, "only {put_off} times somebody was put off");
    }
}

#[test]
fn facets_answer_as_the_real_server() {
    replay(&["agg.facet", "agg.redact", "agg.bucketauto"]);
}

#[test]
fn an_index_narrows_an_expression_without_changing_the_answer() {
    replay(&["match.exprindex"]);
}

#[test]
fn windows_answer_as_the_real_server() {
    replay(&["agg.window", "agg.fill", "agg.densify"]);
}

#[test]
fn errors_are_those_of_this_crate() {
    // A guard against a replay that accepts anything.
    let world = World::load(Reach::AtOnce);
    let bad = parse(
        r#"{"setup":"nums","cmd":{"aggregate":"nums","pipeline":[{"$count":"n"}]},"expect":{"docs":[{"n":1}]}}"#,
    );
    assert!(check(&world, &bad.unwrap()).is_some_and(|d| d.contains("row 0")));
    let error: Error =
        run(&world, &parse(r#"{"aggregate":"nums","pipeline":[{"$foo":1}]}"#).unwrap().to_raw()).unwrap_err();
    assert_eq!(error.code.0, 40324);
}
