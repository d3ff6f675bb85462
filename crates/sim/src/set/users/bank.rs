//! Transfers between accounts, each a transaction that also leaves a receipt; a third of them are prepared first. Whatever happens: the accounts sum up to
//! nothing, for every reader that sees them at one time; every account is what its receipts say; a receipt whose commit was
//! acknowledged by a majority stays, and one that a primary said it knows nothing of, with a majority behind it, never
//! shows up.

use super::caller::{Caller, Place, docs, is_done};
use super::session::{Ended, Session};
use crate::client::Client;
use crate::executor::lock;
use pando_bson::{Bson, DocBuf, Document, doc};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

const ACCOUNTS: u64 = 5;

#[derive(Default)]
pub(crate) struct Bank {
    committed: BTreeSet<i64>,
    /// Told to be unknown by a primary with a majority behind it.
    unknown: BTreeSet<i64>,
    problems: Vec<String>,
}

impl Bank {
    pub(crate) fn transfers(&self) -> usize {
        self.committed.len()
    }
}

pub(crate) async fn run(place: Place, bank: Arc<Mutex<Bank>>) {
    let mut session = Session::new(place.user, 9);
    let mut c = Caller::new(place);
    while !c.stopped() {
        session.number += 1;
        transfer(&mut c, &session, &bank).await;
        if c.below(2) == 0 {
            look(&mut c, &bank).await;
        }
        c.pause().await;
    }
}

fn add(account: u64, n: i64) -> Document {
    let mut statement = doc! { "q": { "_id": account as i64 }, "upsert": true };
    statement.push("u", doc! { "$inc": { "n": n } });
    let mut body = doc! { "update": "accounts" };
    body.push("updates", vec![Bson::from(statement)]);
    body
}

async fn transfer(c: &mut Caller, session: &Session, bank: &Mutex<Bank>) {
    let (from, to) = (c.below(ACCOUNTS), c.below(ACCOUNTS));
    let n = c.below(100) as i64;
    let receipt = session.user << 32 | session.number;
    let mut leave = doc! { "insert": "receipts" };
    let told = doc! { "_id": receipt, "from": from as i64, "to": to as i64, "n": n };
    leave.push("documents", vec![Bson::from(told)]);
    let first = session.within(add(from, -n), "d", Some(Document::new()));
    let rest = [session.within(add(to, n), "d", None), session.within(leave, "d", None)];
    for body in [first].iter().chain(&rest) {
        if !c.ask_primary(body).await.is_some_and(|r| is_done(&r)) {
            return;
        }
        if c.below(4) == 0 {
            c.pause().await;
        }
    }
    let ended = match c.below(3) {
        0 if !c.is_routed() => {
            let gives_up = c.below(4) == 0;
            session.commit_in_two_phases(c, gives_up).await
        }
        _ => session.commit(c).await,
    };
    match ended {
        Ended::Lost(at, reply) => {
            let what = format!("transfer {receipt:x}, prepared at {at:?}, was lost: {reply}");
            lock(bank).problems.push(what);
        }
        Ended::Committed(_) => drop(lock(bank).committed.insert(receipt)),
        Ended::Unknown => drop(lock(bank).unknown.insert(receipt)),
        Ended::NobodyKnows => {}
    }
}

fn find(coll: &str, level: &str) -> DocBuf {
    let mut body = doc! { "find": coll, "sort": { "_id": 1 }, "batchSize": 100_000 };
    body.push("readConcern", doc! { "level": level });
    body.push("$readPreference", doc! { "mode": "secondaryPreferred" });
    body.push("maxTimeMS", 8000);
    body.push("$db", "d");
    body.to_raw()
}

fn balances(docs: &[DocBuf]) -> BTreeMap<i64, i64> {
    let of = |d: &DocBuf, name: &str| d.get(name).and_then(|v| v.as_i64());
    docs.iter().filter_map(|d| Some((of(d, "_id")?, of(d, "n")?))).collect()
}

async fn look(c: &mut Caller, bank: &Mutex<Bank>) {
    let level = ["local", "majority", "snapshot"][c.below(3) as usize];
    let at = c.anyone();
    let Some(reply) = c.ask(at, &find("accounts", level)).await.filter(|r| is_done(r)) else { return };
    let found = balances(&docs(&reply).unwrap_or_default());
    let sum: i64 = found.values().sum();
    if sum != 0 {
        lock(bank).problems.push(format!("a {level} read at member {at} sums up to {sum}: {found:?}"));
    }
}

/// What is wrong with the bank at a primary.
pub(crate) async fn check(c: &mut Client, bank: &Mutex<Bank>) -> Vec<String> {
    let mut all = Vec::new();
    for coll in ["accounts", "receipts"] {
        let reply = c.command(&find(coll, "local")).await;
        match reply.ok().as_deref().and_then(docs) {
            Some(found) => all.push(found),
            None => return vec![format!("{coll} cannot be read")],
        }
    }
    judge(&lock(bank), &balances(&all[0]), &all[1])
}

fn judge(bank: &Bank, accounts: &BTreeMap<i64, i64>, receipts: &[DocBuf]) -> Vec<String> {
    let mut problems = bank.problems.clone();
    let mut expected: BTreeMap<i64, i64> = accounts.keys().map(|id| (*id, 0)).collect();
    let mut there = BTreeSet::new();
    for r in receipts {
        let int = |name: &str| r.get(name).and_then(|v| v.as_i64()).unwrap_or(0);
        there.insert(int("_id"));
        *expected.entry(int("from")).or_default() -= int("n");
        *expected.entry(int("to")).or_default() += int("n");
    }
    if expected != *accounts {
        problems.push(format!("accounts {accounts:?} are {expected:?} by their receipts"));
    }
    let lost: Vec<_> = bank.committed.difference(&there).collect();
    if !lost.is_empty() {
        problems.push(format!("receipts {lost:x?} are lost"));
    }
    let back: Vec<_> = bank.unknown.intersection(&there).collect();
    if !back.is_empty() {
        problems.push(format!("transfers {back:x?} were said to be unknown and took place"));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn torn_lost_and_undead_transfers_are_found() {
        let mut bank = Bank::default();
        bank.committed.insert(1);
        bank.unknown.insert(2);
        let receipt = |id: i64| doc! { "_id": id, "from": 0, "to": 1, "n": 5 }.to_raw();
        let wrong = |accounts: &[(i64, i64)], receipts: &[DocBuf]| {
            judge(&bank, &accounts.iter().copied().collect(), receipts).len()
        };
        assert_eq!(wrong(&[(0, -5), (1, 5)], &[receipt(1)]), 0);
        assert_eq!(wrong(&[(0, -5), (1, 0)], &[receipt(1)]), 1, "torn");
        assert_eq!(wrong(&[], &[]), 1, "lost");
        assert_eq!(wrong(&[(0, -10), (1, 10)], &[receipt(1), receipt(2)]), 1, "undead");
    }
}
