//! collMod: options of a collection, a view or one index, changed in place.

use crate::Catalog;
use crate::schema::collection::{Collection, Index};
use crate::schema::durable::{self, Parts};
use crate::schema::options::{
    Capped, ClusteredIndex, ValidationAction, ValidationLevel, invalid, wrong_type,
};
use crate::schema::snapshot::Named;
use crate::schema::views;
use crate::write::observer::Defined;
use crate::write::record_id;
use pando_base::{Error, ErrorCode, Namespace, OpTime, Result};
use pando_bson::fields;
use pando_bson::{DocBuf, DocBuilder, Elem, RawDoc, Value};
use pando_index::{IndexSpec, check_reach, check_ttl_value, same_key, ttl_seconds};
use pando_query::QueryCtx;
use pando_query::source::RecordId;
use pando_storage::{Dir, Txn};
use std::ops::Bound;
use std::sync::Arc;

/// What `collMod` tells: fields of the reply, and where the change is in the log.
#[derive(Clone, Debug)]
pub struct Modified {
    pub reply: DocBuf,
    pub last: OpTime,
}

impl Catalog {
    /// Runs a `collMod`, each of whose fields has the right form; nothing else may be in it.
    pub async fn coll_mod(&self, ns: &Namespace, command: &RawDoc) -> Result<Modified> {
        let _db = self.lock_database(ns.db()).await;
        let to_unique = command.get("index").and_then(|v| v.as_doc()?.get("unique"));
        if to_unique.is_some_and(|v| v.is_truthy()) {
            self.check_convertible(ns, command.get("dryRun").is_some_and(|v| v.is_truthy()))?;
        }
        match self.lookup_view(ns) {
            Some(view) if self.series_below(&view).is_some() => {
                check_named_as_buckets(command)?;
                self.modify_series(&view, command).await
            }
            Some(_) => self.modify_view(ns, command).await,
            None => self.modify_collection(ns, command.to_buf()).await,
        }
    }

    /// What is told first of an index that is to become unique.
    fn check_convertible(&self, ns: &Namespace, only_tried: bool) -> Result<()> {
        match (self.lookup_view(ns), self.lookup(ns)) {
            (Some(view), _) if self.series_below(&view).is_none() => Err(crate::catalog::is_a_view(&view)),
            (None, None) if only_tried => Err(invalid_on_view("index")),
            (None, None) => {
                let text = format!("ns does not exist for unique index conversion: {ns}");
                Err(Error::new(ErrorCode::NamespaceNotFound, text))
            }
            _ => Ok(()),
        }
    }

    /// With the database's lock held.
    pub(crate) async fn modify_collection(&self, ns: &Namespace, command: DocBuf) -> Result<Modified> {
        let guard = self
            .ddl_lock(ns)
            .await
            .ok_or_else(|| Error::new(ErrorCode::NamespaceNotFound, "ns does not exist"))?;
        let coll = guard.coll.clone();
        let change = IndexChange::parse(&coll, &command)?;
        check_collection_options(&coll, &command, self.now_ms() / 1000)?;
        if command.elem("timeseries").is_some() && coll.options.time_series.is_none() {
            return Err(not_a_series());
        }
        let dry_run = command.get("dryRun").is_some_and(|v| v.is_truthy());
        let mut reply = DocBuilder::new();
        let mut logged = command.clone();
        if let Some(c) = &change {
            c.check(&command)?;
            if c.unique == Some(true) && !c.index.spec.unique {
                self.check_no_duplicates(&coll, &c.index)?;
            }
            if dry_run {
                return Ok(Modified { reply: DocBuf::new(), last: OpTime::NULL });
            }
            c.reply(&mut reply);
            logged = c.logged(&command);
        }
        let parts = changed_parts(&coll, &logged)?;
        let last = self.write_modified(&coll, parts, &logged, change.as_ref())?;
        Ok(Modified { reply: reply.finish(), last })
    }

