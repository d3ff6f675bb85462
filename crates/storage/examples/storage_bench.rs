//! Measures the storage layer by itself: `cargo run --release -p pando-storage --example storage_bench [docs] [inserts|reads]`.
//!
//! One unit = record + unique index entry + oplog entry, as a small insert makes. A second thread flushes the log
//! every 100 ms and makes checkpoints and compactions, as the server does; CPU is of the whole process.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

use pando_bson::{DocBuilder, RawDoc};
use pando_env::Rng;
use pando_env_tokio::RealDisk;
use pando_storage::testing::{self, SeededRng};
use pando_storage::{Backend, Dir, Ident, IdentKind, Options, ReadAt, Storage};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after = stat.rsplit(')').next().unwrap_or_default();
    let ticks: u64 = after.split_whitespace().skip(11).take(2).filter_map(|t| t.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}
fn rss_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmRSS")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|k| k.parse::<u64>().ok()).unwrap_or(0) / 1024
}
fn written_mib() -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    let line = io.lines().find(|l| l.starts_with("write_bytes")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|k| k.parse::<u64>().ok()).unwrap_or(0) >> 20
}

/// Time on a CPU of the calling thread alone.
fn own_cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(stat.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0))
}

fn phase<T>(name: &str, ops: usize, work: impl FnOnce() -> T) -> T {
    let (t, c, o, w) = (Instant::now(), cpu(), own_cpu(), written_mib());
    let out = work();
    let (wall, used, own) = (t.elapsed(), cpu() - c, own_cpu() - o);
    println!(
        "{name:28} {:>9.0} /s  {:>7.2} us wall  {:>7.2} us cpu ({:.2} own)  {:>5} MiB rss  {:>6} MiB written",
        ops as f64 / wall.as_secs_f64(),
        wall.as_secs_f64() * 1e6 / ops as f64,
        used.as_secs_f64() * 1e6 / ops as f64,
        own.as_secs_f64() * 1e6 / ops as f64,
        rss_mib(),
        written_mib() - w,
    );
    out
}

/// Runs `each` for 0..ops in slices; shows the whole and the CPU of the best slice, which a busy machine hides least.
fn sliced(name: &str, ops: u64, mut each: impl FnMut(u64)) {
    const SLICES: u64 = 25;
    let per = (ops / SLICES).max(1);
    let mut best = f64::MAX;
    phase(name, (per * SLICES) as usize, || {
        for slice in 0..SLICES {
            let o = own_cpu();
            (slice * per..(slice + 1) * per).for_each(&mut each);
            best = best.min((own_cpu() - o).as_secs_f64() * 1e6 / per as f64);
        }
    });
    println!("{:28} {best:>30.2} us own cpu in the best slice", "");
}

struct Bench {
    s: Storage,
    records: Ident,
    index: Ident,
    doc: Vec<u8>,
    entry: Vec<u8>,
}

fn index_key(n: u64) -> [u8; 14] {
    // As random as ObjectIds of many clients, 12 bytes and two of framing.
    let a = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut k = [0x64; 14];
    k[1..9].copy_from_slice(&a.to_be_bytes());
    k[9..13].copy_from_slice(&(n as u32).to_be_bytes());
    k
}

