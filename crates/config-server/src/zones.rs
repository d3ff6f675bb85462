//! Zones: which shards are in one, and which ranges of a collection's keys (SH-BAL-6, SYS-246), in the words of 6.0.5.

use crate::documents::with_fields;
use crate::manager::CatalogManager;
use crate::metadata::{ns, text, zones};
use crate::mutexes::Subject;
use pando_access::{Change, Interrupt};
use pando_base::{Error, ErrorCode, Namespace, Result};
use pando_bson::keystring::KeyBuilder;
use pando_bson::{DocBuf, DocBuilder, ElementType, RawDoc, Value};
use pando_routing::{CollectionEntry, ShardKey};

/// The values of a bound, as keys.
fn key(bound: &RawDoc) -> Vec<u8> {
    let mut out = KeyBuilder::default();
    for e in bound {
        out.append(e.value());
    }
    out.finish()
}

/// A range of a collection that may have a shard key already.
struct Range {
    min: DocBuf,
    max: DocBuf,
}

impl Range {
    fn new(of: &str, key: Option<&ShardKey>, min: &RawDoc, max: &RawDoc) -> Result<Range> {
        let Some(key) = key else { return Ok(Range { min: min.to_buf(), max: max.to_buf() }) };
        for (what, bound) in [("min", min), ("max", max)] {
            let fits = bound.count() <= key.fields().len();
            if !fits || !bound.iter().zip(key.fields()).all(|(e, f)| e.is_named(f.path.as_bytes())) {
                let text =
                    format!("{what}: {bound} is not a prefix of the shard key {} of ns: {of}", key.pattern());
                return Err(Error::new(ErrorCode::ShardKeyNotFound, text));
            }
        }
        let range = Range { min: key.extend_bound(min), max: key.extend_bound(max) };
        range.check_hashes(key)?;
        Ok(range)
    }
    fn check_hashes(&self, key: &ShardKey) -> Result<()> {
        let fits = |bound: &RawDoc| {
            bound.iter().zip(key.fields()).all(|(e, f)| {
                let ty = e.value().element_type();
                !f.hashed || matches!(ty, ElementType::Int64 | ElementType::MinKey | ElementType::MaxKey)
            })
        };
        if fits(&self.min) && fits(&self.max) {
            return Ok(());
        }
        let text = format!(
            "there exists a field in the range {} -->> {} not of type NumberLong, MinKey, or MaxKey which corresponds to a \
             hashed field in the shard key pattern {}",
            self.min,
            self.max,
            key.pattern()
        );
        Err(Error::new(ErrorCode::InvalidOptions, text))
    }
    /// Whether this very range is there. An overlap with another one, or with this in another zone, is refused.
    fn is_among(&self, tags: &[DocBuf], zone: &str) -> Result<bool> {
        let bound = |doc: &RawDoc, name: &str| doc.get(name).and_then(|v| v.as_doc()).map(RawDoc::to_buf);
        for doc in tags {
            let (Some(min), Some(max)) = (bound(doc, "min"), bound(doc, "max")) else { continue };
            let names = |d: &RawDoc| d.iter().map(|e| e.name().to_owned()).collect::<Vec<_>>();
            if names(&min) != names(&self.min) {
                let pattern = self.min.iter().map(|e| format!("{}: 1", e.name())).collect::<Vec<_>>();
                let text = format!(
                    "field names of bound {max} do not match those of keyPattern {{ {} }}",
                    pattern.join(", ")
                );
                return Err(Error::location(16_634, text));
            }
            let there = text(doc, "tag")?;
            let (start, end) = (key(&self.min), key(&self.max));
            let (known_start, known_end) = (key(&min), key(&max));
            if start == known_start && end == known_end && zone == there {
                return Ok(true);
            }
            if start < known_end && known_start < end {
                let text = format!(
                    "Zone range: {} -->> {}  on  {zone} is overlapping with existing: {min} -->> {max}  on  {there}",
                    self.min, self.max
                );
                return Err(Error::new(ErrorCode::RangeOverlapConflict, text));
            }
        }
        Ok(false)
    }
}

fn with_zones(shard: &RawDoc, zones: &[&str]) -> DocBuf {
    let mut list = DocBuilder::new();
    list.array("tags", |a| {
        for zone in zones {
            a.str(zone);
        }
    });
    let list = list.finish();
    let tags = list.get("tags").filter(|_| !zones.is_empty());
    with_fields(shard, &[("tags", Some(tags.unwrap_or(Value::Array(RawDoc::empty()))))])
}

