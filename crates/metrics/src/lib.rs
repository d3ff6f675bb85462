//! Metrics: counted where something happens, found in one registry, shown in three ways.
//!
//! ```text
//!   group! { pub struct OpCounters { … } }    the code that counts: name, kind, unit and help stand with the field
//!        │ Source::collect
//!        ▼
//!   Registry (one per server) ── collect ──► Tree of dotted names ──┬─► serverStatus   (status.rs)
//!        ▲                                                          ├─► a line of the log (log.rs)
//!        │ Source::collect, at the moment of asking                 └─► Prometheus' text (prometheus.rs)
//!   sizes, open cursors, connections: known to their owner, not counted
//! ```
//! Counting is one relaxed atomic addition. A registry belongs to a server; several servers run in one process, so nothing here is
//! global to the process.

mod collect;
mod family;
mod figure;
mod group;
mod log;
mod prometheus;
mod registry;
mod status;

#[cfg(test)]
mod tests;

pub use collect::{Collector, Kind, Leaf, Source, Tree, Value};
pub use family::Family;
pub use figure::{About, Counter, Figure, Gauge, Latency, Timer, Width};
pub use prometheus::prometheus;
pub use registry::Registry;
