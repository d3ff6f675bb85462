//! What all change streams of a server count together.

pando_metrics::group! {
    /// `serverStatus.metrics.changeStreams`.
    pub(crate) struct Metrics {
        /// Change streams that ended because an event was larger than 16 MB
        pub(super) large_failed: Counter = "largeEventsFailed", "change streams";
        /// Events larger than 16 MB that were sent in fragments
        pub(super) large_split: Counter = "largeEventsSplit", "events";
        /// Events that are made and not sent yet
        pub(super) pending_bytes: Gauge = "pendingBytes", "bytes";
        /// Change streams opened with showExpandedEvents
        pub(super) expanded: Counter = "showExpandedEvents", "change streams";
    }
}
