//! Documents about a collection, which `$collStats`, `$indexStats` and `$planCacheStats` give instead of its own: as the
//! first stages of an aggregation or of a sub-pipeline.

use crate::Config;
use crate::sharding::Sharding;
use crate::statistics::sizes::{append_series_storage, append_storage, int, space_of};
use crate::statistics::top::Top;
use crate::timeseries::OpenBuckets;
use pando_access::{Access, Collection};
use pando_base::{Error, ErrorCode, Namespace, Result};
use pando_bson::{Bson, DocBuf, DocBuilder, RawDoc};
use pando_env::Clock;
use pando_query::plan::CachedPlan;
use pando_query::stage::PipelineSource;
use pando_query::timeseries::index_of_users;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// What such documents are made of.
pub(crate) struct CollectionStatsStages {
    pub(crate) access: Access,
    pub(crate) top: Arc<Top>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) config: Arc<Config>,
    /// What is of a shard says so.
    pub(crate) sharding: Option<Arc<Sharding>>,
    pub(crate) open_buckets: Arc<OpenBuckets>,
}

impl CollectionStatsStages {
    /// The documents of a first stage; `None` when it is not one about a collection.
    pub(crate) fn documents(
        &self,
        ns: &Namespace,
        coll: Option<&Collection>,
        stage: &PipelineSource,
    ) -> Result<Option<Vec<DocBuf>>> {
        Ok(Some(match stage {
            PipelineSource::CollStats(spec) => vec![self.coll_stats(ns, coll, spec)?],
            PipelineSource::IndexStats => self.index_stats(coll, false),
            PipelineSource::PlanCacheStats => self.plan_cache_stats(ns, coll)?,
            _ => return Ok(None),
        }))
    }

    /// Which shard of a cluster this is.
    pub(crate) fn shard_name(&self) -> Option<&str> {
        self.sharding.as_ref()?.shard_name()
    }

    /// `$collStats`.
    pub(crate) fn coll_stats(
        &self,
        ns: &Namespace,
        coll: Option<&Collection>,
        spec: &RawDoc,
    ) -> Result<DocBuf> {
        let missing = |what: &str| {
            Error::new(ErrorCode::NamespaceNotFound, format!("Collection [{ns}] not found."))
                .context(format_args!("Unable to retrieve {what} in $collStats stage"))
        };
        let mut b = DocBuilder::with_capacity(1024);
        b.str("ns", ns.as_str());
        if let Some(shard) = self.shard_name() {
            b.str("shard", shard);
        }
        b.str("host", &self.config.host_port());
        b.date("localTime", self.clock.wall_ms());
        if spec.elem("latencyStats").is_some() {
            b.doc("latencyStats", |d| self.top.append_latencies(ns.as_str(), d));
        }
        if let Some(options) = spec.elem("storageStats") {
            let coll = coll.ok_or_else(|| missing("storageStats"))?;
            let scale = options.value().as_doc().and_then(|d| d.get("scale")?.as_i64()).unwrap_or(1).max(1);
            let stats = space_of(&self.access, self.shard_name(), coll)?;
            // A time series goes by its own name.
            let is_series = coll.options.time_series.is_some() && coll.ns != *ns;
            b.doc("storageStats", |d| {
                match is_series {
                    true => {
                        let counts = self.open_buckets.counts(coll.uuid);
                        append_series_storage(d, coll, &stats, &counts, scale);
                    }
                    false => append_storage(d, coll, &stats, scale),
                }
                d.i32("scaleFactor", scale as i32);
            });
        }
        if spec.elem("count").is_some() {
            let coll = coll.ok_or_else(|| missing("count"))?;
            int(&mut b, "count", coll.count());
        }
        if spec.elem("queryExecStats").is_some() {
            let coll = coll.ok_or_else(|| missing("queryExecStats"))?;
            let scans = &coll.shared.scans;
            b.doc("queryExecStats", |d| {
                d.doc("collectionScans", |s| {
                    s.i64("total", scans.total.load(Relaxed) as i64);
                    s.i64("nonTailable", scans.not_tailing.load(Relaxed) as i64);
                });
            });
        }
        Ok(b.finish())
    }

    /// `$indexStats`. `as_measurements`: of a time series, as its users know them.
    pub(crate) fn index_stats(&self, coll: Option<&Collection>, as_measurements: bool) -> Vec<DocBuf> {
        let Some(coll) = coll else { return Vec::new() };
        let series = coll.options.time_series.as_ref().filter(|_| as_measurements);
        let building = coll.building_indexes().iter().map(|i| (i, true));
        let all = coll.ready_indexes().iter().map(|i| (i, false)).chain(building);
        all.filter_map(|(i, building)| {
            let mut b = DocBuilder::with_capacity(256);
            b.str("name", i.name());
            let spec = match series {
                Some(series) => index_of_users(series, &i.spec.doc)?,
                None => i.spec.doc.clone(),
            };
            b.raw_doc("key", spec.get("key")?.as_doc()?);
            b.str("host", &self.config.host_port());
            b.doc("accesses", |d| {
                d.i64("ops", i.state.accesses.load(Relaxed) as i64);
                d.date("since", i.state.since_ms.load(Relaxed));
            });
            if let Some(shard) = self.shard_name() {
                b.str("shard", shard);
            }
            if building {
                b.bool("building", true);
            }
            b.raw_doc("spec", &spec);
            Some(b.finish())
        })
        .collect()
    }

    /// `$planCacheStats`.
    pub(crate) fn plan_cache_stats(&self, ns: &Namespace, coll: Option<&Collection>) -> Result<Vec<DocBuf>> {
        let Some(coll) = coll else {
            let text = format!("collection '{ns}' does not exist");
            return Err(Error::location(50933, text));
        };
        let row = |entry: CachedPlan| {
            let mut b = DocBuilder::with_capacity(1024);
            b.str("version", "1").str("queryHash", &entry.hashes.0).str("planCacheKey", &entry.hashes.1);
            b.bool("isActive", entry.active);
            int(&mut b, "works", entry.works);
            b.date("timeOfCreation", entry.created_ms);
            b.raw_doc("createdFromQuery", &entry.query);
            b.raw_doc("cachedPlan", &entry.plan);
            if !entry.trial.is_empty() {
                b.array("creationExecStats", |a| {
                    for (counters, _) in &entry.trial {
                        a.raw_doc(counters);
                    }
                });
                b.array("candidatePlanScores", |a| {
                    for (_, score) in &entry.trial {
                        a.bson(&Bson::Double(*score));
                    }
                });
            }
            b.bool("indexFilterSet", entry.index_filter);
            b.i64("estimatedSizeBytes", entry.size() as i64).str("host", &self.config.host_port());
            b.finish()
        };
        Ok(coll.info.plan_cache.all().into_iter().map(row).collect())
    }
}
