//! A register that a majority writes and linearizable reads look at: there is an order of all commands, true to real
//! time, in which every read returns the newest write (INV-23).

use super::caller::{Caller, Place, docs, is_done, majority};
use crate::executor::lock;
use pando_bson::{Bson, DocBuf, doc};
use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Commands on one key before the next is taken: histories stay small enough to be judged.
const COMMANDS_A_KEY: usize = 40;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Write(i64),
    Read(Option<i64>),
}

/// One command and when it was under way.
#[derive(Clone, Copy, Debug)]
struct Command {
    called: Duration,
    /// `None`: nobody knows whether and when it took effect.
    returned: Option<Duration>,
    what: What,
}

/// All commands by key.
#[derive(Default)]
pub(in crate::set) struct History {
    keys: BTreeMap<usize, Vec<Command>>,
    begun: usize,
}

impl History {
    pub(in crate::set) fn problems(&self) -> Vec<String> {
        let wrong = self.keys.iter().filter(|(_, h)| !is_linearizable(h));
        wrong.map(|(key, h)| format!("register {key} is not linearizable: {h:?}")).take(2).collect()
    }
    pub(in crate::set) fn commands(&self) -> usize {
        self.keys.values().map(Vec::len).sum()
    }
}

pub(in crate::set) async fn run(place: Place, history: Arc<Mutex<History>>) {
    let user = place.user;
    let mut c = Caller::new(place);
    let mut n = 0;
    while !c.stopped() {
        let key = {
            let mut h = lock(&history);
            h.begun += 1;
            h.begun / COMMANDS_A_KEY
        };
        let called = c.now();
        let done = if c.below(2) == 0 {
            n += 1;
            let value = user << 32 | n;
            let reply = c.ask_primary(&write(key, value)).await;
            Some((What::Write(value), reply.is_some_and(|r| is_done(&r))))
        } else {
            let reply = c.ask_primary(&read(key)).await.filter(|r| is_done(r));
            reply.and_then(|r| docs(&r)).map(|found| {
                let value = found.first().and_then(|d| d.get("v").and_then(|v| v.as_i64()));
                (What::Read(value), true)
            })
        };
        if let Some((what, known)) = done {
            let returned = known.then(|| c.now());
            lock(&history).keys.entry(key).or_default().push(Command { called, returned, what });
        }
        c.pause().await;
    }
}

fn write(key: usize, value: i64) -> DocBuf {
    let mut set = doc! { "q": { "_id": key as i64 }, "upsert": true };
    set.push("u", doc! { "$set": { "v": value } });
    let mut body = doc! { "update": "registers" };
    body.push("updates", vec![Bson::from(set)]);
    body.push("writeConcern", majority());
    body.push("$db", "d");
    body.to_raw()
}

fn read(key: usize) -> DocBuf {
    doc! {
        "find": "registers", "filter": { "_id": key as i64 }, "readConcern": { "level": "linearizable" },
        "maxTimeMS": 8000, "$db": "d"
    }
    .to_raw()
}

/// Tries orders, remembering which have failed: what was carried out so far and the value it left is all that matters.
fn is_linearizable(history: &[Command]) -> bool {
    assert!(history.len() <= 128, "a history of {} commands", history.len());
    let mut tried: HashSet<(u128, Option<i64>)> = HashSet::new();
    let mut open = vec![(0u128, None)];
    while let Some((done, value)) = open.pop() {
        if !tried.insert((done, value)) {
            continue;
        }
        let left = || history.iter().enumerate().filter(move |(i, _)| done & (1 << i) == 0);
        // Nothing may come before a command that had returned when it was called.
        let Some(first_return) = left().filter_map(|(_, c)| c.returned).min() else { return true };
        for (i, c) in left().filter(|(_, c)| c.called <= first_return) {
            match c.what {
                What::Write(v) => open.push((done | 1 << i, Some(v))),
                What::Read(v) if v == value => open.push((done | 1 << i, value)),
                What::Read(_) => {}
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(called: u64, returned: Option<u64>, what: What) -> Command {
        Command { called: Duration::from_secs(called), returned: returned.map(Duration::from_secs), what }
    }
    use What::{Read, Write};

    #[test]
    fn a_stale_read_and_a_lost_write_are_found_and_concurrent_ones_are_not() {
        let w = |from, to, v| command(from, Some(to), Write(v));
        let r = |from, to, v| command(from, Some(to), Read(v));
        assert!(is_linearizable(&[
            w(0, 1, 1),
            r(2, 3, Some(1)),
            w(4, 9, 2),
            r(5, 6, Some(1)),
            r(7, 8, Some(2))
        ]));
        assert!(!is_linearizable(&[w(0, 1, 1), w(2, 3, 2), r(4, 5, Some(1))]), "stale");
        assert!(!is_linearizable(&[w(0, 1, 1), r(2, 3, None)]), "lost");
        assert!(!is_linearizable(&[w(0, 9, 1), r(1, 2, Some(1)), r(3, 4, None)]), "back again");
        let unknown = command(0, None, Write(7));
        assert!(is_linearizable(&[unknown, r(2, 3, None), r(4, 5, Some(7))]), "it may take effect late");
        assert!(is_linearizable(&[unknown, r(2, 3, None)]), "or never");
    }
}
