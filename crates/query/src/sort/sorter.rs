//! Sorters: everything, or the first few, in memory up to a bound and then in sorted runs on disk.

use super::spill::{SpillFile, SpillSpace};
use pando_base::{Error, ErrorCode, Result, patience};
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// What is sorted.
pub trait Payload: Sized + Send {
    /// Memory it holds, roughly.
    fn byte_len(&self) -> usize;
    fn encode(&self, out: &mut Vec<u8>);
    fn decode(bytes: &[u8]) -> Result<Self>;
}

impl Payload for bytes::Bytes {
    fn byte_len(&self) -> usize {
        self.len()
    }
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }
    fn decode(bytes: &[u8]) -> Result<Self> {
        Ok(bytes::Bytes::copy_from_slice(bytes))
    }
}

/// Collects `(key, payload)` rows and gives them back in key order; rows with equal keys come in the order they
/// were added.
pub struct Sorter<P: Payload> {
    limit: Option<usize>,
    bytes_max: usize,
    spill: Option<Arc<dyn SpillSpace>>,
    /// Sorted on demand; a heap of the worst rows while a limit applies and all fits.
    rows: Vec<Row<P>>,
    top: BinaryHeap<Row<P>>,
    bytes: usize,
    next: u64,
    runs: Vec<Run>,
    pub stats: SortStats,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct SortStats {
    /// Bytes of all rows ever added.
    pub total_bytes: u64,
    pub spills: u64,
    pub spilled_bytes: u64,
}

#[derive(Debug)]
struct Row<P> {
    key: Box<[u8]>,
    /// Order of arrival.
    seq: u64,
    payload: P,
}

impl<P> PartialEq for Row<P> {
    fn eq(&self, other: &Row<P>) -> bool {
        self.cmp(other).is_eq()
    }
}
impl<P> Eq for Row<P> {}
impl<P> PartialOrd for Row<P> {
    fn partial_cmp(&self, other: &Row<P>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<P> Ord for Row<P> {
    fn cmp(&self, other: &Row<P>) -> Ordering {
        self.key.cmp(&other.key).then(self.seq.cmp(&other.seq))
    }
}

/// Bookkeeping per row beside its bytes.
const ROW_OVERHEAD_BYTES: usize = 64;

/// Bytes of two keys compared in a step.
const KEY_BYTES_PER_STEP: usize = 128;

struct Run {
    file: Arc<dyn SpillFile>,
    at: u64,
    end: u64,
    buf: Vec<u8>,
    pos: usize,
}

impl<P: Payload> Sorter<P> {
    /// `limit`: only the first so many rows are wanted. Without `spill` more than `bytes_max` is an error.
    pub fn new(limit: Option<usize>, bytes_max: usize, spill: Option<Arc<dyn SpillSpace>>) -> Sorter<P> {
        Sorter {
            limit: limit.filter(|n| *n > 0),
            bytes_max,
            spill,
            rows: Vec::new(),
            top: BinaryHeap::new(),
            bytes: 0,
            next: 0,
            runs: Vec::new(),
            stats: SortStats::default(),
        }
    }

    /// Bytes in memory.
    pub fn held_bytes(&self) -> usize {
        self.bytes + self.runs.len() * IO_BYTES
    }
    /// Whether a row with this key could still be among the first ones.
    pub fn wants(&self, key: &[u8]) -> bool {
        match (self.limit, self.top.peek()) {
            (Some(limit), Some(worst)) if self.top.len() >= limit => key < &*worst.key,
            _ => true,
        }
    }

    pub fn add(&mut self, key: &[u8], payload: P) -> Result<()> {
        // Making the key may have taken long.
        patience::check()?;
        let size = key.len() + payload.byte_len() + ROW_OVERHEAD_BYTES;
        self.stats.total_bytes += size as u64;
        let seq = self.next;
        self.next += 1;
        if let Some(limit) = self.limit {
            if self.top.len() >= limit {
                // A later row with an equal key comes after.
                if self.top.peek().is_some_and(|worst| *worst.key <= *key) {
                    return Ok(());
                }
                if let Some(out) = self.top.pop() {
                    self.bytes -= out.key.len() + out.payload.byte_len() + ROW_OVERHEAD_BYTES;
                }
            }
            self.top.push(Row { key: key.into(), seq, payload });
        } else {
            self.rows.push(Row { key: key.into(), seq, payload });
        }
        self.bytes += size;
        if self.bytes > self.bytes_max {
            self.spill()?;
        }
        Ok(())
    }

    fn spill(&mut self) -> Result<()> {
        let Some(space) = self.spill.clone() else {
            return Err(Error::new(
                ErrorCode::QueryExceededMemoryLimitNoDiskUseAllowed,
                format!(
                    "Sort exceeded memory limit of {} bytes, but did not opt in to external sorting.",
                    self.bytes_max
                ),
            ));
        };
        self.rows.extend(std::mem::take(&mut self.top));
        self.sort_rows()?;
        let mut file = space.create()?;
        let mut buf = Vec::with_capacity(IO_BYTES + 4096);
        let mut payload = Vec::new();
        for row in self.rows.drain(..) {
            payload.clear();
            row.payload.encode(&mut payload);
            buf.extend_from_slice(&(row.key.len() as u32).to_le_bytes());
            buf.extend_from_slice(&(payload.len() as u32).to_le_bytes());
            buf.extend_from_slice(&row.seq.to_le_bytes());
            buf.extend_from_slice(&row.key);
            buf.extend_from_slice(&payload);
            if buf.len() >= IO_BYTES {
                file.append(&buf)?;
                buf.clear();
            }
        }
        file.append(&buf)?;
        self.stats.spills += 1;
        self.stats.spilled_bytes += file.len();
        self.bytes = 0;
        let end = file.len();
        self.runs.push(Run { file: file.into(), at: 0, end, buf: Vec::new(), pos: 0 });
        Ok(())
    }

    fn sort_rows(&mut self) -> Result<()> {
        let longest = self.rows.iter().map(|r| r.key.len()).max().unwrap_or_default();
        patience::sort_unstable_by(&mut self.rows, 1 + longest / KEY_BYTES_PER_STEP, Row::cmp)
    }

    /// Ends the input.
    pub fn finish(mut self) -> Result<SortedRows<P>> {
        self.rows.extend(std::mem::take(&mut self.top));
        self.sort_rows()?;
        let left = self.limit.unwrap_or(usize::MAX);
        if self.runs.is_empty() {
            self.rows.reverse();
            return Ok(SortedRows {
                rows: self.rows,
                heads: Vec::new(),
                runs: Vec::new(),
                left,
                bytes: self.bytes,
                stats: self.stats,
            });
        }
        if !self.rows.is_empty() {
            self.spill()?;
        }
        let mut heads = Vec::with_capacity(self.runs.len());
        for run in &mut self.runs {
            heads.push(run.next()?);
        }
        Ok(SortedRows { rows: Vec::new(), heads, runs: self.runs, left, bytes: 0, stats: self.stats })
    }
}

/// Bytes per read and write of a run.
use pando_base::limits::SORT_IO_BYTES as IO_BYTES;

impl Run {
    fn next<P: Payload>(&mut self) -> Result<Option<Row<P>>> {
        let Some(head) = self.take(16)? else { return Ok(None) };
        let word =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]) as usize;
        let (key, payload) = (word(0), word(4));
        let seq = u64::from(word(8) as u32) | (word(12) as u64) << 32;
        let body =
            self.take(key + payload)?.ok_or_else(|| Error::internal("a sort run on disk ended early"))?;
        Ok(Some(Row { key: body[..key].into(), seq, payload: P::decode(&body[key..])? }))
    }

