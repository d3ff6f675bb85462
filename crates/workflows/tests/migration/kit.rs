//! Each side through every accident of the kit, with another side that does as it is told.

use crate::world::{DONOR, RECIPIENT, SHARDS, first_request};
use pando_base::{Error, ErrorCode, Result, Timestamp, Uuid};
use pando_bson::{DocBuf, DocBuilder, RawDoc, doc};
use pando_workflows::kit::{Kit, Story, World};
use pando_workflows::migration::{self, IS_OVER};
use pando_workflows::{Home, LocalWrite, Target, Workflow, move_range, receive_range};
use std::cell::RefCell;
use std::rc::Rc;

/// What everybody else says.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Mood {
    Willing,
    RecipientFails,
    ConfigRefuses,
    /// It is written, and the answer is a refusal.
    ConfigCommitsAndComplains,
    DonorSaysNo,
}

struct Others {
    mood: Mood,
    owner: usize,
    polls: u32,
}

fn refuse() -> Result<DocBuf> {
    Err(Error::new(ErrorCode::OperationFailed, "the model refuses"))
}

impl Others {
    fn hear(&mut self, body: &RawDoc) -> Result<DocBuf> {
        let first = body.first().expect("a command");
        match first.name() {
            move_range::LOOK => {
                let mut b = DocBuilder::new();
                let bounds = doc! { "min": { "k": 0 }, "max": { "k": 10 }, "version": { "v": 1 } }.to_raw();
                b.uuid("collectionUuid", &Uuid([7; 16]).0).raw_doc("keyPattern", &doc! { "k": 1 }.to_raw());
                b.raw_doc("chunk", &bounds).raw_doc("collectionVersion", &doc! { "v": 1 }.to_raw());
                Ok(b.finish())
            }
            move_range::NUMBER => {
                let mut b = DocBuilder::new();
                b.timestamp("timestamp", Timestamp::new(50, 1));
                Ok(b.finish())
            }
            migration::STATUS if self.mood == Mood::RecipientFails => Ok(doc! { "active": false }.to_raw()),
            migration::STATUS => {
                self.polls += 1;
                let state = if self.polls > 1 { "steady" } else { "clone" };
                Ok(doc! { "active": true, "state": state }.to_raw())
            }
            "_configsvrCommitChunkMigration" if self.mood == Mood::ConfigRefuses => refuse(),
            "_configsvrCommitChunkMigration" => {
                self.owner = RECIPIENT;
                if self.mood == Mood::ConfigCommitsAndComplains { refuse() } else { Ok(DocBuf::default()) }
            }
            move_range::RESOLVE | receive_range::RESOLVE => {
                Ok(doc! { "moved": (self.owner == RECIPIENT) }.to_raw())
            }
            receive_range::CATCH_UP => Ok(doc! { "empty": true }.to_raw()),
            // The donor commits at last.
            IS_OVER => {
                self.polls += 1;
                if self.polls == 2 && self.mood != Mood::DonorSaysNo {
                    self.owner = RECIPIENT;
                }
                Ok(doc! { "over": (self.polls > 1) }.to_raw())
            }
            _ => Ok(DocBuf::default()),
        }
    }
}

/// Of the last deletion task that was written: whether it is pending; `None`: there is none.
fn task(w: &World) -> Option<bool> {
    let docs = w.documents(&migration::deletions());
    docs.first().map(|doc| doc.get("pending").is_some())
}

fn end(story: &Story, others: &Others, side: usize) -> Result<(), String> {
    let w = &story.world;
    let moved = others.owner == RECIPIENT;
    let wanted = match (side, moved) {
        (DONOR, true) | (RECIPIENT, false) => Some(false),
        _ => None,
    };
    let nothing_came = side == RECIPIENT
        && !w.calls.iter().any(|c| c.body.first().is_some_and(|e| e.name() == receive_range::MAKE));
    if task(w) != wanted && !(nothing_came && task(w).is_none()) {
        return Err(format!("moved: {moved}, and the task is {:?}", task(w)));
    }
    for call in w.calls.iter().filter(|c| c.to == Target::ConfigServers) {
        if call.body.first().is_some_and(|e| e.name() == "_configsvrCommitChunkMigration")
            && !call.sections.values().any(|(_, reads)| *reads)
        {
            return Err("a commit is sent while reads go on".into());
        }
    }
    if let Some(r) = w.log.iter().find(|r| matches!(r.write, LocalWrite::DropCollection { .. })) {
        return Err(format!("a migration drops something: {:?}", r.write));
    }
    match story.last() {
        Some(Ok(_)) if moved => Ok(()),
        Some(Err(_)) if !moved => Ok(()),
        None if story.ended_unheard() => Ok(()),
        other => Err(format!("moved: {moved}, and whoever waits hears {other:?}")),
    }
}

fn run(side: usize, mood: Mood) -> usize {
    let all: RefCell<Rc<RefCell<Others>>> =
        RefCell::new(Rc::new(RefCell::new(Others { mood, owner: DONOR, polls: 0 })));
    let world = || {
        let new = Rc::new(RefCell::new(Others { mood, owner: DONOR, polls: 0 }));
        *all.borrow_mut() = new.clone();
        World::with_peers(Box::new(move |_, body| new.borrow_mut().hear(body)))
    };
    let (restore, make): (pando_workflows::Restore, fn() -> Box<dyn Workflow>) = match side {
        DONOR => (move_range::restore, || move_range::restore(&first_request()).expect("a request")),
        _ => (receive_range::restore, || receive_range::restore(&first_request()).expect("a request")),
    };
    let kit = Kit {
        home: Home::Primary,
        make: &make,
        restore: Some(restore),
        world: &world,
        end: &|story| end(story, &all.borrow().borrow(), side),
        orders: 3,
    };
    kit.run_all().unwrap_or_else(|e| panic!("{} {mood:?}: {e}", SHARDS[side]))
}

#[test]
fn each_side_comes_to_an_end_whatever_happens_to_it() {
    let mut runs = 0;
    for mood in [Mood::Willing, Mood::RecipientFails, Mood::ConfigRefuses, Mood::ConfigCommitsAndComplains] {
        runs += run(DONOR, mood);
    }
    for mood in [Mood::Willing, Mood::DonorSaysNo] {
        runs += run(RECIPIENT, mood);
    }
    println!("{runs} runs");
    assert!(runs > 5000, "{runs} runs only");
}
