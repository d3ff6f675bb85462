//! When an operation is routed again: a shard knows better, or knows that it knows nothing (SH-PROTO-3).
//!
//! What a shard's error means is decided here without doing anything; [`Tries`] tells the caches, waits and counts.

use super::shards::Shards;
use crate::op;
use pando_base::codes::class;
use pando_base::{Error, ErrorCode, limits};
use pando_bson::RawDoc;
use pando_command::OpCtx;
use pando_metadata_cache::Route;
use pando_routing::stale::{StaleConfig, StaleDatabase};
use pando_routing::{ChunkVersion, DatabaseVersion, Placement};
use std::time::Duration;

/// What is not as this shards thought.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Stale {
    /// Where a collection's documents are.
    Collection { ns: String, wanted: Option<ChunkVersion> },
    /// Which shard is the database's primary.
    Database { wanted: Option<DatabaseVersion> },
}

/// Whether an error sends its reader away to be routed again. `extra` are the fields beside code and text.
pub(crate) fn what(code: ErrorCode, extra: &RawDoc, ns: &str) -> Option<Stale> {
    // Errors of single writes keep these fields within another one.
    let inner = extra.get("errInfo").and_then(|v| v.as_doc()).unwrap_or(extra);
    match code {
        ErrorCode::StaleDbVersion => {
            let told = StaleDatabase::parse(inner).ok();
            Some(Stale::Database { wanted: told.and_then(|t| t.wanted) })
        }
        ErrorCode::StaleConfig => {
            let told = StaleConfig::parse(inner).ok();
            let (ns, wanted) = told.map_or((ns.to_owned(), None), |t| (t.ns, t.wanted));
            // A shard that owns nothing has no version that could be compared: its last chunk may have moved away just now.
            let wanted = wanted.filter(|w| w.placement != Placement::NONE);
            Some(Stale::Collection { ns, wanted })
        }
        _ if code.is(class::STALE_ROUTING) => Some(Stale::Collection { ns: ns.to_owned(), wanted: None }),
        _ => None,
    }
}

pub(crate) fn of_error(e: &Error, ns: &str) -> Option<Stale> {
    // Nobody is asked: the shard has been removed since its chunks were known, and has given them away before.
    if e.code == ErrorCode::ShardNotFound {
        return Some(Stale::Collection { ns: ns.to_owned(), wanted: None });
    }
    what(e.code, RawDoc::validate(&e.extra).unwrap_or(RawDoc::empty()), ns)
}

/// How often one operation was routed.
#[derive(Default)]
pub(crate) struct Tries {
    again: u32,
    elsewhere: bool,
}

impl Tries {
    /// How often it was routed again.
    pub(crate) fn count(&self) -> u32 {
        self.again
    }
    /// Whether to route it once more; the caches know why.
    pub(crate) async fn again(&mut self, shards: &Shards, ctx: &OpCtx, route: &Route, e: &Error) -> bool {
        match of_error(e, route.ns.as_str()) {
            Some(stale) => self.once_more(shards, ctx, route, stale).await,
            None => self.of_later(shards, ctx, e),
        }
    }
    /// A shard cannot show the moment that this router has chosen: a range has moved since. A later one does as well.
    fn of_later(&mut self, shards: &Shards, ctx: &OpCtx, e: &Error) -> bool {
        let is_of_moment = matches!(
            e.code,
            ErrorCode::SnapshotTooOld | ErrorCode::SnapshotUnavailable | ErrorCode::MigrationConflict
        );
        if !is_of_moment || !op::renew_snapshot(ctx, shards.times.cluster().0) {
            return false;
        }
        self.again += 1;
        self.again < limits::ROUTER_STALE_TRIES_MAX
    }
    pub(crate) async fn once_more(
        &mut self,
        shards: &Shards,
        ctx: &OpCtx,
        route: &Route,
        stale: Stale,
    ) -> bool {
        match stale {
            Stale::Database { wanted } => shards.catalog.database_is_stale(route, wanted),
            Stale::Collection { ns, wanted } if ns == route.ns.as_str() => {
                shards.catalog.collection_is_stale(route, wanted);
            }
            Stale::Collection { ns, .. } => {
                self.elsewhere = true;
                shards.catalog.renew_collection(&ns);
            }
        }
        if let (Some(transaction), Some(lsid)) = (op::transaction(ctx), ctx.lsid) {
            // What earlier statements have read holds: the client begins the transaction anew.
            let Some(begun) = transaction.begin_anew() else { return false };
            shards.abort_and_wait(lsid, transaction.number, begun).await;
        }
        self.again += 1;
        if self.again > 1 {
            let pause = limits::ROUTER_STALE_PAUSE_MS << (self.again - 1).min(8);
            if ctx.sleep(Duration::from_millis(pause)).await.is_err() {
                return false;
            }
        }
        self.again < limits::ROUTER_STALE_TRIES_MAX
    }
    /// A shard was wrong about another collection than the one that was routed by: what else is read may be a view of one that lies on
    /// several shards, which only a shard can see.
    pub(crate) fn elsewhere(&self) -> bool {
        self.elsewhere
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_base::Timestamp;
    use pando_bson::ObjectId;
    use pando_routing::{Generation, ShardId};

    fn version(major: u32) -> ChunkVersion {
        let generation = Generation { epoch: ObjectId([1; 12]), timestamp: Timestamp::new(5, 1) };
        ChunkVersion::new(generation, Placement::new(major, 0))
    }

    #[test]
    fn what_a_shard_wants_is_read_from_its_error_or_from_that_of_one_write() {
        let told = StaleConfig {
            ns: "d.c".to_owned(),
            received: version(1),
            wanted: Some(version(2)),
            shard: ShardId::new("a"),
        };
        let e = told.into_error();
        let expected = Stale::Collection { ns: "d.c".to_owned(), wanted: Some(version(2)) };
        assert_eq!(of_error(&e, "d.other"), Some(expected.clone()));
        let extra = RawDoc::validate(&e.extra).unwrap();
        let mut b = pando_bson::DocBuilder::new();
        b.raw_doc("errInfo", extra);
        assert_eq!(what(e.code, &b.finish(), "d.other"), Some(expected));
    }

    #[test]
    fn a_shard_that_owns_nothing_any_more_wants_no_version_that_is_older() {
        let told = StaleConfig {
            ns: "d.c".to_owned(),
            received: version(2),
            wanted: Some(version(0)),
            shard: ShardId::new("a"),
        };
        let expected = Stale::Collection { ns: "d.c".to_owned(), wanted: None };
        assert_eq!(of_error(&told.into_error(), "d.c"), Some(expected));
    }

    #[test]
    fn other_errors_are_answers() {
        assert_eq!(of_error(&Error::bad_value("no"), "d.c"), None);
        let bare = Error::new(ErrorCode::StaleConfig, "?");
        assert_eq!(of_error(&bare, "d.c"), Some(Stale::Collection { ns: "d.c".to_owned(), wanted: None }));
    }
}
