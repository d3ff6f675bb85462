//! Where stages may stand that are about processes, sessions or nothing at all: some want a collection, some want none.

use super::pipeline::Pipeline;
use crate::ctx::QueryCtx;
use pando_base::{Error, ErrorCode, Namespace, Result};
use pando_bson::{ArrayBuilder, RawDoc};

/// A stage that is only valid as the first one.
pub const NOT_FIRST: i32 = 40602;
/// A stage that is only valid as the last one.
pub const NOT_LAST: i32 = 40601;
const SESSIONS_ELSEWHERE: &str = "$listSessions may only be run against config.system.sessions";
const CURRENT_OP_ELSEWHERE: &str = "$currentOp must be run against the 'admin' database with {aggregate: 1}";
const LOCAL_SESSIONS_ELSEWHERE: &str =
    "$listLocalSessions must be run against the database with {aggregate: 1}, not a collection";

fn invalid(text: String) -> Error {
    Error::new(ErrorCode::InvalidNamespace, text)
}

/// Some stages want a collection, some want none.
pub fn check_first_stage(ns: &Namespace, raw: &RawDoc) -> Result<()> {
    let without = ns.coll() == "$cmd.aggregate";
    let refused = match first_stage(raw) {
        "$currentOp" if !(without && ns.db() == "admin") => CURRENT_OP_ELSEWHERE,
        "$documents" if !without => "'$documents' can only be run with {aggregate: 1}",
        "$listLocalSessions" if !without => LOCAL_SESSIONS_ELSEWHERE,
        "$listSessions" if ns.as_str() != "config.system.sessions" => SESSIONS_ELSEWHERE,
        // A change stream is of a collection, a database or a cluster.
        "$currentOp" | "$documents" | "$listLocalSessions" | "$changeStream" => return Ok(()),
        _ if !without => return Ok(()),
        "" => "{aggregate: 1} is not valid for an empty pipeline.",
        name => {
            let text = format!("{{aggregate: 1}} is not valid for '{name}'; a collection is required.");
            return Err(invalid(text));
        }
    };
    Err(invalid(refused.to_owned()))
}

/// Some stages are for one collection or for none, wherever they stand: that is told before anything is said of the stages
/// behind them.
pub fn check_places(ns: &Namespace, pipeline: &RawDoc, q: &QueryCtx) -> Result<()> {
    let without = ns.coll() == "$cmd.aggregate";
    let misplaced = |name: &str| match name {
        "$currentOp" if !(without && ns.db() == "admin") => Some(CURRENT_OP_ELSEWHERE),
        "$listLocalSessions" if !without => Some(LOCAL_SESSIONS_ELSEWHERE),
        "$listSessions" if ns.as_str() != "config.system.sessions" => Some(SESSIONS_ELSEWHERE),
        _ => None,
    };
    let stages = || pipeline.iter().filter_map(|s| s.value().as_doc());
    let looked_at = stages().map(|stage| stage.first().and_then(|e| misplaced(e.name())));
    let Some((at, text)) = looked_at.enumerate().find_map(|(at, text)| Some((at, text?))) else {
        return Ok(());
    };
    let mut before = ArrayBuilder::new();
    for stage in stages().take(at) {
        before.doc(|d| {
            d.elems_of(stage);
        });
    }
    Pipeline::parse(&before.finish(), q)?;
    Err(invalid(text.to_owned()))
}

/// Where the first stage may stand at all is told before where the others may.
pub fn place_of_first(ns: &Namespace, pipeline: &RawDoc, e: Error) -> Error {
    match e.code.0 {
        NOT_FIRST | NOT_LAST => check_first_stage(ns, pipeline).err().unwrap_or(e),
        _ => e,
    }
}

/// The stage that a pipeline begins with.
pub fn first_stage(pipeline: &RawDoc) -> &str {
    let first = pipeline.first().and_then(|s| s.value().as_doc()?.first());
    first.map_or("", |e| e.name())
}
