//! Registers of tenants, which a majority writes and linearizable reads look at: there is an order of all commands at both sets, true
//! to real time, in which every read returns the newest write. What a set has turned away was never done.

use super::caller::{Answer, Caller, majority};
use crate::executor::lock;
use crate::set::users::caller::{docs, is_done};
use pando_bson::{Bson, Document, doc};
use pando_checkers::register::{Command, What, is_linearizable};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Commands on one key before the next is taken: histories stay small enough to be judged.
const COMMANDS_A_KEY: usize = 40;

/// All commands by tenant and key.
#[derive(Default)]
pub(in super::super) struct Registers {
    keys: BTreeMap<(usize, usize), Vec<Command>>,
    begun: BTreeMap<usize, usize>,
}

impl Registers {
    pub(in super::super) fn problems(&self) -> Vec<String> {
        let wrong = self.keys.iter().filter(|(_, h)| !is_linearizable(h));
        let text = |((tenant, key), h): (&(usize, usize), &Vec<Command>)| {
            format!("register {key} of tenant {tenant} is not linearizable: {h:?}")
        };
        wrong.map(text).take(2).collect()
    }
    pub(in super::super) fn commands(&self) -> usize {
        self.keys.values().map(Vec::len).sum()
    }
}

pub(in super::super) async fn run(mut c: Caller, registers: Arc<Mutex<Registers>>) {
    let mut n = 0;
    while !c.stopped() {
        let tenant = c.some_tenant();
        let key = {
            let mut r = lock(&registers);
            let begun = r.begun.entry(tenant).or_default();
            *begun += 1;
            *begun / COMMANDS_A_KEY
        };
        let called = c.now();
        let done = if c.below(2) == 0 {
            n += 1;
            let value = c.place.user << 32 | n;
            match c.ask(tenant, &write(key, value)).await {
                Answer::Again => None,
                Answer::Nothing => Some((What::Write(value), false)),
                Answer::Reply(_, r) => Some((What::Write(value), is_done(&r))),
            }
        } else {
            match c.ask(tenant, &read(key)).await {
                Answer::Reply(_, r) if is_done(&r) => docs(&r).map(|found| {
                    let value = found.first().and_then(|d| d.get("v").and_then(|v| v.as_i64()));
                    (What::Read(value), true)
                }),
                _ => None,
            }
        };
        if let Some((what, known)) = done {
            let returned = known.then(|| c.now());
            lock(&registers).keys.entry((tenant, key)).or_default().push(Command { called, returned, what });
        }
        c.pause().await;
    }
}

fn write(key: usize, value: i64) -> Document {
    let mut set = doc! { "q": { "_id": key as i64 }, "upsert": true };
    set.push("u", doc! { "$set": { "v": value } });
    let mut body = doc! { "update": "registers" };
    body.push("updates", vec![Bson::from(set)]);
    body.push("writeConcern", majority());
    body
}
fn read(key: usize) -> Document {
    doc! {
        "find": "registers", "filter": { "_id": key as i64 }, "readConcern": { "level": "linearizable" },
        "maxTimeMS": 8000
    }
}
