//! A command whose work a workflow of this primary does.

use super::Ddl;
use pando_base::{Error, ErrorCode, Result};
use pando_bson::{DocBuf, RawDoc};
use pando_workflows::ddl;

impl Ddl<'_> {
    /// Begins the workflow, or joins the one that runs for the same; 117 where one runs for something else. Whoever stops waiting stops
    /// nothing.
    pub(crate) async fn coordinate(
        &self,
        namespace: &str,
        operation: &str,
        request: &RawDoc,
    ) -> Result<DocBuf> {
        // Once the locks are held nobody else becomes the primary shard of the database.
        let db = namespace.split('.').next().unwrap_or_default();
        self.server.access.check_database(self.ctx, db)?;
        let services = self.server.replication.services();
        let host = &services.ok_or_else(|| Error::internal("services have not started"))?.host;
        let who = self.ctx.client.asks_for().map(|who| who.to_doc());
        let asked_by = ddl::asking(who.as_deref(), self.ctx.locks.passes_write_block());
        let state = ddl::begin(namespace, operation, request, asked_by.as_deref());
        let run = async {
            let begins = if ddl::is_of_users(&state) { Some(self.unless_blocked().await?) } else { None };
            let instance = host.start(ddl::NAME, &state).await?;
            drop(begins);
            instance.result().await
        };
        let result = self.ctx.interruptible(run).await?;
        if result.as_ref().is_err_and(|e| e.code == ErrorCode::StaleDbVersion) {
            // It has moved while this definition waited for its locks: the router is told by what it believes.
            self.server.access.check_database(self.ctx, db)?;
        }
        let result = result?;
        self.ctx.wrote(self.server.replication.last_applied());
        Ok(result)
    }
}
