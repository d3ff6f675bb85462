//! A register that a majority writes and linearizable reads look at: there is an order of all commands, true to real
//! time, in which every read returns the newest write (INV-23).

use super::caller::{Caller, Place, docs, is_done, majority};
use crate::executor::lock;
use pando_bson::{Bson, DocBuf, doc};
use pando_checkers::register::{Command, What, is_linearizable};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Commands on one key before the next is taken: histories stay small enough to be judged.
const COMMANDS_A_KEY: usize = 40;

/// All commands by key.
#[derive(Default)]
pub(crate) struct History {
    keys: BTreeMap<usize, Vec<Command>>,
    begun: usize,
}

impl History {
    pub(crate) fn problems(&self) -> Vec<String> {
        let wrong = self.keys.iter().filter(|(_, h)| !is_linearizable(h));
        wrong.map(|(key, h)| format!("register {key} is not linearizable: {h:?}")).take(2).collect()
    }
    pub(crate) fn commands(&self) -> usize {
        self.keys.values().map(Vec::len).sum()
    }
}

pub(crate) async fn run(place: Place, history: Arc<Mutex<History>>) {
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
