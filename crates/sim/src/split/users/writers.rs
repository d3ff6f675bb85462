//! Lists that users append to, and documents that they insert, each once however often the command is sent again, to whichever set:
//! minutes later, too, with the session and the number that it had. Whoever reads at the new set sees all that the old one has
//! acknowledged.

use super::caller::{Answer, Caller, Home, majority, named};
use crate::client::Client;
use crate::executor::lock;
use crate::set::users::caller::{docs, is_done};
use pando_bson::{Bson, DocBuf, Document, RawDoc, doc};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

/// Sessions of one user: of each the last statement is sent again.
const SESSIONS: u8 = 6;
const TRIES_MAX: u32 = 60;
const DUPLICATE_KEY: i64 = 11000;

/// What one tenant was promised.
#[derive(Default)]
struct Promised {
    appended: BTreeSet<i64>,
    inserted: BTreeSet<i64>,
    /// What the old set has acknowledged of the list.
    by_donor: BTreeSet<i64>,
    /// What reads have shown of the list.
    seen: BTreeSet<Vec<i64>>,
}

#[derive(Default)]
pub(in super::super) struct Written {
    tenants: BTreeMap<usize, Promised>,
    pub(in super::super) repeated: usize,
    pub(in super::super) repeated_elsewhere: usize,
    pub(in super::super) reads: usize,
}

impl Written {
    pub(in super::super) fn acknowledged(&self) -> usize {
        self.tenants.values().map(|p| p.appended.len() + p.inserted.len()).sum()
    }
}

/// An acknowledged statement, and where that was.
struct Old {
    tenant: usize,
    home: Home,
    body: Document,
}

pub(in super::super) async fn run(mut c: Caller, written: Arc<Mutex<Written>>) {
    let mut old: BTreeMap<u8, Old> = BTreeMap::new();
    let mut n = 0;
    while !c.stopped() {
        n += 1;
        let session = (n % i64::from(SESSIONS)) as u8;
        if let Some(old) = old.remove(&session).filter(|_| c.below(2) == 0) {
            repeat(&mut c, old, &written).await;
        }
        let tenant = c.some_tenant();
        if let Some(done) = write(&mut c, tenant, (session, n), &written).await {
            old.insert(session, done);
        }
        if c.below(2) == 0 {
            let tenant = c.some_tenant();
            look(&mut c, tenant, &written).await;
        }
        c.pause().await;
    }
}

/// Sends it until it is acknowledged.
async fn write(
    c: &mut Caller,
    tenant: usize,
    (session, n): (u8, i64),
    written: &Mutex<Written>,
) -> Option<Old> {
    let element = c.place.user << 32 | n;
    let inserts = n % 4 == 0;
    let mut body = if inserts {
        doc! { "insert": "c", "documents": [{ "_id": element }] }
    } else {
        let mut push = doc! { "q": { "_id": 0 }, "upsert": true };
        push.push("u", doc! { "$push": { "l": element } });
        let mut body = doc! { "update": "lists" };
        body.push("updates", vec![Bson::from(push)]);
        body
    };
    body.push("writeConcern", majority());
    body.push("lsid", c.session(session));
    body.push("txnNumber", n);
    for _ in 0..TRIES_MAX {
        if c.stopped() {
            return None;
        }
        match c.ask(tenant, &body).await {
            Answer::Reply(home, reply) if is_done(&reply) => {
                note_count(c, &body, &reply);
                let mut written = lock(written);
                let promised = written.tenants.entry(tenant).or_default();
                if inserts {
                    promised.inserted.insert(element);
                } else {
                    promised.appended.insert(element);
                    if home == Home::Donor {
                        promised.by_donor.insert(element);
                    }
                }
                return Some(Old { tenant, home, body });
            }
            Answer::Reply(_, reply) => note_double(c, &reply),
            Answer::Nothing | Answer::Again => {}
        }
        c.pause().await;
    }
    None
}

/// It was done once, and the answer is the same.
async fn repeat(c: &mut Caller, old: Old, written: &Mutex<Written>) {
    match c.ask(old.tenant, &old.body).await {
        Answer::Reply(home, reply) if is_done(&reply) => {
            note_count(c, &old.body, &reply);
            let mut written = lock(written);
            written.repeated += 1;
            written.repeated_elsewhere += usize::from(home != old.home);
        }
        Answer::Reply(_, reply) => note_double(c, &reply),
        Answer::Nothing | Answer::Again => {}
    }
}
fn note_count(c: &Caller, body: &Document, reply: &RawDoc) {
    if reply.get("n").and_then(|v| v.as_i64()) != Some(1) {
        c.problem(format!("{body:?}: {reply}"));
    }
}
fn note_double(c: &Caller, reply: &RawDoc) {
    let errors = reply.get("writeErrors").and_then(|v| v.as_array());
    let mut codes = errors.into_iter().flatten().filter_map(|e| e.value().as_doc()?.get("code")?.as_i64());
    if codes.any(|code| code == DUPLICATE_KEY) {
        c.problem(format!("a statement was carried out twice: {reply}"));
    }
}

