//! A shard split, straight and through every accident; each broken rule is noticed.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use pando_base::{Error, ErrorCode, OpTime, Result, Timestamp, Uuid};
use pando_bson::{DocBuf, DocBuilder, Document, RawDoc, doc};
use pando_workflows::kit::{Kit, Story, World, notice};
use pando_workflows::shard_split::{
    ABORT_BUILDS, BLOCK, CATCH_UP, EXPIRE, LOOK, NUMBER, SPLIT, ShardSplit, VALIDATE, begin, mutants,
    options, restore,
};
use pando_workflows::{Home, Target, Workflow};
use std::cell::RefCell;
use std::rc::Rc;

const DELAY_MS: i64 = 900_000;
const RECIPIENTS: [&str; 3] = ["a:1", "b:1", "c:1"];

#[derive(Clone, Copy, PartialEq, Debug)]
enum Mood {
    Well,
    /// The configuration cannot be split so.
    Invalid,
    /// The set takes the configuration at the second try.
    Unready,
    /// The answer to the configuration is lost each time.
    Unheard,
    /// A recipient is primary by itself.
    Elected,
}

/// Donor and recipients, as they are.
#[derive(Clone, Debug)]
struct Sets {
    mood: Mood,
    builds_gone: bool,
    blocked: bool,
    caught_up: bool,
    split: bool,
    asked: u32,
    tries: u32,
    primary: Option<usize>,
    noted: bool,
    wrong: Vec<String>,
}

impl Sets {
    fn new(mood: Mood) -> Sets {
        Sets {
            mood,
            builds_gone: false,
            blocked: false,
            caught_up: false,
            split: false,
            asked: 0,
            tries: 0,
            primary: None,
            noted: false,
            wrong: Vec::new(),
        }
    }
    fn must(&mut self, holds: bool, what: &str) {
        if !holds {
            self.wrong.push(what.to_owned());
        }
    }
    fn recipients(b: &mut DocBuilder) {
        b.array("recipients", |list| RECIPIENTS.iter().for_each(|host| _ = list.str(host)));
        b.i64("timeoutMs", 3_600_000);
    }
    fn hear(&mut self, to: &Target, body: &RawDoc) -> Result<DocBuf> {
        let mut b = DocBuilder::new();
        let host = match to {
            Target::Host(host) => RECIPIENTS.iter().position(|known| known == host).expect("a recipient"),
            _ => 0,
        };
        match body.first().expect("a command").name() {
            VALIDATE if self.mood == Mood::Invalid => return Err(Error::bad_value("no such tag")),
            VALIDATE => Sets::recipients(&mut b),
            ABORT_BUILDS => self.builds_gone = true,
            BLOCK => {
                self.must(self.builds_gone, "builds go on in what is blocked");
                self.blocked = true;
                b.timestamp("blockTimestamp", Timestamp::new(50, 1));
            }
            LOOK => {
                b.bool("split", self.split);
                Sets::recipients(&mut b);
            }
            CATCH_UP => self.caught_up = true,
            SPLIT => {
                self.must(self.blocked && self.caught_up, "split before recipients have everything");
                self.tries += 1;
                if self.mood == Mood::Unready && self.tries == 1 {
                    return Err(Error::new(ErrorCode::ConfigurationInProgress, "not yet"));
                }
                self.split = true;
                if self.mood == Mood::Elected {
                    self.primary = Some(1);
                }
                if self.mood == Mood::Unheard {
                    return Err(Error::new(ErrorCode::NetworkTimeout, "lost"));
                }
            }
            "hello" => {
                self.asked += 1;
                // One after the other hears of it.
                let has_left = self.split && self.asked > 3 + host as u32;
                b.str("setName", if has_left { "new" } else { "old" });
                b.bool("isWritablePrimary", self.primary == Some(host));
                b.doc("lastWrite", |d| {
                    d.doc("opTime", |d| {
                        _ = d.timestamp("ts", Timestamp::new(50, [3, 7, 5][host])).i64("t", 2)
                    });
                });
            }
            "replSetStepUp" => {
                self.must(host == 1, "somebody steps up who has less than another one");
                self.must(self.asked > 5, "somebody steps up before all have left");
                self.primary = Some(host);
            }
            "appendOplogNote" => {
                if self.primary != Some(host) {
                    return Err(Error::new(ErrorCode::NotWritablePrimary, "not primary"));
                }
                self.noted = true;
            }
            NUMBER => {
                b.doc("opTime", |d| _ = d.timestamp("ts", Timestamp::new(60, 1)).i64("t", 2));
            }
            EXPIRE => {
                b.date("expireAt", DELAY_MS).i64("afterMs", DELAY_MS);
            }
            other => panic!("no step: {other}"),
        }
        Ok(b.finish())
    }
}

fn new() -> DocBuf {
    begin(&Uuid([9; 16]), &["t1", "t2"], "recipient", "new", "donor")
}

/// Where the first order that begins an action with this text is.
fn first(story: &Story, text: &str) -> Option<usize> {
    story.orders.iter().position(|order| order.contains(text))
}
fn comes_before(story: &Story, one: &str, other: &str) -> Result<(), String> {
    match (first(story, one), first(story, other)) {
        (before, Some(at)) if before.is_none_or(|before| before > at) => Err(format!("{other} before {one}")),
        _ => Ok(()),
    }
}