    fn write_modified(
        &self,
        coll: &Arc<Collection>,
        parts: Parts,
        command: &RawDoc,
        change: Option<&IndexChange>,
    ) -> Result<OpTime> {
        let mut old = DocBuilder::new();
        old.doc("collectionOptions_old", |o| {
            o.uuid("uuid", &coll.uuid.0);
            coll.options.append_to(o);
        });
        if let Some(c) = change {
            c.old_options(&mut old);
        }
        let old = old.finish();
        let mut unit = self.begin_write(coll)?;
        unit.stamp();
        let changed = parts.assemble()?;
        durable::put_row(&mut unit.txn, &changed, [].iter())?;
        unit.observe(&Defined::Modified { coll, command, old: &old })?;
        let last = unit.commit()?;
        self.publish(|s| s.put(Named::Collection(changed)));
        Ok(last)
    }

    async fn modify_view(&self, ns: &Namespace, command: &RawDoc) -> Result<Modified> {
        let Some(view) = self.lookup_view(ns) else { return Err(Error::internal("the view is gone")) };
        let mut new = (*view).clone();
        for e in command.iter().skip(1) {
            match (e.name(), e.value()) {
                ("timeseries", _) => return Err(not_a_series()),
                ("isTimeseriesNamespace", _) => {}
                ("dryRun", v) if !v.is_truthy() => {}
                ("viewOn", Value::String("")) => return Err(Error::bad_value("'viewOn' cannot be empty")),
                ("viewOn", Value::String(on)) => {
                    new.on = Namespace::new(ns.db(), on)?;
                    views::check_target(on)?;
                }
                ("pipeline", Value::Array(stages)) => new.pipeline = stages.to_buf(),
                (name, _) => return Err(invalid_on_view(name)),
            }
        }
        views::check(&self.snapshot(), &new)?;
        let last = self.change_view_doc(ns, Some(&new)).await?;
        Ok(Modified { reply: DocBuf::new(), last })
    }

    /// Error 359 with the `_id`s of documents that share a key.
    fn check_no_duplicates(&self, coll: &Collection, index: &Index) -> Result<()> {
        let unit = self.begin_unit(coll.replicated)?;
        let groups = duplicate_groups(unit.txn(), coll, index)?;
        if groups.is_empty() {
            return Ok(());
        }
        let mut b = DocBuilder::new();
        b.array("violations", |list| {
            for ids in &groups {
                list.doc(|v| {
                    v.array("ids", |a| {
                        for id in ids {
                            a.bson(id);
                        }
                    });
                });
            }
        });
        Err(Error::new(
            ErrorCode::CannotConvertIndexToUnique,
            "Cannot convert the index to unique. Please resolve conflicting documents before running collMod again.",
        )
        .with_extra(b.finish().into_bytes()))
    }
}

fn duplicate_groups(txn: &Txn, coll: &Collection, index: &Index) -> Result<Vec<Vec<pando_bson::Bson>>> {
    let mut cursor = txn.scan(index.ident, Bound::Unbounded, Bound::Unbounded, Dir::Forward)?;
    let mut groups: Vec<Vec<RecordId>> = Vec::new();
    let mut last: Option<(Vec<u8>, RecordId)> = None;
    let mut open = false;
    while let Some((k, _)) = cursor.next()? {
        let (key, rid) = record_id::split(coll.is_clustered(), &k)?;
        match &last {
            Some((before, first)) if before == key => {
                if !open {
                    groups.push(vec![first.clone()]);
                    open = true;
                }
                if let Some(g) = groups.last_mut() {
                    g.push(rid);
                }
            }
            _ => {
                last = Some((key.to_vec(), rid));
                open = false;
            }
        }
    }
    let id_of = |rid: &RecordId| -> Result<pando_bson::Bson> {
        let doc = txn.get(coll.records, &record_id::storage_key(rid))?;
        let id = doc.as_ref().and_then(|d| RawDoc::trusted(d).get("_id")).map(pando_bson::Bson::from);
        Ok(id.unwrap_or(pando_bson::Bson::Null))
    };
    groups.iter().map(|g| g.iter().map(id_of).collect()).collect()
}

