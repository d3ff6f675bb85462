//! Tells the sync source how far this member, and those behind it, are (R-UPOS-1).
//!
//! One report is under way at a time; what moves meanwhile goes into the next. While nobody waits for positions, as the
//! source tells with each batch, a report waits for more of them, and what is written meanwhile is synced once:
//! otherwise every single write costs every member a sync and two or three reports. Without news a report is a sign of
//! life, sent twice per election timeout.

use crate::data::{Deps, Stop};
use pando_base::limits;
use pando_rpc::Retry;
use std::time::Duration;

const LIMIT: Duration = Duration::from_millis(limits::REPORT_MS_MAX);
const GATHER: Duration = Duration::from_millis(limits::REPORT_GATHER_MS);
const PAUSE: Duration = Duration::from_millis(limits::REPORT_PAUSE_MS);

pub(crate) async fn run(deps: Deps, stop: Stop) {
    while !stop.is_asked() {
        let seen = deps.progress.changed().version();
        // For the report after this one.
        deps.catalog.storage().log().ask_flush(deps.progress.written().op_time.ts);
        if let (Some(source), Some(body)) = (deps.progress.source(), deps.upper.position_report()) {
            // tour: apply 8/9
            let call = deps.pool.call(&source, &body, Retry::Idempotent, LIMIT);
            match stop.unless_asked(call).await {
                None => return,
                Some(Ok(_)) => {
                    deps.instance.metrics.replication.position_updates.inc();
                    gather(&deps, &stop).await;
                }
                Some(Err(f)) => {
                    deps.env.log.info(
                        pando_env::Component::Repl,
                        21211,
                        "Error in replSetUpdatePosition",
                        |a| {
                            a.str("source", &source).data("error", &f);
                        },
                    );
                    stop.unless_asked(pause(&deps, &source)).await;
                }
            }
        }
        let keep_alive = deps.upper.election_timeout() / 2;
        stop.unless_asked(deps.env.timeout(keep_alive, deps.progress.changed().changed(seen))).await;
    }
}

/// A moment for more news, as long as nobody waits for it.
async fn gather(deps: &Deps, stop: &Stop) {
    let until = deps.env.clock.mono() + GATHER;
    loop {
        let seen = deps.progress.urgent().version();
        let now = deps.env.clock.mono();
        if now >= until || deps.progress.positions_awaited(now) {
            return;
        }
        let news = deps.env.timeout(until - now, deps.progress.urgent().changed(seen));
        if stop.unless_asked(news).await.is_none() {
            return;
        }
    }
}

/// A moment, or until another source is followed: that one waits for news.
async fn pause(deps: &Deps, failed: &str) {
    let until = deps.env.clock.mono() + PAUSE;
    loop {
        let seen = deps.progress.changed().version();
        let left = until.saturating_sub(deps.env.clock.mono());
        if left.is_zero() || deps.progress.source().is_some_and(|s| s != failed) {
            return;
        }
        deps.env.timeout(left, deps.progress.changed().changed(seen)).await;
    }
}
