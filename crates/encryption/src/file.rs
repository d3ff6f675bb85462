//! One file that is sealed page by page.
//!
//! ```text
//!   PANDOEF1 │ name of the file, 16 random bytes │ page │ page │ … │ last page, as long as it is
//! ```
//! A page is bound to its file's name and its number. Writing into a page seals it anew, so a crash may leave the page that was
//! being written unreadable: such files count when they are whole and synced, and no sooner.

use crate::keys::{Keys, OVERHEAD, Purpose};
use pando_base::limits::SEALED_PAGE_BYTES;
use pando_base::panics::poisoned;
use pando_base::sync::Mutex;
use pando_env::DiskFile;
use std::io;
use std::ops::Range;
use std::sync::Arc;

const MAGIC: &[u8; 8] = b"PANDOEF1";
const NAME: usize = 16;
const HEAD: usize = MAGIC.len() + NAME;
/// Bytes of a page as it is read, and on disk.
const PAGE: usize = SEALED_PAGE_BYTES - OVERHEAD;
const ON_DISK: usize = SEALED_PAGE_BYTES;
const PAGES_READ_AT_ONCE: usize = 16;

pub(crate) struct SealedFile {
    file: Arc<dyn DiskFile>,
    keys: Arc<Keys>,
    path: String,
    state: Mutex<State>,
}

struct State {
    /// `None`: nothing is written yet.
    name: Option<[u8; NAME]>,
    len: u64,
    /// The page that was used last.
    page: Option<(u64, Page)>,
}

/// Bytes of a page, within those that they were read with.
struct Page {
    bytes: Vec<u8>,
    start: usize,
}

impl Page {
    fn new() -> Page {
        Page { bytes: Vec::new(), start: 0 }
    }
    fn data(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
    fn put(&mut self, at: usize, data: &[u8]) {
        let (from, to) = (self.start + at, self.start + at + data.len());
        self.bytes.resize(self.bytes.len().max(to), 0);
        self.bytes[from..to].copy_from_slice(data);
    }
}

fn place(page: u64) -> u64 {
    HEAD as u64 + page * ON_DISK as u64
}

fn bound(name: &[u8; NAME], page: u64) -> [u8; NAME + 8] {
    let mut out = [0; NAME + 8];
    out[..NAME].copy_from_slice(name);
    out[NAME..].copy_from_slice(&page.to_le_bytes());
    out
}

impl SealedFile {
    pub(crate) fn open(file: Arc<dyn DiskFile>, keys: Arc<Keys>, path: &str) -> io::Result<SealedFile> {
        let on_disk = file.len()?;
        let mut state = State { name: None, len: 0, page: None };
        if on_disk >= HEAD as u64 {
            let mut head = [0; HEAD];
            file.read_at(0, &mut head)?;
            let (magic, name) = head.split_at(MAGIC.len());
            if magic != MAGIC {
                return Err(io::Error::new(io::ErrorKind::InvalidData, format!("{path} is not encrypted")));
            }
            let body = on_disk - HEAD as u64;
            let rest = (body % ON_DISK as u64).saturating_sub(OVERHEAD as u64);
            state.len = body / ON_DISK as u64 * PAGE as u64 + rest;
            state.name = name.try_into().ok();
        }
        Ok(SealedFile { file, keys, path: path.to_owned(), state: Mutex::new(state) })
    }
    fn damaged(&self) -> io::Error {
        let text =
            format!("{} is damaged, or was encrypted with a key that is not in the key store", self.path);
        io::Error::new(io::ErrorKind::InvalidData, text)
    }
    fn page_len(len: u64, page: u64) -> usize {
        len.saturating_sub(page * PAGE as u64).min(PAGE as u64) as usize
    }