/// `isTimeseriesNamespace` says that the name is that of the buckets, so the series is a view as others are.
fn check_named_as_buckets(command: &RawDoc) -> Result<()> {
    if !command.get("isTimeseriesNamespace").is_some_and(|v| v.is_truthy()) {
        return Ok(());
    }
    for e in command.iter().skip(1) {
        match (e.name(), e.value()) {
            ("timeseries", _) => return Err(not_a_series()),
            ("isTimeseriesNamespace" | "viewOn" | "pipeline", _) => {}
            ("dryRun", v) if !v.is_truthy() => {}
            (name, _) => return Err(invalid_on_view(name)),
        }
    }
    Ok(())
}

fn invalid_on_view(name: &str) -> Error {
    Error::new(ErrorCode::InvalidOptions, format!("option not supported on a view: {name}"))
}

pub(crate) fn not_a_series() -> Error {
    Error::new(
        ErrorCode::InvalidOptions,
        "option only supported on a time-series collection: isTimeseriesNamespace",
    )
}

/// Options of time series on others, and of others on time series.
fn check_collection_options(coll: &Collection, command: &RawDoc, now_secs: i64) -> Result<()> {
    let of_series = coll.options.time_series.is_some();
    for e in command.iter().skip(1) {
        match e.name() {
            name
            @ ("validator" | "validationLevel" | "validationAction" | "changeStreamPreAndPostImages")
                if of_series =>
            {
                return Err(Error::new(
                    ErrorCode::InvalidOptions,
                    format!("option not supported on a time-series collection: {name}"),
                ));
            }
            "validator" => {
                let filter = e.value().as_doc().ok_or_else(|| wrong_type("collMod", e, "type 'object'"))?;
                if !filter.is_empty() {
                    crate::schema::names::check_validatable(&coll.ns, coll.uuid, filter)?;
                }
                let ctx = QueryCtx::default().with_collation(coll.collation().cloned());
                durable::validator_matcher(filter, &ctx)
                    .map_err(|e| e.context("Parsing of collection validator failed"))?;
            }
            "viewOn" | "pipeline" => {
                let name = if command.elem("pipeline").is_some() { "pipeline" } else { "viewOn" };
                return Err(Error::new(
                    ErrorCode::InvalidOptions,
                    format!("option only supported on a view: {name}"),
                ));
            }
            "cappedSize" | "cappedMax" if !coll.is_capped() && !of_series => {
                return Err(invalid("Collection must be capped."));
            }
            "expireAfterSeconds" if !coll.is_clustered() => {
                return Err(invalid(
                    "'expireAfterSeconds' option is only supported on collections clustered by _id",
                ));
            }
            "expireAfterSeconds" if e.value().is_number() => {
                check_reach(ttl_seconds(e.value())?, now_secs)?;
            }
            _ => {}
        }
    }
    changed_parts(coll, command).map(drop)
}

