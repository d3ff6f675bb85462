//! A log as a row of segment files: append, cut at the front, cut at the back, find.

use super::payload::Payloads;
use super::segment::{Segment, SegmentView};
use crate::damage::damaged;
use pando_base::limits::{self, LOG_WRITE_BYTES};
use pando_base::panics::poisoned;
use pando_base::sync::Mutex;
use pando_base::{Error, Result};
use pando_env::disk::{make_folder, write_again};
use pando_env::{Disk, DiskFile};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard, OnceLock};

/// Folder of all logs and the checkpoint file.
pub(crate) const DIR: &str = "journal";

pub(crate) struct LogFiles {
    disk: Arc<dyn Disk>,
    payloads: Payloads,
    segment_bytes: u64,
    segments: Mutex<VecDeque<Segment>>,
    buffer: Mutex<Vec<u8>>,
    /// Files that `truncate_front` has removed.
    dropped: AtomicU64,
    /// How often records were removed at the end.
    cuts: AtomicU64,
    /// Why the newest file takes nothing more: what a failed write or sync left in it is not known, and its end stands
    /// before it, so that a later record would be put on top.
    failed: OnceLock<Error>,
}

/// A file as far as its records are synced: path, file, length, first and last record.
pub(crate) type PinnedSegment = (String, Arc<dyn DiskFile>, u64, u64, u64);

const PAGE: u64 = 4096;

impl LogFiles {
    pub(crate) fn open(disk: Arc<dyn Disk>, payloads: Payloads, segment_bytes: u64) -> Result<LogFiles> {
        let prefix = payloads.log;
        make_folder(&*disk, DIR)?;
        let mut numbers: Vec<u64> = disk
            .list(DIR)?
            .iter()
            .filter_map(|name| name.strip_prefix(prefix)?.strip_prefix('.')?.parse().ok())
            .collect();
        numbers.sort_unstable();
        let mut segments: VecDeque<Segment> = VecDeque::new();
        for (i, number) in numbers.iter().enumerate() {
            let newest = i + 1 == numbers.len();
            let path = path(prefix, *number);
            if segments.back().is_some_and(|s| s.number + 1 != *number) {
                return Err(damaged(format!("the log file before {path} is missing")));
            }
            match Segment::open(&*disk, path.clone(), *number, newest, &payloads)? {
                Some(seg) => segments.push_back(seg),
                None => {
                    disk.remove(&path)?;
                    disk.sync_dir(DIR)?;
                }
            }
        }
        // From here on what was found counts as durable, so it must be: contents, and names, also that of the checkpoint
        // file beside the logs. The file before the newest may have been killed while it was being sealed.
        for seg in segments.iter_mut().rev().take(2) {
            write_again(&*seg.file, seg.synced)?;
        }
        segments.iter_mut().for_each(|seg| seg.synced = seg.end);
        disk.sync_dir(DIR)?;
        Ok(LogFiles {
            disk,
            payloads,
            segment_bytes,
            segments: Mutex::new(segments),
            buffer: Mutex::default(),
            dropped: AtomicU64::new(0),
            cuts: AtomicU64::new(0),
            failed: OnceLock::new(),
        })
    }

