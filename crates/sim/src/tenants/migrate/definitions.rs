//! Whoever defines collections of tenants while they move: creates, renames and drops them, builds indexes and drops those. Each tenant
//! has one who does, so what must be there at the end is known, but for names of which something was sent that nobody answered.

use super::super::name;
use super::super::users::caller::{Answer, Caller, Place, code_of, majority};
use super::knowledge::Knowledge;
use crate::client::Client;
use crate::executor::lock;
use crate::set::users::caller::{docs, is_done, operation_time};
use pando_bson::{Bson, DocBuf, Document, doc};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

const TRIES_MAX: u32 = 30;
const NAMES_MAX: usize = 6;
/// Users of whom each has tenants of its own.
const DEFINERS: usize = 3;
/// A name is there already, or not; or an index is not.
const EXISTS: i64 = 48;
const NOT_FOUND: i64 = 26;
const NO_INDEX: i64 = 27;
const DUPLICATE: i64 = 11000;

/// What one tenant has.
#[derive(Default)]
struct Names {
    /// By name: the one document that is in it, and whether it has an index.
    there: BTreeMap<String, (i64, bool)>,
    gone: BTreeSet<String>,
    /// Something may come late of what was sent.
    unsure: BTreeSet<String>,
    last: i64,
}

#[derive(Default)]
pub(super) struct Definitions(BTreeMap<usize, Names>);

/// What is wanted.
enum Wish {
    Create(String, i64),
    Drop(String),
    Rename(String, String),
    Index(String),
    NoIndex(String),
}

fn db(tenant: usize) -> String {
    format!("{}_defs", name(tenant))
}

pub(super) async fn run(
    place: Place,
    definitions: Arc<Mutex<Definitions>>,
    knowledge: Arc<Mutex<Knowledge>>,
) {
    let (user, mut c) = (place.user as usize, Caller::new(place, 5));
    while !c.stopped() {
        let tenant = c.some_tenant();
        if tenant % DEFINERS == user {
            let wish = some_wish(&c, lock(&definitions).0.entry(tenant).or_default());
            if fulfil(&mut c, tenant, wish, &definitions).await {
                lock(&knowledge).definitions += 1;
            }
            c.pause().await;
        }
        c.pause().await;
    }
}

fn some_wish(c: &Caller, names: &mut Names) -> Wish {
    names.last += 1;
    let (new, number) = (format!("n{}", names.last), names.last);
    let all: Vec<&String> = names.there.keys().collect();
    if all.is_empty() {
        return Wish::Create(new, number);
    }
    let old = all[c.below(all.len() as u64) as usize].clone();
    match c.below(6) {
        0 | 1 if all.len() < NAMES_MAX => Wish::Create(new, number),
        0..=2 => Wish::Drop(old),
        3 => Wish::Rename(old, new),
        4 => Wish::Index(old),
        _ => Wish::NoIndex(old),
    }
}

/// Sends each of the wish's commands until it is done, or nobody can say.
async fn fulfil(c: &mut Caller, tenant: usize, wish: Wish, definitions: &Mutex<Definitions>) -> bool {
    let of = |body: Document| {
        let mut body = body;
        body.push("writeConcern", majority());
        if body.get("$db").is_none() {
            body.push("$db", db(tenant));
        }
        body
    };
    let (steps, names): (Vec<(Document, i64)>, Vec<&String>) = match &wish {
        Wish::Create(name, number) => {
            let mut insert = doc! { "insert": name.as_str() };
            insert.push("documents", vec![Bson::from(doc! { "_id": *number, "x": *number })]);
            (vec![(doc! { "create": name.as_str() }, EXISTS), (insert, DUPLICATE)], vec![name])
        }
        Wish::Drop(name) => (vec![(doc! { "drop": name.as_str() }, NOT_FOUND)], vec![name]),
        Wish::Rename(old, new) => {
            let full = |name: &str| format!("{}.{name}", db(tenant));
            let body = doc! { "renameCollection": full(old), "to": full(new), "$db": "admin" };
            (vec![(body, NOT_FOUND)], vec![old, new])
        }
        Wish::Index(name) => {
            let body = doc! {
                "createIndexes": name.as_str(), "indexes": [{ "key": { "x": 1 }, "name": "x" }]
            };
            (vec![(body, 0)], vec![name])
        }
        Wish::NoIndex(name) => {
            (vec![(doc! { "dropIndexes": name.as_str(), "index": "x" }, NO_INDEX)], vec![name])
        }
    };
    let had_index = matches!(&wish, Wish::NoIndex(name) if lock(definitions).0[&tenant].there[name].1);
    let mut clean = true;
    for (body, already) in steps {
        let said = send(c, tenant, &of(body)).await;
        clean &= match said {
            Some(Sent { code, sure }) => {
                sure && (code == 0 || code == already && !had_index && already == NO_INDEX)
            }
            None => false,
        };
        if !clean {
            break;
        }
    }
    note(lock(definitions).0.entry(tenant).or_default(), &wish, &names, clean);
    clean
}
fn note(known: &mut Names, wish: &Wish, names: &[&String], clean: bool) {
    if !clean {
        for name in names {
            known.there.remove(*name);
            known.unsure.insert((*name).clone());
        }
        return;
    }
    match wish {
        Wish::Create(name, number) => _ = known.there.insert(name.clone(), (*number, false)),
        Wish::Drop(name) => {
            known.there.remove(name);
            known.gone.insert(name.clone());
        }
        Wish::Rename(old, new) => {
            let had = known.there.remove(old).unwrap_or_default();
            known.there.insert(new.clone(), had);
            known.gone.insert(old.clone());
        }
        Wish::Index(name) => known.there.entry(name.clone()).or_default().1 = true,
        Wish::NoIndex(name) => known.there.entry(name.clone()).or_default().1 = false,
    }
}

