//! What a new primary makes sure of before anything is decided: the collections, their indexes and the cluster's identity (SH-CAT-7).

use crate::changelog::capped;
use crate::manager::CatalogManager;
use crate::metadata::ns;
use pando_access::Change;
use pando_access::Uninterrupted;
use pando_base::{Error, Result, limits};
use pando_bson::{DocBuf, DocBuilder, ObjectId, Value};
use std::sync::atomic::Ordering::SeqCst;

/// Collection, fields, whether unique.
const INDEXES: &[(&str, &[&str], bool)] = &[
    ("chunks", &["uuid", "min"], true),
    ("chunks", &["uuid", "shard", "min"], true),
    ("chunks", &["uuid", "lastmod"], true),
    ("chunks", &["uuid", "shard", "onCurrentShardSince"], false),
    ("shards", &["host"], true),
    ("tags", &["ns", "min"], true),
    ("tags", &["ns", "tag"], false),
];
const PLAIN: &[&str] = &["databases", "collections", "settings", "version", "mongos"];

fn index(fields: &[&str], unique: bool) -> DocBuf {
    let name = fields.iter().map(|f| format!("{f}_1")).collect::<Vec<_>>().join("_");
    let mut d = DocBuilder::new();
    d.i32("v", 2);
    if unique {
        d.bool("unique", true);
    }
    d.doc("key", |key| {
        for field in fields {
            key.i32(field, 1);
        }
    });
    d.str("name", &name);
    d.finish()
}

impl CatalogManager {
    /// Another primary may have been here, or what was made may have been undone.
    pub fn step_up(&self) {
        self.prepared.store(false, SeqCst);
        self.tables.forget_all();
    }
    /// Makes what is missing. Before every decision; costs nothing when it was done.
    pub async fn prepare(&self) -> Result<()> {
        if self.prepared.load(SeqCst) {
            return Ok(());
        }
        let _one = self.lock(&Uninterrupted, crate::mutexes::Subject::Topology).await?;
        if self.prepared.load(SeqCst) {
            return Ok(());
        }
        for (collection, fields, unique) in INDEXES {
            self.internal.ensure_index(&ns(collection), &index(fields, *unique)).await?;
        }
        for collection in PLAIN {
            self.internal.ensure(&ns(collection)).await?;
        }
        self.internal.ensure_with(&ns("changelog"), || capped(limits::CHANGELOG_BYTES)).await?;
        self.internal.ensure_with(&ns("actionlog"), || capped(limits::ACTIONLOG_BYTES)).await?;
        if self.metadata().version()?.is_none() {
            self.write(&Uninterrupted, &[Change::Insert(ns("version"), self.new_version())]).await?;
        }
        self.prepared.store(true, SeqCst);
        Ok(())
    }
    /// With the numbers that 6.0 writes, for programs that look at them.
    fn new_version(&self) -> DocBuf {
        let mut d = DocBuilder::new();
        d.i32("_id", 1).i32("minCompatibleVersion", 5).i32("currentVersion", 6);
        d.object_id("clusterId", self.new_object_id());
        d.finish()
    }
    pub(crate) fn cluster_id(&self) -> Result<ObjectId> {
        match self.metadata().version()?.as_deref().and_then(|doc| doc.get("clusterId")) {
            Some(Value::ObjectId(id)) => Ok(id),
            _ => Err(Error::internal("config.version has no clusterId")),
        }
    }
}
