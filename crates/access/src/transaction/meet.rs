//! What a statement of a transaction names is locked before it runs, and what its pipeline reads beside.

use super::{OpenTxn, open_txn};
use crate::Access;
use pando_base::{Error, Namespace, Result};
use pando_bson::{RawDoc, Value};
use pando_command::{OpCtx, Request};
use pando_query::stage::involved;
use std::collections::BTreeSet;

impl Access {
    /// Locks the collection that the statement names.
    pub async fn meet_target(&self, ctx: &OpCtx, req: &Request<'_>) -> Result<()> {
        let Some(open) = open_txn(ctx) else { return Ok(()) };
        let by_name = matches!(
            ctx.command,
            "aggregate"
                | "create"
                | "createIndexes"
                | "delete"
                | "distinct"
                | "find"
                | "findAndModify"
                | "insert"
                | "update"
        );
        match req.first().value() {
            Value::Int32(_) | Value::Int64(_) | Value::Double(_) => Ok(()),
            _ if !by_name => Ok(()),
            _ => {
                let Ok(ns) = self.ns_or_uuid(req) else { return Ok(()) };
                check_target(ctx.command, &ns)?;
                open.meet(&self.catalog, ctx, &ns).await?;
                match req.body.get("pipeline").and_then(|v| v.as_array()) {
                    Some(stages) if ctx.command == "aggregate" => {
                        self.meet_involved(ctx, open, &ns, stages).await
                    }
                    _ => Ok(()),
                }
            }
        }
    }

    /// Locks what the pipeline, and those of views, read beside.
    async fn meet_involved(
        &self,
        ctx: &OpCtx,
        open: &OpenTxn,
        target: &Namespace,
        pipeline: &RawDoc,
    ) -> Result<()> {
        let mut pipelines = vec![pipeline.to_buf()];
        // What is wrong with a view comes to light when it is read.
        let stages_of = |ns: &Namespace| Some(self.catalog.snapshot().resolve_view(ns).ok()??.pipeline);
        pipelines.extend(stages_of(target));
        let mut met = BTreeSet::new();
        while let Some(stages) = pipelines.pop() {
            let mut names = BTreeSet::new();
            involved(&stages, &mut names);
            for name in names {
                let Ok(ns) = Namespace::new(target.db(), name) else { continue };
                if !met.insert(ns.clone()) {
                    continue;
                }
                open.meet(&self.catalog, ctx, &ns).await?;
                pipelines.extend(stages_of(&ns));
            }
        }
        Ok(())
    }
}

/// Collections that transactions keep away from.
fn check_target(command: &str, ns: &Namespace) -> Result<()> {
    let writes = !matches!(command, "aggregate" | "distinct" | "find");
    if writes && ns.coll().starts_with("system.") && !matches!(command, "create" | "createIndexes") {
        return Err(Error::location(
            50791,
            format!("Cannot write to system collection {ns} within a transaction."),
        ));
    }
    if ns.coll() == "system.views" {
        return Err(Error::location(51071, "Cannot query system.views within a transaction"));
    }
    Ok(())
}
