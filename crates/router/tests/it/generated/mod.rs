//! Reads, writes and pipelines by chance, on one collection that lies on one shard and on others that lie on three by different
//! keys: all answer the same, through two routers of which one has an old view, while chunks are split and merged and collections
//! are dropped and made anew; and once more while chunks move from shard to shard all the time.
//!
//! `GENERATED_WATCH_FROM=n` looks at everything after each operation from that one on. `GENERATED_OPERATIONS=n` does so many of them (each on every collection), `GENERATED_SEED=n` begins elsewhere.

#![allow(clippy::unwrap_used)]

mod chance;
mod documents;
mod movers;
mod operations;
mod places;
mod reads;
mod stages;
mod windows;
mod writes;

use chance::Chance;
use movers::Mover;
use operations::{Operation, Told, operation};
use pando_bson::{Bson, Document};
use pando_testserver::{Client, Cluster, run};
use places::{ALL, KEYED, Place};
use std::collections::BTreeMap;

const OPERATIONS: u64 = 400;
/// The same while chunks move.
const OPERATIONS_AMID_MOVES: u64 = 150;
/// So many operations lie between two changes of chunks.
const CHUNKS_EVERY: u64 = 25;
/// And between two looks at everything.
const CONTENTS_EVERY: u64 = 20;
/// And between two new beginnings.
const ANEW_EVERY: u64 = 1500;

/// What has to be the same of an answer.
async fn answer(c: &mut Client, command: Document, told: Told) -> String {
    let reply = match command.get("cursor").is_some() || command.get("find").is_some() {
        true => return rows(c, command, told).await,
        false => c.run(command).await,
    };
    let kept = ["ok", "code", "n", "nModified", "value", "upserted", "lastErrorObject"];
    let bulk = ["nErrors", "nInserted", "nMatched", "nUpserted", "nDeleted"];
    let fields = kept.iter().chain(&bulk).filter_map(|f| Some(format!("{f}: {:?}", reply.get(f)?)));
    let mut out: Vec<String> = fields.collect();
    if let Some(values) = reply.get("values").and_then(Bson::as_array) {
        let mut values: Vec<String> = values.iter().map(|v| format!("{v:?}")).collect();
        values.sort();
        out.push(values.join(" "));
    }
    let errors = reply.get("writeErrors").and_then(Bson::as_array).unwrap_or_default();
    let batch = reply.get("cursor").and_then(Bson::as_doc).and_then(|c| c.get("firstBatch"));
    let batch = batch.and_then(Bson::as_array).unwrap_or_default();
    for e in errors.iter().chain(batch).filter_map(Bson::as_doc) {
        let kept = ["ok", "index", "idx", "code", "n", "nModified", "upserted"];
        let shown = kept.iter().filter_map(|f| Some(format!("{f}: {:?}", e.get(f)?)));
        out.push(shown.collect::<Vec<_>>().join(" "));
    }
    out.join(", ")
}

fn shown(row: &Bson, told: Told) -> String {
    match row {
        Bson::Document(d) if told == Told::FieldsInAnyOrder => {
            let mut fields: Vec<String> = d.iter().map(|(name, v)| format!("{name}: {v:?}")).collect();
            fields.sort();
            fields.join(", ")
        }
        row => format!("{row:?}"),
    }
}

/// All batches of a cursor; what went wrong where there is none.
async fn rows(c: &mut Client, command: Document, told: Told) -> String {
    let (name, coll) = command.iter().next().map(|(n, v)| (n.to_owned(), v.clone())).unwrap();
    let mut reply = c.run(command).await;
    let mut out: Vec<String> = Vec::new();
    loop {
        let Some(cursor) = reply.get("cursor").and_then(Bson::as_doc) else {
            return format!("{name}: code: {:?}", reply.get("code"));
        };
        let batch = cursor.get("firstBatch").or(cursor.get("nextBatch")).and_then(Bson::as_array);
        out.extend(batch.unwrap_or_default().iter().map(|row| shown(row, told)));
        let id = cursor.get("id").cloned().unwrap();
        if id.as_i64() == Some(0) {
            break;
        }
        let mut more = Document::new();
        more.push("getMore", id);
        more.push("collection", coll.clone());
        reply = c.run(more).await;
    }
    match told {
        Told::InOrder | Told::FieldsInAnyOrder => {}
        Told::InAnyOrder => out.sort(),
        Told::HowMany => return format!("{} rows", out.len()),
    }
    out.join("\n")
}

