//! What the primary of the set that a tenant leaves is asked for by the other set's: the tenant's data as of one time, and what its log says
//! of the tenant from there on.

pub(in crate::commands) mod entries;
pub(in crate::commands) mod snapshot;

use super::prelude;
use super::prelude::*;
use super::tenants_of;
use pando_base::{TenantId, TenantScope, Timestamp, Uuid};
use pando_command::request::missing;

/// The arguments of these commands; each takes some of them.
#[derive(Default)]
struct Args<'a> {
    migration: Option<Uuid>,
    whose: Option<TenantScope<'a>>,
    uuid: Option<Uuid>,
    number: Option<u64>,
    after: Option<Value<'a>>,
    skip: usize,
    max_time_ms: u64,
}

impl<'a> Args<'a> {
    fn parse(req: &Request<'a>) -> Result<Args<'a>> {
        let mut args = Args::default();
        for arg in req.args(req.name) {
            match arg.name() {
                "migrationId" => args.migration = Some(Uuid(arg.uuid()?)),
                "tenantId" => {
                    TenantId::parse(arg.str()?)?;
                    args.whose = Some(TenantScope::one(arg.str()?));
                }
                "tenantIds" => {
                    let list: Option<Vec<&str>> = arg.array()?.iter().map(|e| e.value().as_str()).collect();
                    let list = list.ok_or_else(|| arg.wrong_type(&["array of strings"]))?;
                    args.whose = Some(TenantScope::several(list.into_iter()));
                }
                "uuid" => args.uuid = Some(Uuid(arg.uuid()?)),
                "number" => args.number = Some(arg.i64_at_least(1)? as u64),
                "after" => args.after = Some(arg.value()),
                "skip" => args.skip = arg.i64_at_least(0)? as usize,
                "waitMS" => args.max_time_ms = arg.i64_at_least(0)? as u64,
                _ => return Err(arg.unknown()),
            }
        }
        Ok(args)
    }
    fn migration(&self, req: &Request<'_>) -> Result<Uuid> {
        self.migration.ok_or_else(|| missing(req.name, "migrationId"))
    }
    /// A tenant, or several.
    fn whose(&self, req: &Request<'_>) -> Result<TenantScope<'a>> {
        self.whose.clone().ok_or_else(|| missing(req.name, "tenantId"))
    }
    fn after(&self, req: &Request<'_>) -> Result<Timestamp> {
        match self.after {
            Some(Value::Timestamp(at)) => Ok(at),
            _ => Err(missing(req.name, "after")),
        }
    }
}
