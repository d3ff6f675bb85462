//! Who repeats retryable statements long after they were acknowledged, when others lead: nothing is done twice, and the
//! answer is that of the first time (INV-37).

use super::caller::{Caller, Place, is_done, majority};
use crate::client::Client;
use crate::executor::lock;
use pando_bson::{Binary, Bson, DocBuf, Document, RawDoc, doc};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Sessions of one user; a statement is the newest of its session until the session's turn comes again.
const SESSIONS: usize = 8;
/// Before a statement is repeated for the last time, its session takes no other.
const LATEST: Duration = Duration::from_secs(300);
const TRIES_MAX: u32 = 40;
/// Elements of one list before the next begins.
const ELEMENTS: i64 = 60;
const DUPLICATE_KEY: i64 = 11000;

#[derive(Default)]
pub(crate) struct Late {
    /// Acknowledged by list.
    acknowledged: BTreeMap<i64, BTreeSet<i64>>,
    problems: Vec<String>,
    pub(crate) repeated: usize,
}

/// A statement that was acknowledged, and when it is sent again.
struct Old {
    due: Vec<Duration>,
    body: DocBuf,
}

pub(crate) async fn run(place: Place, late: Arc<Mutex<Late>>) {
    let user = place.user;
    let mut c = Caller::new(place);
    let mut sessions: VecDeque<(i64, Option<Old>)> = (0..SESSIONS as i64).map(|s| (s, None)).collect();
    let mut n = 0;
    while !c.stopped() {
        let Some((session, old)) = sessions.pop_front() else { return };
        let old = match old {
            Some(old) if !old.due.is_empty() => repeat(&mut c, old, &late).await,
            _ => {
                n += 1;
                begin(&mut c, user, session, n, &late).await
            }
        };
        sessions.push_back((session, old));
        c.pause().await;
    }
}

/// A new statement, until it is acknowledged.
async fn begin(c: &mut Caller, user: i64, session: i64, n: i64, late: &Mutex<Late>) -> Option<Old> {
    let (list, element) = ((user << 32) | (n / ELEMENTS), (user << 32) | n);
    let mut body = if n % 4 == 0 {
        doc! { "insert": "lateOnes", "documents": [{ "_id": element }] }
    } else {
        let mut push = doc! { "q": { "_id": list }, "upsert": true };
        push.push("u", doc! { "$push": { "l": element } });
        let mut body = doc! { "update": "late" };
        body.push("updates", vec![Bson::from(push)]);
        body
    };
    body.push("writeConcern", majority());
    let mut id = vec![11; 16];
    id[..8].copy_from_slice(&user.to_le_bytes());
    id[8] = session as u8;
    let mut lsid = Document::new();
    lsid.push("id", Bson::Binary(Binary { subtype: 4, bytes: id }));
    body.push("lsid", lsid);
    body.push("txnNumber", n);
    body.push("$db", "d");
    let body = body.to_raw();
    for _ in 0..TRIES_MAX {
        if c.stopped() {
            return None;
        }
        match c.ask_primary(&body).await {
            Some(reply) if is_done(&reply) => {
                if n % 4 != 0 {
                    lock(late).acknowledged.entry(list).or_default().insert(element);
                }
                let now = c.now();
                let mut due: Vec<Duration> =
                    (0..2).map(|_| now + Duration::from_millis(c.below(LATEST.as_millis() as u64))).collect();
                due.sort_unstable_by(|a, b| b.cmp(a));
                return Some(Old { due, body });
            }
            Some(reply) => note_double(&reply, late),
            None => {}
        }
        c.pause().await;
    }
    None
}

/// Sends it again when it is time.
async fn repeat(c: &mut Caller, mut old: Old, late: &Mutex<Late>) -> Option<Old> {
    if old.due.last().is_some_and(|due| *due <= c.now())
        && let Some(reply) = c.ask_primary(&old.body).await
    {
        note_double(&reply, late);
        if is_done(&reply) {
            old.due.pop();
            let mut late = lock(late);
            late.repeated += 1;
            if reply.get("n").and_then(|v| v.as_i64()) != Some(1) {
                late.problems.push(format!("{} repeated: {reply}", old.body));
            }
        }
    }
    Some(old)
}

fn note_double(reply: &RawDoc, late: &Mutex<Late>) {
    let errors = reply.get("writeErrors").and_then(|v| v.as_array());
    let codes = errors.into_iter().flatten().filter_map(|e| e.value().as_doc()?.get("code")?.as_i64());
    if codes.into_iter().any(|code| code == DUPLICATE_KEY) {
        lock(late).problems.push(format!("a statement was carried out twice: {reply}"));
    }
}

/// What is wrong with the lists at a primary.
pub(crate) async fn check(c: &mut Client, late: &Mutex<Late>) -> Vec<String> {
    let owed = lock(late).acknowledged.clone();
    let mut problems = lock(late).problems.clone();
    for (list, owed) in owed {
        let find = doc! { "find": "late", "filter": { "_id": list }, "$db": "d" };
        let Ok(reply) = c.command(&find.to_raw()).await else {
            problems.push(format!("late list {list:x} cannot be read"));
            continue;
        };
        let docs = super::caller::docs(&reply).unwrap_or_default();
        let found: Vec<i64> = docs
            .first()
            .and_then(|d| {
                d.get("l")?.as_array().map(|l| l.iter().filter_map(|e| e.value().as_i64()).collect())
            })
            .unwrap_or_default();
        let unique: BTreeSet<i64> = found.iter().copied().collect();
        if unique.len() != found.len() {
            problems.push(format!("late list {list:x} holds an element twice: {found:x?}"));
        }
        let lost: Vec<_> = owed.difference(&unique).collect();
        if !lost.is_empty() {
            problems.push(format!("late list {list:x} lost {lost:x?} of {found:x?}"));
        }
    }
    problems
}
