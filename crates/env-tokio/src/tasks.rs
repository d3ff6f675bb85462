//! Tasks on the current tokio runtime.

use pando_env::{BoxFuture, Spawn};

pub struct RealTasks;

impl Spawn for RealTasks {
    fn spawn(&self, _name: &'static str, task: BoxFuture<'static, ()>) {
        tokio::spawn(task);
    }
    fn offload(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()> {
        let handle = tokio::task::spawn_blocking(work);
        Box::pin(async move {
            // A panic in `work` shows as its missing result.
            let _ = handle.await;
        })
    }
    fn yield_now(&self) -> BoxFuture<'static, ()> {
        Box::pin(tokio::task::yield_now())
    }
}
