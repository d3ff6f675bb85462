//! `append URI WORKERS`: transactions, retryable appends and majority reads on `chaos.lists` through the Rust driver, and a
//! change stream over them, until stdin ends; the stream goes on until it sees the document `end`.
//! Writes what was asked for and what was told to stdout, in the form of `crates/checkers/src/history.rs`.
//! Part of `tests/chaos/drivers.py`.

use mongodb::bson::{Bson, Document, doc};
use mongodb::error::{Result, TRANSIENT_TRANSACTION_ERROR, UNKNOWN_TRANSACTION_COMMIT_RESULT};
use mongodb::options::{Acknowledgment, ClientOptions, ReadConcern, ReadPreference, SelectionCriteria, WriteConcern};
use mongodb::{Client, ClientSession, Collection};
use std::collections::HashMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::io::AsyncReadExt;

/// As in `drivers.py`: lists in use at a time, and for how many seconds.
const LISTS: u64 = 4;
const SPAN_S: u64 = 3;
/// Sessions and streams of this program count from here.
const FIRST: u64 = 101;
const COMMIT_TRIES: Duration = Duration::from_secs(60);
const STREAM: Duration = Duration::from_secs(90);

fn majority() -> WriteConcern {
    WriteConcern::builder().w(Acknowledgment::Majority).w_timeout(Duration::from_secs(20)).build()
}

struct Worker {
    number: u64,
    /// Elements so far.
    n: u64,
    seed: u64,
    lists: Collection<Document>,
    session: ClientSession,
}

impl Worker {
    fn below(&mut self, n: u64) -> u64 {
        self.seed = self.seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.seed >> 33) % n
    }
    fn some_list(&mut self) -> i64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
        (now / SPAN_S * LISTS + self.below(LISTS)) as i64
    }

    async fn read(&mut self, list: i64, anywhere: bool) -> Result<String> {
        let mut find = self.lists.find_one(doc! { "_id": list }).session(&mut self.session);
        if anywhere {
            let near = ReadPreference::SecondaryPreferred { options: None };
            find = find.selection_criteria(SelectionCriteria::ReadPreference(near));
            find = find.read_concern(ReadConcern::majority());
        }
        let found = find.await?.unwrap_or_default();
        let elements = found.get_array("l").map(|l| l.iter().filter_map(whole).collect()).unwrap_or_default();
        Ok(format!(" r:{list}:{}", joined(elements)))
    }
    /// The fact is noted first: whatever happens, it may have been done.
    async fn append(&mut self, list: i64, facts: &mut String, alone: bool) -> Result<()> {
        self.n += 1;
        let element = (self.number * 10_000_000 + self.n) as i64;
        *facts += &format!(" a:{list}:{element}");
        let push = doc! { "$push": { "l": element } };
        let mut update = self.lists.update_one(doc! { "_id": list }, push).upsert(true).session(&mut self.session);
        if alone {
            update = update.write_concern(majority());
        }
        update.await.map(drop)
    }

    async fn body(&mut self, facts: &mut String) -> Result<()> {
        let start = self.session.start_transaction().read_concern(ReadConcern::snapshot());
        start.write_concern(majority()).await?;
        for _ in 0..1 + self.below(4) {
            let list = self.some_list();
            match self.below(2) {
                0 => *facts += &self.read(list, false).await?,
                _ => self.append(list, facts, false).await?,
            }
        }
        Ok(())
    }
    async fn transaction(&mut self) -> (&'static str, String) {
        let mut facts = String::new();
        if self.body(&mut facts).await.is_err() {
            // Without its commit nothing of it may ever be seen, whatever becomes of the abort.
            let _ = self.session.abort_transaction().await;
            return ("fail", facts);
        }
        let until = Instant::now() + COMMIT_TRIES;
        loop {
            match self.session.commit_transaction().await {
                Ok(()) => return ("ok", facts),
                Err(e) if e.contains_label(TRANSIENT_TRANSACTION_ERROR) => return ("fail", facts),
                Err(e) if e.contains_label(UNKNOWN_TRANSACTION_COMMIT_RESULT) && Instant::now() < until => {}
                Err(_) => return ("unknown", facts),
            }
        }
    }
    async fn push(&mut self) -> (&'static str, String) {
        let (list, mut facts) = (self.some_list(), String::new());
        match self.append(list, &mut facts, true).await {
            Ok(()) => ("ok", facts),
            Err(_) => ("unknown", facts),
        }
    }
    async fn look(&mut self) -> Option<(&'static str, String)> {
        let list = self.some_list();
        Some(("ok", self.read(list, true).await.ok()?))
    }

    async fn run(mut self, stop: Arc<AtomicBool>) {
        while !stop.load(SeqCst) {
            let done = match self.below(4) {
                0 | 1 => Some(self.transaction().await),
                2 => Some(self.push().await),
                _ => self.look().await,
            };
            if let Some((outcome, facts)) = done {
                println!("txn {} {outcome}{facts}", self.number);
            }
            let pause = self.below(20);
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
    }
}

