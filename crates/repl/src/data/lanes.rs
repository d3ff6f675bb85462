//! Who applies what of a batch: writes about one document go to one worker, in the order of the log. Operations of
//! transactions are writes like others; those of a chain's earlier entries come from this member's own log.

use crate::data::Deps;
use crate::data::applier::Batch;
use pando_base::panics::poisoned;
use pando_base::{Error, HashMap, Result, Timestamp};
use pando_bson::RawDoc;
use pando_catalog::{Catalog, Spread};
use pando_oplog::Meta;
use pando_oplog::entry::{EntryView, OpType};
use pando_oplog::meta::{Kind, hashes};
use pando_storage::Bytes;
use std::sync::{Arc, Mutex};

/// Where one write is told. `op` is an operation's place in the bytes that hold it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Entry { part: u32, at: u32 },
    Operation { part: u32, at: u32, op: u32 },
    Earlier { entry: u32, op: u32 },
}

impl Place {
    /// Writes of one transaction have the same.
    pub(crate) fn entry(self) -> Option<(u32, u32)> {
        match self {
            Place::Entry { part, at } | Place::Operation { part, at, .. } => Some((part, at)),
            Place::Earlier { .. } => None,
        }
    }
}

/// A batch and its lanes, one for each worker.
pub(crate) struct Lanes {
    pub(crate) batch: Arc<Batch>,
    pub(crate) lanes: Vec<Vec<Place>>,
    /// The entries before the end of a chain, oldest first.
    earlier: Vec<Bytes>,
    /// Defines something: not to be spread.
    pub(crate) defines: bool,
}

impl Lanes {
    // tour: apply 5/9
    pub(crate) fn of(catalog: &Catalog, batch: &Arc<Batch>, workers: usize) -> Result<Lanes> {
        let lane = || Vec::with_capacity(batch.ops / workers);
        let lanes = (0..workers).map(|_| lane()).collect();
        let mut all = Lanes { batch: batch.clone(), lanes, earlier: Vec::new(), defines: false };
        let mut spreads = Spreads { catalog, workers, known: HashMap::default() };
        for (part, (chunk, range)) in batch.parts.iter().enumerate() {
            for at in range.clone() {
                let e = &chunk.entries[at];
                let (part, at) = (part as u32, at as u32);
                match e.kind {
                    Kind::Noop => {}
                    Kind::Document | Kind::Alone => {
                        let lane = spreads.lane((e.coll, e.doc), || EntryView::parse(chunk.doc(e)))?;
                        all.lanes[lane].push(Place::Entry { part, at });
                    }
                    Kind::Writes | Kind::Spread => {
                        let entry = EntryView::parse(chunk.doc(e))?;
                        if e.kind == Kind::Spread {
                            all.add_earlier(&entry, &mut spreads)?;
                        }
                        all.add(&entry, &chunk.bytes, &mut spreads, |op| Place::Operation { part, at, op })?;
                    }
                }
            }
        }
        Ok(all)
    }
    fn add_earlier(&mut self, last: &EntryView<'_>, spreads: &mut Spreads<'_>) -> Result<()> {
        for (entry, bytes) in spreads.catalog.earlier_parts(last.doc)?.into_iter().enumerate() {
            let entry = entry as u32;
            let view = EntryView::parse(RawDoc::trusted(&bytes))?;
            self.add(&view, &bytes, spreads, |op| Place::Earlier { entry, op })?;
            self.earlier.push(bytes);
        }
        Ok(())
    }
    fn add(
        &mut self,
        entry: &EntryView<'_>,
        bytes: &[u8],
        spreads: &mut Spreads<'_>,
        place: impl Fn(u32) -> Place,
    ) -> Result<()> {
        for op in entry.inner().into_iter().flatten() {
            let op = op?;
            self.defines |= op.op == OpType::Command;
            let lane = spreads.lane(hashes(&op), || Ok(op))?;
            self.lanes[lane].push(place((op.doc.as_bytes().as_ptr().addr() - bytes.as_ptr().addr()) as u32));
        }
        Ok(())
    }
    /// The only entry of a batch that something is spread of.
    fn last(&self) -> Result<&Meta> {
        let last = self.batch.entries().next_back().map(|(_, e)| e);
        last.ok_or_else(|| Error::internal("a batch without entries"))
    }
    /// From the first to the last entry of a transaction.
    pub(crate) fn span(&self) -> Result<std::ops::RangeInclusive<Timestamp>> {
        let last = self.last()?.op_time.ts;
        let first = self.earlier.first().map(|e| EntryView::parse(RawDoc::trusted(e))).transpose()?;
        Ok(first.map_or(last, |e| e.ts)..=last)
    }
    pub(crate) fn view(&self, place: Place) -> Result<EntryView<'_>> {
        match place {
            Place::Entry { part, at } => {
                let chunk = &self.batch.parts[part as usize].0;
                EntryView::parse(chunk.doc(&chunk.entries[at as usize]))
            }
            Place::Operation { part, at, op } => {
                let chunk = &self.batch.parts[part as usize].0;
                let e = &chunk.entries[at as usize];
                EntryView::parse_operation(RawDoc::trusted(&chunk.bytes[op as usize..]), e.op_time, e.wall)
            }
            Place::Earlier { entry, op } => {
                let (bytes, e) = (&self.earlier[entry as usize], self.last()?);
                EntryView::parse_operation(RawDoc::trusted(&bytes[op as usize..]), e.op_time, e.wall)
            }
        }
    }
}

/// How each collection met so far is spread.
struct Spreads<'c> {
    catalog: &'c Catalog,
    workers: usize,
    known: HashMap<u64, Spread>,
}

impl Spreads<'_> {
    fn lane<'a>(
        &mut self,
        (coll, doc): (u64, u64),
        view: impl FnOnce() -> Result<EntryView<'a>>,
    ) -> Result<usize> {
        if self.workers == 1 {
            return Ok(0);
        }
        let spread = match self.known.get(&coll) {
            Some(known) => *known,
            None => {
                let spread = self.catalog.spread_of(&view()?);
                *self.known.entry(coll).or_insert(spread)
            }
        };
        let hash = if spread == Spread::ByDocument { doc } else { coll };
        Ok((hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % self.workers)
    }
}

/// Lets each lane's work be done, by a worker of its own when there are several, and returns what came of it.
pub(crate) async fn on_workers<T: Send + 'static>(
    deps: &Deps,
    lanes: Arc<Lanes>,
    work: impl Fn(&Deps, &Lanes, &[Place]) -> Result<T> + Clone + Send + 'static,
) -> Result<Vec<T>> {
    if let [only] = &lanes.lanes[..] {
        return Ok(vec![work(deps, &lanes, only)?]);
    }
    let done: Arc<Mutex<Vec<Result<T>>>> = Arc::default();
    let busy = (0..lanes.lanes.len()).filter(|i| !lanes.lanes[*i].is_empty());
    let working: Vec<_> = busy
        .map(|i| {
            let (deps_there, lanes, work, done) = (deps.clone(), lanes.clone(), work.clone(), done.clone());
            deps.env.tasks.offload(Box::new(move || {
                let result = work(&deps_there, &lanes, &lanes.lanes[i]);
                done.lock().unwrap_or_else(poisoned).push(result);
            }))
        })
        .collect();
    let n = working.len();
    for one in working {
        one.await;
    }
    let done = std::mem::take(&mut *done.lock().unwrap_or_else(poisoned));
    if done.len() < n {
        return Err(Error::internal("a worker of the applier panicked"));
    }
    done.into_iter().collect()
}
