//! Where this node's log and a sync source's part: both are walked backwards until one entry is the same (R-RB-2).

use crate::data::Deps;
use crate::data::metadata::op_time_of;
use crate::data::progress::Position;
use crate::data::undone::Undone;
use pando_base::mutants::{Mutant as Planted, broken as planted};
use pando_base::{Error, ErrorCode, OpTime, Result, Timestamp, limits};
use pando_bson::{RawDoc, Value, doc};
use pando_oplog::EntryView;
use pando_rpc::Retry;
use std::collections::VecDeque;
use std::ops::Bound;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(limits::SYNC_SOURCE_CALL_SECS_MAX);

/// The newest entry that both logs hold, and what of ours comes after it.
#[derive(Clone, Debug)]
pub struct CommonPoint {
    pub at: Position,
    pub undone: Undone,
    /// The source's newest entry.
    pub theirs: OpTime,
}

/// What the two logs show.
#[derive(Clone, Debug)]
pub enum Found {
    At(Box<CommonPoint>),
    /// One of them ends before: from here on no entry is the same.
    NoneSince(OpTime),
}

pub async fn find(deps: &Deps, source: &str) -> Result<Found> {
    let mut mine = deps.catalog.storage().log().read(Bound::Unbounded, true);
    let mut theirs = Backward { deps, source, entries: VecDeque::new(), below: None, ended: false };
    let mut undone = Undone::default();
    let mut other = theirs.next().await?;
    let newest_of_theirs = other.unwrap_or(OpTime::NULL);
    let (mut newest, mut reached) = (None, OpTime::NULL);
    let mut too_far = planted(Planted::RollbackTooFar);
    while let Some((_, bytes)) = mine.next()? {
        let e = EntryView::parse(RawDoc::trusted(&bytes))?;
        let at = Position { op_time: e.op_time(), wall: e.wall };
        newest.get_or_insert(at.op_time);
        while let Some(o) = other.filter(|o| o.ts > at.op_time.ts) {
            reached = o;
            other = theirs.next().await?;
        }
        match other {
            Some(o) if o == at.op_time && too_far => {
                too_far = false;
                undone.note(&e)?;
                other = theirs.next().await?;
            }
            Some(o) if o == at.op_time => {
                return Ok(Found::At(Box::new(CommonPoint { at, undone, theirs: newest_of_theirs })));
            }
            Some(_) => {
                reached = at.op_time;
                undone.note(&e)?;
            }
            None => break,
        }
    }
    match newest {
        Some(newest) if !reached.is_null() && reached.ts <= newest.ts => Ok(Found::NoneSince(reached)),
        _ => Err(Error::new(
            ErrorCode::InvalidSyncSource,
            format!("the oplog of {source} begins after this node's newest entry"),
        )),
    }
}

/// A source's log from its end on, some entries at a time.
struct Backward<'a> {
    deps: &'a Deps,
    source: &'a str,
    entries: VecDeque<OpTime>,
    below: Option<Timestamp>,
    ended: bool,
}

impl Backward<'_> {
    async fn next(&mut self) -> Result<Option<OpTime>> {
        if self.entries.is_empty() && !self.ended {
            self.fetch().await?;
        }
        let next = self.entries.pop_front();
        if let Some(at) = next {
            self.below = Some(at.ts);
        }
        Ok(next)
    }
    async fn fetch(&mut self) -> Result<()> {
        let mut ask = doc! {
            "find": "oplog.rs", "sort": { "$natural": -1 }, "limit": limits::COMMON_POINT_BATCH, "singleBatch": true,
            "projection": { "ts": 1, "t": 1 }
        };
        if let Some(below) = self.below {
            ask.push("filter", doc! { "ts": { "$lt": below } });
        }
        ask.push("$readPreference", doc! { "mode": "secondaryPreferred" });
        ask.push("$db", "local");
        // Whatever it answers (it may be closing, or rolling back itself), another source may do.
        let reply =
            self.deps.pool.call(self.source, &ask.to_raw(), Retry::Idempotent, LIMIT).await.map_err(|f| {
                let text = format!("the oplog of {} cannot be read: {}", self.source, f.error.message);
                Error::new(ErrorCode::InvalidSyncSource, text)
            })?;
        let batch = reply.get_path("cursor.firstBatch").and_then(|v| v.as_array());
        let Some(batch) = batch else {
            return Err(Error::new(ErrorCode::InvalidSyncSource, "the sync source shows no oplog"));
        };
        self.entries.extend(batch.iter().filter_map(|e| match e.value() {
            Value::Document(d) => Some(op_time_of(Some(Value::Document(d)))),
            _ => None,
        }));
        self.ended = self.entries.is_empty();
        Ok(())
    }
}