impl Bench {
    /// As the server does before a write: lets a slow disk catch up.
    fn wait_room(&self) {
        while !self.s.has_room() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    fn insert(&self, from: u64, count: u64) {
        self.wait_room();
        let slots = self.s.log().reserve(count as usize);
        let mut t = self.s.begin(ReadAt::Latest).unwrap();
        for (n, slot) in (from..).zip(slots) {
            t.set_commit_ts(slot.ts());
            let key = index_key(n);
            assert!(t.get(self.index, &key).unwrap().is_none());
            t.insert(self.index, &key, &n.to_be_bytes()).unwrap();
            t.put_new(self.records, &n.to_be_bytes(), &self.doc).unwrap();
            t.log_entry(slot, RawDoc::trusted(&self.entry));
        }
        t.commit().unwrap();
    }
    fn read(&self, n: u64) -> usize {
        let t = self.s.begin(ReadAt::Latest).unwrap();
        let rid = t.get(self.index, &index_key(n)).unwrap().expect("indexed");
        t.get(self.records, &rid).unwrap().expect("stored").len()
    }
    fn update(&self, n: u64) {
        self.wait_room();
        let mut t = self.s.begin(ReadAt::Latest).unwrap();
        let rid = t.get(self.index, &index_key(n)).unwrap().expect("indexed");
        let mut doc = t.get(self.records, &rid).unwrap().expect("stored").to_vec();
        doc[20] ^= 1;
        t.put(self.records, &rid, &doc).unwrap();
        t.log_entry(self.s.log().reserve_one(), RawDoc::trusted(&self.entry[..200]));
        t.commit().unwrap();
    }
    fn scan(&self) -> usize {
        let t = self.s.begin(ReadAt::Latest).unwrap();
        let mut c = t.scan(self.records, Bound::Unbounded, Bound::Unbounded, Dir::Forward).unwrap();
        let mut n = 0;
        while let Some((_, v)) = c.next().unwrap() {
            n += usize::from(!v.is_empty());
        }
        n
    }
    fn range100(&self, from: u64) {
        let t = self.s.begin(ReadAt::Latest).unwrap();
        let mut c =
            t.scan(self.index, Bound::Included(&index_key(from)), Bound::Unbounded, Dir::Forward).unwrap();
        for _ in 0..100 {
            let Some((_, rid)) = c.next().unwrap() else { break };
            t.get(self.records, &rid).unwrap().expect("stored");
        }
    }
    fn settle(&self) {
        self.s.set_stable(self.s.all_durable());
        self.s.checkpoint().unwrap();
        while self.s.step().unwrap() {}
    }
}

fn main() {
    let mut args = std::env::args().skip(1);
    let docs: u64 = args.next().and_then(|a| a.parse().ok()).unwrap_or(500_000);
    let inserts_only = std::env::args().any(|a| a == "inserts");
    let root = std::env::temp_dir().join(format!("pando-bench-{}", std::process::id()));
    let disk = RealDisk::new(&root).unwrap();
    let (env, clock) = testing::env_on(Arc::new(disk), 7);
    let opts = Options { backend: Backend::Lsm, ..Options::default() };
    let s = Storage::open(env, opts).unwrap();
    let records = s.create_ident(IdentKind::Records).unwrap();
    let index = s.create_ident(IdentKind::Index).unwrap();
    let mut doc = DocBuilder::new();
    let mut seed = 1u64;
    let mut letter = || {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        char::from(b'a' + (seed >> 33) as u8 % 26)
    };
    let pad: String = (0..495).map(|_| letter()).chain(std::iter::repeat_n('x', 495)).collect();
    doc.str("pad", &pad);
    let doc = doc.finish().into_bytes();
    let mut entry = DocBuilder::new();
    entry.str("op", "i").str("ns", "test.bench").str("o", &(pad + &"y".repeat(50)));
    let entry = entry.finish().into_bytes();
    let b = Bench { s, records, index, doc, entry };
    let stop = AtomicBool::new(false);
    let rng = SeededRng::new(3);
    println!("{docs} docs in {}", root.display());
    std::thread::scope(|threads| {
        let named = |name: &str| std::thread::Builder::new().name(name.to_owned());
        let flusher = || {
            while !stop.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(100));
                clock.advance_ms(100);
                b.s.log().flush_once().unwrap();
            }
        };
        named("flusher").spawn_scoped(threads, flusher).unwrap();
        let keeper = || {
            while !stop.load(Ordering::Relaxed) {
                b.s.set_stable(b.s.all_durable());
                if b.s.wants_checkpoint() {
                    b.s.checkpoint().unwrap();
                }
                if !b.s.step().unwrap() {
                    std::thread::sleep(Duration::from_millis(20));
                }
            }
        };
        named("keeper").spawn_scoped(threads, keeper).unwrap();
        let half = docs / 2;
        sliced("insert, one by one", half, |n| b.insert(n, 1));
        let half = half / 25 * 25;
        let units = half / 1000 / 25 * 25;
        println!("(per 1000)");
        sliced("insert, 1000 in a unit", units, |n| b.insert(half + n * 1000, 1000));
        let docs = half + units * 1000;
        phase("settle", docs as usize, || b.settle());
        println!("{:?}", b.s.stats());
        if inserts_only {
            stop.store(true, Ordering::Relaxed);
            return;
        }
        if std::env::args().any(|a| a == "reads") {
            let t = b.s.begin(ReadAt::Latest).unwrap();
            sliced("record by key", 2_000_000, |_| {
                assert!(t.exists(records, &rng.below(docs).to_be_bytes()).unwrap());
            });
            sliced("index entry", 2_000_000, |_| {
                assert!(t.exists(index, &index_key(rng.below(docs))).unwrap())
            });
            sliced("range of 100", 10_000, |_| b.range100(rng.below(docs)));
            sliced("full scan (rows x docs)", 100, |_| assert_eq!(b.scan(), docs as usize));
            stop.store(true, Ordering::Relaxed);
            return;
        }
        phase("full scan", docs as usize, || assert_eq!(b.scan(), docs as usize));
        phase("full scan again", docs as usize, || assert_eq!(b.scan(), docs as usize));
        sliced("read by index, random", 200_000, |_| assert!(b.read(rng.below(docs)) > 0));
        let hot = docs.min(50_000);
        sliced("read by index, cached", 200_000, |_| assert!(b.read(rng.below(hot)) > 0));
        let t = b.s.begin(ReadAt::Latest).unwrap();
        sliced("record by key, cached", 500_000, |_| {
            assert!(t.exists(records, &rng.below(hot).to_be_bytes()).unwrap());
        });
        sliced("index entry, cached", 500_000, |_| {
            assert!(t.exists(index, &index_key(rng.below(hot))).unwrap())
        });
        sliced("absent index entry", 500_000, |n| assert!(!t.exists(index, &index_key(docs + n)).unwrap()));
        sliced("begin and drop", 1_000_000, |_| drop(b.s.begin(ReadAt::Latest).unwrap()));
        sliced("range of 100", 5_000, |_| b.range100(rng.below(docs)));
        drop(t);
        sliced("update, 10k hot", 200_000, |_| b.update(rng.below(docs.min(10_000))));
        sliced("read in memory tables", 200_000, |_| assert!(b.read(rng.below(docs.min(10_000))) > 0));
        phase("full scan, dirty", docs as usize, || assert_eq!(b.scan(), docs as usize));
        println!("{:?}", b.s.stats());
        stop.store(true, Ordering::Relaxed);
    });
    let t = Instant::now();
    drop(b);
    let _ = std::fs::remove_dir_all(root);
    println!("closed in {:?}", t.elapsed());
    let _ = rng.next_u64();
}
