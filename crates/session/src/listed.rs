//! Sessions as documents: `$listSessions`, `$listLocalSessions`.

use crate::Sessions;
use pando_auth::UserName;
use pando_base::{Error, ErrorCode, Result, SessionId};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};
use pando_command::OpCtx;
use pando_oplog::session::lsid_doc;
use std::time::Duration;

/// The sessions that this node knows: the caller's own, those of users that are named, or everybody's.
pub fn listed(known: &Sessions, ctx: &OpCtx, stage: &'static str, spec: &RawDoc) -> Result<Vec<DocBuf>> {
    let all_users = match spec.get("allUsers") {
        None => false,
        Some(Value::Boolean(b)) => b,
        Some(v) => {
            return Err(pando_command::request::wrong_type(stage, "allUsers", &v, &["bool"]));
        }
    };
    let named: Vec<[u8; 32]> = spec.get("users").and_then(|v| v.as_array()).map(digests).unwrap_or_default();
    if !named.is_empty() && all_users {
        return Err(Error::new(
            ErrorCode::UnsupportedFormat,
            format!("{stage} may not specify {{allUsers:true}} and {{users:[...]}} at the same time"),
        ));
    }
    let wall = ctx.env().clock.wall_ms();
    let own = ctx.owner().filter(|_| !all_users);
    let mut rows = known.all(ctx.env().clock.mono());
    match named.is_empty() {
        true => rows.retain(|(id, _)| own.is_none_or(|own| id.uid == own)),
        false => rows.retain(|(id, _)| named.contains(&id.uid)),
    }
    let row = |(id, idle): (SessionId, Duration)| {
        let mut b = DocBuilder::with_capacity(128);
        b.raw_doc("_id", &lsid_doc(&id));
        b.date("lastUse", wall - idle.as_millis() as i64);
        b.finish()
    };
    Ok(rows.into_iter().map(row).collect())
}

/// Of `[{user: .., db: ..}, ..]`.
fn digests(users: &RawDoc) -> Vec<[u8; 32]> {
    let text = |d: &RawDoc, name: &str| d.get(name).and_then(|v| v.as_str()).unwrap_or_default().to_owned();
    let of = |d: &RawDoc| UserName::new(text(d, "user"), text(d, "db")).digest();
    users.iter().filter_map(|e| e.value().as_doc()).map(of).collect()
}
