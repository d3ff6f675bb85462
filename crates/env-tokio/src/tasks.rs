//! Tasks on the current tokio runtime.

use pando_base::panics;
use pando_env::{BoxFuture, Spawn};
use std::time::Duration;

pub struct RealTasks;

impl Spawn for RealTasks {
    fn spawn(&self, name: &'static str, task: BoxFuture<'static, ()>) {
        tokio::spawn(panics::task(name, task));
    }
    fn offload(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()> {
        // A request's work stays a request's, whoever carries it out.
        let asked_by = panics::work();
        let handle = tokio::task::spawn_blocking(move || {
            let _entered = asked_by.enter();
            work();
        });
        Box::pin(async move {
            // A panic in `work` shows as its missing result.
            let _ = handle.await;
        })
    }
    fn step_aside(&self, wait: Duration) {
        // A runtime of one thread (a test's) has nobody to hand tasks to.
        let workers = tokio::runtime::Handle::try_current().map(|h| h.runtime_flavor());
        if matches!(workers, Ok(tokio::runtime::RuntimeFlavor::MultiThread)) {
            // The worker's tasks go to a new thread; when the block ends before it has started, they come back.
            tokio::task::block_in_place(|| std::thread::sleep(wait));
        }
    }
    fn block_for(&self, d: Duration) {
        std::thread::sleep(d);
    }
    fn yield_now(&self) -> BoxFuture<'static, ()> {
        Box::pin(tokio::task::yield_now())
    }
}
