//! Commands of a tenant that moves from one set to another.

pub(in crate::commands) mod copy_test;
pub(in crate::commands) mod donor;

use super::prelude;
use super::prelude::*;
use crate::tenants::Tenants;
use std::sync::Arc;

/// # Errors
/// 115 on a server without `--serverless`, 10107 on a member that is no primary.
fn tenants_of<'a>(server: &'a Server, req: &Request<'_>) -> Result<&'a Arc<Tenants>> {
    let tenants = server.tenants.as_ref().ok_or_else(|| {
        let text = format!("{} is only supported in serverless mode", req.name);
        Error::new(ErrorCode::CommandNotSupported, text)
    })?;
    if !server.replication.member.is_primary() {
        return Err(Error::new(ErrorCode::NotWritablePrimary, "not primary"));
    }
    Ok(tenants)
}
