//! What the world looks like to a service: clock, randomness, network, disk, tasks.
//!
//! There is no implementation here. `env-tokio` is the real world; the simulator supplies a
//! deterministic one in which a whole cluster runs on one thread. A service receives an [`Env`] and
//! takes time, randomness, sockets, files and tasks from nowhere else.

pub mod disk;
pub mod host;
pub mod log;
pub mod net;
pub mod op_locks;
pub mod sync;
pub mod tls;
mod together;

pub use disk::{Disk, DiskFile};
pub use host::{Host, HostFacts, HostUsage};
pub use log::{Component, Log};
pub use net::{Listener, Net, Stream};
pub use together::together;

use pando_base::Millis;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Time. `mono` never goes back; `wall` may.
pub trait Clock: Send + Sync {
    /// Since an arbitrary start.
    fn mono(&self) -> Duration;
    /// Unix time in milliseconds.
    fn wall_ms(&self) -> Millis;
    /// Resolves after `d` of monotonic time.
    fn sleep(&self, d: Duration) -> BoxFuture<'static, ()>;
}

/// Randomness.
pub trait Rng: Send + Sync {
    fn next_u64(&self) -> u64;
    fn fill(&self, buf: &mut [u8]) {
        for chunk in buf.chunks_mut(8) {
            let bytes = self.next_u64().to_le_bytes();
            chunk.copy_from_slice(&bytes[..chunk.len()]);
        }
    }
}

/// Tasks.
pub trait Spawn: Send + Sync {
    /// Runs a task in the background until it ends; `name` is for diagnostics.
    fn spawn(&self, name: &'static str, task: BoxFuture<'static, ()>);
    /// Runs blocking or long work away from the async workers (the simulator runs it in place);
    /// the future resolves when it is done.
    fn offload(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()>;
    /// Lets other tasks run.
    fn yield_now(&self) -> BoxFuture<'static, ()>;
    /// This thread will be busy for long: tasks that wait for it go to others, if those take them in this time.
    fn step_aside(&self, _wait: Duration) {}
    /// Blocks this thread for a while; only for work that cannot be awaited.
    fn block_for(&self, _d: Duration) {}
}

/// A service's whole world. Cheap to clone.
#[derive(Clone)]
pub struct Env {
    pub clock: Arc<dyn Clock>,
    pub rng: Arc<dyn Rng>,
    pub disk: Arc<dyn Disk>,
    pub net: Arc<dyn Net>,
    pub tasks: Arc<dyn Spawn>,
    /// `Log::none()` in tests.
    pub log: Log,
}

impl Env {
    /// The same world, speaking in the log under another name.
    pub fn named(&self, ctx: &str) -> Env {
        Env { log: self.log.named(ctx), ..self.clone() }
    }
    pub fn spawn(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(name, Box::pin(task));
    }
    /// Runs `work` off the async workers and returns its result; `None` if it panicked.
    pub async fn offload<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let slot = Arc::new(std::sync::Mutex::new(None));
        let out = slot.clone();
        self.tasks
            .offload(Box::new(move || {
                let value = work();
                if let Ok(mut guard) = out.lock() {
                    *guard = Some(value);
                }
            }))
            .await;
        slot.lock().ok().and_then(|mut guard| guard.take())
    }
    /// `fut`, or `None` when `limit` passes first.
    pub async fn timeout<F: Future + Send>(&self, limit: Duration, fut: F) -> Option<F::Output> {
        let mut sleep = self.clock.sleep(limit);
        let mut fut = std::pin::pin!(fut);
        std::future::poll_fn(move |cx| {
            if let std::task::Poll::Ready(v) = fut.as_mut().poll(cx) {
                return std::task::Poll::Ready(Some(v));
            }
            sleep.as_mut().poll(cx).map(|()| None)
        })
        .await
    }
}
