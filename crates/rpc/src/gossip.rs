//! Times that nodes hand on with every call, so that whoever asks sees what it has heard of (T-CC-1).
//!
//! ```text
//!   what this node knows ─► request: $clusterTime, $configTime, $topologyTime
//!   what this node knows ◄─ reply, also that of a failure
//! ```

use pando_bson::{DocBuilder, RawDoc, Value};
use std::sync::Arc;

/// One of these times. The pool that it is given to tells it on every call.
pub trait Gossip: Send + Sync {
    /// The field of requests and replies.
    fn field(&self) -> &'static str;
    /// Appends the field with what this node knows; nothing where it knows nothing.
    fn tell(&self, request: &mut DocBuilder);
    /// A peer's reply has the field.
    fn hear(&self, said: &Value<'_>);
}

/// All that a node hands on.
#[derive(Clone, Default)]
pub(crate) struct Gossips(Arc<[Arc<dyn Gossip>]>);

impl Gossips {
    pub(crate) fn new(all: Vec<Arc<dyn Gossip>>) -> Gossips {
        Gossips(all.into())
    }
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    fn of_field(&self, name: &[u8]) -> Option<&dyn Gossip> {
        // Every field of every reply comes by here.
        if name.first() != Some(&b'$') {
            return None;
        }
        self.0.iter().find(|g| g.field().as_bytes() == name).map(|g| &**g)
    }
    /// The fields of a request, with this node's times in place of those that its author may have put there.
    pub(crate) fn append(&self, body: &RawDoc, request: &mut DocBuilder) {
        for e in body.iter().filter(|e| self.of_field(e.name_bytes()).is_none()) {
            request.elem(e);
        }
        self.0.iter().for_each(|g| g.tell(request));
    }
    pub(crate) fn hear(&self, reply: &RawDoc) {
        if self.is_empty() {
            return;
        }
        for e in reply {
            if let Some(g) = self.of_field(e.name_bytes()) {
                g.hear(&e.value());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_bson::doc;
    use std::sync::atomic::{AtomicI64, Ordering::SeqCst};

    struct Counter(AtomicI64);
    impl Gossip for Counter {
        fn field(&self) -> &'static str {
            "$clusterTime"
        }
        fn tell(&self, request: &mut DocBuilder) {
            request.i64("$clusterTime", self.0.load(SeqCst));
        }
        fn hear(&self, said: &Value<'_>) {
            self.0.fetch_max(said.as_i64().unwrap(), SeqCst);
        }
    }

    #[test]
    fn a_request_has_this_nodes_time_once_and_a_reply_moves_it() {
        let counter = Arc::new(Counter(AtomicI64::new(5)));
        let gossips = Gossips::new(vec![counter.clone()]);
        let sent = |body: pando_bson::Document| {
            let mut b = DocBuilder::new();
            gossips.append(&body.to_raw(), &mut b);
            b.finish()
        };
        let body = || doc! { "ping": 1, "$clusterTime": 3, "$db": "admin" };
        assert_eq!(sent(body()), doc! { "ping": 1, "$db": "admin", "$clusterTime": 5i64 }.to_raw());
        gossips.hear(&doc! { "ok": 1, "clusterTime": 50, "$clusterTime": 9, "$configTime": 70 }.to_raw());
        assert_eq!(sent(body()), doc! { "ping": 1, "$db": "admin", "$clusterTime": 9i64 }.to_raw());
    }
}
