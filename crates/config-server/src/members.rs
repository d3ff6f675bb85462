//! Sets whose members come and go: `config.shards` names those that there are (SH-REG-1), so that who knows nothing else finds the set.

use crate::documents::with_fields;
use crate::manager::CatalogManager;
use crate::metadata::{ns, text};
use crate::mutexes::Subject;
use crate::shard_checks::{ConnectionString, members};
use pando_access::{Change, Interrupt};
use pando_base::Result;
use pando_bson::{DocBuf, RawDoc, Value};
use pando_env::together;

/// What the entry of a shard says when its set has the members that its primary names; `None` when it says so already.
fn renewed(shard: &RawDoc, hello: &RawDoc) -> Result<Option<DocBuf>> {
    let known = ConnectionString::parse(text(shard, "host")?)?;
    let hosts = members(hello);
    let is_it = known.set.is_some() && hello.get("setName").and_then(|v| v.as_str()) == known.set.as_deref();
    if !is_it || hosts.is_empty() || hosts == known.hosts {
        return Ok(None);
    }
    let now = ConnectionString { hosts, ..known }.to_string();
    Ok(Some(with_fields(shard, &[("host", Some(Value::String(&now)))])))
}

impl CatalogManager {
    /// Asks every shard once, all at the same time: one that does not answer keeps the members that it had, and nobody waiting.
    pub async fn follow_members(&self, interrupt: &dyn Interrupt) -> Result<()> {
        let shards = self.metadata().shards()?;
        let set_of = |shard: &DocBuf| ConnectionString::parse(text(shard, "host")?);
        let sets = shards.iter().map(set_of).collect::<Result<Vec<_>>>()?;
        let primaries = together(sets.iter().map(|set| self.primary_of(interrupt, set)).collect()).await;
        for (shard, primary) in shards.iter().zip(primaries) {
            let Ok(primary) = primary else { continue };
            if renewed(shard, &primary.hello)?.is_none() {
                continue;
            }
            let _topology = self.lock(interrupt, Subject::Topology).await?;
            let _zones = self.lock(interrupt, Subject::Zones).await?;
            // It may have been changed meanwhile, or be gone.
            let Some(was) = self.metadata().shard(text(shard, "_id")?)? else { continue };
            if let Some(now) = renewed(&was, &primary.hello)? {
                self.write(interrupt, &[Change::Replace { ns: ns("shards"), was, now }]).await?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_bson::doc;

    #[test]
    fn an_entry_names_the_members_that_the_set_has_now() {
        let shard = doc! { "_id": "a", "host": "s/h:1,h:2", "state": 1, "tags": ["z"] }.to_raw();
        let hello = |set: &str, hosts: pando_bson::Document| {
            let mut hello = doc! { "setName": set };
            hello.push("hosts", hosts.get("x").cloned().unwrap());
            hello.to_raw()
        };
        assert_eq!(renewed(&shard, &hello("s", doc! { "x": ["h:1", "h:2"] })).unwrap(), None);
        let now = renewed(&shard, &hello("s", doc! { "x": ["h:2", "h:3"] })).unwrap().unwrap();
        assert_eq!(now, doc! { "_id": "a", "host": "s/h:2,h:3", "state": 1, "tags": ["z"] }.to_raw());
        // Another set lives there now.
        assert_eq!(renewed(&shard, &hello("t", doc! { "x": ["h:2", "h:3"] })).unwrap(), None);
    }
}