fn end(story: &Story, sets: &Sets) -> Result<(), String> {
    if let Some(wrong) = sets.wrong.first() {
        return Err(wrong.clone());
    }
    let checkpoint = |state: &str| format!("String(\"{state}\")");
    comes_before(story, &checkpoint("aborting index builds"), ABORT_BUILDS)?;
    for step in [CATCH_UP, SPLIT] {
        comes_before(story, &checkpoint("blocking"), step)?;
    }
    let committed = first(story, &checkpoint("committed")).is_some();
    let aborted = first(story, &checkpoint("aborted")).is_some();
    if committed && (!sets.noted || !sets.split) {
        return Err("committed without a new set that has everything".into());
    }
    if aborted && sets.split {
        return Err("aborted, and the recipients have left".into());
    }
    if story.world.is_forgotten() {
        if committed == aborted {
            return Err("it ends without one decision".into());
        }
        if !story.world.rests.contains(&DELAY_MS) {
            return Err("it is forgotten at once".into());
        }
        for decision in ["committed", "aborted"] {
            if first(story, &checkpoint(decision)).is_some() {
                comes_before(story, &checkpoint(decision), EXPIRE)?;
            }
        }
    }
    match (story.is_straight(), sets.mood) {
        (true, Mood::Invalid) if !aborted => Err("what is not valid is not aborted".into()),
        (true, mood) if mood != Mood::Invalid && !committed => Err("it is not committed".into()),
        _ => Ok(()),
    }
}

fn every_run() -> Result<usize, String> {
    let mut runs = 0;
    for mood in [Mood::Well, Mood::Invalid, Mood::Unready, Mood::Unheard, Mood::Elected] {
        let sets = RefCell::new(Rc::new(RefCell::new(Sets::new(mood))));
        let world = || {
            let new = Rc::new(RefCell::new(Sets::new(mood)));
            *sets.borrow_mut() = new.clone();
            World::with_peers(Box::new(move |to, body| new.borrow_mut().hear(to, body)))
        };
        let kit = Kit {
            home: Home::Primary,
            make: &|| restore(&new()).expect("a split"),
            restore: Some(restore),
            world: &world,
            end: &|story| end(story, &sets.borrow().borrow()),
            orders: 3,
        };
        runs += kit.run_all().map_err(|e| format!("{mood:?}: {e}"))?;
    }
    Ok(runs)
}

#[test]
fn a_set_splits_or_does_not_whatever_happens() {
    let runs = every_run().unwrap();
    println!("{runs} runs");
    assert!(runs > 5000, "{runs} runs only");
}

#[test]
fn every_broken_rule_is_noticed() {
    for (mutant, noticed) in notice(mutants::Mutant::ALL, mutants::activate, every_run) {
        println!("{mutant:?}: {}", noticed.as_deref().unwrap_or("-"));
        assert!(noticed.is_some(), "nobody notices {mutant:?}");
    }
}

/// SV-DOC-3, SV-DOC-4.
#[test]
fn documents_say_what_their_state_needs_and_nothing_else() {
    let (at, decided) = (Timestamp::new(5, 1), OpTime::new(Timestamp::new(6, 1), 2));
    let state = |state: &str, block: bool, is_decided: bool, why: bool, expires: bool| {
        let mut b = DocBuilder::new();
        b.uuid("_id", &[9; 16])
            .str("recipientSetName", "new")
            .str("recipientTagName", "tag")
            .str("donorSetName", "donor")
            .str("state", state);
        b.array("tenantIds", |list| _ = list.str("t1"));
        if block {
            b.timestamp("blockTimestamp", at);
        }
        if is_decided {
            b.doc("commitOrAbortOpTime", |d| _ = d.timestamp("ts", decided.ts).i64("t", decided.t));
        }
        if why {
            b.raw_doc("abortReason", &doc! { "code": 2, "errmsg": "no" }.to_raw());
        }
        if expires {
            b.date("expireAt", 77);
        }
        b.finish()
    };
    for (name, block, is_decided, why, expires) in [
        ("uninitialized", false, false, false, false),
        ("aborting index builds", false, false, false, false),
        ("blocking", true, false, false, false),
        ("committed", true, true, false, false),
        ("committed", true, true, false, true),
        ("aborted", false, true, true, false),
        ("aborted", true, true, true, true),
    ] {
        let doc = state(name, block, is_decided, why, expires);
        let split = ShardSplit::of(&doc).unwrap_or_else(|e| panic!("{doc}: {e}"));
        let again = split.document().unwrap();
        let sorted = |d: &RawDoc| {
            let mut all: Vec<String> = Document::from(d).iter().map(|(k, v)| format!("{k}: {v:?}")).collect();
            all.sort();
            all
        };
        assert_eq!(sorted(&again), sorted(&doc));
    }
    for (name, block, is_decided, why, expires) in [
        ("uninitialized", true, false, false, false),
        ("aborting index builds", true, false, false, false),
        ("blocking", false, false, false, false),
        ("blocking", true, true, false, false),
        ("blocking", true, false, true, false),
        ("blocking", true, false, false, true),
        ("committed", true, false, false, false),
        ("committed", false, true, false, false),
        ("committed", true, true, true, false),
        ("aborted", false, true, false, false),
        ("aborted", false, false, true, false),
        ("split", true, true, false, false),
    ] {
        let doc = state(name, block, is_decided, why, expires);
        assert_eq!(ShardSplit::of(&doc).err().map(|e| e.code), Some(ErrorCode::BadValue), "{doc}");
    }
    // Whoever joins asks for the same.
    let other = begin(&Uuid([9; 16]), &["t1"], "recipient", "new", "donor");
    assert_ne!(options(&new()), options(&other));
    assert_eq!(options(&new()), options(&begin(&Uuid([1; 16]), &["t1", "t2"], "recipient", "new", "donor")));
}