struct Sent {
    code: i64,
    /// Nothing was sent before that nobody answered, or that failed.
    sure: bool,
}

/// Until a primary has done it, or has refused it for good.
async fn send(c: &mut Caller, tenant: usize, body: &Document) -> Option<Sent> {
    let begun = c.now();
    let mut sure = true;
    for _ in 0..TRIES_MAX {
        if c.stopped() {
            return None;
        }
        match c.ask(tenant, body).await {
            Answer::Reply(view, reply) if is_done(&reply) => {
                c.note_write(tenant, view, begun, operation_time(&reply));
                return Some(Sent { code: 0, sure });
            }
            Answer::Reply(_, reply)
                if matches!(code_of(&reply), EXISTS | NOT_FOUND | NO_INDEX | DUPLICATE) =>
            {
                if sure && code_of(&reply) != NO_INDEX {
                    c.problem(format!("tenant {tenant}: {body:?} was sent once: {reply}"));
                }
                return Some(Sent { code: code_of(&reply), sure });
            }
            Answer::Reply(..) | Answer::Nothing => sure = false,
            Answer::Again => {}
        }
        c.pause().await;
    }
    None
}

/// What is wrong with a tenant's collections at the primary of its owner.
pub(super) async fn check(
    c: &mut Client,
    tenant: usize,
    definitions: &Mutex<Definitions>,
) -> Result<Vec<String>, String> {
    let mut all = BTreeMap::new();
    for found in ask(c, tenant, doc! { "listCollections": 1, "nameOnly": true }).await? {
        let Some(name) = found.get("name").and_then(|v| v.as_str()) else { continue };
        let indexes = ask(c, tenant, doc! { "listIndexes": name }).await?;
        let docs = ask(c, tenant, doc! { "find": name }).await?;
        let ids: Vec<i64> = docs.iter().filter_map(|d| d.get("_id")?.as_i64()).collect();
        all.insert(name.to_owned(), (ids, indexes.len() > 1));
    }
    let mut definitions = lock(definitions);
    let known = definitions.0.entry(tenant).or_default();
    let mut problems = Vec::new();
    for (name, (number, index)) in &known.there {
        let expected = (vec![*number], *index);
        if all.get(name) != Some(&expected) {
            problems.push(format!("tenant {tenant}: {name} is {:?}, not {expected:?}", all.get(name)));
        }
    }
    let nobodys = |name: &&String| !known.there.contains_key(*name) && !known.unsure.contains(*name);
    for name in all.keys().filter(nobodys) {
        problems
            .push(format!("tenant {tenant}: there is {name}; it was dropped: {}", known.gone.contains(name)));
    }
    Ok(problems)
}
async fn ask(c: &mut Client, tenant: usize, mut body: Document) -> Result<Vec<DocBuf>, String> {
    body.push("$db", db(tenant));
    let reply = c.command(&body.to_raw()).await.map_err(|e| e.to_string())?;
    docs(&reply).ok_or_else(|| format!("{body:?}: {reply}"))
}
