//! Identifiers that this server makes.

use pando_bson::ObjectId;
use pando_env::Env;

/// Four bytes of time, eight of chance.
pub(crate) fn new_object_id(env: &Env) -> ObjectId {
    let mut id = [0; 12];
    env.rng.fill(&mut id);
    let secs = (env.clock.wall_ms() / 1000) as u32;
    id[..4].copy_from_slice(&secs.to_be_bytes());
    ObjectId(id)
}
