//! What coordinators on the config servers have in common: operations that every shard of a cluster takes part in (SYS-264).
//!
//! State documents are in `config.sharding_configsvr_coordinators`: `{_id: {coordinatorType}, phase, …}`. There is one of a kind at a time:
//! who asks for the same joins, who asks for something else is refused (117).
//!
//! ```text
//!   state document ─► no shard is added any more ─► number, shards ─► every shard, phase by phase ─► this node ─► the document goes
//! ```
//! Numbers are those of definitions ([`crate::ddl`]): the `timestamp` of an entry in the config servers' log, on a majority before any shard
//! hears of it. Shards remember the newest, and refuse what a deposed primary has sent under an older one.

use crate::{Workflow, cluster_parameter, feature_version, user_writes};
use pando_base::{Error, Result};
use pando_bson::{DocBuf, DocBuilder, RawDoc};

pub const NAME: &str = "ConfigsvrCoordinator";
pub const COLLECTION: &str = "sharding_configsvr_coordinators";
/// A step of this node: `{<step>: 1}` ─► `{timestamp, shards}`: the number of this operation, and all shards.
pub const LOOK: &str = "lookAtShards";

const KIND: &str = "coordinatorType";

/// A coordinator from its state document.
pub fn restore(state: &RawDoc) -> Result<Box<dyn Workflow>> {
    let id = state.get("_id");
    match id.as_ref().and_then(|v| v.as_doc()).and_then(|id| id.get(KIND)?.as_str()) {
        Some(user_writes::OPERATION) => user_writes::restore(state),
        Some(cluster_parameter::OPERATION) => cluster_parameter::restore(state),
        Some(feature_version::OPERATION) => feature_version::restore(state),
        _ => Err(nonsense(state)),
    }
}
/// What two requests must agree on to be one.
pub fn options(state: &RawDoc) -> DocBuf {
    let mut b = DocBuilder::new();
    for field in ["block", "parameter", "version"] {
        state.elem(field).into_iter().for_each(|e| _ = b.elem(e));
    }
    b.finish()
}

pub(crate) fn append_id(b: &mut DocBuilder, operation: &str) {
    b.doc("_id", |d| _ = d.str(KIND, operation));
}
pub(crate) fn nonsense(state: &RawDoc) -> Error {
    Error::bad_value(format!("not a state of a coordinator of config servers: {state}"))
}
