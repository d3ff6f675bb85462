//! What a rollback takes away stays readable for people: documents as this member holds them just before, in BSON
//! files under `<dbpath>/rollback/<collection uuid>/removed.<time>.<n>.bson` (R-RB-6).
//!
//! Nothing is changed before all files are on disk. If they cannot be written the process ends, and the next one
//! rolls back again.

use crate::Server;
use pando_base::{Error, Result, Uuid, limits};
use pando_bson::RawDoc;
use pando_catalog::{Catalog, find_by_id};
use pando_env::{Component, Disk, Env};
use pando_query::date;
use pando_repl::data::Undone;
use pando_storage::ReadAt;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub(crate) const DIR: &str = "rollback";

impl Server {
    /// Returns how many documents were kept.
    pub(crate) async fn keep_undone_documents(&self, undone: Arc<Undone>) -> Result<u64> {
        let files = Files {
            env: self.env.clone(),
            catalog: self.catalog.clone(),
            next: self.rollbacks.files.clone(),
        };
        let written = self.env.offload(move || files.write_all(&undone)).await;
        written.unwrap_or_else(|| Err(Error::internal("writing rollback files panicked")))
    }
}

struct Files {
    env: Env,
    catalog: Catalog,
    /// Number of the next file of this process.
    next: Arc<AtomicU64>,
}

impl Files {
    fn write_all(&self, undone: &Undone) -> Result<u64> {
        let written = undone.documents.iter().map(|(uuid, ids)| self.write_of(*uuid, ids));
        written.sum::<Result<u64>>().map_err(|e| {
            e.context(
                "rollback files cannot be written (make room in the data directory, or start with \
                 --setParameter createRollbackDataFiles=false to do without them)",
            )
        })
    }

    fn write_of(&self, uuid: Uuid, ids: &BTreeSet<Vec<u8>>) -> Result<u64> {
        let Some(coll) = self.catalog.lookup_uuid(uuid) else {
            self.env.log.info(
                Component::Rollback,
                21608,
                "The collection of rolled back documents is dropped; no rollback file is written",
                |a| {
                    a.show("uuid", uuid);
                },
            );
            return Ok(0);
        };
        let txn = self.catalog.begin_read(ReadAt::Applied)?;
        let mut file = None;
        let mut documents = 0;
        for id in ids {
            // Deleted again by a later entry.
            let Some((_, doc)) = find_by_id(&txn, &coll, RawDoc::trusted(id))? else { continue };
            if file.is_none() {
                file = Some(File::create(&*self.env.disk, self.new_path(uuid))?);
            }
            file.as_mut().map_or(Ok(()), |f| f.add(&doc))?;
            documents += 1;
        }
        let Some(mut file) = file else { return Ok(0) };
        file.finish(&*self.env.disk)?;
        self.env.log.info(Component::Rollback, 21609, "Wrote a rollback file", |a| {
            a.str("namespace", coll.ns.as_str()).show("uuid", uuid).str("file", &file.path);
            a.u64("documents", documents);
        });
        Ok(documents)
    }

    /// A name that no other process has used either.
    fn new_path(&self, uuid: Uuid) -> String {
        let time = date::iso(self.env.clock.wall_ms()).replace(':', "-");
        let seconds = time.split('.').next().unwrap_or_default();
        loop {
            let n = self.next.fetch_add(1, Relaxed);
            let path = format!("{DIR}/{uuid}/removed.{seconds}.{n}.bson");
            if !self.env.disk.exists(&path) {
                return path;
            }
        }
    }
}

struct File {
    path: String,
    file: Arc<dyn pando_env::DiskFile>,
    len: u64,
    waiting: Vec<u8>,
}

impl File {
    fn create(disk: &dyn Disk, path: String) -> Result<File> {
        disk.create_dir_all(dir_of(&path))?;
        let file = disk.open(&path, true)?;
        Ok(File { path, file, len: 0, waiting: Vec::new() })
    }
    fn add(&mut self, doc: &[u8]) -> Result<()> {
        self.waiting.extend_from_slice(doc);
        if self.waiting.len() < limits::ROLLBACK_FILE_WRITE_BYTES { Ok(()) } else { self.flush() }
    }
    fn flush(&mut self) -> Result<()> {
        self.file.write_at(self.len, &self.waiting)?;
        self.len += self.waiting.len() as u64;
        self.waiting.clear();
        Ok(())
    }
    fn finish(&mut self, disk: &dyn Disk) -> Result<()> {
        self.flush()?;
        self.file.sync()?;
        for dir in [dir_of(&self.path), DIR, "."] {
            disk.sync_dir(dir)?;
        }
        Ok(())
    }
}

fn dir_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(dir, _)| dir)
}