/// The Python driver writes small numbers as 32 bits.
fn whole(v: &Bson) -> Option<i64> {
    v.as_i64().or_else(|| v.as_i32().map(i64::from))
}

fn joined(elements: Vec<i64>) -> String {
    elements.iter().map(i64::to_string).collect::<Vec<_>>().join(",")
}

/// Whether the stream came to the end.
async fn watch(lists: Collection<Document>, ready: tokio::sync::oneshot::Sender<()>) -> Result<bool> {
    let mut changes = lists.watch().await?;
    let _ = ready.send(());
    let (mut shown, mut quiet) = (HashMap::<i64, usize>::new(), Instant::now());
    while quiet.elapsed() < STREAM {
        let Some(change) = changes.next_if_any().await? else { continue };
        quiet = Instant::now();
        let key = change.document_key.unwrap_or_default();
        let Ok(list) = key.get_i64("_id").or_else(|_| key.get_i32("_id").map(i64::from)) else { return Ok(true) };
        let known = shown.entry(list).or_default();
        let fields = change.update_description.map(|u| u.updated_fields);
        let new: Vec<Bson> = match (&change.full_document, fields) {
            (_, Some(fields)) => match fields.get_array("l") {
                Ok(whole) => whole[*known..].to_vec(),
                Err(_) => fields.into_iter().map(|(_, v)| v).collect(),
            },
            (Some(doc), None) => doc.get_array("l").cloned().unwrap_or_default(),
            (None, None) => Vec::new(),
        };
        *known += new.len();
        for element in new.iter().filter_map(whole) {
            println!("event {FIRST} {list} {element}");
        }
    }
    Ok(false)
}

async fn run(uri: &str, workers: u64) -> Result<bool> {
    let mut options = ClientOptions::parse(uri).await?;
    options.server_selection_timeout = Some(Duration::from_secs(20));
    let client = Client::with_options(options)?;
    let lists = client.database("chaos").collection::<Document>("lists");
    let (ready, opened) = tokio::sync::oneshot::channel();
    let watching = tokio::spawn(watch(lists.clone(), ready));
    let _ = opened.await;
    println!("# watching");
    let stop = Arc::new(AtomicBool::new(false));
    let mut all = Vec::new();
    for w in 0..workers {
        let session = client.start_session().causal_consistency(true).await?;
        let number = FIRST + w;
        let worker = Worker { number, n: 0, seed: number, lists: lists.clone(), session };
        all.push(tokio::spawn(worker.run(stop.clone())));
    }
    let _ = tokio::io::stdin().read_to_end(&mut Vec::new()).await;
    stop.store(true, SeqCst);
    for worker in all {
        let _ = worker.await;
    }
    watching.await.unwrap_or(Ok(false))
}

#[tokio::main]
async fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [uri, workers] = &words[..] else {
        eprintln!("usage: append URI WORKERS");
        return ExitCode::from(2);
    };
    match run(uri, workers.parse().unwrap_or(1)).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!("the change stream did not come to its end");
            ExitCode::FAILURE
        }
        Err(e) => {
            eprintln!("{e}");
            ExitCode::FAILURE
        }
    }
}
