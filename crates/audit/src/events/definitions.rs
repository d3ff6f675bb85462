//! Databases, collections, views and indexes that came, changed their name, or went.

use crate::Event;
use crate::event::DONE;
use pando_base::{ErrorCode, Namespace};
use pando_bson::RawDoc;

/// How far an index is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IndexBuild {
    Started,
    Succeeded,
    Aborted,
}

impl Event {
    pub fn create_database(db: &str) -> Event {
        Event::done("createDatabase", |p| {
            p.str("ns", db);
        })
    }
    pub fn create_collection(ns: &str) -> Event {
        Event::done("createCollection", |p| {
            p.str("ns", ns);
        })
    }
    /// `definition` is the view's document.
    pub fn create_view(definition: &RawDoc) -> Event {
        of_view("createCollection", definition)
    }
    pub fn drop_view(definition: &RawDoc) -> Event {
        of_view("dropCollection", definition)
    }
    /// `result` is 26 where there is none of that name.
    pub fn drop_collection(ns: &str, result: ErrorCode) -> Event {
        Event::done("dropCollection", |p| {
            p.str("ns", ns);
        })
        .with_result(result)
    }
    pub fn drop_database(db: &str) -> Event {
        Event::done("dropDatabase", |p| {
            p.str("ns", db);
        })
    }
    pub fn rename_collection(from: &Namespace, to: &Namespace) -> Event {
        Event::done("renameCollection", |p| {
            p.str("old", from.as_str()).str("new", to.as_str());
        })
    }
    pub fn create_index(ns: &Namespace, name: &str, spec: &RawDoc, state: IndexBuild) -> Event {
        let (state, result) = match state {
            IndexBuild::Started => ("IndexBuildStarted", DONE),
            IndexBuild::Succeeded => ("IndexBuildSucceeded", DONE),
            IndexBuild::Aborted => ("IndexBuildAborted", ErrorCode::IndexBuildAborted),
        };
        Event::done("createIndex", |p| {
            p.str("ns", ns.as_str()).str("indexName", name).raw_doc("indexSpec", spec);
            p.str("indexBuildState", state);
        })
        .with_result(result)
    }
    pub fn drop_index(ns: &Namespace, name: &str) -> Event {
        Event::done("dropIndex", |p| {
            p.str("ns", ns.as_str()).str("indexName", name);
        })
    }
}

fn of_view(action: &'static str, definition: &RawDoc) -> Event {
    Event::done(action, |p| {
        let text = |name: &str| definition.get(name).and_then(|v| v.as_str()).unwrap_or_default();
        let ns = text("_id");
        let db = ns.split_once('.').map_or("", |(db, _)| db);
        p.str("ns", ns).str("viewOn", &format!("{db}.{}", text("viewOn")));
        if let Some(pipeline) = definition.elem("pipeline") {
            p.elem(pipeline);
        }
    })
}
