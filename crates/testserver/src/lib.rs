//! Whole servers for tests: a `pandod` in this process on a free port, and a small client that speaks the wire.
//!
//! ```ignore
//! let world = World::new();                     // a folder that goes away at the end
//! let server = world.start_set().await;         // one-member replica set, self-initiated
//! let mut c = server.connect().await;
//! assert_eq!(c.ok(doc! { "ping": 1, "$db": "t" }).await.get("ok"), Some(&Bson::Double(1.0)));
//! ```

mod client;
mod cluster;
mod server;
mod set;
mod steps;

pub use client::{Client, EXHAUST_ALLOWED, MORE_TO_COME};
pub use cluster::{Cluster, ROOT};
pub use server::{Running, World};
pub use set::{Member, Set, is};
pub use steps::STEP;
pub use tokio::task::{JoinHandle, spawn, yield_now};

/// Runs an async test on a small multi-threaded runtime.
pub fn run<F: Future<Output = ()>>(test: F) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime can be made");
    runtime.block_on(test);
}

/// Lets real time pass.
pub async fn pause(ms: u64) {
    tokio::time::sleep(std::time::Duration::from_millis(ms)).await;
}
