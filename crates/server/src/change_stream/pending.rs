//! Events that a stream has made and not shown yet, and what all streams together hold.

use super::event::Event;
use pando_base::limits;
use pando_bson::DocBuilder;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// `serverStatus.metrics.changeStreams`.
#[derive(Default, Debug)]
pub(crate) struct Metrics {
    /// Events of more than 16 MB: in fragments, and those that ended their stream.
    pub(super) large_split: AtomicU64,
    pub(super) large_failed: AtomicU64,
    /// Streams opened with `showExpandedEvents`.
    pub(super) expanded: AtomicU64,
    pending_bytes: AtomicU64,
}

impl Metrics {
    pub(crate) fn append(&self, d: &mut DocBuilder) {
        d.i64("largeEventsFailed", self.large_failed.load(Relaxed) as i64);
        d.i64("largeEventsSplit", self.large_split.load(Relaxed) as i64);
        d.i64("pendingBytes", self.pending_bytes.load(Relaxed) as i64);
        d.i64("showExpandedEvents", self.expanded.load(Relaxed) as i64);
    }
}

/// The next events of one stream.
pub(super) struct Pending {
    events: VecDeque<Event>,
    bytes: usize,
    all: Arc<Metrics>,
}

impl Pending {
    pub(super) fn new(all: &Arc<Metrics>) -> Pending {
        Pending { events: VecDeque::new(), bytes: 0, all: all.clone() }
    }
    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }
    /// A transaction gives its next events when these have been shown.
    pub(super) fn is_full(&self) -> bool {
        self.bytes >= limits::CHANGE_STREAM_PENDING_BYTES
    }
    pub(super) fn push(&mut self, event: Event) {
        self.count(event.doc.byte_len(), 0);
        self.events.push_back(event);
    }
    pub(super) fn pop(&mut self) -> Option<Event> {
        let event = self.events.pop_front()?;
        self.count(0, event.doc.byte_len());
        Some(event)
    }
    pub(super) fn put_back(&mut self, event: Event) {
        self.count(event.doc.byte_len(), 0);
        self.events.push_front(event);
    }
    fn count(&mut self, more: usize, less: usize) {
        self.bytes = self.bytes + more - less;
        self.all.pending_bytes.fetch_add(more as u64, Relaxed);
        self.all.pending_bytes.fetch_sub(less as u64, Relaxed);
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.all.pending_bytes.fetch_sub(self.bytes as u64, Relaxed);
    }
}
