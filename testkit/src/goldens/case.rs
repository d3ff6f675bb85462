//! The files: cases, data sets, accepted differences.

use super::folder;
use pando_bson::{Bson, Document, extjson};
use std::collections::{BTreeMap, BTreeSet};

/// One case: what to prepare, what to ask, what the real server answered.
pub struct Case {
    pub id: String,
    /// A read-only case on this data set.
    pub setup: Option<String>,
    /// Further data sets that it reads.
    pub also: Vec<String>,
    /// Otherwise: the contents of collection `w` before the command.
    pub docs: Vec<Bson>,
    pub before: Vec<Document>,
    pub pre: Vec<Document>,
    pub cmd: Document,
    pub then: Vec<Document>,
    pub db: String,
    pub unordered: bool,
    pub raw: bool,
    /// What a reply says does not matter, only that there is one.
    pub brief: bool,
    /// Of a reply only the names and the types count.
    pub shape: bool,
    /// Compare the contents of `w` afterwards.
    pub after: bool,
    /// Compare the entries that the command leaves in the oplog.
    pub oplog: bool,
    pub expect: Document,
}

/// A field that holds a list of documents; missing = empty.
fn docs_field(d: &Document, name: &str) -> Vec<Document> {
    let items = d.get(name).and_then(Bson::as_array).unwrap_or_default();
    items.iter().filter_map(|x| x.as_doc().cloned()).collect()
}

fn flag(d: &Document, name: &str) -> Option<bool> {
    match d.get(name) {
        Some(Bson::Boolean(b)) => Some(*b),
        _ => None,
    }
}

fn text(d: &Document, name: &str) -> Option<String> {
    d.get(name).and_then(Bson::as_str).map(str::to_owned)
}

fn texts(d: &Document, name: &str) -> Vec<String> {
    let items = d.get(name).and_then(Bson::as_array).unwrap_or_default();
    items.iter().filter_map(|x| x.as_str().map(str::to_owned)).collect()
}

impl Case {
    /// The case leaves nothing behind but documents in a plain collection.
    pub(super) fn is_plain_write(&self) -> bool {
        let write = ["update", "delete", "insert", "findAndModify"];
        self.before.is_empty()
            && self.pre.is_empty()
            && self.then.is_empty()
            && self.db == "df"
            && write.iter().any(|name| self.cmd.get(name).is_some())
    }

    fn parse(line: &str) -> Case {
        let d = extjson::parse(line).unwrap_or_else(|e| panic!("golden line: {}: {line}", e.message));
        Case {
            id: text(&d, "id").expect("every case has an id"),
            setup: text(&d, "setup"),
            also: texts(&d, "also"),
            docs: d.get("docs").and_then(Bson::as_array).unwrap_or_default().to_vec(),
            before: docs_field(&d, "before"),
            pre: docs_field(&d, "pre"),
            cmd: d.get("cmd").and_then(Bson::as_doc).expect("every case has a command").clone(),
            then: docs_field(&d, "then"),
            db: text(&d, "db").unwrap_or_else(|| "df".to_owned()),
            unordered: flag(&d, "unordered").unwrap_or(false),
            raw: flag(&d, "raw").unwrap_or(false),
            brief: flag(&d, "brief").unwrap_or(false),
            shape: flag(&d, "shape").unwrap_or(false),
            after: flag(&d, "after").unwrap_or(true),
            oplog: flag(&d, "oplog").unwrap_or(false),
            expect: d.get("expect").and_then(Bson::as_doc).expect("every case has an answer").clone(),
        }
    }
}

pub(super) fn read_topic(topic: &str) -> Vec<Case> {
    let path = folder().join("golden").join(format!("{topic}.jsonl"));
    std::fs::read_to_string(path).expect("a golden file").lines().map(Case::parse).collect()
}

/// The data sets that read-only cases ask about.
pub struct Setups {
    all: BTreeMap<String, Document>,
}

impl Setups {
    pub fn read() -> Setups {
        let text = std::fs::read_to_string(folder().join("golden/setups.json")).expect("setups.json");
        let all = extjson::parse(&text).expect("setups.json is Extended JSON");
        Setups {
            all: all
                .into_fields()
                .into_iter()
                .filter_map(|(k, v)| Some((k.to_string(), v.as_doc()?.clone())))
                .collect(),
        }
    }

    pub fn docs(&self, name: &str) -> &[Bson] {
        let s = &self.all[name];
        match s.get("same_docs_as").and_then(Bson::as_str) {
            Some(other) => self.docs(other),
            None => s.get("docs").and_then(Bson::as_array).expect("a data set has documents"),
        }
    }

    /// Whether there is a data set of that name.
    pub fn has(&self, name: &str) -> bool {
        self.all.contains_key(name)
    }

    /// What a view is created with, and the data set it is on.
    pub fn view(&self, name: &str) -> Option<(&Document, &str)> {
        let s = &self.all[name];
        Some((s.get("options")?.as_doc()?, s.get("on")?.as_str()?))
    }

    pub fn indexes(&self, name: &str) -> &[Bson] {
        self.all[name].get("indexes").and_then(Bson::as_array).unwrap_or_default()
    }
}

/// The accepted differences, each with its reason.
pub struct Explained {
    entries: Vec<Document>,
}

impl Explained {
    /// The files of these names in `tests/differential`.
    pub fn read(files: &[&str]) -> Explained {
        let mut entries = Vec::new();
        for file in files {
            let text = std::fs::read_to_string(folder().join(file)).expect("a list of accepted differences");
            let list = extjson::parse_value(&text).expect("the list is JSON");
            entries.extend(list.as_array().expect("a list").iter().filter_map(|e| e.as_doc().cloned()));
        }
        Explained { entries }
    }

    /// `topics` and `cases` name what an entry is about; patterns are whole topics (`match.regex/.*`).
    pub fn covers(&self, id: &str, kind: &str) -> bool {
        let has = |e: &Document, list: &str, hit: &dyn Fn(&str) -> bool| {
            e.get(list).and_then(Bson::as_array).unwrap_or_default().iter().filter_map(Bson::as_str).any(hit)
        };
        self.entries.iter().any(|e| {
            has(e, "kinds", &|k| k == kind)
                && (has(e, "cases", &|c| c == id) || has(e, "topics", &|t| id.split('/').next() == Some(t)))
        })
    }

    /// Every case that some entry names.
    pub fn cases(&self) -> BTreeSet<String> {
        let mut all = BTreeSet::new();
        for e in &self.entries {
            let listed = e.get("cases").and_then(Bson::as_array).unwrap_or_default();
            all.extend(listed.iter().filter_map(|c| c.as_str().map(str::to_owned)));
        }
        all
    }
}
