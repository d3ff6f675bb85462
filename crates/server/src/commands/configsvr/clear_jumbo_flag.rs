//! `_configsvrClearJumboFlag`: a chunk may be moved again (SH-MIG-19).

use super::prelude::*;
use pando_bson::fields::wrong_type;

pub(in super::super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let call = Call::with_majority(server, ctx)?;
    let of = fields::own_text(&req)?;
    let bound = |name: &str| {
        let v = fields::required(&req, name)?;
        v.as_doc().ok_or_else(|| wrong_type(req.name, name, &v, &["object"]))
    };
    let epoch = match fields::required(&req, "epoch")? {
        Value::ObjectId(id) => id,
        v => return Err(wrong_type(req.name, "epoch", &v, &["objectId"])),
    };
    let range = (bound("minKey")?, bound("maxKey")?);
    call.config_server.manager.clear_jumbo_flag(&call.interrupt, of, epoch, range).await?;
    call.done().await
}
