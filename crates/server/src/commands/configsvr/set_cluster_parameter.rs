//! `_configsvrSetClusterParameter {{<parameter>: value}}`: sets a parameter in the whole cluster. A workflow does it, and goes on whoever waits for
//! it (SYS-264).

use super::prelude::*;
use crate::settings::cluster_parameters::ChangeStreamOptions;
use pando_base::Timestamp;
use pando_request::settings::cluster_parameters::parameter_to_set;
use pando_workflows::cluster_parameter;

/// Returns when all shards have it.
///
/// # Errors
/// 20 and 2 for what is no parameter, or no value of it; 117 while another value is set.
pub(in super::super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let (name, value) = parameter_to_set(&req)?;
    // Before anything is begun.
    ChangeStreamOptions::given(name, value, Timestamp::ZERO)?;
    let call = Call::with_majority(server, ctx)?;
    server.upkeep.admission.before_write(ctx).await?;
    let mut parameter = DocBuilder::new();
    parameter.value(name, value);
    super::coordinate(server, ctx, &cluster_parameter::begin(&parameter.finish())).await?;
    call.done().await
}
