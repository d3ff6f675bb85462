//! JavaScript for queries: one engine per operation, where the server allows it.

use pando_command::{OpCtx, Param, Params};
use pando_js::{Engine, Limits};
use pando_query::ctx::Random;
use pando_query::script::{Operation, Scripts};
use std::sync::Arc;
use std::time::Duration;

/// The operation as its scripts see it.
pub(crate) fn operation(ctx: &OpCtx) -> Arc<dyn Operation> {
    ctx.watch()
}

/// `None` unless `javascriptEnabled` was set.
pub(crate) fn engine(ctx: &OpCtx, params: &Params, random: &Arc<dyn Random>) -> Option<Arc<dyn Scripts>> {
    if !params.bool(Param::javascriptEnabled) {
        return None;
    }
    let limits = Limits {
        heap_bytes: (params.int(Param::internalQueryJavaScriptHeapSizeLimitMB).max(1) as usize) << 20,
        call: Duration::from_millis(params.int(Param::internalQueryJavaScriptFnTimeoutMillis) as u64),
    };
    Some(Arc::new(Engine::new(operation(ctx), limits, random.clone())))
}