fn find(level: &str) -> Document {
    doc! {
        "find": "lists", "filter": { "_id": 0 }, "readConcern": { "level": level }, "maxTimeMS": 8000,
        "$readPreference": { "mode": "secondaryPreferred" }
    }
}
fn elements(doc: Option<&DocBuf>) -> Vec<i64> {
    let list = doc.and_then(|d| d.get("l").and_then(|v| v.as_array()).map(RawDoc::to_buf));
    list.iter().flat_map(|l| l.iter().filter_map(|e| e.value().as_i64()).collect::<Vec<_>>()).collect()
}

/// What some member of the tenant's set shows of its list.
async fn look(c: &mut Caller, tenant: usize, written: &Mutex<Written>) -> Option<()> {
    // Whoever reads at the new set knows by then that the tenant has moved: all that the old one has acknowledged was before.
    let owed = lock(written).tenants.entry(tenant).or_default().by_donor.clone();
    let Answer::Reply(home, reply) = c.ask_anybody(tenant, &find("majority")).await else { return None };
    let found = elements(docs(&reply).filter(|_| is_done(&reply))?.first());
    if home == Home::Recipient
        && let Some(lost) = owed.iter().find(|e| !found.contains(e))
    {
        c.problem(format!("tenant {tenant}: a read at {} lacks {lost:x}: {found:x?}", named(home)));
    }
    let mut written = lock(written);
    written.reads += 1;
    written.tenants.entry(tenant).or_default().seen.insert(found);
    Some(())
}

/// What is wrong with a tenant's data at a primary.
pub(in super::super) async fn check(
    c: &mut Client,
    tenant: usize,
    written: &Mutex<Written>,
) -> Result<Vec<String>, String> {
    let db = super::super::shape::database(tenant);
    let mut find = find("local");
    find.push("$db", db.as_str());
    let reply = c.command(&find.to_raw()).await.map_err(|e| e.to_string())?;
    let list = elements(docs(&reply).ok_or_else(|| reply.to_string())?.first());
    let all = doc! { "find": "c", "batchSize": 100_000, "$db": db.as_str() }.to_raw();
    let reply = c.command(&all).await.map_err(|e| e.to_string())?;
    let found = docs(&reply).ok_or_else(|| reply.to_string())?;
    let ids: BTreeSet<i64> = found.iter().filter_map(|d| d.get("_id")?.as_i64()).collect();
    let mut written = lock(written);
    Ok(judge(written.tenants.entry(tenant).or_default(), &list, &ids)
        .into_iter()
        .map(|p| format!("tenant {tenant}: {p}"))
        .collect())
}

fn judge(promised: &Promised, list: &[i64], ids: &BTreeSet<i64>) -> Vec<String> {
    let mut problems = Vec::new();
    let unique: BTreeSet<i64> = list.iter().copied().collect();
    if unique.len() != list.len() {
        problems.push(format!("its list holds an element twice: {list:x?}"));
    }
    let lost: Vec<_> = promised.appended.difference(&unique).collect();
    if !lost.is_empty() {
        problems.push(format!("its list lost {lost:x?} of {list:x?}"));
    }
    let lost: Vec<_> = promised.inserted.difference(ids).collect();
    if !lost.is_empty() {
        problems.push(format!("acknowledged documents are lost: {lost:x?}"));
    }
    for seen in promised.seen.iter().filter(|s| !list.starts_with(s)).take(2) {
        problems.push(format!("a majority read of its list showed {seen:x?}; it is {list:x?}"));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_doubled_and_undone_elements_are_found() {
        let p = Promised {
            appended: [1, 2].into(),
            inserted: [7].into(),
            seen: [vec![], vec![1]].into(),
            ..Promised::default()
        };
        let wrong =
            |p: &Promised, list: &[i64], ids: &[i64]| judge(p, list, &ids.iter().copied().collect()).len();
        assert_eq!(wrong(&p, &[1, 3, 2], &[7, 8]), 0);
        assert_eq!(wrong(&p, &[1, 3], &[7]), 1, "lost");
        assert_eq!(wrong(&p, &[1, 2, 2], &[7]), 1, "twice");
        assert_eq!(wrong(&p, &[2, 1], &[7]), 1, "seen in another order");
        assert_eq!(wrong(&p, &[1, 2], &[]), 1, "a document is lost");
    }
}
