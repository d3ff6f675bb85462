//! A program: what is put there, the command under test, what is looked at afterwards.

use crate::data;
use crate::draw::{Class, Gen, Group, command};
use pando_bson::{Bson, Document, doc};

/// A command and the database it runs in.
#[derive(Clone, Debug)]
pub struct Call {
    pub db: String,
    pub cmd: Document,
}

impl Call {
    pub fn new(db: &str, cmd: Document) -> Call {
        Call { db: db.to_owned(), cmd }
    }
    pub fn name(&self) -> &str {
        self.cmd.iter().next().map_or("", |(name, _)| name)
    }
}

#[derive(Clone, Debug)]
pub struct Program {
    pub seed: u64,
    pub class: Class,
    pub prep: Vec<Call>,
    pub test: Call,
    pub look: Vec<Call>,
    pub drawn: Vec<(Group, &'static str)>,
}

impl Program {
    /// The program of a seed.
    pub fn of(seed: u64) -> Program {
        let mut g = Gen::new(seed);
        let class = match g.rng.below(100) {
            0..=69 => Class::Read,
            70..=92 => Class::Write,
            93..=96 => Class::Ddl,
            _ => Class::Server,
        };
        Program::of_class(seed, class, g)
    }

    pub fn of_class(seed: u64, class: Class, mut g: Gen) -> Program {
        let mut cmd = command(&mut g, class);
        let test_name = cmd.iter().next().map_or(String::new(), |(n, _)| n.to_owned());
        let (mut prep, mut look) = (Vec::new(), Vec::new());
        let mut db = data::DB;
        match class {
            Class::Write => {
                let mut touched = scratch_names(&cmd);
                if touched.is_empty() {
                    touched.push("w_plain".to_owned());
                }
                for coll in &touched {
                    prep.extend(reset(coll));
                    look.push(Call::new(data::DB, doc! { "find": coll.as_str(), "sort": doc! { "_id": 1 } }));
                }
                if test_name == "bulkWrite" {
                    db = "admin";
                }
            }
            Class::Read => {
                for coll in scratch_names(&cmd) {
                    prep.extend(reset(&coll));
                    look.push(Call::new(data::DB, doc! { "find": coll.as_str(), "sort": doc! { "_id": 1 } }));
                }
                if test_name == "listDatabases" {
                    db = "admin";
                }
                order_first(&mut g, &mut cmd);
            }
            Class::Ddl => {
                db = data::DDL_DB;
                prep = ddl_prep(&mut g);
                look = ddl_look();
                if test_name == "renameCollection" {
                    db = "admin";
                }
            }
            Class::Server | Class::Admin => {
                if g.rng.percent(70) {
                    db = "admin";
                }
            }
        }
        if g.rng.once_in(200) {
            db = g.rng.pick(&["admin", "config", "local", "", "a.b", data::EMPTY_DB]);
        }
        Program { seed, class, prep, test: Call::new(db, cmd), look, drawn: g.drawn }
    }

    /// All commands in their order.
    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.prep.iter().chain([&self.test]).chain(&self.look)
    }
    pub fn len(&self) -> usize {
        self.prep.len() + 1 + self.look.len()
    }
    pub fn is_empty(&self) -> bool {
        false
    }
}

/// Scratch collections that a command names, wherever.
fn scratch_names(cmd: &Document) -> Vec<String> {
    fn walk(v: &Bson, out: &mut Vec<String>) {
        match v {
            Bson::String(s) if data::SCRATCH.contains(&s.as_str()) => {
                if !out.contains(s) {
                    out.push(s.clone());
                }
            }
            Bson::String(s) => {
                if let Some(rest) = s.strip_prefix("df.")
                    && data::SCRATCH.contains(&rest)
                    && !out.iter().any(|o| o == rest)
                {
                    out.push(rest.to_owned());
                }
            }
            Bson::Document(d) => d.iter().for_each(|(_, v)| walk(v, out)),
            Bson::Array(a) => a.iter().for_each(|v| walk(v, out)),
            _ => {}
        }
    }
    let mut out = Vec::new();
    cmd.iter().for_each(|(_, v)| walk(v, &mut out));
    out
}

/// A scratch collection is as it was.
fn reset(coll: &str) -> [Call; 2] {
    let everything = doc! { "q": Document::new(), "limit": 0 };
    let docs = data::documents_for(coll).into_iter().take(6).collect();
    [
        Call::new(data::DB, doc! { "delete": coll, "deletes": [everything] }),
        Call::new(data::DB, data::insertion(coll, docs)),
    ]
}

/// Most pipelines begin with a sort, so that what follows sees one order.
fn order_first(g: &mut Gen, cmd: &mut Document) {
    let name = cmd.iter().next().map_or(String::new(), |(n, _)| n.to_owned());
    if name == "aggregate"
        && g.rng.percent(60)
        && let Some(Bson::Array(stages)) = cmd.get_mut("pipeline")
        && stages.first().and_then(Bson::as_doc).is_some_and(|s| !stands_first(s))
    {
        stages.insert(0, doc! { "$sort": doc! { "_id": 1 } }.into());
    }
}

fn stands_first(stage: &Document) -> bool {
    const FIRST: &[&str] = &[
        "$changeStream",
        "$collStats",
        "$indexStats",
        "$currentOp",
        "$documents",
        "$listLocalSessions",
        "$listSessions",
        "$planCacheStats",
        "$geoNear",
    ];
    stage.iter().next().is_some_and(|(name, _)| FIRST.contains(&name))
}

fn ddl_prep(g: &mut Gen) -> Vec<Call> {
    let call = |d: Document| Call::new(data::DDL_DB, d);
    let mut all = vec![call(doc! { "drop": "x" }), call(doc! { "drop": "y" }), call(doc! { "drop": "z" })];
    let series = || doc! { "timeField": "t", "metaField": "m" };
    match g.rng.below(8) {
        0 => {}
        1 => all.push(call(doc! { "create": "x", "capped": true, "size": 4096 })),
        2 => all.push(call(doc! { "create": "x", "timeseries": series() })),
        3 => {
            let clustered = doc! { "key": doc! { "_id": 1 }, "unique": true };
            all.push(call(doc! { "create": "x", "clusteredIndex": clustered }));
        }
        4 => {
            let mut view = doc! { "create": "x", "viewOn": "y" };
            view.push("pipeline", Vec::new());
            all.push(call(view));
        }
        _ => {
            let docs = vec![
                doc! { "_id": 1, "a": 1, "b": 1, "n": 5, "s": "x" },
                doc! { "_id": 2, "a": 1, "b": Bson::Array(vec![1.into(), 2.into()]), "s": "y" },
            ];
            all.push(call(data::insertion("x", docs)));
            let index = doc! { "key": doc! { "a": 1 }, "name": "a_1" };
            let second = doc! { "key": doc! { "b": 1 }, "name": "b_1", "expireAfterSeconds": 1000 };
            all.push(call(doc! { "createIndexes": "x", "indexes": [index, second] }));
        }
    }
    if g.rng.once_in(3) {
        all.push(call(doc! { "create": "y" }));
    }
    all
}

fn ddl_look() -> Vec<Call> {
    let call = |d: Document| Call::new(data::DDL_DB, d);
    vec![
        call(doc! { "listCollections": 1 }),
        call(doc! { "listIndexes": "x" }),
        call(doc! { "listIndexes": "y" }),
        call(doc! { "find": "x", "sort": doc! { "_id": 1 } }),
    ]
}
