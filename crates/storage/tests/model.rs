//! Random work against a plain model: overlapping units, holes, checkpoints, moves of oldest and stable, reads at
//! any timestamp, restarts, lost power, rollback. The same steps run on both backends.
#![allow(clippy::unwrap_used)]

use pando_base::{ErrorCode, Timestamp};
use pando_bson::{DocBuilder, RawDoc, Value};
use pando_env::{Disk, Rng};
use pando_storage::testing::{self, FaultyDisk, ManualClock, RealDisk, SeededRng};
use pando_storage::{Backend, Dir, Ident, IdentKind, KeyCut, Options, ReadAt, Slot, Storage, Txn};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

type Key = (u32, Vec<u8>);
type Rows = BTreeMap<Key, Vec<u8>>;
type Writes = Vec<(Key, Option<Vec<u8>>)>;

/// Everything ever committed, by timestamp.
#[derive(Default)]
struct Model {
    commits: BTreeMap<u64, Writes>,
    local: Rows,
}

impl Model {
    fn at(&self, sees: impl Fn(u64) -> bool) -> Rows {
        let mut rows = Rows::new();
        for (_, writes) in self.commits.iter().filter(|(ts, _)| sees(**ts)) {
            for (key, value) in writes {
                match value {
                    Some(v) => rows.insert(key.clone(), v.clone()),
                    None => rows.remove(key),
                };
            }
        }
        rows
    }
}

struct Open {
    txn: Txn,
    slots: Vec<Slot>,
    expected: Rows,
    writes: Writes,
    /// Committed since this unit began.
    unseen: BTreeSet<u64>,
}

struct World {
    faulty: Option<Arc<FaultyDisk>>,
    disk: Arc<dyn Disk>,
    clock: Arc<ManualClock>,
    backend: Backend,
    cut: KeyCut,
    seed: u64,
    storage: Option<Storage>,
    idents: Vec<Ident>,
    local_ident: Ident,
    model: Model,
    open: Vec<Open>,
    readers: Vec<(Txn, Rows)>,
    rng: SeededRng,
    reopened: u64,
    /// How far a checkpoint went past stable.
    ahead: u64,
}

/// Every third world is encrypted.
fn options(backend: Backend, key_cut: KeyCut, seed: u64, disk: &dyn Disk) -> Options {
    let keys = (seed % 3 == 1).then(|| testing::keys_of(disk).unwrap());
    Options {
        keys,
        backend,
        key_cut,
        cache_bytes: 1 << 20,
        memtable_bytes: 1 << 20,
        oplog_bytes_max: 256 << 10,
        ..Options::default()
    }
}