    fn take(&mut self, n: usize) -> Result<Option<&[u8]>> {
        if self.buf.len() - self.pos < n {
            self.buf.drain(..self.pos);
            self.pos = 0;
            let have = self.buf.len();
            let want = (IO_BYTES.max(n - have) as u64).min(self.end - self.at) as usize;
            self.buf.resize(have + want, 0);
            let mut filled = 0;
            while filled < want {
                let got = self.file.read_at(self.at + filled as u64, &mut self.buf[have + filled..])?;
                if got == 0 {
                    return Err(Error::internal("a sort run on disk is shorter than written"));
                }
                filled += got;
            }
            self.at += want as u64;
            if self.buf.len() < n {
                return Ok(None);
            }
        }
        self.pos += n;
        Ok(Some(&self.buf[self.pos - n..self.pos]))
    }
}

/// Rows in order.
pub struct SortedRows<P: Payload> {
    /// In reverse, when nothing was spilled.
    rows: Vec<Row<P>>,
    heads: Vec<Option<Row<P>>>,
    runs: Vec<Run>,
    left: usize,
    /// Of the rows in memory.
    bytes: usize,
    pub stats: SortStats,
}

impl<P: Payload> SortedRows<P> {
    /// Bytes in memory.
    pub fn held_bytes(&self) -> usize {
        self.bytes + self.runs.len() * IO_BYTES
    }
    /// The next row: its key and its payload.
    pub fn next_row(&mut self) -> Result<Option<(Box<[u8]>, P)>> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        if self.runs.is_empty() {
            let row = self.rows.pop();
            if let Some(r) = &row {
                self.bytes -= r.key.len() + r.payload.byte_len() + ROW_OVERHEAD_BYTES;
            }
            return Ok(row.map(|r| (r.key, r.payload)));
        }
        let least = (0..self.heads.len())
            .filter(|i| self.heads[*i].is_some())
            .min_by(|a, b| self.heads[*a].cmp(&self.heads[*b]));
        let Some(i) = least else { return Ok(None) };
        let next = self.runs[i].next()?;
        Ok(std::mem::replace(&mut self.heads[i], next).map(|r| (r.key, r.payload)))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::sync::Mutex;