impl CatalogManager {
    fn zoned_shard(&self, name: &str) -> Result<DocBuf> {
        let shard = self.metadata().shard(name)?;
        shard.ok_or_else(|| Error::new(ErrorCode::ShardNotFound, format!("shard {name} does not exist")))
    }
    pub async fn add_shard_to_zone(&self, interrupt: &dyn Interrupt, shard: &str, zone: &str) -> Result<()> {
        self.prepare().await?;
        let _zones = self.lock(interrupt, Subject::Zones).await?;
        let was = self.zoned_shard(shard)?;
        let mut all = zones(&was);
        if all.contains(&zone) {
            return Ok(());
        }
        all.push(zone);
        let now = with_zones(&was, &all);
        self.write(interrupt, &[Change::Replace { ns: ns("shards"), was: was.clone(), now }]).await.map(drop)
    }
    pub async fn remove_shard_from_zone(
        &self,
        interrupt: &dyn Interrupt,
        shard: &str,
        zone: &str,
    ) -> Result<()> {
        self.prepare().await?;
        let _zones = self.lock(interrupt, Subject::Zones).await?;
        let was = self.zoned_shard(shard)?;
        let mut all = zones(&was);
        if !all.contains(&zone) {
            return Ok(());
        }
        let has_another =
            self.metadata().shards()?.iter().any(|doc| *doc != was && zones(doc).contains(&zone));
        if !has_another && self.zone_is_used(zone)? {
            let text = "cannot remove a shard from zone if a chunk range is associated with it";
            return Err(Error::new(ErrorCode::ZoneStillInUse, text));
        }
        all.retain(|other| *other != zone);
        let now = with_zones(&was, &all);
        self.write(interrupt, &[Change::Replace { ns: ns("shards"), was: was.clone(), now }]).await.map(drop)
    }
    /// `zone` takes `[min, max)`; with `None` nobody has it any more.
    pub async fn update_zone_key_range(
        &self,
        interrupt: &dyn Interrupt,
        of: &Namespace,
        min: &RawDoc,
        max: &RawDoc,
        zone: Option<&str>,
    ) -> Result<()> {
        for (what, bound) in [("min", min), ("max", max)] {
            if bound.is_empty() {
                return Err(Error::bad_value(format!("The field '{what}' cannot be empty")));
            }
        }
        if zone.is_some() {
            ShardKey::check_size(min)?;
            ShardKey::check_size(max)?;
        }
        if key(min) >= key(max) {
            return Err(Error::failed_to_parse(format!("min: {min} should be less than max: {max}")));
        }
        self.prepare().await?;
        let _zones = self.lock(interrupt, Subject::Zones).await?;
        let metadata = self.metadata();
        let entry = metadata.collection(of.as_str())?;
        let key = entry.map(|doc| CollectionEntry::parse(&doc)).transpose()?.map(|entry| entry.key);
        let tags = metadata.tags(of.as_str())?;
        let Some(zone) = zone else {
            let range = Range::new(of.as_str(), key.as_ref(), min, max)?;
            let is_it = |doc: &&DocBuf| {
                let bound = |name: &str| doc.get(name).and_then(|v| v.as_doc()).map(RawDoc::to_buf);
                bound("min").as_ref() == Some(&range.min) && bound("max").as_ref() == Some(&range.max)
            };
            let gone =
                tags.iter().filter(is_it).map(|doc| Change::Remove { ns: ns("tags"), was: doc.clone() });
            return self.write(interrupt, &gone.collect::<Vec<_>>()).await.map(drop);
        };
        if !metadata.shards()?.iter().any(|doc| zones(doc).contains(&zone)) {
            return Err(Error::new(ErrorCode::ZoneNotFound, format!("zone {zone} does not exist")));
        }
        let range = Range::new(of.as_str(), key.as_ref(), min, max)?;
        if range.is_among(&tags, zone)? {
            return Ok(());
        }
        let mut d = DocBuilder::new();
        d.object_id("_id", self.new_object_id()).str("ns", of.as_str());
        d.raw_doc("min", &range.min).raw_doc("max", &range.max).str("tag", zone);
        self.write(interrupt, &[Change::Insert(ns("tags"), d.finish())]).await.map(drop)
    }
    /// All ranges of a collection.
    pub async fn remove_tags(&self, interrupt: &dyn Interrupt, of: &str) -> Result<()> {
        self.prepare().await?;
        let _zones = self.lock(interrupt, Subject::Zones).await?;
        let gone = self.metadata().tags(of)?.into_iter().map(|was| Change::Remove { ns: ns("tags"), was });
        self.write(interrupt, &gone.collect::<Vec<_>>()).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_bson::doc;

    fn words<T: std::fmt::Debug>(r: Result<T>) -> String {
        let e = r.map(|x| format!("{x:?}")).unwrap_err();
        format!("{} {}", e.code.0, e.message)
    }

    #[test]
    fn ranges_fit_the_key_and_do_not_overlap() {
        let key = ShardKey::parse(&doc! { "a": "hashed", "b": 1 }.to_raw()).unwrap();
        let range = |min: pando_bson::Document, max: pando_bson::Document| {
            Range::new("d.c", Some(&key), &min.to_raw(), &max.to_raw())
        };
        assert!(
            words(range(doc! { "b": 1 }, doc! { "b": 2 }).map(|_| ()))
                .starts_with("61 min: { b: 1 } is not a prefix")
        );
        assert!(
            words(range(doc! { "a": 1 }, doc! { "a": 2 }).map(|_| ()))
                .starts_with("72 there exists a field in")
        );
        let range = range(doc! { "a": 1i64 }, doc! { "a": 5i64 }).unwrap();
        assert_eq!(range.min.count(), 2);
        let tag = |min: i64, max: i64, zone: &str| {
            let mut d = DocBuilder::new();
            for (name, at) in [("min", min), ("max", max)] {
                d.doc(name, |d| {
                    d.i64("a", at).value("b", Value::MinKey);
                });
            }
            d.str("tag", zone);
            d.finish()
        };
        assert!(range.is_among(&[tag(1, 5, "z")], "z").unwrap());
        assert!(!range.is_among(&[tag(5, 9, "z")], "z").unwrap());
        assert!(
            words(range.is_among(&[tag(1, 5, "z")], "y"))
                .starts_with("178 Zone range: { a: 1, b: MinKey } -->> ")
        );
        assert!(words(range.is_among(&[tag(2, 3, "z")], "z")).ends_with("b: MinKey }  on  z"));
    }
}