    /// Makes sure that the page is the one in `state`.
    fn load(&self, state: &mut State, page: u64) -> io::Result<()> {
        if state.page.as_ref().is_some_and(|(n, _)| *n == page) {
            return Ok(());
        }
        let len = SealedFile::page_len(state.len, page);
        let Some(name) = state.name.filter(|_| len > 0) else {
            state.page = Some((page, Page::new()));
            return Ok(());
        };
        let mut bytes = state.page.take().map(|(_, page)| page.bytes).unwrap_or_default();
        bytes.resize(len + OVERHEAD, 0);
        let got = self.file.read_at(place(page), &mut bytes)?;
        let data = self.opened(&name, page, len, &mut bytes[..got])?;
        bytes.truncate(data.end);
        state.page = Some((page, Page { bytes, start: data.start }));
        Ok(())
    }
    fn opened(
        &self,
        name: &[u8; NAME],
        page: u64,
        len: usize,
        sealed: &mut [u8],
    ) -> io::Result<Range<usize>> {
        let data = self.keys.open(Purpose::Page, &bound(name, page), sealed);
        data.filter(|d| d.len() == len).ok_or_else(|| self.damaged())
    }
    /// Reads whole pages from `page` on at once into `buf`, which has room for at least one, and returns how many bytes.
    fn read_whole(&self, state: &State, mut page: u64, buf: &mut [u8]) -> io::Result<usize> {
        let Some(name) = state.name else { return Ok(0) };
        let pages = (buf.len() / PAGE).min(PAGES_READ_AT_ONCE);
        let mut sealed = vec![0; pages * ON_DISK];
        let got = self.file.read_at(place(page), &mut sealed)?;
        for (sealed, to) in sealed[..got].chunks_mut(ON_DISK).zip(buf.chunks_exact_mut(PAGE)) {
            let data = self.opened(&name, page, PAGE, sealed)?;
            to.copy_from_slice(&sealed[data]);
            page += 1;
        }
        if got < pages * ON_DISK {
            return Err(self.damaged());
        }
        Ok(pages * PAGE)
    }
    fn name(&self, state: &mut State) -> io::Result<[u8; NAME]> {
        if let Some(name) = state.name {
            return Ok(name);
        }
        let mut head = [0; HEAD];
        head[..MAGIC.len()].copy_from_slice(MAGIC);
        self.keys.fill(&mut head[MAGIC.len()..]);
        self.file.truncate(0)?;
        self.file.write_at(0, &head)?;
        let mut name = [0; NAME];
        name.copy_from_slice(&head[MAGIC.len()..]);
        state.name = Some(name);
        Ok(name)
    }
    fn write(&self, state: &mut State, offset: u64, mut buf: &[u8]) -> io::Result<()> {
        let name = self.name(state)?;
        let first = offset / PAGE as u64;
        let (mut page, mut within) = (first, (offset % PAGE as u64) as usize);
        let mut out = Vec::with_capacity(buf.len() / PAGE * ON_DISK + 2 * ON_DISK);
        let mut len = state.len;
        while !buf.is_empty() {
            let (now, rest) = buf.split_at(buf.len().min(PAGE - within));
            let end = if now.len() == PAGE {
                // Whole pages are not kept: who writes so much goes on behind them.
                if state.page.as_ref().is_some_and(|(n, _)| *n == page) {
                    state.page = None;
                }
                self.keys.seal(Purpose::Page, &bound(&name, page), now, &mut out);
                PAGE
            } else {
                self.load(state, page)?;
                let Some((_, kept)) = &mut state.page else { return Err(self.damaged()) };
                kept.put(within, now);
                self.keys.seal(Purpose::Page, &bound(&name, page), kept.data(), &mut out);
                kept.data().len()
            };
            len = len.max(page * PAGE as u64 + end as u64);
            (page, within, buf) = (page + 1, 0, rest);
        }
        let written = self.file.write_at(place(first), &out);
        match written {
            Ok(()) => state.len = len,
            // What the disk holds now is not known.
            Err(_) => state.page = None,
        }
        written
    }
    fn extend(&self, state: &mut State, to: u64) -> io::Result<()> {
        let zeros = [0; PAGE];
        while state.len < to {
            let n = (to - state.len).min(PAGE as u64) as usize;
            self.write(state, state.len, &zeros[..n])?;
        }
        Ok(())
    }
}

impl DiskFile for SealedFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        let mut state = self.state.lock().unwrap_or_else(poisoned);
        let want = state.len.saturating_sub(offset).min(buf.len() as u64) as usize;
        let mut done = 0;
        while done < want {
            let at = offset + done as u64;
            let (page, within) = (at / PAGE as u64, (at % PAGE as u64) as usize);
            if within == 0 && want - done >= 2 * PAGE {
                done += self.read_whole(&state, page, &mut buf[done..want])?;
                continue;
            }
            self.load(&mut state, page)?;
            let Some((_, kept)) = &state.page else { return Err(self.damaged()) };
            let part = kept.data().get(within..).ok_or_else(|| self.damaged())?;
            let n = part.len().min(want - done);
            if n == 0 {
                return Err(self.damaged());
            }
            buf[done..done + n].copy_from_slice(&part[..n]);
            done += n;
        }
        Ok(done)
    }
    fn write_at(&self, offset: u64, buf: &[u8]) -> io::Result<()> {
        let mut state = self.state.lock().unwrap_or_else(poisoned);
        self.extend(&mut state, offset)?;
        if buf.is_empty() { Ok(()) } else { self.write(&mut state, offset, buf) }
    }
    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }
    fn len(&self) -> io::Result<u64> {
        Ok(self.state.lock().unwrap_or_else(poisoned).len)
    }
    fn truncate(&self, len: u64) -> io::Result<()> {
        let mut state = self.state.lock().unwrap_or_else(poisoned);
        if len >= state.len {
            return self.extend(&mut state, len);
        }
        let (page, rest) = (len / PAGE as u64, (len % PAGE as u64) as usize);
        if rest > 0 {
            self.load(&mut state, page)?;
        }
        self.file.truncate(if len == 0 { 0 } else { place(page) })?;
        let kept = state.page.take().filter(|(n, _)| *n == page && rest > 0);
        state.len = page * PAGE as u64;
        if len == 0 {
            state.name = None;
        }
        match kept {
            Some((_, kept)) => self.write(&mut state, page * PAGE as u64, &kept.data()[..rest]),
            None => Ok(()),
        }
    }
    fn forget_cached(&self, from: u64, to: u64) {
        let page = |at: u64| place(at / PAGE as u64);
        self.file.forget_cached(page(from), page(to));
    }
}
