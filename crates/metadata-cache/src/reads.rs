//! Reads of the config servers' collections: of a majority, and no older than what this router has heard of (SH-CAT-12).

use crate::ConfigServers;
use pando_base::{Error, Result, limits};
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use pando_monitor::ReadPreference;
use pando_monitor::read_preference::Mode;
use pando_rpc::Retry;
use std::time::Duration;

/// A query of one collection.
pub struct Ask<'a> {
    pub db: &'static str,
    pub coll: &'a str,
    pub filter: DocBuf,
    pub sort: Option<DocBuf>,
    pub limit: Option<i64>,
}

impl<'a> Ask<'a> {
    /// Of the database `config`.
    pub fn of(coll: &'a str, filter: DocBuf) -> Ask<'a> {
        Ask { db: "config", coll, filter, sort: None, limit: None }
    }
}

pub fn limit() -> Duration {
    Duration::from_millis(limits::CONFIG_READ_MS)
}

impl ConfigServers {
    /// All documents that match.
    pub async fn find(&self, ask: &Ask<'_>) -> Result<Vec<DocBuf>> {
        let body = self.find_command(ask);
        let nearest = ReadPreference::of(Mode::Nearest);
        let answer = self.fleet.call(&self.set, &nearest, &body, &[], Retry::Idempotent, limit()).await?;
        let mut out = Vec::new();
        let mut cursor = take_batch(&answer.reply, "firstBatch", &mut out)?;
        while cursor != 0 {
            let more = get_more(cursor, ask);
            let reply = self.fleet.pool.call(&answer.host, &more, Retry::Never, limit()).await?;
            cursor = take_batch(&reply, "nextBatch", &mut out)?;
        }
        Ok(out)
    }
    /// The first that matches.
    pub async fn find_one(&self, coll: &str, filter: DocBuf) -> Result<Option<DocBuf>> {
        let ask = Ask { limit: Some(1), ..Ask::of(coll, filter) };
        Ok(self.find(&ask).await?.pop())
    }

    fn find_command(&self, ask: &Ask<'_>) -> DocBuf {
        let mut b = DocBuilder::new();
        b.str("find", ask.coll).raw_doc("filter", &ask.filter);
        if let Some(sort) = &ask.sort {
            b.raw_doc("sort", sort);
        }
        if let Some(limit) = ask.limit {
            b.i64("limit", limit).bool("singleBatch", true);
        }
        let known = self.times.config();
        b.doc("readConcern", |d| {
            d.str("level", "majority");
            if !known.is_zero() {
                d.doc("afterOpTime", |d| {
                    d.timestamp("ts", known).i64("t", -1);
                });
            }
        });
        b.doc("$readPreference", |d| {
            d.str("mode", Mode::Nearest.name());
        });
        b.i64("maxTimeMS", limits::CONFIG_READ_MS as i64);
        b.str("$db", ask.db);
        b.finish()
    }
}

fn get_more(cursor: i64, ask: &Ask<'_>) -> DocBuf {
    let mut b = DocBuilder::new();
    b.i64("getMore", cursor).str("collection", ask.coll).str("$db", ask.db);
    b.finish()
}

/// Appends a batch's documents; the id of the cursor, 0 at its end.
fn take_batch(reply: &RawDoc, name: &str, out: &mut Vec<DocBuf>) -> Result<i64> {
    let cursor = reply.get("cursor").and_then(|v| v.as_doc());
    let cursor = cursor.ok_or_else(|| Error::internal("a reply of a config server without a cursor"))?;
    let batch = cursor.get(name).and_then(|v| v.as_array()).unwrap_or(RawDoc::empty());
    out.extend(batch.iter().filter_map(|e| e.value().as_doc().map(RawDoc::to_buf)));
    Ok(cursor.get("id").and_then(|v| v.as_i64()).unwrap_or(0))
}