/// The collection's parts after a collMod, as commanded or as the log tells it (with the index by name).
pub(crate) fn changed_parts(coll: &Collection, command: &RawDoc) -> Result<Parts> {
    let mut parts = Parts::of(coll);
    let o = &mut parts.options;
    for e in command.iter().skip(1) {
        match (e.name(), e.value()) {
            ("validator", Value::Document(d)) => {
                o.validator = Some(d.to_buf()).filter(|d| !d.is_empty());
                // From now on both are shown, at their defaults when nothing else was said.
                o.validation_level.get_or_insert_default();
                o.validation_action.get_or_insert_default();
            }
            ("validationLevel", Value::String(s)) => {
                o.validation_level = Some(ValidationLevel::parse(s, "collMod.validationLevel")?);
                o.validation_action.get_or_insert_default();
            }
            ("validationAction", Value::String(s)) => {
                o.validation_action = Some(ValidationAction::parse(s, "collMod.validationAction")?);
                o.validation_level.get_or_insert_default();
            }
            ("cappedSize", _) => {
                let size = fields::safe_i64(&e.value()).unwrap_or_default();
                o.capped = o.capped.map(|c| Capped { max: c.max, ..Capped::new(size, None) });
            }
            ("cappedMax", _) => {
                let max = fields::safe_i64(&e.value());
                o.capped = o.capped.map(|c| Capped::new(c.size, max));
            }
            ("changeStreamPreAndPostImages", Value::Document(images)) => {
                let enabled = images.get("enabled");
                o.change_stream_pre_and_post_images = enabled.is_some_and(|on| on.is_truthy());
            }
            ("expireAfterSeconds", Value::String("off")) => o.expire_after_seconds = None,
            ("expireAfterSeconds", Value::String(other)) => {
                return Err(Error::new(
                    ErrorCode::InvalidOptions,
                    format!(
                        "Invalid string value for the 'clusteredIndex::expireAfterSeconds' option. Got: '{other}'. \
                         Accepted value is 'off'"
                    ),
                ));
            }
            ("expireAfterSeconds", v) if !v.is_number() => {
                return Err(wrong_type("collMod", e, "types '[string, long, int, decimal, double']"));
            }
            ("expireAfterSeconds", v) => o.expire_after_seconds = Some(ttl_seconds(v)?),
            ("timeseries", Value::Document(change)) => {
                o.time_series = o.time_series.as_ref().map(|s| s.modified(change)).transpose()?;
            }
            ("timeseries", _) => return Err(wrong_type("collMod", e, "type 'object'")),
            ("index", Value::Document(d)) => change_index(&mut parts.indexes, d)?,
            _ => {}
        }
    }
    Ok(parts)
}

/// Applies `{name, hidden?, expireAfterSeconds?, unique?, prepareUnique?}`.
fn change_index(indexes: &mut [Arc<Index>], change: &RawDoc) -> Result<()> {
    let name = change.get("name").and_then(|v| v.as_str());
    let key = change.get("keyPattern").and_then(|v| v.as_doc());
    let named = |s: &IndexSpec| match (name, key) {
        (Some(name), _) => s.name == name,
        (None, Some(key)) => same_key(&s.key, key),
        _ => false,
    };
    let Some(slot) = indexes.iter_mut().find(|i| named(&i.spec)) else { return Ok(()) };
    let mut spec = slot.spec.clone();
    let flag = |spec: IndexSpec, name: &str, on: bool| {
        spec.with_option(name, if on { Value::Boolean(true) } else { Value::Undefined })
    };
    for e in change {
        let on = e.value().is_truthy();
        match e.name() {
            "hidden" => spec = flag(spec, "hidden", on),
            "prepareUnique" if !spec.unique && !spec.is_id_index() => spec = flag(spec, "prepareUnique", on),
            "unique" if on => spec = flag(flag(spec, "prepareUnique", false), "unique", true),
            "expireAfterSeconds" => {
                let n = check_ttl_value(e.value()).unwrap_or(i64::from(i32::MAX));
                spec = spec.with_option("expireAfterSeconds", Value::Int32(n as i32));
            }
            _ => {}
        }
    }
    let mut index = Index::clone(slot);
    index.spec = spec;
    *slot = Arc::new(index);
    Ok(())
}

/// The index that records are ordered by cannot be hidden.
fn check_not_clustered(coll: &Collection, name: Option<&str>, key: Option<&RawDoc>) -> Result<()> {
    let named = |c: &ClusteredIndex| match (name, key) {
        (Some(name), None) => c.name == name,
        (None, Some(key)) => same_key(&IndexSpec::id_index(None).key, key),
        _ => false,
    };
    match coll.options.clustered.as_ref().is_some_and(named) {
        true => Err(Error::location(6_011_800, "The 'hidden' option is not supported for a clusteredIndex")),
        false => Ok(()),
    }
}

const TTL_ON_SERIES: &str = "TTL indexes are not supported for time-series collections. Please refer to the documentation and use the top-level 'expireAfterSeconds' option instead";

