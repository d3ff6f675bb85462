//! One file of a log: a head, records in timestamp order, and (once sealed) an index and a foot.
//!
//! The index names a record every 32 KiB, so that a seek reads little. A sealed file carries it at its end; for
//! the file being written it is kept in memory and rebuilt by the scan at open.

use super::payload::Payloads;
use super::record;
use crate::damage::damaged;
use crate::formats;
use pando_base::{Error, Result};
use pando_env::{Disk, DiskFile};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) const HEAD: usize = 16;
const FOOT_MAGIC: u32 = 0x5046_4f4f;
const FOOT: usize = 28;
const INDEX_EVERY: u64 = 32 << 10;
const READ_CHUNK: usize = 256 << 10;

pub(crate) struct Segment {
    pub(crate) number: u64,
    pub(crate) path: String,
    pub(crate) file: Arc<dyn DiskFile>,
    /// End of the records (not of the foot).
    pub(crate) end: u64,
    /// Timestamps of the first and last record; 0 = empty.
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) sealed: bool,
    /// (timestamp, offset), ascending.
    pub(crate) index: Vec<(u64, u32)>,
    /// End of what is known to be on disk.
    pub(crate) synced: u64,
}

/// What a reader needs of a segment, without its lock.
#[derive(Clone)]
pub(crate) struct SegmentView {
    pub(crate) path: String,
    pub(crate) file: Arc<dyn DiskFile>,
    pub(crate) from: u64,
    pub(crate) end: u64,
}

fn corrupt(path: &str, at: u64, what: &str) -> Error {
    damaged(format!("log file {path}, byte {at}: {what}"))
}

impl Segment {
    /// Makes the file, its head synced and its name durable.
    pub(crate) fn create(
        disk: &dyn Disk,
        dir: &str,
        path: String,
        number: u64,
        payloads: &Payloads,
    ) -> Result<Segment> {
        let file = disk.open(&path, true)?;
        let mut head = [0u8; HEAD];
        head[..8].copy_from_slice(payloads.magic());
        head[8..16].copy_from_slice(&number.to_le_bytes());
        file.write_at(0, &head)?;
        file.sync()?;
        disk.sync_dir(dir)?;
        let end = HEAD as u64;
        Ok(Segment {
            number,
            path,
            file,
            end,
            first: 0,
            last: 0,
            sealed: false,
            index: Vec::new(),
            synced: end,
        })
    }

    /// Opens a file. Only the newest may end in the middle of a record. Synced is no more than the file itself says.
    /// `None`: a file whose making was interrupted; remove it.
    pub(crate) fn open(
        disk: &dyn Disk,
        path: String,
        number: u64,
        newest: bool,
        payloads: &Payloads,
    ) -> Result<Option<Segment>> {
        let file = disk.open(&path, false)?;
        let len = file.len()?;
        let mut head = [0u8; HEAD];
        let got = file.read_at(0, &mut head)?;
        if let Some(magic) = head[..got].first_chunk() {
            payloads.check_kind(magic, &path)?;
        }
        let magic = payloads.magic();
        if formats::is_newer(magic, &head[..got]) {
            return Err(formats::newer(&path));
        }
        if got < HEAD || head[..8] != *magic || head[8..16] != number.to_le_bytes() {
            // The head is synced before the first record is written.
            let records_follow = len > HEAD as u64;
            return if newest && !records_follow { Ok(None) } else { Err(corrupt(&path, 0, "bad head")) };
        }
        let mut seg = Segment {
            number,
            path,
            file,
            end: HEAD as u64,
            first: 0,
            last: 0,
            sealed: false,
            index: Vec::new(),
            synced: 0,
        };
        if seg.read_foot(len)? {
            return Ok(Some(seg));
        }
        seg.scan(len, newest)?;
        Ok(Some(seg))
    }

    /// Notes a record placed at `at`.
    pub(crate) fn note(&mut self, ts: u64, at: u64, len: usize) {
        if self.first == 0 {
            self.first = ts;
        }
        if self.index.last().is_none_or(|(_, last)| at - u64::from(*last) >= INDEX_EVERY) {
            self.index.push((ts, at as u32));
        }
        self.last = ts;
        self.end = at + len as u64;
    }

    fn scan(&mut self, len: u64, newest: bool) -> Result<()> {
        let mut bytes = vec![0; (len - HEAD as u64) as usize];
        let got = self.file.read_at(HEAD as u64, &mut bytes)?;
        bytes.truncate(got);
        let mut at = 0;
        while let Some(r) = record::decode(&bytes[at..]) {
            if r.ts <= self.last {
                return Err(corrupt(&self.path, (HEAD + at) as u64, "timestamps do not rise"));
            }
            let n = r.len();
            self.synced = r.synced.into();
            self.note(r.ts, (HEAD + at) as u64, n);
            at += n;
        }
        if at == bytes.len() {
            return Ok(());
        }
        let bad = (HEAD + at) as u64;
        if !newest {
            return Err(corrupt(&self.path, bad, "an unreadable record before the end of the log"));
        }
        if let Some(witness) = self.later_witness(&bytes[at..], bad) {
            return Err(corrupt(
                &self.path,
                bad,
                &format!("a later record (timestamp {witness}) shows that this place had been synced"),
            ));
        }
        // The end of an interrupted write: nothing after this was ever acknowledged.
        self.file.truncate(bad)?;
        self.file.sync()?;
        Ok(())
    }
    /// A valid record after damage at `bad` which says that `bad` was synced when it was written.
    fn later_witness(&self, after: &[u8], bad: u64) -> Option<u64> {
        for at in 1..after.len().saturating_sub(record::HEADER) {
            let rest = &after[at..];
            // Look at the timestamp before the checksum: most offsets end here.
            let plausible = rest.get(8..16).and_then(|b| b.first_chunk()).map(|b| u64::from_le_bytes(*b));
            let near = |ts: u64| ts > self.last && (self.last == 0 || ts <= self.last.saturating_mul(2));
            if !plausible.is_some_and(near) {
                continue;
            }
            if let Some(r) = record::decode(rest)
                && u64::from(r.synced) > bad
            {
                return Some(r.ts);
            }
        }
        None
    }

