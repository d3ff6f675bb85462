//! The documents that a rollback would undo, as the sync source has them now (R-REF-2, R-REF-3).
//!
//! Everything is in a file here before anything is changed: a source that fails on the way can be replaced by another.

use crate::data::Deps;
use crate::data::background_sync::{end_of_oplog, probe};
use crate::data::cursor_reply::CursorReply;
use crate::data::metadata::op_time_of;
use crate::data::touched::{Key, Touched};
use pando_base::{Error, ErrorCode, OpTime, Result, Timestamp, Uuid, limits};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};
use pando_catalog::FetchedFile;
use pando_rpc::{Failure, Retry};
use std::collections::BTreeSet;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(limits::SYNC_SOURCE_CALL_SECS_MAX);

/// What was fetched.
#[derive(Clone, Copy, Debug)]
pub struct Fetched {
    /// The documents may be as new as this: until the log is applied up to here they do not belong together.
    pub min_valid: OpTime,
    pub documents: u64,
}

/// Fetches what our entries above `common` are about, which `source` holds.
pub async fn fetch(deps: &Deps, source: &str, common: Timestamp) -> Result<Fetched> {
    let rbid = probe(deps, source).await.map_err(of_source)?.rbid;
    let disk = &*deps.env.disk;
    let mut file = FetchedFile::create(disk)?;
    let mut touched = Touched::new(deps.catalog.storage().log(), common, true);
    let mut documents = 0;
    while let Some(keys) = touched.next()? {
        let keys: Vec<Key> = keys.into_iter().collect();
        for of_one in keys.chunk_by(|a, b| a.0 == b.0) {
            for some in of_one.chunks(limits::REFETCH_DOCS) {
                documents += some.len() as u64;
                let (uuid, db) = (some[0].0, touched.database_of(some[0].0));
                Fetch { deps, source, uuid, db, keys: some }.run(&mut file).await?;
            }
        }
    }
    file.finish(disk)?;
    let min_valid = newest(deps, source).await?;
    if probe(deps, source).await.map_err(of_source)?.rbid != rbid {
        return Err(invalid("the sync source rolled back while documents were fetched from it"));
    }
    Ok(Fetched { min_valid, documents })
}

fn invalid(text: &'static str) -> Error {
    Error::new(ErrorCode::InvalidSyncSource, text)
}
/// Nothing has been changed yet: another source may do.
fn of_source(f: Failure) -> Error {
    Error::new(ErrorCode::InvalidSyncSource, format!("documents cannot be fetched: {}", f.error.message))
}

/// Nothing fetched until now is newer.
async fn newest(deps: &Deps, source: &str) -> Result<OpTime> {
    let newest = end_of_oplog(deps, source, -1).await.map_err(of_source)?;
    let newest = newest.ok_or_else(|| invalid("the sync source shows no oplog"))?;
    Ok(op_time_of(Some(Value::Document(&newest))))
}

/// Documents of one collection.
struct Fetch<'a> {
    deps: &'a Deps,
    source: &'a str,
    uuid: Uuid,
    db: &'a str,
    keys: &'a [Key],
}

impl Fetch<'_> {
    async fn run(&self, file: &mut FetchedFile) -> Result<()> {
        // First what is gone, so that what equals it (1 and 1.0) finds its place.
        let mut there = BTreeSet::new();
        let ids_only = |b: &mut DocBuilder| {
            b.doc("projection", |p| {
                p.i32("_id", 1);
            });
        };
        self.find(ids_only, |doc| {
            there.insert(id_of(doc).as_bytes().to_vec());
            Ok(())
        })
        .await?;
        let gone = self.keys.iter().filter(|(_, id)| !there.contains(id));
        gone.into_iter().try_for_each(|(uuid, id)| file.add(*uuid, id, None))?;
        let with_record_ids = |b: &mut DocBuilder| {
            b.bool("showRecordId", true);
        };
        self.find(with_record_ids, |doc| {
            let id = id_of(doc);
            there.remove(id.as_bytes());
            file.add(self.uuid, id.as_bytes(), Some(doc))
        })
        .await?;
        // Gone meanwhile.
        there.iter().try_for_each(|id| file.add(self.uuid, id, None))
    }

    async fn find(
        &self,
        how: impl Fn(&mut DocBuilder),
        mut each: impl FnMut(&RawDoc) -> Result<()>,
    ) -> Result<()> {
        let mut b = DocBuilder::new();
        b.uuid("find", &self.uuid.0);
        how(&mut b);
        b.doc("filter", |f| {
            f.doc("_id", |d| {
                d.array("$in", |a| {
                    self.keys.iter().filter_map(|(_, id)| RawDoc::trusted(id).get("_id")).for_each(|v| {
                        a.value(v);
                    });
                });
            });
        });
        let mut reply = match self.call(b).await {
            // Dropped at the source.
            Err(f) if f.code() == ErrorCode::NamespaceNotFound => return Ok(()),
            reply => reply.map_err(of_source)?,
        };
        let mut batch = "firstBatch";
        loop {
            let some = CursorReply::of(&reply, batch).map_err(of_source)?;
            some.docs().try_for_each(&mut each)?;
            if some.id == 0 {
                return Ok(());
            }
            let mut b = DocBuilder::new();
            b.i64("getMore", some.id).str("collection", some.coll);
            reply = self.call(b).await.map_err(of_source)?;
            batch = "nextBatch";
        }
    }

    async fn call(&self, mut b: DocBuilder) -> Result<DocBuf, Failure> {
        b.doc("$readPreference", |d| {
            d.str("mode", "secondaryPreferred");
        });
        b.str("$db", self.db);
        self.deps.pool.call(self.source, &b.finish(), Retry::Idempotent, LIMIT).await
    }
}

fn id_of(doc: &RawDoc) -> DocBuf {
    let mut key = DocBuilder::new();
    if let Some(id) = doc.elem("_id") {
        key.elem(id);
    }
    key.finish()
}