    /// Carries out a step that changes files, unless one has failed before; none is carried out after one that fails.
    fn unless_failed<T>(&self, step: impl FnOnce() -> Result<T>) -> Result<T> {
        match self.failed.get() {
            Some(e) => Err(e.clone()),
            None => step().map_err(|e| self.failed.get_or_init(|| e).clone()),
        }
    }
    fn lock(&self) -> MutexGuard<'_, VecDeque<Segment>> {
        self.segments.lock().unwrap_or_else(poisoned)
    }
    /// Timestamp of the first record; 0 when empty.
    pub(crate) fn first(&self) -> u64 {
        self.lock().iter().find(|s| s.first != 0).map_or(0, |s| s.first)
    }
    pub(crate) fn last(&self) -> u64 {
        self.lock().iter().rev().find(|s| s.first != 0).map_or(0, |s| s.last)
    }
    pub(crate) fn bytes(&self) -> u64 {
        self.lock().iter().map(|s| s.end).sum()
    }
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
    pub(crate) fn cuts(&self) -> u64 {
        self.cuts.load(Ordering::Acquire)
    }
    /// The files that hold records now.
    pub(crate) fn pin(&self) -> Result<Vec<PinnedSegment>> {
        let segments = self.lock();
        let full = segments.iter().filter(|s| s.first != 0);
        full.map(|s| {
            let bytes = if s.sealed { s.file.len()? } else { s.synced };
            Ok((s.path.clone(), s.file.clone(), bytes, s.first, s.last))
        })
        .collect()
    }
    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }

    /// Writes records and syncs them. One caller at a time; readers and `truncate_front` may run meanwhile.
    pub(crate) fn append<'a>(&self, records: impl Iterator<Item = (u64, &'a [u8])>) -> Result<()> {
        // Kept from call to call: fresh pages for each flush would cost more than the copying.
        let mut buf = std::mem::take(&mut *self.buffer.lock().unwrap_or_else(poisoned));
        buf.clear();
        let done = self.unless_failed(|| self.append_through(records, &mut buf));
        if buf.capacity() <= 2 * LOG_WRITE_BYTES {
            *self.buffer.lock().unwrap_or_else(poisoned) = buf;
        }
        done
    }
    fn append_through<'a>(
        &self,
        records: impl Iterator<Item = (u64, &'a [u8])>,
        buf: &mut Vec<u8>,
    ) -> Result<()> {
        let mut notes: Vec<(u64, u64, usize)> = Vec::new();
        // `at`: where the buffer belongs in the file.
        let (mut file, mut at, mut synced) = self.active()?;
        for (ts, payload) in records {
            let end = at + buf.len() as u64;
            let size = self.payloads.record_len(payload) as u64;
            if end + size > self.segment_bytes && end > self.segment_bytes / 2 {
                self.finish(&*file, at, buf, &mut notes)?;
                self.seal_active()?;
                (file, at, synced) = self.active()?;
            } else if buf.len() + size as usize > LOG_WRITE_BYTES && !buf.is_empty() {
                // Outside the lock: readers go on, and commits do not even come here.
                file.write_at(at, buf)?;
                at = end;
                buf.clear();
            }
            let start = buf.len();
            self.payloads.encode(buf, ts, synced as u32, payload);
            notes.push((ts, at + start as u64, buf.len() - start));
        }
        self.finish(&*file, at, buf, &mut notes)
    }
    fn finish(
        &self,
        file: &dyn DiskFile,
        at: u64,
        buf: &mut Vec<u8>,
        notes: &mut Vec<(u64, u64, usize)>,
    ) -> Result<()> {
        if notes.is_empty() {
            return Ok(());
        }
        if !buf.is_empty() {
            file.write_at(at, buf)?;
            buf.clear();
        }
        file.sync()?;
        if let (Some((_, from, _)), Some((_, to, len))) = (notes.first(), notes.last()) {
            // Readers of the newest entries find them in our memory; reusing the pages is cheaper than new ones.
            let (from, to) = whole_pages(*from, to + *len as u64);
            file.forget_cached(from, to);
        }
        let mut segments = self.lock();
        if let Some(seg) = segments.back_mut() {
            for (ts, at, len) in notes.drain(..) {
                seg.note(ts, at, len);
            }
            seg.synced = seg.end;
        }
        Ok(())
    }
    /// The file being written, its end, and how much of it is synced.
    fn active(&self) -> Result<(Arc<dyn DiskFile>, u64, u64)> {
        let mut segments = self.lock();
        let fresh = match segments.back() {
            Some(seg) if !seg.sealed => None,
            Some(seg) => Some(seg.number + 1),
            None => Some(1),
        };
        if let Some(number) = fresh {
            let seg =
                Segment::create(&*self.disk, DIR, path(self.payloads.log, number), number, &self.payloads)?;
            segments.push_back(seg);
        }
        let seg = segments.back().expect("a segment was just made sure of");
        Ok((seg.file.clone(), seg.end, seg.synced))
    }
    /// Ends the file being written (index and foot, synced); the next append starts another.
    pub(crate) fn seal(&self) -> Result<()> {
        self.unless_failed(|| self.seal_active())
    }
    fn seal_active(&self) -> Result<()> {
        let (file, end, foot) = {
            let segments = self.lock();
            match segments.back() {
                Some(seg) if !seg.sealed && seg.first != 0 => (seg.file.clone(), seg.end, seg.foot()),
                _ => return Ok(()),
            }
        };
        file.write_at(end, &foot)?;
        file.sync()?;
        if let Some(seg) = self.lock().back_mut() {
            seg.sealed = true;
        }
        Ok(())
    }

    /// Drops whole files from the front while `may_drop(bytes left without it, last timestamp in it)`.
    pub(crate) fn truncate_front(&self, mut may_drop: impl FnMut(u64, u64) -> bool) -> Result<usize> {
        self.unless_failed(|| {
            let mut gone = 0;
            while let Some(path) = self.pop_front_if(&mut may_drop) {
                // The oldest first, each removal durable: a crash leaves a log that begins earlier, never one with a gap.
                self.disk.remove(&path)?;
                self.disk.sync_dir(DIR)?;
                self.dropped.fetch_add(1, Ordering::Relaxed);
                gone += 1;
            }
            Ok(gone)
        })
    }
    fn pop_front_if(&self, may_drop: &mut impl FnMut(u64, u64) -> bool) -> Option<String> {
        let mut segments = self.lock();
        let total: u64 = segments.iter().map(|s| s.end).sum();
        let front = segments.front().filter(|_| segments.len() > 1)?;
        let goes = may_drop(total - front.end, front.last);
        if goes { segments.pop_front().map(|s| s.path) } else { None }
    }

    /// Removes every record above `ts`. No append may run.
    pub(crate) fn truncate_after(&self, ts: u64) -> Result<()> {
        self.unless_failed(|| self.cut_after(ts))
    }
    fn cut_after(&self, ts: u64) -> Result<()> {
        self.cuts.fetch_add(1, Ordering::AcqRel);
        let mut segments = self.lock();
        while let Some(back) = segments.back() {
            if back.first != 0 && back.first <= ts {
                break;
            }
            // From the back, each removal durable: a crash leaves a shorter log, never one with a gap.
            let path = back.path.clone();
            self.disk.remove(&path)?;
            self.disk.sync_dir(DIR)?;
            segments.pop_back();
        }
        if let Some(seg) = segments.back_mut()
            && (seg.last > ts || seg.sealed)
        {
            let (cut, last) = seg.cut_after(ts)?;
            seg.file.truncate(cut)?;
            seg.file.sync()?;
            seg.index.retain(|(_, at)| u64::from(*at) < cut);
            (seg.end, seg.synced, seg.last, seg.sealed) = (cut, cut, last, false);
        }
        Ok(())
    }

    /// Up to about `max` records from `from` on (or just after it), within one file, and not many more bytes than a batch should have.
    pub(crate) fn read_forward(&self, from: u64, inclusive: bool, max: usize) -> Result<Vec<(u64, Vec<u8>)>> {
        let wanted = |ts: u64| ts > from || (inclusive && ts == from);
        let view: Option<SegmentView> = {
            let segments = self.lock();
            let i = segments.partition_point(|s| s.first != 0 && !wanted(s.last));
            segments.get(i).map(|s| s.view_at(from))
        };
        let Some(view) = view else { return Ok(Vec::new()) };
        self.collect(&view, wanted, max, limits::OPLOG_READ_BATCH_BYTES)
    }
    /// Records at or below `from`, newest first, from one stretch of a file.
    pub(crate) fn read_backward(&self, from: u64, inclusive: bool) -> Result<Vec<(u64, Vec<u8>)>> {
        let wanted = |ts: u64| ts < from || (inclusive && ts == from);
        let view: Option<SegmentView> = {
            let segments = self.lock();
            let i = segments.partition_point(|s| s.first != 0 && wanted(s.first));
            i.checked_sub(1).and_then(|i| segments.get(i)).map(|s| s.view_before(from, inclusive))
        };
        let Some(view) = view else { return Ok(Vec::new()) };
        let mut out = self.collect(&view, wanted, usize::MAX, usize::MAX)?;
        out.reverse();
        Ok(out)
    }
    /// Up to `max` wanted records of a view, until they come to so many bytes.
    fn collect(
        &self,
        view: &SegmentView,
        wanted: impl Fn(u64) -> bool,
        max: usize,
        bytes_max: usize,
    ) -> Result<Vec<(u64, Vec<u8>)>> {
        let (mut out, mut bytes, mut failed) = (Vec::new(), 0, Ok(()));
        view.walk(|r, _| {
            if wanted(r.ts) {
                match self.payloads.of(&r, &view.path) {
                    Ok(payload) => {
                        bytes += payload.len();
                        out.push((r.ts, payload));
                    }
                    Err(e) => failed = Err(e),
                }
            }
            out.len() < max && bytes < bytes_max && failed.is_ok()
        })?;
        failed.map(|()| out)
    }
}