    /// Index and foot as bytes to append when sealing.
    pub(crate) fn foot(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.index.len() * 12 + FOOT);
        for (ts, at) in &self.index {
            out.extend_from_slice(&ts.to_le_bytes());
            out.extend_from_slice(&at.to_le_bytes());
        }
        out.extend_from_slice(&self.end.to_le_bytes());
        out.extend_from_slice(&self.last.to_le_bytes());
        out.extend_from_slice(&(self.index.len() as u32).to_le_bytes());
        let crc = crc32c::crc32c(&out);
        out.extend_from_slice(&crc.to_le_bytes());
        out.extend_from_slice(&FOOT_MAGIC.to_le_bytes());
        out
    }
    fn read_foot(&mut self, len: u64) -> Result<bool> {
        let mut foot = [0u8; FOOT];
        if len < (HEAD + FOOT) as u64 || self.file.read_at(len - FOOT as u64, &mut foot)? < FOOT {
            return Ok(false);
        }
        let u64_at =
            |at: usize| u64::from_le_bytes(*foot[at..].first_chunk().expect("a number within the foot"));
        let u32_at =
            |at: usize| u32::from_le_bytes(*foot[at..].first_chunk().expect("a number within the foot"));
        let (end, last, count) = (u64_at(0), u64_at(8), u32_at(16) as usize);
        if u32_at(24) != FOOT_MAGIC || end + (count * 12 + FOOT) as u64 != len {
            return Ok(false);
        }
        let mut all = vec![0; count * 12 + 20];
        if self.file.read_at(end, &mut all)? < all.len() {
            return Ok(false);
        }
        if crc32c::crc32c(&all) != u32_at(20) {
            return Ok(false);
        }
        for entry in all[..count * 12].as_chunks::<12>().0 {
            let [a, b, c, d, e, f, g, h, at @ ..] = *entry;
            self.index.push((u64::from_le_bytes([a, b, c, d, e, f, g, h]), u32::from_le_bytes(at)));
        }
        self.first = self.index.first().map_or(0, |(ts, _)| *ts);
        // The records are synced before the foot is written.
        (self.end, self.last, self.sealed, self.synced) = (end, last, true, end);
        Ok(true)
    }

    /// A view starting at the last indexed record at or below `ts`.
    pub(crate) fn view_at(&self, ts: u64) -> SegmentView {
        let i = self.index.partition_point(|(t, _)| *t <= ts);
        let from = i.checked_sub(1).map_or(HEAD as u64, |i| u64::from(self.index[i].1));
        SegmentView { path: self.path.clone(), file: self.file.clone(), from, end: self.end }
    }
    /// The indexed stretch that holds the last record below (or at, if `inclusive`) `ts`.
    pub(crate) fn view_before(&self, ts: u64, inclusive: bool) -> SegmentView {
        let i = self.index.partition_point(|(t, _)| *t < ts || (inclusive && *t == ts));
        let from = i.checked_sub(1).map_or(HEAD as u64, |i| u64::from(self.index[i].1));
        let end = self.index.get(i).map_or(self.end, |(_, at)| u64::from(*at));
        SegmentView { path: self.path.clone(), file: self.file.clone(), from, end }
    }
    /// Where the first record above `ts` starts, and the last timestamp before it.
    pub(crate) fn cut_after(&self, ts: u64) -> Result<(u64, u64)> {
        let view = self.view_at(ts);
        let (mut cut, mut last) = (view.from, 0);
        view.walk(|r, at| {
            if r.ts <= ts {
                (cut, last) = (at + r.len() as u64, r.ts);
            }
            r.ts <= ts
        })?;
        Ok((cut, last))
    }
}

/// Bytes read from log files, for the metrics.
pub(crate) static READ_BYTES: AtomicU64 = AtomicU64::new(0);

impl SegmentView {
    /// Hands out records until `each` says stop; damage is an error.
    pub(crate) fn walk(&self, mut each: impl FnMut(record::Record<'_>, u64) -> bool) -> Result<()> {
        let mut at = self.from;
        let mut chunk = Vec::new();
        while at < self.end {
            let mut want = READ_CHUNK.min((self.end - at) as usize);
            loop {
                chunk.resize(want, 0);
                let got = self.file.read_at(at, &mut chunk)?;
                READ_BYTES.fetch_add(got as u64, Ordering::Relaxed);
                chunk.truncate(got);
                // A record longer than the chunk: read all of it.
                match record::length(&chunk) {
                    Some(n) if n > got && at + n as u64 <= self.end && want < n => want = n,
                    _ => break,
                }
            }
            let mut used = 0;
            while let Some(r) = record::decode(&chunk[used..]) {
                if !each(r, at + used as u64) {
                    return Ok(());
                }
                used += r.len();
            }
            if used == 0 {
                return Err(corrupt(&self.path, at, "an unreadable record"));
            }
            at += used as u64;
        }
        Ok(())
    }
}
