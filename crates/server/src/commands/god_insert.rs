//! `godinsert` (test command): inserts a document as it is, past the collection's validator.

use super::prelude::*;
use crate::write::inserting::Inserting;
use crate::write::writes::Retry;
use pando_access::Named;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = req.ns_of_ddl()?;
    let doc = match req.body.elem("obj").map(|e| e.value()) {
        Some(Value::Document(doc) | Value::Array(doc)) => doc,
        other => {
            let name = if other.is_some() { "obj" } else { "" };
            return Err(Error::location(10065, format!("invalid parameter: expected an object ({name})")));
        }
    };
    server.upkeep.admission.before_write(ctx).await?;
    if let Some(Named::View(_)) = server.access.definitions().named(&ns) {
        let text = "Conflicted registering namespace, already have a view with the same namespace";
        return Err(Error::new(ErrorCode::NamespaceExists, text));
    }
    if doc.elem("_id").is_none() {
        let text = format!("Collection::insertDocument got document without _id for ns:{ns}");
        return Err(Error::internal(text));
    }
    let mut retry = Retry::begin(&server.crud.writes, ctx, req.body).await?;
    let how = Inserting { ordered: true, bypass_validation: true, series: None, checked: Ok(()) };
    let done = server.crud.writes.insert(ctx, &ns, &[doc], 0, &how, &mut retry).await?;
    match done.errors.into_iter().next() {
        Some((_, e)) => Err(e),
        None => Ok(Reply::new()),
    }
}
