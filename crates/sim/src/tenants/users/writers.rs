//! Lists that users append to, and documents that they insert, each once however often the command is sent again, to whichever set:
//! minutes later, too, with the session and the number that it had. Whoever reads at the new set sees all that the old one has
//! acknowledged.

use super::super::board::View;
use super::caller::{Answer, Caller, majority};
use crate::client::Client;
use crate::executor::lock;
use crate::set::users::caller::{docs, is_done, operation_time};
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
    /// Elements of the list, and documents: who has acknowledged them, behind how many moves of the tenant.
    appended: BTreeMap<i64, View>,
    inserted: BTreeMap<i64, View>,
    /// What reads have shown of the list.
    seen: BTreeSet<Vec<i64>>,
}

/// What the other set has acknowledged before the tenant came: whoever reads behind the last move sees it.
fn owed(promised: &BTreeMap<i64, View>, view: View) -> BTreeSet<i64> {
    let before = |by: &View| by.moves < view.moves && by.home != view.home;
    promised.iter().filter(|(_, by)| before(by)).map(|(e, _)| *e).collect()
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
    view: View,
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
    let begun = c.now();
    for _ in 0..TRIES_MAX {
        if c.stopped() {
            return None;
        }
        match c.ask(tenant, &body).await {
            Answer::Reply(view, reply) if is_done(&reply) => {
                note_count(c, &body, &reply);
                c.note_write(tenant, view, begun, operation_time(&reply));
                let mut written = lock(written);
                let promised = written.tenants.entry(tenant).or_default();
                let list = if inserts { &mut promised.inserted } else { &mut promised.appended };
                list.insert(element, view);
                return Some(Old { tenant, view, body });
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
        Answer::Reply(view, reply) if is_done(&reply) => {
            note_count(c, &old.body, &reply);
            let mut written = lock(written);
            written.repeated += 1;
            written.repeated_elsewhere += usize::from(view.home != old.view.home);
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

fn find_list() -> Document {
    doc! { "find": "lists", "filter": { "_id": 0 }, "maxTimeMS": 8000 }
}
fn find_all() -> Document {
    doc! { "find": "c", "batchSize": 100_000, "maxTimeMS": 8000 }
}
fn elements(doc: Option<&DocBuf>) -> Vec<i64> {
    let list = doc.and_then(|d| d.get("l").and_then(|v| v.as_array()).map(RawDoc::to_buf));
    list.iter().flat_map(|l| l.iter().filter_map(|e| e.value().as_i64()).collect::<Vec<_>>()).collect()
}
fn ids(found: &[DocBuf]) -> BTreeSet<i64> {
    found.iter().filter_map(|d| d.get("_id")?.as_i64()).collect()
}

/// What some member of the tenant's set shows of its list, or of its documents.
async fn look(c: &mut Caller, tenant: usize, written: &Mutex<Written>) -> Option<()> {
    let concern = c.read_concern(tenant, "majority")?;
    let is_list = c.below(3) != 0;
    let mut body = if is_list { find_list() } else { find_all() };
    body.push("readConcern", concern);
    body.push("$readPreference", doc! { "mode": "secondaryPreferred" });
    // Whoever reads there knows by then that the tenant has moved: all that the other set has acknowledged was before.
    let view = c.view(tenant);
    let owed = {
        let mut written = lock(written);
        let promised = written.tenants.entry(tenant).or_default();
        owed(if is_list { &promised.appended } else { &promised.inserted }, view)
    };
    let Answer::Reply(view, reply) = c.ask_anybody(tenant, &body).await else { return None };
    let found = docs(&reply).filter(|_| is_done(&reply))?;
    let list = elements(found.first());
    let there = if is_list { list.iter().copied().collect() } else { ids(&found) };
    if let Some(lost) = owed.iter().find(|e| !there.contains(e)) {
        let what = if is_list { "list" } else { "documents" };
        c.problem(format!("tenant {tenant}: a read of its {what} in {view:?} lacks {lost:x}: {there:x?}"));
    }
    let mut written = lock(written);
    written.reads += 1;
    if is_list {
        written.tenants.entry(tenant).or_default().seen.insert(list);
    }
    Some(())
}
/// What a set shows of a tenant's list that has nothing to say about it, as far as is known: nothing, or all that was acknowledged before.
pub(in super::super) async fn look_elsewhere(c: &mut Caller, tenant: usize, written: &Mutex<Written>) {
    let view = c.view(tenant).next();
    let owed = lock(written).tenants.get(&tenant).map(|p| owed(&p.appended, view)).unwrap_or_default();
    let mut body = find_list();
    let level = ["local", "majority", "linearizable"][c.below(3) as usize];
    body.push("readConcern", doc! { "level": level });
    let Answer::Reply(_, reply) = c.ask_primary(tenant, view, &body).await else { return };
    let Some(found) = docs(&reply).filter(|found| is_done(&reply) && !found.is_empty()) else { return };
    let list = elements(found.first());
    // It was there before, and who is no primary any more may show that.
    let stale = view.moves > 1 && level != "linearizable";
    if let Some(lost) = owed.iter().find(|e| !list.contains(e)).filter(|_| !stale) {
        c.problem(format!("tenant {tenant}: the other set, in {view:?}, shows {list:x?} without {lost:x}"));
    }
}

/// What is wrong with a tenant's data at a primary.
pub(in super::super) async fn check(
    c: &mut Client,
    tenant: usize,
    written: &Mutex<Written>,
) -> Result<Vec<String>, String> {
    let db = super::super::database(tenant);
    let mut find = find_list();
    find.push("$db", db.as_str());
    let reply = c.command(&find.to_raw()).await.map_err(|e| e.to_string())?;
    let list = elements(docs(&reply).ok_or_else(|| reply.to_string())?.first());
    let mut all = find_all();
    all.push("$db", db.as_str());
    let reply = c.command(&all.to_raw()).await.map_err(|e| e.to_string())?;
    let ids = ids(&docs(&reply).ok_or_else(|| reply.to_string())?);
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
    let lost: Vec<_> = promised.appended.iter().filter(|(e, _)| !unique.contains(e)).collect();
    if !lost.is_empty() {
        problems.push(format!("its list lost {lost:x?} of {list:x?}"));
    }
    let lost: Vec<_> = promised.inserted.iter().filter(|(e, _)| !ids.contains(e)).collect();
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
    use super::super::super::Home;
    use super::*;

    #[test]
    fn what_the_other_set_has_acknowledged_before_the_last_move_is_owed() {
        let view = |home, moves| View { home, moves };
        let (first, second) = (view(Home::First, 0), view(Home::Second, 1));
        let acked = [(1, first), (2, second), (3, view(Home::First, 2))].into();
        assert_eq!(owed(&acked, first), [].into());
        assert_eq!(owed(&acked, second), [1].into());
        assert_eq!(owed(&acked, view(Home::First, 2)), [2].into());
    }

    #[test]
    fn lost_doubled_and_undone_elements_are_found() {
        let view = View { home: Home::First, moves: 0 };
        let p = Promised {
            appended: [(1, view), (2, view)].into(),
            inserted: [(7, view)].into(),
            seen: [vec![], vec![1]].into(),
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
