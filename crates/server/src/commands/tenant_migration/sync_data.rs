//! `recipientSyncData {migrationId, donorConnectionString, tenantId, protocol, returnAfterReachingDonorTimestamp, …}`: a donor's primary wants its tenants
//! copied, or everything before a time of its log to be here. Answers `{reached}` after a while: who is told `false` asks again.

use super::prelude::*;
use super::{TenantOperations, when_soon};
use crate::tenants::copy::PeerSet;
use pando_base::{TenantId, Timestamp, Uuid};
use pando_command::request::missing;
use pando_tenants::operation::MERGE;
use pando_workflows::receive_tenants::{self, Progress, progress};

struct Args<'a> {
    id: Uuid,
    /// The set that the donor takes this one for.
    set: Option<&'a str>,
    upto: Option<Timestamp>,
    /// What the document keeps of it.
    asked: DocBuf,
}

fn parse<'a>(req: &Request<'a>) -> Result<Args<'a>> {
    let mut set = None;
    let (mut id, mut donor, mut tenants, mut protocol, mut upto) = (None, None, 0, None, None);
    let mut asked = DocBuilder::new();
    for arg in req.args(req.name) {
        match arg.name() {
            "migrationId" => id = Some(Uuid(arg.uuid()?)),
            "donorConnectionString" => {
                donor = Some(PeerSet::parse(arg.str()?)?);
                asked.str(arg.name(), arg.str()?);
            }
            "tenantId" if arg.str()?.is_empty() => {}
            "tenantId" => {
                TenantId::parse(arg.str()?)?;
                tenants += 1;
                asked.str(arg.name(), arg.str()?);
            }
            "tenantIds" => {
                for e in arg.array()?.iter() {
                    let tenant = e.value().as_str().ok_or_else(|| arg.wrong_type(&["array of strings"]))?;
                    TenantId::parse(tenant)?;
                    tenants += 1;
                }
                asked.value(arg.name(), Value::Array(arg.array()?));
            }
            "protocol" => {
                protocol = Some(arg.str()?);
                asked.str(arg.name(), arg.str()?);
            }
            "returnAfterReachingDonorTimestamp" => match arg.value() {
                Value::Timestamp(at) => upto = Some(at),
                _ => return Err(arg.wrong_type(&["timestamp"])),
            },
            "donorSetName" => _ = asked.str(arg.name(), arg.str()?),
            "recipientSetName" => set = Some(arg.str()?),
            "readPreference" => _ = arg.doc()?,
            _ => return Err(arg.unknown()),
        }
    }
    let none = |name: &str| missing(req.name, name);
    let donor = donor.ok_or_else(|| none("donorConnectionString"))?;
    match protocol {
        None | Some("multitenant migrations") if tenants == 1 => {}
        Some(MERGE) => {}
        _ => {
            return Err(Error::new(
                ErrorCode::InvalidOptions,
                "recipientSyncData needs one 'tenantId', or protocol 'shard merge'",
            ));
        }
    }
    if protocol.is_none() {
        asked.str("protocol", "multitenant migrations");
    }
    let mut asked = asked.finish();
    if asked.elem("donorSetName").is_none() {
        let mut b = DocBuilder::new();
        b.elems_of(&asked).str("donorSetName", &donor.name);
        asked = b.finish();
    }
    Ok(Args { id: id.ok_or_else(|| none("migrationId"))?, set, upto, asked })
}

pub(in crate::commands) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let migrations = TenantOperations::of(server, &req)?;
    let args = parse(&req)?;
    if let Some(set) = args.set.filter(|set| *set != migrations.set()) {
        let text = format!("tenants were to go to the set {set}, and this is {}", migrations.set());
        return Err(Error::bad_value(text));
    }
    let state = receive_tenants::begin(&args.id, &args.asked, migrations.set());
    let instance = match migrations.reception(ctx, &args.id).await? {
        // Called off: it stays so, whatever this one asks for.
        Some(there) if progress(&there.state()) == Progress::Aborted => there,
        _ => migrations.start(ctx, receive_tenants::SERVICE, &state).await?,
    };
    if let Some(upto) = args.upto {
        migrations.tenants.receptions.tell(args.id, |told| told.target = told.target.max(Some(upto)));
    }
    let wanted = if args.upto.is_some() { Progress::Received } else { Progress::Consistent };
    let reached = when_soon(ctx, &instance, |state| progress(state) >= wanted).await?;
    if progress(&instance.state()) == Progress::Aborted {
        let why = receive_tenants::why_aborted(&instance.state());
        let why = why.map_or_else(|| "it is over".to_owned(), |why| why.to_string());
        let text = format!("the recipient has given the migration up :: caused by :: {why}");
        return Err(Error::new(ErrorCode::TenantMigrationAborted, text));
    }
    let mut r = Reply::new();
    r.body.bool("reached", reached);
    Ok(r)
}
