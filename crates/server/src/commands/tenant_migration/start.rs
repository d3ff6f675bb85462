//! `donorStartMigration {migrationId, recipientConnectionString, readPreference, tenantId, protocol}`: a tenant goes to another set, or with the protocol
//! `shard merge` all that this one has. It begins, and is joined by whoever asks for the same: the answer says how far it is.

use super::prelude::*;
use super::{TenantOperations, when};
use crate::tenants::copy::PeerSet;
use pando_base::{TenantId, Uuid};
use pando_command::request::missing;
use pando_tenants::operation::MERGE;
use pando_tenants::{Kind, Operation};
use pando_workflows::donate_tenants::{self, Asked};

struct Args<'a> {
    id: Uuid,
    recipient: &'a str,
    tenant: Option<&'a str>,
}

/// What is copied is read from the donor's primary.
fn check_preference(preference: &RawDoc) -> Result<()> {
    let mode = preference.get("mode").and_then(|v| v.as_str());
    match mode {
        Some("primary" | "primaryPreferred") => Ok(()),
        Some(mode) => {
            let text =
                format!("tenants are copied from the donor's primary only, not with readPreference {mode}");
            Err(Error::new(ErrorCode::CommandNotSupported, text))
        }
        None => Err(Error::failed_to_parse("readPreference needs a mode")),
    }
}

fn parse<'a>(req: &Request<'a>) -> Result<Args<'a>> {
    let (mut id, mut recipient, mut tenant, mut protocol) = (None, None, None, None);
    for arg in req.args(req.name) {
        match arg.name() {
            "migrationId" => id = Some(Uuid(arg.uuid()?)),
            "recipientConnectionString" => recipient = Some(arg.str()?),
            "tenantId" => tenant = Some(arg.str()?),
            "protocol" => protocol = Some(arg.str()?),
            "readPreference" => check_preference(arg.doc()?)?,
            "donorCertificateForRecipient" | "recipientCertificateForDonor" => {
                let text =
                    format!("{}: members prove who they are by the certificates they run with", arg.name());
                return Err(Error::new(ErrorCode::CommandNotSupported, text));
            }
            _ => return Err(arg.unknown()),
        }
    }
    let none = |name: &str| missing(req.name, name);
    let id = id.ok_or_else(|| none("migrationId"))?;
    let recipient = recipient.ok_or_else(|| none("recipientConnectionString"))?;
    let tenant = match (protocol.unwrap_or("multitenant migrations"), tenant) {
        ("multitenant migrations", Some(tenant @ ("admin" | "config" | "local"))) => {
            return Err(Error::bad_value(format!("cannot migrate databases for tenant '{tenant}'")));
        }
        ("multitenant migrations", Some(tenant)) if !tenant.is_empty() => {
            TenantId::parse(tenant)?;
            Some(tenant)
        }
        ("multitenant migrations", _) => {
            return Err(Error::new(
                ErrorCode::InvalidOptions,
                "'tenantId' is required for a tenant migration",
            ));
        }
        (MERGE, None | Some("")) => None,
        (MERGE, Some(_)) => {
            return Err(Error::new(
                ErrorCode::InvalidOptions,
                "'tenantId' must be empty for protocol 'shard merge'",
            ));
        }
        (other, _) => {
            let text = format!(
                "Enumeration value '{other}' for field '{}.protocol' is not a valid value.",
                req.name
            );
            return Err(Error::bad_value(text));
        }
    };
    Ok(Args { id, recipient, tenant })
}

pub(in crate::commands) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let migrations = TenantOperations::of(server, &req)?;
    let args = parse(&req)?;
    let recipient = PeerSet::parse(args.recipient)?;
    let connection = migrations.connection();
    let asked = Asked {
        id: args.id,
        tenant: args.tenant,
        recipient: args.recipient,
        recipient_set: &recipient.name,
        donor: &connection,
        donor_set: migrations.set(),
    };
    let state = donate_tenants::begin(&asked);
    let there = migrations.donation(ctx, &args.id).await?;
    if there.is_none() {
        // Otherwise it would be told by an operation that aborts.
        migrations.tenants.blockers.may_begin(&Operation::parse(Kind::Donor, &state)?)?;
    }
    let instance = migrations.start(ctx, donate_tenants::SERVICE, &state).await?;
    ctx.will_write();
    // On a majority: whoever is primary next goes on with it.
    when(ctx, &instance, donate_tenants::is_durable).await?;
    let mut r = Reply::new();
    append_state(&mut r.body, &instance.state());
    Ok(r)
}

/// `{state, abortReason?}`
pub(super) fn append_state(b: &mut DocBuilder, state: &RawDoc) {
    if let Some(e) = state.elem("state") {
        b.elem(e);
    }
    if let Some(why) = donate_tenants::decided(state).and_then(Result::err) {
        b.doc("abortReason", |d| {
            d.i32("code", why.code.0).str("codeName", &why.code.name()).str("errmsg", &why.message);
        });
    }
}
