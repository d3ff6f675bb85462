//! What the balancer is told: whether it may work, and how it is to treat a collection (SH-BAL-2, SYS-243). The balancer itself is
//! somebody else.

use crate::defragmentation;
use crate::documents::{named, with_fields};
use crate::manager::CatalogManager;
use crate::metadata::{Stored, is_draining, ns, text, zones};
use crate::mutexes::Subject;
use pando_access::{Change, Interrupt};
use pando_balancer::Phase;
use pando_base::{Error, ErrorCode, Namespace, Result, Uuid};
use pando_bson::{DocBuilder, Value};
use pando_routing::CollectionEntry;
use pando_routing::zones::Zones;
use std::collections::BTreeSet;

const MB: i64 = 1 << 20;
/// What 6.0 has where nobody says.
const CHUNK_MB: f64 = 128.0;

/// What `_configsvrConfigureCollectionBalancing` asks for.
#[derive(Clone, Copy, Default)]
pub struct Balancing {
    /// Zero: as everybody's.
    pub chunk_mb: Option<i64>,
    pub defragment: Option<bool>,
    pub auto_splitter: Option<bool>,
    pub auto_merger: Option<bool>,
}

/// Whether a collection's chunks lie where they should.
pub struct Compliance {
    pub chunk_mb: f64,
    /// `draining`, `zoneViolation`, `defragmentingChunks`.
    pub violation: Option<&'static str>,
    /// Of its defragmentation.
    pub defragmentation: Option<(Uuid, Phase)>,
}

impl CatalogManager {
    /// `full` or `off`.
    pub fn balancer_mode(&self) -> Result<&'static str> {
        let doc = self.metadata().setting("balancer")?;
        let Some(doc) = doc else { return Ok("full") };
        let off = doc.get("stopped").is_some_and(|v| v.is_truthy())
            || doc.get("mode").and_then(|v| v.as_str()) == Some("off");
        Ok(if off { "off" } else { "full" })
    }
    pub async fn set_balancer(&self, interrupt: &dyn Interrupt, client: &str, on: bool) -> Result<()> {
        self.prepare().await?;
        let _one = self.lock(interrupt, Subject::Settings).await?;
        let mode = Value::String(if on { "full" } else { "off" });
        let fields: [(&str, &[(&str, Option<Value<'_>>)]); 2] = [
            ("balancer", &[("mode", Some(mode)), ("stopped", Some(Value::Boolean(!on)))]),
            ("autosplit", &[("enabled", Some(Value::Boolean(on)))]),
        ];
        let mut changes = Vec::new();
        for (name, fields) in fields {
            match self.metadata().setting(name)? {
                None => changes.push(Change::Insert(ns("settings"), with_fields(&named(name), fields))),
                Some(was) => {
                    let now = with_fields(&was, fields);
                    if now != was {
                        changes.push(Change::Replace { ns: ns("settings"), was, now });
                    }
                }
            }
        }
        self.write(interrupt, &changes).await?;
        self.log_action(client, if on { "balancer.start" } else { "balancer.stop" }).await;
        Ok(())
    }
    pub async fn configure_balancing(
        &self,
        interrupt: &dyn Interrupt,
        of: &Namespace,
        wanted: Balancing,
    ) -> Result<()> {
        let Balancing { chunk_mb, defragment, auto_splitter, auto_merger } = wanted;
        if chunk_mb.is_none() && defragment.is_none() && auto_splitter.is_none() && auto_merger.is_none() {
            let text = "invalid configure collection balancing update";
            return Err(Error::new(ErrorCode::InvalidOptions, text));
        }
        if let Some(mb) = chunk_mb.filter(|mb| *mb != 0 && !(1..=1024).contains(mb)) {
            let text = format!("Chunk size '{mb}' out of range [1MB, 1GB]");
            return Err(Error::new(ErrorCode::InvalidOptions, text));
        }
        self.prepare().await?;
        let _one = self.lock(interrupt, Subject::Collection(of.as_str().to_owned())).await?;
        let Some(was) = self.metadata().collection(of.as_str())? else {
            let mut query = DocBuilder::new();
            query.str("_id", of.as_str());
            let text = format!("Expected to match one doc for query {} but matched 0", query.finish());
            return Err(Error::new(ErrorCode::NamespaceNotSharded, text));
        };
        let mut fields = Vec::new();
        if let Some(mb) = chunk_mb {
            fields.push(("maxChunkSizeBytes", (mb > 0).then_some(Value::Int64(mb * MB))));
        }
        if let Some(on) = defragment {
            fields.extend(defragmentation::fields(on));
        }
        if let Some(on) = auto_splitter {
            fields.push(("noAutoSplit", Some(Value::Boolean(!on))));
        }
        if let Some(on) = auto_merger {
            fields.push(("enableAutoMerge", Some(Value::Boolean(on))));
        }
        let uuid = CollectionEntry::parse(&was)?.uuid;
        let now = with_fields(&was, &fields);
        let mut changes = vec![Change::Replace { ns: ns("collections"), was, now }];
        changes.extend(self.bump(uuid)?);
        self.write(interrupt, &changes).await.map(drop)
    }
    pub fn compliance(&self, of: &Namespace) -> Result<Compliance> {
        let metadata = self.metadata();
        let stored = self
            .stored(of.as_str())?
            .ok_or_else(|| Error::new(ErrorCode::NamespaceNotSharded, "Collection unsharded or undefined"))?;
        let everybodys = metadata.setting("chunksize")?;
        let everybodys = everybodys.and_then(|doc| doc.get("value").and_then(|v| v.as_f64()));
        let own = stored.entry().max_chunk_bytes.map(|bytes| bytes as f64 / MB as f64);
        let chunk_mb = own.or(everybodys).unwrap_or(CHUNK_MB);
        let phase = defragmentation::phase_of(&stored.doc);
        let violation = match phase {
            Some(_) => Some("defragmentingChunks"),
            None => self.violation(&stored)?,
        };
        let defragmentation = phase.map(|phase| (stored.entry().uuid, phase));
        Ok(Compliance { chunk_mb, violation, defragmentation })
    }
    fn violation(&self, stored: &Stored) -> Result<Option<&'static str>> {
        let metadata = self.metadata();
        let shards = metadata.shards()?;
        let ranges = metadata.zone_ranges(&stored.entry().ns)?;
        let zones_of = Zones::new(&stored.entry().key, &ranges)?;
        let mut draining = BTreeSet::new();
        let mut in_zone = BTreeSet::new();
        for shard in &shards {
            let id = text(shard, "_id")?;
            if is_draining(shard) {
                draining.insert(id);
            }
            in_zone.extend(zones(shard).into_iter().map(|zone| (zone, id)));
        }
        if stored
            .table
            .chunks
            .parts()
            .iter()
            .any(|part| part.chunks > 0 && draining.contains(part.shard.as_str()))
        {
            return Ok(Some("draining"));
        }
        let strays = stored.table.chunks.iter().any(|chunk| {
            let zone = zones_of.of(chunk.start(), chunk.end());
            // What is to be cut at the end of a zone is nowhere right yet.
            zones_of.end_within(chunk.start(), chunk.end())
                || zone.is_some_and(|zone| !in_zone.contains(&(zone, chunk.shard().as_str())))
        });
        Ok(strays.then_some("zoneViolation"))
    }
}
