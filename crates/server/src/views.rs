//! Reads on views: a find, count or distinct becomes a pipeline on the collection below.

use crate::Server;
use crate::find_args::FindArgs;
use pando_base::{Error, ErrorCode, Namespace, Result};
use pando_command::{OpCtx, Reply, Request};

impl Server {
    pub(crate) async fn find_on_view(
        &self,
        _ctx: &OpCtx,
        _req: &Request<'_>,
        _view: &Namespace,
        _args: &FindArgs<'_>,
    ) -> Result<Reply> {
        Err(Error::new(ErrorCode::NotImplemented, "views are not built in yet"))
    }
    pub(crate) async fn count_on_view(
        &self,
        _ctx: &OpCtx,
        _req: &Request<'_>,
        _view: &Namespace,
        _args: &FindArgs<'_>,
    ) -> Result<Reply> {
        Err(Error::new(ErrorCode::NotImplemented, "views are not built in yet"))
    }
}
