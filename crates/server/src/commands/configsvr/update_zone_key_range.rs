//! `_configsvrUpdateZoneKeyRange`: a range of keys is given to a zone, or to none (SH-BAL-6).

use super::prelude::*;

pub(in super::super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let call = Call::new(server, ctx)?;
    let name = fields::own_text_of_old(&req)?;
    let of = Namespace::parse(name)
        .ok()
        .filter(|ns| !ns.coll().is_empty())
        .ok_or_else(|| Error::new(ErrorCode::InvalidNamespace, format!("{name} is not a valid namespace")))?;
    let (min, max) = fields::range(req.body)?;
    let zone = match fields::given(req.body, "zone")? {
        Value::Null => None,
        _ => Some(fields::text(req.body, "zone")?),
    };
    let manager = &call.config_server.manager;
    manager.update_zone_key_range(&call.interrupt, &of, &min, &max, zone).await?;
    call.done().await
}
