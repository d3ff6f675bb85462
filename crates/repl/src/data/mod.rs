//! The data path of a secondary: entries of a sync source become entries of this node's log, then rows.
//!
//! ```text
//!   sync source ══ exhaust cursor ══► fetcher ──► Queue ──► writer ──► Queue ──► applier ──► readers
//!        ▲                               │                    │ log, synced       │ workers, batch by batch
//!        └──── replSetUpdatePosition ◄── reporter ◄── Progress (written, durable, applied) ◄──┘
//! ```
//!
//! * [`background_sync`] — which source, and what to do when following it ends;
//! * [`fetcher`] — one source, one connection, batches checked and queued;
//! * [`writer`] — entries into the log at their timestamps (R-APPLY-14);
//! * [`applier`] — batches, workers, what readers see (R-APPLY-1..8);
//! * [`initial_sync`], [`cloner`], [`file_copy`] — the first copy of the set's data; [`patience`] with its source, [`sync_status`];
//! * [`reporter`] — positions to the source, ours and those of members behind us (R-UPOS-1);
//! * [`progress`], [`metadata`], [`update_position`] — what is told about positions, here and between nodes;
//! * [`common_point`], [`Undone`], [`touched`], [`rollback_way`], [`refetch`] — where two logs part, what a rollback takes back,
//!   which way it goes, and what it asks its source for (R-RB-2, R-REF-1);
//! * [`upper`] — what all this asks of the coordinator above it.
//!
//! The log is the only journal, so there is no truncate-after point: what the log holds after a crash is a prefix
//! of what the source sent, and replaying it is all that recovery does.

pub mod applier;
mod background_sync;
mod cloner;
pub mod common_point;
mod cursor_reply;
mod fetcher;
mod file_copy;
pub mod initial_sync;
mod lanes;
pub mod metadata;
mod patience;
pub mod progress;
mod queue;
pub mod refetch;
mod reporter;
pub mod rollback_way;
pub mod sync_status;
pub mod touched;
mod undone;
pub mod update_position;
pub mod upper;
mod writer;

pub use metadata::Metadata;
pub use progress::{Position, Progress};
pub use undone::Undone;
pub use upper::Upper;

use pando_base::panics::poisoned;
use pando_base::{Error, limits};
use pando_catalog::Catalog;
use pando_command::Instance;
use pando_env::Env;
use pando_env::sync::Notify;
use pando_rpc::{LoginAs, Pool};
use queue::Queue;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

/// What the data path works with.
#[derive(Clone)]
pub struct Deps {
    pub env: Env,
    pub catalog: Catalog,
    pub progress: Arc<Progress>,
    pub upper: Arc<dyn Upper>,
    pub pool: Pool,
    /// How members log in to each other.
    pub login: LoginAs,
    /// Tasks that apply a batch.
    pub workers: usize,
    /// Writes for which one more of them pays.
    pub writes_per_worker: usize,
    /// Its fail points hold the data path still.
    pub instance: Arc<Instance>,
}

impl Deps {
    /// Stands still while a fail point is on.
    async fn hold(&self, name: &str, stop: &Stop) {
        let Some(point) = self.instance.fail_points.get(name).filter(|p| p.is_active()) else { return };
        if point.check(&*self.env.rng, |_| true).is_some() {
            stop.unless_asked(point.wait_while_active()).await;
        }
    }
    /// Panics while a test asks for it.
    fn panic_if_asked(&self, task: &str) {
        self.instance.fail_points.panic_if_asked(&*self.env.rng, task);
    }
}

/// Asks the tasks of one data path to end, and tells when they have.
#[derive(Clone, Default)]
pub(crate) struct Stop {
    asked: Arc<AtomicBool>,
    running: Arc<AtomicUsize>,
    changed: Notify,
}

impl Stop {
    pub(crate) fn ask(&self) {
        self.asked.store(true, SeqCst);
        self.changed.bump();
    }
    /// Runs a task that [`Stop::wait_ended`] waits for.
    pub(crate) fn spawn(
        &self,
        env: &Env,
        name: &'static str,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        self.running.fetch_add(1, SeqCst);
        let running = Running(self.clone());
        env.spawn(name, async move {
            let _running = running;
            task.await;
        });
    }
    pub(crate) async fn wait_ended(&self) {
        loop {
            let seen = self.changed.version();
            if self.running.load(SeqCst) == 0 {
                return;
            }
            self.changed.changed(seen).await;
        }
    }
    pub(crate) fn is_asked(&self) -> bool {
        self.asked.load(SeqCst)
    }
    /// `fut`, or `None` when the stop comes first.
    pub(crate) async fn unless_asked<T>(&self, fut: impl Future<Output = T> + Send) -> Option<T> {
        let mut fut = std::pin::pin!(fut);
        let mut stopped = std::pin::pin!(self.wait_asked());
        std::future::poll_fn(move |cx| {
            if stopped.as_mut().poll(cx).is_ready() {
                return std::task::Poll::Ready(None);
            }
            fut.as_mut().poll(cx).map(Some)
        })
        .await
    }
    async fn wait_asked(&self) {
        loop {
            let seen = self.changed.version();
            if self.is_asked() {
                return;
            }
            self.changed.changed(seen).await;
        }
    }
}

/// Counts a task until it ends, in whatever way.
struct Running(Stop);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, SeqCst);
        self.0.changed.bump();
    }
}

/// Why entries that were written could not be applied: something that they speak of is not here, and only a copy of the set's data
/// can bring it.
pub(crate) type Lacking = Arc<Mutex<Option<Error>>>;

/// Running tasks of a secondary.
pub struct DataPath {
    stop: Stop,
    fetched: Arc<Queue>,
    lacking: Lacking,
}

impl DataPath {
    /// Starts following from where the log ends. The log takes no writes of this node meanwhile.
    pub fn start(deps: Deps) -> DataPath {
        let stop = Stop::default();
        let fetched =
            Arc::new(Queue::new(limits::FETCH_BUFFER_BYTES_MAX, &deps.instance.metrics.replication));
        let written =
            Arc::new(Queue::new(limits::APPLY_BUFFER_BYTES_MAX, &deps.instance.metrics.replication));
        let lacking = Lacking::default();
        let path = DataPath { stop, fetched: fetched.clone(), lacking: lacking.clone() };
        let last = deps.progress.written().op_time;
        path.spawn(&deps, "background sync", |d, s| background_sync::run(d, s, fetched.clone(), last));
        path.spawn(&deps, "oplog writer", |d, s| writer::run(d, s, fetched.clone(), written.clone()));
        path.spawn(&deps, "oplog applier", |d, s| applier::run(d, s, written.clone(), lacking.clone()));
        path.spawn(&deps, "position reporter", reporter::run);
        path
    }
    fn spawn<F: Future<Output = ()> + Send + 'static>(
        &self,
        deps: &Deps,
        name: &'static str,
        task: impl FnOnce(Deps, Stop) -> F,
    ) {
        self.stop.spawn(&deps.env, name, task(deps.clone(), self.stop.clone()));
    }
    /// Stops fetching; what was fetched is still written and applied (a delayed member forgets it). Resolves when nothing runs any more,
    /// with the reason why not everything that was written is applied.
    pub async fn stop(&self) -> Option<Error> {
        self.stop.ask();
        // The writer ends behind the last fetched batch, the applier behind the last written one.
        self.fetched.close();
        self.stop.wait_ended().await;
        self.lacking.lock().unwrap_or_else(poisoned).take()
    }
}