/// A wanted change of one index.
struct IndexChange {
    index: Arc<Index>,
    expire_after_seconds: Option<i64>,
    hidden: Option<bool>,
    unique: Option<bool>,
    prepare_unique: Option<bool>,
}

impl IndexChange {
    fn parse(coll: &Collection, command: &RawDoc) -> Result<Option<IndexChange>> {
        let Some(e) = command.elem("index") else { return Ok(None) };
        let d = e.value().as_doc().ok_or_else(|| wrong_type("collMod", e, "type 'object'"))?;
        let (mut name, mut key) = (None, None);
        let (mut expire, mut hidden, mut unique, mut prepare) = (None, None, None, None);
        for f in d {
            match (f.name(), f.value()) {
                ("name", Value::String(s)) => name = Some(s),
                ("keyPattern", Value::Document(k)) => key = Some(k),
                ("expireAfterSeconds", Value::Null) => {}
                ("expireAfterSeconds", v) if !v.is_number() => {
                    return Err(wrong_type("collMod.index", f, "types '[long, int, decimal, double']"));
                }
                ("expireAfterSeconds", _) if coll.is_capped() => {
                    return Err(invalid("TTL indexes are not supported for capped collections."));
                }
                ("expireAfterSeconds", _) if coll.options.time_series.is_some() => {
                    return Err(invalid(TTL_ON_SERIES));
                }
                ("expireAfterSeconds", v) => expire = Some(v),
                ("hidden", v) => hidden = Some(truth(f, v)?),
                ("unique", v) => unique = Some(truth(f, v)?),
                ("prepareUnique", v) => prepare = Some(truth(f, v)?),
                ("name", _) => return Err(wrong_type("collMod.index", f, "type 'string'")),
                ("keyPattern", _) => return Err(wrong_type("collMod.index", f, "type 'object'")),
                (other, _) => {
                    return Err(Error::location(
                        40415,
                        format!("BSON field 'collMod.index.{other}' is an unknown field."),
                    ));
                }
            }
        }
        if expire.is_none() && hidden.is_none() && unique.is_none() && prepare.is_none() {
            return Err(invalid("no expireAfterSeconds, hidden, unique, or prepareUnique field"));
        }
        hidden.map_or(Ok(()), |_| check_not_clustered(coll, name, key))?;
        match (name, key) {
            (Some(_), Some(_)) => return Err(invalid("Cannot specify both key pattern and name.")),
            (None, None) => return Err(invalid("Must specify either index name or key pattern.")),
            _ => {}
        }
        // What is too long for an index is as long as there is.
        let longest = i64::from(i32::MAX);
        let expire = match expire {
            Some(v) if fields::safe_i64(&v).is_some_and(|n| n > longest) => Some(longest),
            other => other.map(ttl_seconds).transpose()?,
        };
        let index = chosen_index(coll, name, key)?;
        Ok(Some(IndexChange { index, expire_after_seconds: expire, hidden, unique, prepare_unique: prepare }))
    }

    fn check(&self, command: &RawDoc) -> Result<()> {
        let spec = &self.index.spec;
        if self.hidden.is_some() && spec.is_id_index() {
            return Err(Error::bad_value("can't hide _id index"));
        }
        if self.expire_after_seconds.is_some() && (spec.fields.len() != 1 || spec.is_id_index()) {
            return Err(invalid("TTL indexes are single-field indexes, compound indexes do not support TTL"));
        }
        match self.unique {
            Some(false) => return Err(Error::bad_value("Cannot make index non-unique")),
            Some(true) if !spec.unique && !spec.prepare_unique => {
                return Err(invalid(
                    "Cannot make index unique with 'prepareUnique=false'. Run collMod to set it first.",
                ));
            }
            _ => {}
        }
        let more = self.expire_after_seconds.is_some() || self.hidden.is_some() || self.unique.is_some();
        let beside = |e: Elem<'_>| !matches!(e.name(), "index" | "dryRun" | "comment" | "writeConcern");
        if self.prepare_unique == Some(true) && (more || command.iter().skip(1).any(beside)) {
            return Err(invalid("prepareUnique cannot be combined with any other modification."));
        }
        Ok(())
    }

