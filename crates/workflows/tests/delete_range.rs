//! The deletion of a range, straight and through every accident; each broken rule is noticed.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use pando_base::{Result, Uuid};
use pando_bson::{DocBuf, DocBuilder, RawDoc, doc};
use pando_workflows::delete_range::{AWAIT_READERS, DELETE, JUDGE, NEXT, mutants, restore};
use pando_workflows::kit::{Heard, Kit, Story, World, notice};
use pando_workflows::{Home, Workflow};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::Bound::{Excluded, Unbounded};
use std::rc::Rc;

const DELAY_MS: i64 = 900_000;

#[derive(Clone, Copy, PartialEq, Debug)]
enum Range {
    Orphaned,
    /// Nobody ever saw it here.
    NeverSeen,
    Owned,
    OfNoCollection,
}

#[derive(Clone, Debug)]
struct Node {
    range: Range,
    documents: BTreeSet<i64>,
    helpings: u32,
}

impl Node {
    fn hear(&mut self, body: &RawDoc) -> Result<DocBuf> {
        Ok(match body.first().expect("a step").name() {
            AWAIT_READERS => doc! { "delayMs": DELAY_MS, "pauseMs": 20 }.to_raw(),
            JUDGE => {
                let (owned, gone) = (self.range == Range::Owned, self.range == Range::OfNoCollection);
                doc! { "owned": owned, "gone": gone }.to_raw()
            }
            DELETE => {
                self.helpings += 1;
                // One comes to lie where it has been.
                if self.helpings == 2 {
                    self.documents.insert(-1);
                }
                let behind = body.get(NEXT).and_then(|v| v.as_doc()).and_then(|n| n.get("at")?.as_i64());
                let helping = self.documents.range((behind.map_or(Unbounded, Excluded), Unbounded)).take(2);
                let helping: Vec<i64> = helping.copied().collect();
                self.documents.retain(|d| !helping.contains(d));
                match *helping {
                    [_, last] => doc! { "done": false, "next": { "at": last } }.to_raw(),
                    _ => doc! { "done": true }.to_raw(),
                }
            }
            other => panic!("no step: {other}"),
        })
    }
}

fn task(range: Range) -> Box<dyn Workflow> {
    let mut b = DocBuilder::new();
    let bounds = doc! { "min": { "k": 0 }, "max": { "k": 10 } }.to_raw();
    b.uuid("_id", &Uuid([9; 16]).0).str("nss", "db.c").uuid("collectionUuid", &Uuid([7; 16]).0);
    b.str("donorShardId", "a").str("recipientShardId", "b").raw_doc("range", &bounds);
    b.raw_doc("keyPattern", &doc! { "k": 1 }.to_raw());
    b.str("whenToClean", if range == Range::NeverSeen { "now" } else { "delayed" });
    restore(&b.finish()).expect("a task")
}

fn is(call: &Heard, step: &str) -> bool {
    call.body.first().is_some_and(|e| e.name() == step)
}

fn end(story: &Story, node: &Node) -> Result<(), String> {
    let calls: Vec<&Heard> = story.world.calls.iter().collect();
    for (i, call) in calls.iter().enumerate().filter(|(_, call)| is(call, JUDGE)) {
        let before = calls[..i].iter().rev().find(|c| !is(c, JUDGE)).ok_or("nobody asked for readers")?;
        if !is(before, AWAIT_READERS) {
            return Err("it goes on without asking for readers".into());
        }
        if node.range != Range::NeverSeen && call.at_ms < before.at_ms + DELAY_MS {
            return Err("readers of secondaries have no time".into());
        }
    }
    for call in calls.iter().filter(|c| is(c, DELETE)) {
        if call.locked.is_empty() {
            return Err("several ranges may be deleted at once".into());
        }
        if matches!(node.range, Range::Owned | Range::OfNoCollection) {
            return Err("what is owned is deleted".into());
        }
    }
    let done = node.documents.is_empty() || matches!(node.range, Range::Owned | Range::OfNoCollection);
    if done { Ok(()) } else { Err(format!("{:?} are left", node.documents)) }
}

fn every_run() -> Result<usize, String> {
    let mut runs = 0;
    for range in [Range::Orphaned, Range::NeverSeen, Range::Owned, Range::OfNoCollection] {
        let node =
            RefCell::new(Rc::new(RefCell::new(Node { range, documents: (0..5).collect(), helpings: 0 })));
        let world = || {
            let new = Rc::new(RefCell::new(Node { range, documents: (0..5).collect(), helpings: 0 }));
            *node.borrow_mut() = new.clone();
            World::with_peers(Box::new(move |_, body| new.borrow_mut().hear(body)))
        };
        let kit = Kit {
            home: Home::Primary,
            make: &|| task(range),
            restore: Some(restore),
            world: &world,
            end: &|story| end(story, &node.borrow().borrow()),
            orders: 1,
        };
        runs += kit.run_all().map_err(|e| format!("{range:?}: {e}"))?;
    }
    Ok(runs)
}

#[test]
fn a_range_goes_whatever_happens_and_only_if_it_is_anothers() {
    let runs = every_run().unwrap();
    println!("{runs} runs");
    assert!(runs > 1000, "{runs} runs only");
}

#[test]
fn every_broken_rule_is_noticed() {
    for (mutant, noticed) in notice(mutants::Mutant::ALL, mutants::activate, every_run) {
        println!("{mutant:?}: {}", noticed.as_deref().unwrap_or("-"));
        assert!(noticed.is_some(), "nobody notices {mutant:?}");
    }
}
