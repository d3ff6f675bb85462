//! `reIndex`: drops and builds the indexes of a collection again, on a standalone server.

use super::prelude::*;
use pando_access::DropWhich;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = req.ns_of_ddl()?;
    if server.replication.member.is_replicated() {
        return Err(Error::new(
            ErrorCode::IllegalOperation,
            format!(
                "reIndex is only allowed on a standalone mongod instance. Cannot reIndex '{ns}' while replication is \
                 active"
            ),
        ));
    }
    let Some(coll) = server.access.collection(ctx, &ns)? else {
        return Err(Error::new(ErrorCode::NamespaceNotFound, "collection does not exist"));
    };
    server.upkeep.admission.before_write(ctx).await?;
    // The `_id` index stays: without it the collection could not be written meanwhile.
    let again: Vec<DocBuf> =
        coll.ready_indexes().iter().filter(|i| !i.spec.is_id_index()).map(|i| i.spec.doc.clone()).collect();
    let specs: Vec<&RawDoc> = again.iter().map(|d| &**d).collect();
    let before = coll.index_count();
    if !specs.is_empty() {
        server.access.drop_indexes(ctx, &ns, DropWhich::All).await?;
        server.access.create_own_indexes(ctx, &ns, &specs).await?;
    }
    let after = server.access.collection(ctx, &ns)?.map(|c| c.index_docs(false)).unwrap_or_default();
    let mut r = Reply::new();
    r.body.i32("nIndexesWas", before as i32);
    r.body.i32("nIndexes", after.len() as i32);
    r.body.array("indexes", |a| {
        for doc in &after {
            a.raw_doc(doc);
        }
    });
    Ok(r)
}
