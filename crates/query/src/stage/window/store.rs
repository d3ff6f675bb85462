//! The documents of a partition: in memory, and in a file as soon as they are too many.
//!
//! Windows move forward, so documents are read back in stretches, one for each end of a window that somebody follows.

use crate::facts::Facts;
use crate::sort::{SpillFile, SpillSpace};
use crate::stage::Row;
use bytes::Bytes;
use pando_base::limits::{SORT_IO_BYTES, WINDOW_STRETCHES_MAX};
use pando_base::{Error, Result};
use std::cell::RefCell;
use std::sync::Arc;

pub(super) struct Store {
    memory: Vec<Row>,
    bytes: usize,
    bytes_max: usize,
    space: Option<Arc<dyn SpillSpace>>,
    disk: Option<Disk>,
}

struct Disk {
    file: Box<dyn SpillFile>,
    /// Where each document ends.
    ends: Vec<u64>,
    /// The latest one last.
    stretches: RefCell<Vec<Stretch>>,
}

/// Documents that lie together.
struct Stretch {
    first: usize,
    rows: Vec<Row>,
}

fn no_disk() -> Error {
    Error::location(5_643_011, "Exceeded max memory. Set 'allowDiskUse: true' to spill to disk")
}

impl Store {
    pub(super) fn new(space: Option<Arc<dyn SpillSpace>>, bytes_max: usize) -> Store {
        Store { memory: Vec::new(), bytes: 0, bytes_max, space, disk: None }
    }

    pub(super) fn len(&self) -> usize {
        self.disk.as_ref().map_or(self.memory.len(), |d| d.ends.len())
    }

    /// Bytes in memory, and whether there is more on disk.
    pub(super) fn used(&self) -> (usize, bool) {
        (self.bytes, self.disk.is_some())
    }

    pub(super) fn push(&mut self, row: Row) -> Result<()> {
        if let Some(disk) = &mut self.disk {
            return disk.append(&row);
        }
        self.bytes += row.bytes().len() + row.facts().map_or(0, Facts::byte_len) + size_of::<Row>();
        self.memory.push(row);
        if self.bytes <= self.bytes_max {
            return Ok(());
        }
        let file = self.space.as_ref().ok_or_else(no_disk)?.create()?;
        let mut disk = Disk { file, ends: Vec::new(), stretches: RefCell::default() };
        for row in std::mem::take(&mut self.memory) {
            disk.append(&row)?;
        }
        self.disk = Some(disk);
        Ok(())
    }

    #[inline]
    pub(super) fn row(&self, at: usize) -> Result<Row> {
        match &self.disk {
            None => Ok(self.memory[at].clone()),
            Some(disk) => disk.row(at),
        }
    }
}

impl Disk {
    fn append(&mut self, row: &Row) -> Result<()> {
        let mut facts = Vec::new();
        Facts::encode(row.facts(), &mut facts);
        self.file.append(&facts)?;
        self.file.append(row.bytes())?;
        self.ends.push(self.file.len());
        Ok(())
    }

    fn start(&self, at: usize) -> u64 {
        if at == 0 { 0 } else { self.ends[at - 1] }
    }

    fn row(&self, at: usize) -> Result<Row> {
        let mut stretches = self.stretches.borrow_mut();
        let known = stretches.iter().position(|s| s.first <= at && at < s.first + s.rows.len());
        let stretch = match known {
            Some(i) => stretches.remove(i),
            None => self.read(at)?,
        };
        let row = stretch.rows[at - stretch.first].clone();
        if stretches.len() == WINDOW_STRETCHES_MAX {
            stretches.remove(0);
        }
        stretches.push(stretch);
        Ok(row)
    }

    /// From one document on, as many as one read takes.
    fn read(&self, at: usize) -> Result<Stretch> {
        let from = self.start(at);
        let more = self.ends[at + 1..].partition_point(|end| *end <= from + SORT_IO_BYTES as u64);
        let last = at + more;
        let mut buf = vec![0; (self.ends[last] - from) as usize];
        if self.file.read_at(from, &mut buf)? != buf.len() {
            return Err(Error::internal("a partition on disk is damaged"));
        }
        let buf = Bytes::from(buf);
        let row = |i: usize| {
            let (start, end) = ((self.start(i) - from) as usize, (self.ends[i] - from) as usize);
            let mut rest = &buf[start..end];
            let facts = Facts::decode(&mut rest)?;
            Ok(Row::new(buf.slice(end - rest.len()..end)).with_facts(facts))
        };
        Ok(Stretch { first: at, rows: (at..=last).map(row).collect::<Result<_>>()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sort::tests::MemSpill;
    use pando_bson::DocBuilder;

    fn row(i: usize) -> Row {
        let mut b = DocBuilder::new();
        b.i32("i", i as i32).str("filler", &"x".repeat(i % 700));
        b.finish().into()
    }

    #[test]
    fn documents_on_disk_are_those_that_were_put_in_wherever_one_looks() {
        let mut store = Store::new(Some(Arc::new(MemSpill::default())), 10_000);
        (0..5000).for_each(|i| store.push(row(i)).unwrap());
        assert!(store.disk.is_some() && store.memory.is_empty());
        assert_eq!(store.len(), 5000);
        for at in 0..5000 {
            for at in [at, at / 2, 4999 - at, (at * 7919) % 5000] {
                assert_eq!(store.row(at).unwrap().bytes(), row(at).bytes(), "{at}");
            }
        }
    }

    #[test]
    fn without_a_disk_the_bound_holds() {
        let mut store = Store::new(None, 10_000);
        let full = (0..5000).find_map(|i| store.push(row(i)).err());
        assert_eq!(full.map(|e| e.code.0), Some(5_643_011));
    }
}
