//! Ranges that move between shards, as their nodes carry it out. What is done in which order is `pando_workflows::migration`'s.
//!
//! ```text
//!   config server ─► _shardsvrMoveRange ─► donor's workflow ─► donor_steps
//!                                             │ _recvChunk…             ▲ _migrateClone, _transferMods, _getNextSessionMods
//!                                             ▼                         │
//!                                          recipient's workflow ─► recipient_steps
//!   a task in config.rangeDeletions ─► deleter's workflow ─► deletion_steps
//! ```
//! * [`move_range`] — begins a migration, or joins it;
//! * [`size`] — how much of a chunk moves, and what is too large;
//! * [`receive`] — what a donor asks of its recipient;
//! * [`give`] — what a recipient fetches from its donor;
//! * [`is_over`] — whether anything more can come of a migration;
//! * [`donor_steps`], [`recipient_steps`], [`deletion_steps`] — steps of the workflows;
//! * [`changelog`] — what is told of it for those who look into it later;
//! * [`range`] — the range of a step, by the index over the shard key.

mod changelog;
mod deletion_steps;
mod donor_steps;
mod give;
mod is_over;
mod move_range;
mod range;
mod receive;
mod recipient_steps;
mod size;
mod throttle;

pub(in crate::commands) use give::{changes, documents, histories};
pub(in crate::commands) use is_over::run as is_over;
pub(in crate::commands) use move_range::run as move_range;
pub(in crate::commands) use receive::{abort, commit, release, start, status};

pub(super) use donor_steps::record_in;
pub(super) use range::whatever_there_is as range_of;

use super::ddl::Ddl;
use pando_base::Result;
use pando_bson::{DocBuf, RawDoc};
use pando_workflows::migration::Migration;
use pando_workflows::{delete_range, move_range as donor, receive_range as recipient};

/// A step of one of the workflows; `None` where it is none of theirs.
pub(in crate::commands) async fn step(ddl: &Ddl<'_>, step: &str, body: &RawDoc) -> Result<Option<DocBuf>> {
    let Some(m) = Migration::parse(body) else { return Ok(None) };
    let made = match step {
        donor::LOOK => donor_steps::look(ddl, &m, body).await,
        donor::RECORD => donor_steps::record(ddl, &m).await,
        donor::NUMBER => donor_steps::number(ddl, &m),
        donor::RESOLVE | recipient::RESOLVE => range::resolve(ddl, &m).await,
        donor::LET_GO => donor_steps::let_go(ddl, &m, body).await,
        recipient::PREPARE => recipient_steps::prepare(ddl, &m).await,
        recipient::MAKE => recipient_steps::make_collection(ddl, &m).await,
        recipient::CLONE => recipient_steps::copy(ddl, &m, body).await,
        recipient::CATCH_UP => recipient_steps::catch_up(ddl, &m, body).await,
        recipient::DRAIN => recipient_steps::drain(ddl, &m, body).await,
        delete_range::AWAIT_READERS => deletion_steps::await_readers(ddl, &m).await,
        delete_range::JUDGE => deletion_steps::judge(ddl, &m).await,
        delete_range::DELETE => deletion_steps::delete_some(ddl, &m, body).await,
        _ => return Ok(None),
    };
    made.map(Some)
}