fn entry(writes: &Writes, ts: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    for ((i, k), v) in writes {
        bytes.extend_from_slice(&i.to_le_bytes());
        bytes.extend_from_slice(&(k.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&v.as_ref().map_or(u32::MAX, |v| v.len() as u32).to_le_bytes());
        bytes.extend_from_slice(k);
        bytes.extend_from_slice(v.as_deref().unwrap_or_default());
    }
    let mut doc = DocBuilder::new();
    doc.timestamp("ts", Timestamp(ts)).binary("w", 0, &bytes);
    doc.finish().into_bytes()
}

fn decode(entry: &[u8]) -> Writes {
    let Some(Value::Binary { bytes, .. }) = RawDoc::trusted(entry).get("w") else {
        panic!("no writes in entry")
    };
    let mut b = bytes;
    let mut writes = Writes::new();
    while !b.is_empty() {
        let word = |at: usize| u32::from_le_bytes(b[at..at + 4].try_into().unwrap());
        let (i, k, v) = (word(0), word(4) as usize, word(8));
        let n = if v == u32::MAX { 0 } else { v as usize };
        writes.push(((i, b[12..12 + k].to_vec()), (v != u32::MAX).then(|| b[12 + k..12 + k + n].to_vec())));
        b = &b[12 + k + n..];
    }
    writes
}

impl World {
    fn new(backend: Backend, cut: KeyCut, seed: u64) -> World {
        let faulty = (backend == Backend::Mem).then(|| Arc::new(FaultyDisk::new(seed)));
        let disk: Arc<dyn Disk> = match &faulty {
            Some(d) => d.clone(),
            None => Arc::new(RealDisk::fresh(&format!("model-{seed}"))),
        };
        let (env, clock) = testing::env_on(disk.clone(), seed);
        let storage = Storage::open(env, options(backend, cut, seed, &*disk)).unwrap();
        let idents = vec![
            storage.create_ident(IdentKind::Records).unwrap(),
            storage.create_ident(IdentKind::Index).unwrap(),
            storage.create_ident(IdentKind::Records).unwrap(),
        ];
        let local_ident = storage.create_ident(IdentKind::Records).unwrap();
        let rng = SeededRng::new(seed);
        let (model, open, readers) = (Model::default(), Vec::new(), Vec::new());
        let storage = Some(storage);
        World {
            faulty,
            disk,
            clock,
            backend,
            cut,
            seed,
            storage,
            idents,
            local_ident,
            model,
            open,
            readers,
            rng,
            reopened: 0,
            ahead: 0,
        }
    }

    fn s(&self) -> &Storage {
        self.storage.as_ref().expect("open between steps")
    }

    fn key(&self) -> Key {
        let ident = self.idents[self.rng.below(3) as usize];
        // Keys of different lengths, with zeros, some a prefix of others.
        let n = self.rng.below(40);
        let key = match n % 4 {
            0 => vec![n as u8],
            1 => vec![n as u8, 0],
            2 => vec![n as u8 - 2, 0, 0xff, n as u8],
            _ => format!("a-longer-key-that-is-not-inline-{n}").into_bytes(),
        };
        (ident.0, key)
    }

    fn begin(&mut self) {
        if self.open.len() >= 4 {
            return;
        }
        let txn = self.s().begin(ReadAt::Latest).unwrap();
        let expected = self.seen_now();
        let n = self.rng.below(3) as usize;
        let slots = if n > 0 { self.s().log().reserve(n).collect() } else { Vec::new() };
        self.open.push(Open { txn, slots, expected, writes: Writes::new(), unseen: BTreeSet::new() });
    }
    /// What a new `Latest` snapshot must see: all commits (none is half done between steps).
    fn seen_now(&self) -> Rows {
        self.model.at(|_| true)
    }

    fn write(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let key = self.key();
        let value = (self.rng.below(4) > 0).then(|| {
            let n = self.rng.below(60) as usize;
            vec![self.rng.next_u64() as u8; n]
        });
        let at = self.rng.below(self.open.len() as u64) as usize;
        let taken =
            self.open.iter().enumerate().any(|(i, o)| i != at && o.writes.iter().any(|(k, _)| *k == key));
        let o = &mut self.open[at];
        let own = o.writes.iter().any(|(k, _)| *k == key);
        let changed_since =
            !own && o.unseen.iter().any(|ts| self.model.commits[ts].iter().any(|(k, _)| *k == key));
        let ident = Ident(key.0);
        let done = match &value {
            Some(v) if !o.expected.contains_key(&key) && !own => o.txn.insert(ident, &key.1, v),
            Some(v) => o.txn.put(ident, &key.1, v),
            None => o.txn.delete(ident, &key.1),
        };
        match done {
            Ok(()) => {
                assert!(!taken, "two open units write {key:?}");
                assert!(!changed_since, "{key:?} changed since the snapshot");
                o.writes.push((key, value));
            }
            Err(e) => {
                assert_eq!(e.code, ErrorCode::WriteConflict);
                assert!(taken || changed_since, "a conflict on {key:?} without a reason");
                self.open.remove(at);
            }
        }
    }

    fn finish(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let at = self.rng.below(self.open.len() as u64) as usize;
        let mut o = self.open.remove(at);
        let mut rows = o.expected.clone();
        for (k, v) in &o.writes {
            match v {
                Some(v) => rows.insert(k.clone(), v.clone()),
                None => rows.remove(k),
            };
        }
        self.compare(&o.txn, &rows, "own writes over the snapshot");
        if o.writes.is_empty() || self.rng.below(5) == 0 {
            return;
        }
        let slot = o.slots.pop().unwrap_or_else(|| self.s().log().reserve_one());
        let ts = slot.ts().0;
        o.txn.log_entry(slot, RawDoc::trusted(&entry(&o.writes, ts)));
        // An open unit or reader that began before must not see it, whatever its timestamp.
        for other in &mut self.open {
            other.unseen.insert(ts);
        }
        assert_eq!(o.txn.commit().unwrap().0, ts);
        self.model.commits.insert(ts, o.writes);
    }

    fn compare(&self, txn: &Txn, rows: &Rows, what: &str) {
        for ident in &self.idents {
            let wanted: Vec<_> =
                rows.iter().filter(|((i, _), _)| *i == ident.0).map(|((_, k), v)| (k, v)).collect();
            for dir in [Dir::Forward, Dir::Backward] {
                let mut c = txn.scan(*ident, Bound::Unbounded, Bound::Unbounded, dir).unwrap();
                let mut got = Vec::new();
                while let Some((k, v)) = c.next().unwrap() {
                    got.push((k.to_vec(), v.to_vec()));
                }
                if dir == Dir::Backward {
                    got.reverse();
                }
                let same = got.len() == wanted.len()
                    && got.iter().zip(&wanted).all(|((k, v), (wk, wv))| k == *wk && v == *wv);
                assert!(
                    same,
                    "{what}, {ident:?} {dir:?} at {}: got {got:?}\nwanted {wanted:?}",
                    txn.read_ts()
                );
            }
        }
        for _ in 0..4 {
            let key = self.key();
            let got = txn.get(Ident(key.0), &key.1).unwrap().map(|b| b.to_vec());
            assert_eq!(got.as_ref(), rows.get(&key), "{what}: get {key:?} at {}", txn.read_ts());
        }
    }

    fn read_somewhere(&mut self) {
        let low = self.s().oldest().0;
        let mut points: Vec<u64> = self.model.commits.range(low..).map(|(t, _)| *t).collect();
        points.push(self.s().all_durable().0);
        points.retain(|t| *t <= self.s().all_durable().0);
        let ts = points[self.rng.below(points.len() as u64) as usize];
        let Ok(txn) = self.s().begin(ReadAt::At(Timestamp(ts))) else {
            assert!(self.reopened > 0, "{ts} is not below oldest");
            return;
        };
        let rows = self.model.at(|t| t <= ts);
        self.compare(&txn, &rows, "a read in the past");
        if self.readers.len() < 3 {
            self.readers.push((txn, rows));
        }
    }

    fn checkpoint(&mut self) {
        if self.rng.below(4) == 0 {
            let at = self.s().checkpoint_past_stable().unwrap();
            assert!(at >= self.s().stable());
            self.ahead = self.ahead.max(at.0);
            return;
        }
        let stable = self.s().stable();
        let at = self.s().checkpoint().unwrap();
        assert_eq!(at.0, stable.0.max(self.ahead));
    }

    fn move_points(&mut self) {
        let (stable, all_durable) = (self.s().stable().0, self.s().all_durable().0);
        let choices: Vec<u64> =
            self.model.commits.range(stable..).map(|(t, _)| *t).filter(|t| *t <= all_durable).collect();
        if !choices.is_empty() {
            let ts = choices[self.rng.below(choices.len() as u64) as usize];
            self.s().set_stable(Timestamp(ts));
        }
        if self.rng.below(3) == 0 {
            let choices: Vec<u64> =
                self.model.commits.range(..=self.s().stable().0).map(|(t, _)| *t).collect();
            if !choices.is_empty() {
                let low = choices.len() / 2 + self.rng.below(choices.len() as u64 / 2 + 1) as usize;
                self.s().set_oldest(Timestamp(choices[low.min(choices.len() - 1)]));
            }
        }
    }

    fn local(&mut self) {
        let mut t = self.s().begin_local().unwrap();
        let key = vec![self.rng.below(6) as u8];
        let value = (self.rng.below(4) > 0).then(|| vec![self.rng.next_u64() as u8; 5]);
        match &value {
            Some(v) => t.put(self.local_ident, &key, v).unwrap(),
            None => t.delete(self.local_ident, &key).unwrap(),
        }
        t.commit().unwrap();
        let key = (self.local_ident.0, key);
        match value {
            Some(v) => self.model.local.insert(key, v),
            None => self.model.local.remove(&key),
        };
    }
    fn check_local(&self) {
        let t = self.s().begin(ReadAt::Latest).unwrap();
        let mut c = t.scan(self.local_ident, Bound::Unbounded, Bound::Unbounded, Dir::Forward).unwrap();
        let mut got = Rows::new();
        while let Some((k, v)) = c.next().unwrap() {
            got.insert((self.local_ident.0, k.to_vec()), v.to_vec());
        }
        assert_eq!(got, self.model.local);
    }

    fn replay(&self, after: Timestamp) {
        self.s().start_replay();
        let mut log = self.s().log().read(Bound::Excluded(after), false);
        while let Some((ts, entry)) = log.next().unwrap() {
            let mut t = self.s().begin(ReadAt::Applied).unwrap();
            t.set_commit_ts(ts);
            for ((i, k), v) in decode(&entry) {
                match v {
                    Some(v) => t.put(Ident(i), &k, &v).unwrap(),
                    None => t.delete(Ident(i), &k).unwrap(),
                }
            }
            t.commit().unwrap();
        }
        self.s().end_replay();
        self.s().log().publish(self.s().log().last());
    }

    /// Restart: clean (nothing lost) or after a power cut (unsynced bytes may be lost).
    fn restart(&mut self, power_cut: bool) {
        self.open.clear();
        self.readers.clear();
        let durable = self.s().log().durable().0;
        let stable = self.s().stable().0;
        if !power_cut {
            self.s().log().flush_once().unwrap();
            self.s().sync_local().unwrap();
        } else {
            // Local rows: the model expects the last ones, so they are synced unless the disk failed.
            let synced = self.s().sync_local();
            assert!(synced.is_ok() || self.s().log().poisoned().is_some());
            if let Some(d) = &self.faulty {
                d.crash();
            }
        }
        let (env, clock) = testing::env_on(self.disk.clone(), self.seed ^ self.rng.next_u64());
        clock.set_ms(pando_env::Clock::wall_ms(&*self.clock));
        self.clock = clock;
        self.storage = None;
        self.storage =
            Some(Storage::open(env, options(self.backend, self.cut, self.seed, &*self.disk)).unwrap());
        self.reopened += 1;
        let last = self.s().log().last().0;
        let lost: Vec<u64> = self.model.commits.range(last + 1..).map(|(t, _)| *t).collect();
        for ts in lost {
            assert!(power_cut && ts > durable, "{ts} was durable ({durable}) and is lost");
            self.model.commits.remove(&ts);
        }
        assert!(self.s().recovery_ts().0 <= stable.max(self.ahead));
        assert!(self.s().stable().0 <= stable);
        self.ahead = self.s().recovery_ts().0;
        self.replay(self.s().recovery_ts());
        self.check_all();
    }

    /// A checkpoint that dies in the middle, at any of its writes or syncs, and then the power goes.
    fn interrupted_checkpoint(&mut self) {
        let Some(disk) = self.faulty.clone() else { return };
        self.storage.as_ref().unwrap().sync_local().unwrap();
        match self.rng.below(3) {
            0 => disk.fail_sync_in(self.rng.below(9)),
            1 => disk.fail_write_in(self.rng.below(9)),
            _ => disk.set_capacity(Some(self.rng.below(20_000))),
        }
        let (past, all_durable) = (self.rng.below(3) == 0, self.s().all_durable());
        let failed = if past { self.s().checkpoint_past_stable() } else { self.s().checkpoint() }.is_err();
        // The file that says so may be there though its sync was never reported.
        if past {
            self.ahead = self.ahead.max(all_durable.0);
        }
        disk.set_capacity(None);
        if failed {
            assert!(self.s().log().poisoned().is_some());
            assert!(self.s().log().flush_once().is_err(), "after a failed sync nothing is written any more");
        }
        self.restart(true);
    }

    fn rollback(&mut self) {
        self.open.clear();
        self.readers.clear();
        let stable = self.s().recover_to_stable().unwrap();
        self.ahead = 0;
        let later: Vec<u64> = self.model.commits.range(stable.0 + 1..).map(|(t, _)| *t).collect();
        let common = match later.len() {
            0 => stable.0,
            n => later[self.rng.below(n as u64) as usize],
        };
        self.s().cut_log(Timestamp(common)).unwrap();
        self.model.commits.retain(|t, _| *t <= common);
        self.replay(stable);
        self.check_all();
    }

    fn check_all(&mut self) {
        let txn = self.s().begin(ReadAt::Latest).unwrap();
        self.compare(&txn, &self.model.at(|_| true), "after a restart");
        self.check_local();
        for _ in 0..5 {
            self.read_somewhere();
        }
        let mut log = self.s().log().read(Bound::Unbounded, false);
        let mut seen = Vec::new();
        while let Some((ts, entry)) = log.next().unwrap() {
            assert_eq!(self.model.commits.get(&ts.0), Some(&decode(&entry)), "entry {ts}");
            seen.push(ts.0);
        }
        let first = self.s().log().first().0;
        let wanted: Vec<u64> = self.model.commits.range(first..).map(|(t, _)| *t).collect();
        assert_eq!(seen, wanted);
        let mut back = Vec::new();
        let mut log = self.s().log().read(Bound::Unbounded, true);
        while let Some((ts, _)) = log.next().unwrap() {
            back.push(ts.0);
        }
        back.reverse();
        assert_eq!(back, seen);
    }

    fn step(&mut self) {
        match self.rng.below(200) {
            0..30 => self.begin(),
            30..110 => self.write(),
            110..150 => self.finish(),
            150..165 => self.read_somewhere(),
            165..172 => self.move_points(),
            172..175 => self.checkpoint(),
            175..180 => {
                self.s().log().flush_once().unwrap();
            }
            180..183 => {
                self.s().step().unwrap();
            }
            183 => self.s().compact_all().unwrap(),
            184..188 => self.local(),
            188..192 => {
                if !self.readers.is_empty() {
                    let at = self.rng.below(self.readers.len() as u64) as usize;
                    let (txn, rows) = &self.readers[at];
                    self.compare(txn, rows, "a snapshot held for long");
                    drop(self.readers.remove(at));
                }
            }
            192..196 => self.clock.advance_ms(1500),
            196 => self.check_local(),
            197 if self.rng.below(3) == 0 => self.restart(false),
            198 if self.faulty.is_some() && self.rng.below(3) == 0 => self.restart(true),
            199 if self.rng.below(4) == 0 => self.rollback(),
            198 | 199 if self.rng.below(3) == 0 => self.interrupted_checkpoint(),
            _ => {}
        }
    }
}

fn run(backend: Backend, seed: u64, steps: usize) {
    run_with(backend, KeyCut::TABLES, seed, steps);
}

fn run_with(backend: Backend, cut: KeyCut, seed: u64, steps: usize) {
    println!("seed {seed}");
    let mut world = World::new(backend, cut, seed);
    for _ in 0..steps {
        world.step();
    }
    world.open.clear();
    world.check_all();
}

/// `MODEL_SEEDS=100..200` runs other seeds than the usual few.
fn seeds(usual: std::ops::Range<u64>) -> std::ops::Range<u64> {
    let wanted = std::env::var("MODEL_SEEDS").unwrap_or_default();
    let (from, to) = wanted.split_once("..").unwrap_or_default();
    match (from.parse(), to.parse()) {
        (Ok(from), Ok(to)) => from..to,
        _ => usual,
    }
}

#[test]
fn random_work_agrees_with_a_plain_model_in_memory_with_lost_power() {
    seeds(1..16).for_each(|seed| run(Backend::Mem, seed, 2500));
}

#[test]
fn random_work_agrees_with_a_plain_model_on_tables() {
    seeds(100..104).for_each(|seed| run(Backend::Lsm, seed, 2500));
}

#[test]
fn random_work_agrees_with_a_plain_model_on_tables_that_take_short_keys_only() {
    let cut = KeyCut { plain: 12, step: 5 };
    seeds(200..204).for_each(|seed| run_with(Backend::Lsm, cut, seed, 2500));
}