    /// Temporary files in memory.
    #[derive(Default)]
    pub(crate) struct MemSpill(pub(crate) Mutex<usize>);
    #[derive(Default)]
    struct MemFile(Vec<u8>);
    impl SpillSpace for MemSpill {
        fn create(&self) -> Result<Box<dyn SpillFile>> {
            *self.0.lock().unwrap() += 1;
            Ok(Box::new(MemFile::default()))
        }
    }
    impl SpillFile for MemFile {
        fn append(&mut self, bytes: &[u8]) -> Result<()> {
            self.0.extend_from_slice(bytes);
            Ok(())
        }
        fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
            let from = &self.0[offset as usize..];
            let n = from.len().min(buf.len());
            buf[..n].copy_from_slice(&from[..n]);
            Ok(n)
        }
        fn len(&self) -> u64 {
            self.0.len() as u64
        }
    }

    fn run(limit: Option<usize>, bytes_max: usize, spill: bool) -> Vec<(u32, u32)> {
        let space: Option<Arc<dyn SpillSpace>> = spill.then(|| Arc::new(MemSpill::default()) as _);
        let mut s = Sorter::new(limit, bytes_max, space);
        for i in 0..1000u32 {
            let key = (i.wrapping_mul(7919) % 100).to_be_bytes();
            s.add(&key, bytes::Bytes::copy_from_slice(&i.to_be_bytes())).unwrap();
        }
        let mut rows = s.finish().unwrap();
        let mut out = Vec::new();
        while let Some((k, v)) = rows.next_row().unwrap() {
            let n = |b: &[u8]| u32::from_be_bytes(b.try_into().unwrap());
            out.push((n(&k), n(&v)));
        }
        out
    }

    #[test]
    fn spilled_and_limited_sorts_equal_the_plain_one() {
        let all = run(None, usize::MAX, false);
        assert!(all.is_sorted());
        assert_eq!(all.len(), 1000);
        assert_eq!(run(None, 5000, true), all);
        for limit in [1, 7, 500, 5000] {
            let n = limit.min(1000);
            assert_eq!(run(Some(limit), usize::MAX, false), all[..n]);
            assert_eq!(run(Some(limit), 3000, true), all[..n]);
        }
    }

    #[test]
    fn too_much_without_a_disk_is_refused() {
        let mut s = Sorter::new(None, 1000, None);
        let e = (0..100).find_map(|_| s.add(b"key", bytes::Bytes::from_static(&[0; 50])).err()).unwrap();
        assert_eq!(e.code.0, 292);
    }
}
