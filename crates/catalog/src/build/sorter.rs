//! Sorting index entries: in memory up to a bound, then in runs on disk that are merged.

use pando_base::{Error, Result, limits, patience};
use pando_env::{Disk, DiskFile};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// Where runs go; the folder is emptied when the sorter is dropped.
const FOLDER: &str = "_tmp";

/// Collects (key, value) pairs and gives them back in key order.
pub(crate) struct Sorter {
    disk: Arc<dyn Disk>,
    name: String,
    memory_bytes: usize,
    /// Keys and values. Blocks, because a buffer that grows would be there twice for a moment.
    blocks: Vec<Vec<u8>>,
    block_bytes: usize,
    refs: Vec<Entry>,
    runs: Vec<Run>,
}

/// Bytes of two keys compared in a step.
const KEY_BYTES_PER_STEP: usize = 128;

/// The first eight key bytes decide most comparisons without touching the buffer.
#[derive(Clone, Copy)]
struct Entry {
    prefix: u64,
    block: u32,
    at: u32,
    key: u32,
    value: u32,
}

impl Entry {
    fn key<'b>(&self, blocks: &'b [Vec<u8>]) -> &'b [u8] {
        &self.pair(blocks)[..self.key as usize]
    }
    /// The value right behind the key.
    fn pair<'b>(&self, blocks: &'b [Vec<u8>]) -> &'b [u8] {
        &blocks[self.block as usize][self.at as usize..][..(self.key + self.value) as usize]
    }
}

struct Run {
    path: String,
    file: Arc<dyn DiskFile>,
    len: u64,
}

fn prefix(key: &[u8]) -> u64 {
    let mut first = [0; 8];
    let n = key.len().min(8);
    first[..n].copy_from_slice(&key[..n]);
    u64::from_be_bytes(first)
}

impl Sorter {
    pub(crate) fn new(disk: Arc<dyn Disk>, name: String, memory_bytes: usize) -> Sorter {
        Sorter {
            disk,
            name,
            memory_bytes,
            blocks: Vec::new(),
            block_bytes: 0,
            refs: Vec::new(),
            runs: Vec::new(),
        }
    }
    pub(crate) fn push(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let size = key.len() + value.len();
        if self.bytes_with(size) > self.memory_bytes {
            self.spill()?;
        }
        if self.blocks.last().is_none_or(|b| b.capacity() - b.len() < size) {
            let block = Vec::with_capacity(limits::SORT_IO_BYTES.max(size));
            self.block_bytes += block.capacity();
            self.blocks.push(block);
        }
        let at = self.blocks.len() - 1;
        let block = &mut self.blocks[at];
        self.refs.push(Entry {
            prefix: prefix(key),
            block: at as u32,
            at: block.len() as u32,
            key: key.len() as u32,
            value: value.len() as u32,
        });
        block.extend_from_slice(key);
        block.extend_from_slice(value);
        Ok(())
    }
    /// Memory there will be, at most, after one more pair: the table of entries doubles, and is copied, when it is full.
    fn bytes_with(&self, size: usize) -> usize {
        let full = self.refs.len() == self.refs.capacity();
        let entries = self.refs.capacity() * if full { 3 } else { 1 };
        self.block_bytes + size + entries * size_of::<Entry>()
    }
    fn sort(&mut self) -> Result<()> {
        let blocks = &self.blocks;
        let longest = self.refs.iter().map(|e| e.key as usize).max().unwrap_or_default();
        patience::sort_unstable_by(&mut self.refs, 1 + longest / KEY_BYTES_PER_STEP, |a, b| {
            a.prefix.cmp(&b.prefix).then_with(|| a.key(blocks).cmp(b.key(blocks)))
        })
    }
    fn spill(&mut self) -> Result<()> {
        if self.refs.is_empty() {
            return Ok(());
        }
        self.sort()?;
        self.disk.create_dir_all(FOLDER)?;
        let path = format!("{FOLDER}/{}-{}", self.name, self.runs.len());
        let file = self.disk.open(&path, true)?;
        let mut len = 0u64;
        let mut out = Vec::with_capacity(limits::SORT_IO_BYTES);
        for e in &self.refs {
            out.extend_from_slice(&e.key.to_le_bytes());
            out.extend_from_slice(&e.value.to_le_bytes());
            out.extend_from_slice(e.pair(&self.blocks));
            if out.len() >= limits::SORT_IO_BYTES {
                file.write_at(len, &out)?;
                len += out.len() as u64;
                out.clear();
            }
        }
        file.write_at(len, &out)?;
        len += out.len() as u64;
        self.runs.push(Run { path, file, len });
        self.blocks.clear();
        self.block_bytes = 0;
        self.refs.clear();
        Ok(())
    }
    /// The pairs in key order.
    pub(crate) fn finish(mut self) -> Result<Sorted> {
        self.sort()?;
        let mut readers = Vec::new();
        let mut heap = BinaryHeap::new();
        for (i, run) in self.runs.iter().enumerate() {
            let mut reader =
                RunReader { file: run.file.clone(), at: 0, len: run.len, buf: Vec::new(), used: 0 };
            if let Some((k, v)) = reader.next()? {
                heap.push(Reverse((k, i, v)));
            }
            readers.push(reader);
        }
        Ok(Sorted { sorter: self, next: 0, readers, heap })
    }
}

