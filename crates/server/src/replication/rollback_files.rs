//! What a rollback takes away stays readable for people: documents as this member holds them just before, in BSON
//! files under `<dbpath>/rollback/<collection uuid>/removed.<time>.<n>.bson` (R-RB-6).
//!
//! Nothing is changed before all files are on disk. If they cannot be written the process ends, and the next one
//! rolls back again.

use super::Replication;
use pando_access::{Collection, Maintenance};
use pando_base::{Error, Result, Timestamp, Uuid, limits};
use pando_bson::RawDoc;
use pando_command::Param;
use pando_env::{Component, Disk, Env};
use pando_query::date;
use pando_repl::data::touched::Touched;
use pando_storage::Storage;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub(crate) const DIR: &str = "rollback";

impl Replication {
    /// Of what the entries above `common` inserted or updated. Returns how many documents were kept: none where the operator
    /// wants no files.
    pub(crate) async fn keep_undone_documents(&self, common: Timestamp) -> Result<u64> {
        if !self.instance.params.bool(Param::createRollbackDataFiles) {
            return Ok(0);
        }
        let files = Files {
            env: self.env.clone(),
            maintenance: self.maintenance.clone(),
            storage: self.storage.clone(),
            next: self.rollbacks.files.clone(),
            open: None,
            documents: 0,
        };
        let written = self.env.offload(move || files.write_all(common)).await;
        written.unwrap_or_else(|| Err(Error::internal("writing rollback files panicked")))
    }
}

struct Files {
    env: Env,
    maintenance: Maintenance,
    storage: Storage,
    /// Number of the next file of this process.
    next: Arc<AtomicU64>,
    open: Option<Open>,
    documents: u64,
}

/// The collection that is being written.
struct Open {
    uuid: Uuid,
    /// `None` when it was dropped.
    coll: Option<Arc<Collection>>,
    file: Option<File>,
    documents: u64,
}

impl Files {
    fn write_all(mut self, common: Timestamp) -> Result<u64> {
        let mut touched = Touched::new(self.storage.log(), common, false);
        let mut write_all = || -> Result<u64> {
            while let Some(some) = touched.next()? {
                some.iter().try_for_each(|(uuid, id)| self.write(*uuid, id))?;
            }
            self.finish()?;
            Ok(self.documents)
        };
        write_all().map_err(|e| {
            e.context(
                "rollback files cannot be written (make room in the data directory, or start with \
                 --setParameter createRollbackDataFiles=false to do without them)",
            )
        })
    }

    /// Collections come one after the other.
    fn write(&mut self, uuid: Uuid, id: &[u8]) -> Result<()> {
        if self.open.as_ref().is_none_or(|open| open.uuid != uuid) {
            self.finish()?;
            let coll = self.maintenance.collection_to_roll_back(uuid);
            if coll.is_none() {
                self.tell_dropped(uuid);
            }
            self.open = Some(Open { uuid, coll, file: None, documents: 0 });
        }
        let Some(Open { coll: Some(coll), .. }) = &self.open else { return Ok(()) };
        // Deleted again by a later entry.
        let Some(doc) = self.maintenance.applied_document(coll, RawDoc::trusted(id))? else { return Ok(()) };
        if self.open.as_ref().is_some_and(|open| open.file.is_none()) {
            let file = File::create(&*self.env.disk, self.new_path(uuid))?;
            if let Some(open) = &mut self.open {
                open.file = Some(file);
            }
        }
        let Some(Open { file: Some(file), documents, .. }) = &mut self.open else { return Ok(()) };
        *documents += 1;
        file.add(&doc)
    }

    fn finish(&mut self) -> Result<()> {
        let Some(Open { uuid, coll: Some(coll), file: Some(mut file), documents }) = self.open.take() else {
            return Ok(());
        };
        file.finish(&*self.env.disk)?;
        self.documents += documents;
        self.env.log.info(Component::Rollback, 21609, "Wrote a rollback file", |a| {
            a.str("namespace", coll.ns.as_str()).show("uuid", uuid).str("file", &file.path);
            a.u64("documents", documents);
        });
        Ok(())
    }
    fn tell_dropped(&self, uuid: Uuid) {
        self.env.log.info(
            Component::Rollback,
            21608,
            "The collection of rolled back documents is dropped; no rollback file is written",
            |a| {
                a.show("uuid", uuid);
            },
        );
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
        pando_env::disk::make_folder(disk, dir_of(&path))?;
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
