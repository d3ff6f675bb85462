//! Documents of the first stages that read no collection: `$collStats`, `$indexStats`, `$currentOp`,
//! `$listLocalSessions`.

use crate::Server;
use crate::commands::coll_stats::append_storage;
use crate::commands::current_op::{Want, rows};
use crate::pipeline_cursor::ERROR_CONTEXT;
use pando_base::{Error, ErrorCode, Namespace, Result};
use pando_bson::{Bson, DocBuf, DocBuilder, RawDoc, Value};
use pando_catalog::Collection;
use pando_command::OpCtx;
use pando_query::timeseries::index_of_users;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

impl Server {
    pub(crate) fn coll_stats_stage(
        &self,
        ctx: &OpCtx,
        ns: &Namespace,
        coll: &Option<Arc<Collection>>,
        spec: &RawDoc,
    ) -> Result<DocBuf> {
        let missing = |what: &str| {
            Error::new(ErrorCode::NamespaceNotFound, format!("Collection [{ns}] not found."))
                .context(format_args!("Unable to retrieve {what} in $collStats stage"))
                .context(ERROR_CONTEXT)
        };
        let mut b = DocBuilder::with_capacity(1024);
        b.str("ns", ns.as_str());
        b.str("host", &self.host_port());
        b.date("localTime", ctx.env().clock.wall_ms());
        if spec.elem("latencyStats").is_some() {
            b.doc("latencyStats", |d| self.top.append_latencies(ns.as_str(), d));
        }
        if let Some(options) = spec.elem("storageStats") {
            let coll = coll.as_ref().ok_or_else(|| missing("storageStats"))?;
            let scale = options.value().as_doc().and_then(|d| d.get("scale")?.as_i64()).unwrap_or(1).max(1);
            let stats = self.space_of(coll)?;
            b.doc("storageStats", |d| {
                append_storage(d, coll, &stats, scale);
                d.i32("scaleFactor", scale as i32);
            });
        }
        if spec.elem("count").is_some() {
            let coll = coll.as_ref().ok_or_else(|| missing("count"))?;
            crate::commands::coll_stats::int(&mut b, "count", coll.count());
        }
        if spec.elem("queryExecStats").is_some() {
            b.doc("queryExecStats", |d| {
                d.doc("collectionScans", |s| {
                    s.i64("total", 0).i64("nonTailable", 0);
                });
            });
        }
        Ok(b.finish())
    }

    /// `as_measurements`: of a time series, as its users know them.
    pub(crate) fn index_stats_stage(&self, coll: Option<&Collection>, as_measurements: bool) -> Vec<DocBuf> {
        let Some(coll) = coll else { return Vec::new() };
        let series = coll.options.time_series.as_ref().filter(|_| as_measurements);
        let host = self.host_port();
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
            b.str("host", &host);
            b.doc("accesses", |d| {
                d.i64("ops", i.state.accesses.load(Relaxed) as i64);
                d.date("since", i.state.since_ms.load(Relaxed));
            });
            if building {
                b.bool("building", true);
            }
            b.raw_doc("spec", &spec);
            Some(b.finish())
        })
        .collect()
    }

    /// The sessions that this node knows. Nobody is logged in, so all belong to nobody.
    pub(crate) fn sessions_stage(
        &self,
        ctx: &OpCtx,
        stage: &'static str,
        spec: &RawDoc,
    ) -> Result<Vec<DocBuf>> {
        let all_users = match spec.get("allUsers") {
            None => false,
            Some(Value::Boolean(b)) => b,
            Some(v) => {
                return Err(pando_command::request::wrong_type(stage, "allUsers", &v, &["bool"]));
            }
        };
        let named = spec.get("users").and_then(|v| v.as_array()).is_some_and(|users| !users.is_empty());
        if named && all_users {
            return Err(Error::new(
                ErrorCode::UnsupportedFormat,
                format!("{stage} may not specify {{allUsers:true}} and {{users:[...]}} at the same time"),
            ));
        }
        if named {
            return Ok(Vec::new());
        }
        let wall = ctx.env().clock.wall_ms();
        let rows = self.sessions.all(ctx.env().clock.mono());
        let row = |(id, idle): ([u8; 16], std::time::Duration)| {
            let mut b = DocBuilder::with_capacity(128);
            b.doc("_id", |d| {
                d.uuid("id", &id);
                d.binary("uid", 0, &pando_session::NO_USER_DIGEST);
            });
            b.date("lastUse", wall - idle.as_millis() as i64);
            b.finish()
        };
        Ok(rows.into_iter().map(row).collect())
    }

    pub(crate) fn plan_cache_stage(&self, ns: &Namespace, coll: Option<&Collection>) -> Result<Vec<DocBuf>> {
        let Some(coll) = coll else {
            let text = format!("collection '{ns}' does not exist");
            return Err(Error::location(50933, text).context(ERROR_CONTEXT));
        };
        let host = self.host_port();
        let row = |entry: pando_query::plan::CachedPlan| {
            let mut b = DocBuilder::with_capacity(1024);
            b.str("version", "1").str("queryHash", &entry.hashes.0).str("planCacheKey", &entry.hashes.1);
            b.bool("isActive", entry.active);
            crate::commands::coll_stats::int(&mut b, "works", entry.works);
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
            b.i64("estimatedSizeBytes", entry.size() as i64).str("host", &host);
            b.finish()
        };
        Ok(coll.info.plan_cache.all().into_iter().map(row).collect())
    }

    pub(crate) fn current_op_stage(&self, ctx: &OpCtx, spec: &RawDoc) -> Result<Vec<DocBuf>> {
        let mut want = Want::default();
        for e in spec {
            let name = e.name();
            let flag = match (name, e.value()) {
                (
                    "allUsers" | "idleConnections" | "idleCursors" | "idleSessions" | "localOps"
                    | "truncateOps" | "backtrace",
                    v,
                ) => match v {
                    Value::Boolean(b) => b,
                    v => {
                        let code = if name == "allUsers" {
                            ErrorCode::TypeMismatch
                        } else {
                            ErrorCode::FailedToParse
                        };
                        return Err(Error::new(
                            code,
                            format!(
                                "The '{name}' parameter of the $currentOp stage must be a boolean value, but found: {}",
                                v.type_name()
                            ),
                        ));
                    }
                },
                _ => {
                    return Err(Error::failed_to_parse(format!(
                        "Unrecognized option '{name}' in $currentOp stage."
                    )));
                }
            };
            match name {
                "idleConnections" => want.idle_connections = flag,
                "idleCursors" => want.idle_cursors = flag,
                "idleSessions" => want.no_idle_sessions = !flag,
                _ => {}
            }
        }
        Ok(rows(self, ctx, want))
    }
}