impl Drop for Sorter {
    fn drop(&mut self) {
        for run in &self.runs {
            // Left-over files of a failed removal are removed with the folder at the next start.
            let _ = self.disk.remove(&run.path);
        }
    }
}

type Pair = (Vec<u8>, Vec<u8>);

/// See [`Sorter::finish`].
pub(crate) struct Sorted {
    sorter: Sorter,
    next: usize,
    readers: Vec<RunReader>,
    heap: BinaryHeap<Reverse<(Vec<u8>, usize, Vec<u8>)>>,
}

impl Sorted {
    /// The next pair; equal keys come one after the other in no particular order.
    pub(crate) fn next<'a>(&'a mut self, pair: &'a mut Pair) -> Result<Option<(&'a [u8], &'a [u8])>> {
        let mem = self.sorter.refs.get(self.next).copied();
        let from_mem = match (&mem, self.heap.peek()) {
            (None, None) => return Ok(None),
            (Some(e), Some(Reverse((k, ..)))) => e.key(&self.sorter.blocks) <= &k[..],
            (mem, _) => mem.is_some(),
        };
        if let (true, Some(e)) = (from_mem, mem) {
            self.next += 1;
            return Ok(Some(e.pair(&self.sorter.blocks).split_at(e.key as usize)));
        }
        let Some(Reverse((k, i, v))) = self.heap.pop() else { return Ok(None) };
        if let Some((k2, v2)) = self.readers[i].next()? {
            self.heap.push(Reverse((k2, i, v2)));
        }
        *pair = (k, v);
        Ok(Some((&pair.0, &pair.1)))
    }
}

struct RunReader {
    file: Arc<dyn DiskFile>,
    at: u64,
    len: u64,
    buf: Vec<u8>,
    used: usize,
}

impl RunReader {
    fn have(&mut self, n: usize) -> Result<()> {
        while self.buf.len() - self.used < n {
            self.buf.drain(..self.used);
            self.used = 0;
            let left = (self.len - self.at) as usize;
            let want = left.min(limits::SORT_IO_BYTES.max(n));
            let start = self.buf.len();
            self.buf.resize(start + want, 0);
            let got = self.file.read_at(self.at, &mut self.buf[start..])?;
            self.buf.truncate(start + got);
            self.at += got as u64;
            if got == 0 {
                return Err(Error::internal("a sorted run ends early"));
            }
        }
        Ok(())
    }
    fn next(&mut self) -> Result<Option<Pair>> {
        if self.used == self.buf.len() && self.at == self.len {
            return Ok(None);
        }
        self.have(8)?;
        let word = |at: usize| {
            let mut b = [0; 4];
            b.copy_from_slice(&self.buf[at..at + 4]);
            u32::from_le_bytes(b) as usize
        };
        let (k, v) = (word(self.used), word(self.used + 4));
        self.have(8 + k + v)?;
        let start = self.used + 8;
        let pair = (self.buf[start..start + k].to_vec(), self.buf[start + k..start + k + v].to_vec());
        self.used = start + k + v;
        Ok(Some(pair))
    }
}