/// Does an operation at a place. What it does there is the same as everywhere, but for names.
async fn at(c: &mut Client, chance: &mut Chance, place: &Place, mover: Option<&Mover>) -> (String, String) {
    let Operation { commands, told, .. } = operation(chance, place);
    let (mut shown, mut got) = (String::new(), String::new());
    // What all shards are asked for may meet a document twice or not at all while it moves, as in MongoDB.
    let still = mover.filter(|_| commands.iter().any(movers::meets_all_shards));
    if let Some(mover) = still {
        mover.pause().await;
    }
    for command in commands {
        shown.push_str(&format!("{command:?}\n"));
        let one = answer(c, command, told).await;
        got.push_str(&one);
        got.push_str("\n--\n");
    }
    still.into_iter().for_each(Mover::go_on);
    (shown, got)
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(otherwise)
}

/// All places of a kind hold the same documents: a write that answered as elsewhere has done the same, too.
async fn compare_contents(i: u64, c: &mut Client, places: &[Place]) {
    let mut wanted: Option<Vec<String>> = None;
    for place in places {
        let got = rows(c, operations::everything(place.name), Told::FieldsInAnyOrder).await;
        let got: Vec<String> = got.split('\n').map(str::to_owned).collect();
        let Some(wanted) = &wanted else {
            wanted = Some(got);
            continue;
        };
        let other = |a: &[String], b: &[String]| a.iter().find(|row| !b.contains(row)).cloned();
        let (lacks, has) = (other(wanted, &got), other(&got, wanted));
        assert!(
            lacks.is_none() && has.is_none(),
            "after operation {i} {} has {has:?} for {lacks:?}",
            place.name
        );
    }
}

#[derive(Default)]
struct Tally {
    kinds: BTreeMap<&'static str, u64>,
    failures: u64,
    empty: u64,
    chunks: u64,
}

async fn compare(
    i: u64,
    routers: &mut [Client],
    chance: &mut Chance,
    tally: &mut Tally,
    mover: Option<&Mover>,
) {
    let through = chance.below(routers.len() as u64) as usize;
    let places: &[Place] = if chance.below(6) == 0 { &KEYED } else { &ALL };
    let begin = chance.clone();
    let mut wanted: Option<String> = None;
    for place in places {
        // The same for each, but for its name.
        *chance = begin.clone();
        let (shown, got) = at(&mut routers[through], chance, place, mover).await;
        match &wanted {
            None => {
                let kind = operation(&mut begin.clone(), place).kind;
                *tally.kinds.entry(kind).or_default() += 1;
                tally.failures += u64::from(got.contains("code: "));
                tally.empty += u64::from(got == "\n--\n");
                wanted = Some(got);
            }
            Some(wanted) => assert_eq!(&got, wanted, "operation {i} through router {through}: {shown}"),
        }
    }
}

#[test]
fn whatever_is_done_to_collections_on_three_shards_comes_out_as_on_one() {
    run(compared(number("GENERATED_OPERATIONS", OPERATIONS), false));
}

/// `GENERATED_AMID_MOVES=n` does so many.
#[test]
fn whatever_is_done_while_chunks_move_comes_out_as_on_one_shard() {
    run(compared(number("GENERATED_AMID_MOVES", OPERATIONS_AMID_MOVES), true));
}

async fn compared(all: u64, moves: bool) {
    {
        let cluster = Cluster::of(3, 2).await;
        let mut routers = [cluster.router(0).await, cluster.router(1).await];
        places::zones(&mut routers[0]).await;
        let mut chance = Chance::new(number("GENERATED_SEED", 1));
        places::create(&mut routers[0], &cluster).await;
        places::fill(&mut routers[1], &mut chance).await;
        let mut tally = Tally::default();
        let mover = match moves {
            true => Some(Mover::start(&cluster).await),
            false => None,
        };
        for i in 0..all {
            if i % CHUNKS_EVERY == CHUNKS_EVERY - 1 {
                let by = chance.below(2) as usize;
                tally.chunks += u64::from(places::change_chunks(&mut routers[by], &mut chance, moves).await);
            }
            if i % ANEW_EVERY == ANEW_EVERY - 1 {
                let by = chance.below(2) as usize;
                places::drop_all(&mut routers[by]).await;
                places::create(&mut routers[by], &cluster).await;
                places::fill(&mut routers[1 - by], &mut chance).await;
            }
            compare(i, &mut routers, &mut chance, &mut tally, mover.as_ref()).await;
            if i % CONTENTS_EVERY == CONTENTS_EVERY - 1 || i >= number("GENERATED_WATCH_FROM", u64::MAX) {
                compare_contents(i, &mut routers[0], &ALL).await;
                compare_contents(i, &mut routers[1], &KEYED).await;
            }
        }
        println!(
            "{all} operations: {:?}\n{} have failures, {} nothing, {} changes of chunks",
            tally.kinds, tally.failures, tally.empty, tally.chunks
        );
        if let Some(mover) = mover {
            let moved = mover.end().await;
            println!("{moved} moves");
            assert!(moved > all / 10, "{moved} moves only");
        }
        // A generator that says nothing new compares nothing.
        assert!(tally.failures < all / 3 && tally.empty < all / 2, "most operations do something");
        cluster.shut_down().await;
    }
}
