//! Lists that users append to, each element once however often the command is sent again. At the end every
//! acknowledged element is there, none twice (INV-21, INV-37); what a majority read showed is a prefix of that (INV-22);
//! and who reads after a time sees what was acknowledged at it, wherever (INV-27, INV-30).

use super::caller::{Caller, Place, docs, is_done, majority, op_time, operation_time};
use crate::client::Client;
use crate::executor::lock;
use pando_base::{OpTime, Timestamp};
use pando_bson::{Bson, DocBuf, Document, RawDoc, doc};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

/// Appends to one list before the next begins.
const APPENDS_A_LIST: usize = 60;
const TRIES_MAX: u32 = 40;

#[derive(Default)]
pub(crate) struct Lists {
    begun: usize,
    acknowledged: BTreeMap<i64, BTreeSet<i64>>,
    /// What majority reads have shown.
    seen: BTreeMap<i64, BTreeSet<Vec<i64>>>,
    /// Where acknowledged appends stand in the log.
    pub(crate) op_times: Vec<OpTime>,
    problems: Vec<String>,
    pub(crate) reads: usize,
}

pub(crate) async fn run(place: Place, lists: Arc<Mutex<Lists>>) {
    let user = place.user;
    let mut c = Caller::new(place);
    let mut n = 0;
    while !c.stopped() {
        let list = {
            let mut l = lock(&lists);
            l.begun += 1;
            (l.begun / APPENDS_A_LIST) as i64
        };
        n += 1;
        let element = user << 32 | n;
        let at = append(&mut c, list, element, &lists).await;
        let read = match at {
            Some(at) if c.below(2) == 0 => look_after(&mut c, list, element, at, &lists).await,
            _ => look(&mut c, list, &lists).await,
        };
        lock(&lists).reads += usize::from(read.is_some());
        c.pause().await;
    }
}

/// Sends it until it is acknowledged; the operation time then.
async fn append(c: &mut Caller, list: i64, element: i64, lists: &Mutex<Lists>) -> Option<Timestamp> {
    let mut push = doc! { "q": { "_id": list }, "upsert": true };
    push.push("u", doc! { "$push": { "l": element } });
    let mut body = doc! { "update": "lists" };
    body.push("updates", vec![Bson::from(push)]);
    body.push("writeConcern", majority());
    c.next_txn()(&mut body);
    body.push("$db", "d");
    let body = body.to_raw();
    for _ in 0..TRIES_MAX {
        if c.stopped() {
            return None;
        }
        match c.ask_primary(&body).await {
            Some(reply) if is_done(&reply) => {
                let mut lists = lock(lists);
                lists.acknowledged.entry(list).or_default().insert(element);
                lists.op_times.extend(op_time(&reply));
                return operation_time(&reply);
            }
            _ => c.pause().await,
        }
    }
    None
}

fn find(list: i64, concern: Document) -> DocBuf {
    let mut body = doc! { "find": "lists", "filter": { "_id": list } };
    body.push("readConcern", concern);
    body.push("$readPreference", doc! { "mode": "secondaryPreferred" });
    body.push("maxTimeMS", 8000);
    body.push("$db", "d");
    body.to_raw()
}

fn elements(doc: Option<&DocBuf>) -> Vec<i64> {
    let list = doc.and_then(|d| d.get("l").and_then(|v| v.as_array()).map(RawDoc::to_buf));
    list.iter().flat_map(|l| l.iter().filter_map(|e| e.value().as_i64()).collect::<Vec<_>>()).collect()
}

async fn read(c: &mut Caller, list: i64, concern: Document, lists: &Mutex<Lists>) -> Option<Vec<i64>> {
    let at = c.anyone();
    let reply = c.ask(at, &find(list, concern)).await.filter(|r| is_done(r))?;
    let found = elements(docs(&reply)?.first());
    lock(lists).seen.entry(list).or_default().insert(found.clone());
    Some(found)
}

async fn look(c: &mut Caller, list: i64, lists: &Mutex<Lists>) -> Option<()> {
    read(c, list, doc! { "level": "majority" }, lists).await.map(drop)
}

async fn look_after(
    c: &mut Caller,
    list: i64,
    element: i64,
    after: Timestamp,
    lists: &Mutex<Lists>,
) -> Option<()> {
    let concern = doc! { "level": "majority", "afterClusterTime": after };
    let found = read(c, list, concern, lists).await?;
    if !found.contains(&element) {
        let text = format!("list {list} read after {after} lacks {element:x}, acknowledged then: {found:x?}");
        lock(lists).problems.push(text);
    }
    Some(())
}

/// What is wrong with the lists at a primary.
pub(crate) async fn check(c: &mut Client, lists: &Mutex<Lists>) -> Vec<String> {
    let last = (lock(lists).begun / APPENDS_A_LIST) as i64;
    let mut now = BTreeMap::new();
    for list in 0..=last {
        let found = c.command(&find(list, doc! { "level": "local" })).await;
        match found.ok().as_deref().and_then(docs) {
            Some(docs) => now.insert(list, elements(docs.first())),
            None => return vec![format!("list {list} cannot be read")],
        };
    }
    judge(&lock(lists), &now)
}

fn judge(lists: &Lists, now: &BTreeMap<i64, Vec<i64>>) -> Vec<String> {
    let mut problems = lists.problems.clone();
    for (list, found) in now {
        let unique: BTreeSet<i64> = found.iter().copied().collect();
        if unique.len() != found.len() {
            problems.push(format!("list {list} holds an element twice: {found:x?}"));
        }
        let owed = lists.acknowledged.get(list).into_iter().flatten();
        let lost: Vec<_> = owed.filter(|e| !unique.contains(e)).collect();
        if !lost.is_empty() {
            problems.push(format!("list {list} lost {lost:x?} of {found:x?}"));
        }
        for seen in lists.seen.get(list).into_iter().flatten().filter(|s| !found.starts_with(s)) {
            problems.push(format!("a majority read of list {list} showed {seen:x?}; it is {found:x?}"));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_doubled_and_undone_elements_are_found() {
        let mut lists = Lists::default();
        lists.acknowledged.insert(0, [1, 2].into());
        lists.seen.insert(0, [vec![], vec![1]].into());
        let wrong = |lists: &Lists, now: &[i64]| judge(lists, &BTreeMap::from([(0, now.to_vec())])).len();
        assert_eq!(wrong(&lists, &[1, 3, 2]), 0);
        assert_eq!(wrong(&lists, &[1, 3]), 1, "lost");
        assert_eq!(wrong(&lists, &[1, 2, 2]), 1, "twice");
        assert_eq!(wrong(&lists, &[2, 1]), 1, "seen in another order");
    }
}
