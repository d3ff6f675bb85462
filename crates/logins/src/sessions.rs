//! Whose the sessions are that a list names: the caller's own, unless it says whose, which it has to be allowed to.

use crate::KeepsUsers;
use pando_auth::{Action, UserName};
use pando_base::session_id::NO_USER_DIGEST;
use pando_base::{Error, ErrorCode, Result};
use pando_bson::{RawDoc, Value};
use pando_command::{OpCtx, SessionId};
use pando_oplog::session::lsid_of;

/// `instead` is what lets somebody name sessions of others.
pub async fn named(
    node: &dyn KeepsUsers,
    ctx: &OpCtx,
    mut listed: Vec<SessionId>,
    instead: Action,
) -> Result<Vec<SessionId>> {
    let Some(own) = ctx.owner() else { return Ok(listed) };
    for lsid in &mut listed {
        if lsid.uid == NO_USER_DIGEST {
            lsid.uid = own;
        } else if lsid.uid != own && !node.authority_of(&ctx.client).await?.may_on_cluster(instead) {
            let text = "Unauthorized to set user digest in LogicalSessionId";
            return Err(Error::new(ErrorCode::Unauthorized, text));
        }
    }
    Ok(listed)
}

/// Digests of users that a list names, who have to be there (11).
pub async fn digests_of_users(node: &dyn KeepsUsers, users: &[&RawDoc]) -> Result<Vec<[u8; 32]>> {
    let mut digests = Vec::with_capacity(users.len());
    for user in users {
        let text = |name: &str| user.get(name).and_then(|v| v.as_str()).unwrap_or_default();
        let name = UserName::new(text("user"), text("db"));
        if node.user(&name).await?.is_none() {
            let text = format!("Could not find user \"{}\" for db \"{}\"", name.user, name.db);
            return Err(Error::new(ErrorCode::UserNotFound, text));
        }
        digests.push(name.digest());
    }
    Ok(digests)
}

/// A session, a user's, or all. One that does not say whose is the caller's own.
pub fn fits(pattern: &RawDoc, lsid: &SessionId, own: Option<[u8; 32]>) -> bool {
    if let Some(Value::Document(one)) = pattern.get("lsid") {
        return lsid_of(one).is_some_and(|mut wanted| {
            if wanted.uid == NO_USER_DIGEST {
                wanted.uid = own.unwrap_or(NO_USER_DIGEST);
            }
            wanted == *lsid
        });
    }
    match pattern.get("uid") {
        Some(Value::Binary { bytes, .. }) => bytes == lsid.uid,
        _ => true,
    }
}
