//! Events that a stream has made and not shown yet.

use super::event::Event;
use super::metrics::Metrics;
use pando_base::limits;
use std::collections::VecDeque;
use std::sync::Arc;

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
        self.all.pending_bytes.add(more as i64);
        self.all.pending_bytes.sub(less as i64);
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.all.pending_bytes.sub(self.bytes as i64);
    }
}