    fn reply(&self, b: &mut DocBuilder) {
        let spec = &self.index.spec;
        if let Some(new) = self.expire_after_seconds
            && spec.expire_after_seconds != Some(new)
        {
            if let Some(old) = spec.expire_after_seconds {
                b.i64("expireAfterSeconds_old", old);
            }
            b.i64("expireAfterSeconds_new", new);
        }
        let flags = [
            ("hidden", spec.hidden, self.hidden),
            ("prepareUnique", spec.prepare_unique, self.prepare_unique),
        ];
        for (name, old, new) in flags {
            let Some(new) = new.filter(|n| *n != old) else { continue };
            if name == "prepareUnique" && (spec.unique || spec.is_id_index()) {
                continue;
            }
            b.bool(&format!("{name}_old"), old);
            b.bool(&format!("{name}_new"), new);
        }
        if self.unique == Some(true) && !spec.unique {
            b.bool("unique_new", true);
        }
    }

    /// The command with the index given by name.
    fn logged(&self, command: &RawDoc) -> DocBuf {
        let mut b = DocBuilder::new();
        for e in command {
            match e.name() {
                "dryRun" => {}
                "index" => {
                    b.doc("index", |d| {
                        d.str("name", &self.index.spec.name);
                        if let Some(n) = self.expire_after_seconds {
                            d.i32_or_i64("expireAfterSeconds", n);
                        }
                        let flags = [
                            ("hidden", self.hidden),
                            ("unique", self.unique),
                            ("prepareUnique", self.prepare_unique),
                        ];
                        for (name, on) in flags {
                            if let Some(on) = on {
                                d.bool(name, on);
                            }
                        }
                    });
                }
                _ => {
                    b.elem(e);
                }
            }
        }
        b.finish()
    }

    fn old_options(&self, b: &mut DocBuilder) {
        let spec = &self.index.spec;
        b.doc("indexOptions_old", |d| {
            if self.expire_after_seconds.is_some()
                && let Some(n) = spec.expire_after_seconds
            {
                d.i32_or_i64("expireAfterSeconds", n);
            }
            if self.hidden.is_some() {
                d.bool("hidden", spec.hidden);
            }
            if self.prepare_unique.is_some() {
                d.bool("prepareUnique", spec.prepare_unique);
            }
            if self.unique.is_some() {
                d.bool("unique", spec.unique);
            }
        });
    }
}

fn truth(f: Elem<'_>, v: Value<'_>) -> Result<bool> {
    if matches!(v, Value::Boolean(_)) || v.is_number() {
        return Ok(v.is_truthy());
    }
    Err(wrong_type("collMod.index", f, "types '[bool, long, int, decimal, double']"))
}

/// The one index of this name, or with this key.
fn chosen_index(coll: &Collection, name: Option<&str>, key: Option<&RawDoc>) -> Result<Arc<Index>> {
    if let Some(name) = name {
        return coll.index(name).cloned().ok_or_else(|| not_found(name, &coll.ns));
    }
    let key = key.unwrap_or(RawDoc::empty());
    let found: Vec<_> = coll.indexes.iter().filter(|i| same_key(&i.spec.key, key)).collect();
    match found[..] {
        [] => Err(not_found(key, &coll.ns)),
        [one] => Ok(one.clone()),
        [a, b, ..] => Err(Error::new(
            ErrorCode::AmbiguousIndexKeyPattern,
            format!(
                "index keyPattern {key} matches {} indexes, must use index name. Conflicting indexes:{}, {}",
                found.len(),
                a.spec.doc,
                b.spec.doc
            ),
        )),
    }
}

fn not_found(what: impl std::fmt::Display, ns: &Namespace) -> Error {
    Error::new(ErrorCode::IndexNotFound, format!("cannot find index {what} for ns {ns}"))
}
