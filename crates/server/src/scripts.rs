//! JavaScript for queries: one engine per operation, where the server allows it.

use crate::Server;
use pando_base::Result;
use pando_command::{OpCtx, OpWatch, Param};
use pando_js::{Engine, Limits};
use pando_query::ctx::Random;
use pando_query::script::{Operation, Scripts};
use std::sync::Arc;
use std::time::Duration;

struct Watched(OpWatch);

impl Operation for Watched {
    fn check(&self) -> Result<()> {
        self.0.check_interrupt()
    }
    fn now(&self) -> Duration {
        self.0.env().clock.mono()
    }
    fn step_aside(&self, wait: Duration) {
        self.0.env().tasks.step_aside(wait);
    }
    fn pause(&self, d: Duration) {
        self.0.env().tasks.block_for(d);
    }
}

/// The operation as its scripts see it.
pub(crate) fn operation(ctx: &OpCtx) -> Arc<dyn Operation> {
    Arc::new(Watched(ctx.watch()))
}

impl Server {
    /// `None` unless `javascriptEnabled` was set.
    pub(crate) fn scripts(&self, ctx: &OpCtx, random: &Arc<dyn Random>) -> Option<Arc<dyn Scripts>> {
        let params = &self.instance.params;
        if !params.bool(Param::javascriptEnabled) {
            return None;
        }
        let limits = Limits {
            heap_bytes: (params.int(Param::internalQueryJavaScriptHeapSizeLimitMB).max(1) as usize) << 20,
            call: Duration::from_millis(params.int(Param::internalQueryJavaScriptFnTimeoutMillis) as u64),
        };
        Some(Arc::new(Engine::new(operation(ctx), limits, random.clone())))
    }
}