/// The pages of a written stretch that are full. The last one is written to again, and a page that is not cached would
/// have to be read from the disk for that.
fn whole_pages(from: u64, to: u64) -> (u64, u64) {
    (from / PAGE * PAGE, to / PAGE * PAGE)
}

fn path(prefix: &str, number: u64) -> String {
    format!("{DIR}/{prefix}.{number:010}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::FaultyDisk;

    #[test]
    fn the_page_that_is_written_to_next_stays_in_the_cache() {
        assert_eq!(whole_pages(100, 300), (0, 0));
        assert_eq!(whole_pages(4000, 4200), (0, 4096));
        assert_eq!(whole_pages(4200, 3 * 4096), (4096, 3 * 4096));
    }

    #[test]
    fn after_a_failed_append_nothing_more_is_written() {
        for lost in [true, false] {
            let disk = Arc::new(FaultyDisk::new(7));
            let log = LogFiles::open(disk.clone(), Payloads::new("log", None), 1 << 20).expect("a log");
            let append = |ts: u64| log.append([(ts, &b"payload"[..])].into_iter());
            append(1).expect("written");
            if lost {
                disk.lose_sync_in(0);
            } else {
                disk.fail_write_once_in(0);
            }
            assert!(append(2).is_err());
            assert!(append(3).is_err(), "it would lie where the record before it may lie");
            assert!(log.seal().is_err() && log.truncate_after(0).is_err());
            assert!(log.truncate_front(|_, _| true).is_err());
            assert_eq!(log.last(), 1);
        }
    }

    /// Each removal is durable before the next: at no power cut is there a file before a missing one.
    #[test]
    fn files_go_from_the_front_one_by_one() {
        for seed in 0..20 {
            let disk = Arc::new(FaultyDisk::new(seed));
            let log = LogFiles::open(disk.clone(), Payloads::new("log", None), 64).expect("a log");
            for ts in 1..=9 {
                log.append([(ts, &[7u8; 60][..])].into_iter()).expect("written");
            }
            disk.shuffle_names(true);
            disk.fail_sync_dir_in(seed % 8);
            assert!(log.truncate_front(|_, _| true).is_err());
            drop(log);
            disk.crash();
            let again = LogFiles::open(disk.clone(), Payloads::new("log", None), 64).expect("no gap");
            assert_eq!(again.last(), 9);
        }
    }

    /// Written, not synced, then the process is killed: the next one finds the record and calls it durable, so a power
    /// cut after that must not take it away.
    #[test]
    fn what_a_killed_process_left_unsynced_is_synced_when_it_is_found() {
        for seed in 0..20 {
            let disk = Arc::new(FaultyDisk::new(seed));
            let open = || LogFiles::open(disk.clone(), Payloads::new("log", None), 1 << 20).expect("a log");
            let log = open();
            log.append([(1, &b"synced"[..])].into_iter()).expect("written");
            let (file, at, synced) = log.active().expect("a segment");
            let mut record = Vec::new();
            Payloads::new("log", None).encode(&mut record, 2, synced as u32, b"written");
            file.write_at(at, &record).expect("written");
            drop((log, file));
            disk.kill();
            assert_eq!(open().last(), 2);
            disk.crash();
            assert_eq!(open().last(), 2, "seed {seed}");
        }
    }

    /// A failed sync has dropped what was written, and the machine goes on: its memory shows the next process a record
    /// that is not on the disk and that no sync brings there.
    #[test]
    fn what_a_failed_sync_has_dropped_is_written_again_when_it_is_found() {
        for sealed in [false, true] {
            for seed in 0..20 {
                let disk = Arc::new(FaultyDisk::new(seed));
                let open =
                    || LogFiles::open(disk.clone(), Payloads::new("log", None), 1 << 20).expect("a log");
                let log = open();
                let append = |log: &LogFiles, ts: u64| log.append([(ts, &b"payload"[..])].into_iter());
                append(&log, 1).expect("written");
                if sealed {
                    append(&log, 2).expect("written");
                }
                disk.lose_sync_in(0);
                let failed = if sealed { log.seal() } else { append(&log, 2) };
                assert!(failed.is_err());
                disk.kill();
                let log = open();
                assert_eq!(log.last(), 2);
                append(&log, 3).expect("written");
                disk.crash();
                assert_eq!(open().last(), 3, "seed {seed}");
            }
        }
    }

    /// Killed, or out of luck, between the making of a file and the sync of its folder: the next process writes into it.
    #[test]
    fn a_file_whose_name_was_never_synced_stays_once_it_is_found() {
        for seed in 0..20 {
            let disk = Arc::new(FaultyDisk::new(seed));
            let open = || LogFiles::open(disk.clone(), Payloads::new("log", None), 1 << 20).expect("a log");
            let append = |log: &LogFiles, ts: u64| log.append([(ts, &b"payload"[..])].into_iter());
            let log = open();
            disk.fail_sync_dir_in(0);
            assert!(append(&log, 1).is_err());
            disk.kill();
            disk.mend();
            append(&open(), 1).expect("written");
            disk.crash();
            assert_eq!(open().last(), 1, "seed {seed}");
        }
    }

    /// The head of a file is dropped by the sync that fails; the next process writes its first record behind it.
    #[test]
    fn a_head_that_a_failed_sync_has_dropped_is_written_again() {
        for seed in 0..20 {
            let disk = Arc::new(FaultyDisk::new(seed));
            let open = || LogFiles::open(disk.clone(), Payloads::new("log", None), 1 << 20).expect("a log");
            let append = |log: &LogFiles, ts: u64| log.append([(ts, &b"payload"[..])].into_iter());
            let log = open();
            disk.lose_sync_in(0);
            assert!(append(&log, 1).is_err());
            disk.kill();
            append(&open(), 1).expect("written");
            disk.crash();
            assert_eq!(open().last(), 1, "seed {seed}");
        }
    }
}
