//! Removing a shard (SH-SHARD-2): asked again and again, it first drains, and is gone when it owns nothing.

use crate::config_shard::{ClearOut, Leaving, is_config};
use crate::documents::with_fields;
use crate::manager::CatalogManager;
use crate::metadata::{is_draining, ns, shard_of, text, zones};
use crate::mutexes::Subject;
use crate::shard_checks::illegal;
use crate::shards::ticked;
use pando_access::{Change, Interrupt};
use pando_base::{Error, ErrorCode, Result};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};

/// How far it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Draining {
    Started {
        databases: Vec<String>,
    },
    Ongoing {
        chunks: i64,
        jumbo: i64,
        databases: Vec<String>,
    },
    /// Of the config servers alone: what has moved away lies there still.
    PendingRangeDeletions(i64),
    Completed,
}

impl CatalogManager {
    /// `which` is the shard's name, or the host string of its entry. Returns the name, too.
    pub async fn remove_shard(
        &self,
        interrupt: &dyn Interrupt,
        client: &str,
        which: &str,
    ) -> Result<(String, Draining)> {
        self.prepare().await?;
        let _topology = self.lock(interrupt, Subject::Topology).await?;
        // Zones change the same entries.
        let _zones = self.lock(interrupt, Subject::Zones).await?;
        let shards = self.metadata().shards()?;
        let named = |field: &'static str| {
            shards.iter().find(move |doc| doc.get(field).and_then(|v| v.as_str()) == Some(which))
        };
        let shard = named("_id").or_else(|| named("host")).ok_or_else(|| not_found(which))?;
        if is_config(shard) {
            let text = "the config servers cease to be a shard by transitionToDedicatedConfigServer, not by removeShard";
            return Err(illegal(text));
        }
        let name = text(shard, "_id")?.to_owned();
        Ok((name, self.drain(interrupt, client, &shards, shard, None).await?))
    }
    /// The next step of a shard on its way out. The caller has locked topology and zones.
    pub(crate) async fn drain(
        &self,
        interrupt: &dyn Interrupt,
        client: &str,
        shards: &[DocBuf],
        shard: &DocBuf,
        clear_out: Option<&ClearOut<'_>>,
    ) -> Result<Draining> {
        let name = text(shard, "_id")?;
        let mut details = DocBuilder::new();
        details.str("shard", name);
        let details = details.finish();
        if !is_draining(shard) {
            check_others(shards, shard, |zone| self.zone_is_used(zone))?;
            let now = with_fields(shard, &[("draining", Some(Value::Boolean(true)))]);
            let change = Change::Replace { ns: ns("shards"), was: shard.clone(), now };
            self.log_change(client, "removeShard.start", "", &details).await;
            self.write(interrupt, &[change]).await?;
            return Ok(Draining::Started { databases: self.databases_of(name)? });
        }
        let _owners = self.lock(interrupt, Subject::Owners).await?;
        if let Some(ongoing) = self.still_owned(name)? {
            return Ok(ongoing);
        }
        let mut leaving = None;
        if let Some(clear_out) = clear_out {
            let pending = self.pending_range_deletions()?;
            if pending > 0 {
                return Ok(Draining::PendingRangeDeletions(pending));
            }
            leaving = Some(Leaving::begin(self));
            clear_out().await?;
        }
        let mut changes = vec![Change::Remove { ns: ns("shards"), was: shard.clone() }];
        // One that stays tells of the change.
        if let Some(other) = shards.iter().find(|doc| *doc != shard) {
            let now = ticked(other, self.node.next_time());
            changes.push(Change::Replace { ns: ns("shards"), was: other.clone(), now });
        }
        self.write(interrupt, &changes).await?;
        drop(leaving);
        self.log_change(client, "removeShard", "", &details).await;
        Ok(Draining::Completed)
    }
    /// What a shard that is to go still has.
    fn still_owned(&self, name: &str) -> Result<Option<Draining>> {
        let of_shard = |doc: &RawDoc| shard_of(doc).is_some_and(|id| id.as_str() == name);
        let chunks = self.metadata().count("chunks", of_shard)?;
        let is_jumbo = |doc: &RawDoc| doc.get("jumbo").is_some_and(|v| v.is_truthy());
        let jumbo = self.metadata().count("chunks", |doc| of_shard(doc) && is_jumbo(doc))?;
        let databases = self.databases_of(name)?;
        let owns = chunks > 0 || !databases.is_empty();
        Ok(owns.then_some(Draining::Ongoing { chunks, jumbo, databases }))
    }
    fn databases_of(&self, shard: &str) -> Result<Vec<String>> {
        let all = self.metadata().databases()?;
        let own = all.iter().filter(|doc| doc.get("primary").and_then(|v| v.as_str()) == Some(shard));
        own.map(|doc| text(doc, "_id").map(str::to_owned)).collect()
    }
    pub(crate) fn zone_is_used(&self, zone: &str) -> Result<bool> {
        let used = |doc: &RawDoc| doc.get("tag").and_then(|v| v.as_str()) == Some(zone);
        Ok(self.metadata().count("tags", used)? > 0)
    }
}

pub(crate) fn not_found(which: &str) -> Error {
    Error::new(ErrorCode::ShardNotFound, format!("Shard {which} not found"))
}

/// Others must stay that can take what it owns.
fn check_others(
    shards: &[DocBuf],
    leaves: &DocBuf,
    zone_is_used: impl Fn(&str) -> Result<bool>,
) -> Result<()> {
    let stay: Vec<&DocBuf> = shards.iter().filter(|doc| *doc != leaves && !is_draining(doc)).collect();
    if stay.is_empty() {
        return Err(illegal("Operation not allowed because it would remove the last shard"));
    }
    for zone in zones(leaves) {
        if !stay.iter().any(|doc| zones(doc).contains(&zone)) && zone_is_used(zone)? {
            let text = format!(
                "Operation not allowed because it would remove the only shard for zone {zone} which has a chunk range \
                 is associated with it"
            );
            return Err(Error::new(ErrorCode::ZoneStillInUse, text));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_bson::doc;

    #[test]
    fn the_last_shard_and_the_only_one_of_a_zone_stay() {
        let a = doc! { "_id": "a", "tags": ["z"] }.to_raw();
        let b = doc! { "_id": "b" }.to_raw();
        let gone = doc! { "_id": "c", "tags": ["z"], "draining": true }.to_raw();
        let code = |shards: &[DocBuf], leaves: &DocBuf, used: bool| {
            check_others(shards, leaves, |_| Ok(used)).map_err(|e| e.code.0).err()
        };
        assert_eq!(code(&[a.clone(), gone.clone()], &a, false), Some(20));
        assert_eq!(code(&[a.clone(), b.clone(), gone.clone()], &a, true), Some(163));
        assert_eq!(code(&[a.clone(), b.clone()], &a, false), None);
        assert_eq!(code(&[a.clone(), b.clone()], &b, true), None);
    }
}
