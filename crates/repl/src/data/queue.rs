//! A queue between two stages, bounded by the bytes of its entries.

use pando_base::panics::poisoned;
use pando_command::metrics::Replication;
use pando_env::sync::Notify;
use pando_oplog::Meta;
use pando_storage::Bytes;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

/// Entries that came together: their bytes once, and where each lies.
#[derive(Debug)]
pub(crate) struct Chunk {
    pub(crate) bytes: Bytes,
    pub(crate) entries: Vec<Meta>,
}

impl Chunk {
    pub(crate) fn doc(&self, e: &Meta) -> &pando_bson::RawDoc {
        pando_bson::RawDoc::trusted(&self.bytes[e.at as usize..e.end()])
    }
}

#[derive(Default)]
struct Inner {
    chunks: VecDeque<Arc<Chunk>>,
    bytes: usize,
    closed: bool,
}

pub(crate) struct Queue {
    inner: Mutex<Inner>,
    changed: Notify,
    bytes_max: usize,
    /// Where what waits is counted.
    counted: Arc<Replication>,
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.try_take_all();
    }
}

impl Queue {
    pub(crate) fn new(bytes_max: usize, counted: &Arc<Replication>) -> Queue {
        Queue { inner: Mutex::default(), changed: Notify::new(), bytes_max, counted: counted.clone() }
    }
    fn count(&self, bytes: i64, ops: i64) {
        self.counted.buffered_bytes.add(bytes);
        self.counted.buffered_ops.add(ops);
    }
    fn lock(&self) -> MutexGuard<'_, Inner> {
        let inner = self.inner.lock().unwrap_or_else(poisoned);
        debug_assert_eq!(
            inner.bytes,
            inner.chunks.iter().map(|c| c.bytes.len()).sum::<usize>(),
            "what waits is what is counted"
        );
        inner
    }
    #[cfg(test)]
    fn bytes(&self) -> usize {
        self.lock().bytes
    }
    /// Adds a chunk once there is room (an empty queue takes any). False when the queue is closed.
    pub(crate) async fn push(&self, chunk: Arc<Chunk>) -> bool {
        let bytes = chunk.bytes.len();
        loop {
            let seen = self.changed.version();
            {
                let mut inner = self.lock();
                if inner.closed {
                    return false;
                }
                if inner.bytes == 0 || inner.bytes + bytes <= self.bytes_max {
                    inner.bytes += bytes;
                    self.count(bytes as i64, chunk.entries.len() as i64);
                    inner.chunks.push_back(chunk);
                    break;
                }
            }
            self.changed.changed(seen).await;
        }
        self.changed.bump();
        true
    }
    /// Everything that is there, waiting for the first; `None` when the queue is closed and empty.
    pub(crate) async fn take_all(&self) -> Option<VecDeque<Arc<Chunk>>> {
        loop {
            let seen = self.changed.version();
            if let Some(chunks) = self.try_take_all() {
                return Some(chunks);
            }
            if self.lock().closed {
                return None;
            }
            self.changed.changed(seen).await;
        }
    }
    /// Everything that is there, if anything is.
    pub(crate) fn try_take_all(&self) -> Option<VecDeque<Arc<Chunk>>> {
        let chunks = {
            let mut inner = self.lock();
            inner.bytes = 0;
            std::mem::take(&mut inner.chunks)
        };
        if chunks.is_empty() {
            return None;
        }
        for chunk in &chunks {
            self.count(-(chunk.bytes.len() as i64), -(chunk.entries.len() as i64));
        }
        self.changed.bump();
        Some(chunks)
    }
    /// Nothing more comes in.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.changed.bump();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn chunk(bytes: usize) -> Arc<Chunk> {
        Arc::new(Chunk { bytes: Bytes::from(vec![0; bytes]), entries: Vec::new() })
    }

    #[test]
    fn a_full_queue_holds_the_fetcher_back() {
        let queue = Queue::new(100, &Arc::default());
        let mut cx = Context::from_waker(Waker::noop());
        // An empty queue takes any: a batch may be larger than the bound.
        assert_eq!(pin!(queue.push(chunk(150))).poll(&mut cx), Poll::Ready(true));
        let mut waiting = pin!(queue.push(chunk(60)));
        assert_eq!(waiting.as_mut().poll(&mut cx), Poll::Pending);
        assert_eq!(queue.bytes(), 150);
        assert_eq!(queue.try_take_all().map(|c| c.len()), Some(1));
        assert_eq!(waiting.poll(&mut cx), Poll::Ready(true));
        assert_eq!(queue.bytes(), 60);
        let mut waiting = pin!(queue.push(chunk(60)));
        assert_eq!(waiting.as_mut().poll(&mut cx), Poll::Pending);
        queue.close();
        assert_eq!(waiting.poll(&mut cx), Poll::Ready(false));
    }
}
