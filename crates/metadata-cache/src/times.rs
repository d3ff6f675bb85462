//! What time it is in the cluster, as far as this router has heard (T-CC-1): handed on with every call, and to clients.
//!
//! ```text
//!   shard's reply:  $clusterTime $configTime $topologyTime ─► Times ─► the next request to anybody
//!                                                              └─► $clusterTime of a client's reply
//! ```

use crate::lock;
use pando_base::Timestamp;
use pando_bson::{DocBuilder, Value};
use pando_command::cluster_time::{self, Signature};
use pando_rpc::Gossip;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

/// The newest of each time that anybody told.
#[derive(Default)]
pub struct Times {
    cluster: Mutex<(Timestamp, Signature)>,
    config: AtomicU64,
    topology: AtomicU64,
}

impl Times {
    /// `$clusterTime`, with its proof.
    pub fn cluster(&self) -> (Timestamp, Signature) {
        *lock(&self.cluster)
    }
    /// Takes in a time, if it is newer.
    pub fn advance_cluster(&self, time: Timestamp, signature: Signature) {
        let mut known = lock(&self.cluster);
        if time > known.0 {
            *known = (time, signature);
        }
    }
    /// What config servers must have reached before they are read.
    pub fn config(&self) -> Timestamp {
        Timestamp(self.config.load(SeqCst))
    }
    /// When shards were added or removed last.
    pub fn topology(&self) -> Timestamp {
        Timestamp(self.topology.load(SeqCst))
    }
    /// Takes in what somebody has told, where it is newer.
    pub fn advance(&self, config: Option<Timestamp>, topology: Option<Timestamp>) {
        self.config.fetch_max(config.map_or(0, |t| t.0), SeqCst);
        self.topology.fetch_max(topology.map_or(0, |t| t.0), SeqCst);
    }
    /// What is known of the cluster's metadata, for a reply to another node.
    pub fn append(&self, reply: &mut DocBuilder) {
        for (name, time) in [("$configTime", self.config()), ("$topologyTime", self.topology())] {
            if !time.is_zero() {
                reply.timestamp(name, time);
            }
        }
    }
    /// For a pool of connections of a node that keeps its cluster time elsewhere.
    pub fn gossips_of_metadata(self: &Arc<Times>) -> Vec<Arc<dyn Gossip>> {
        self.gossips().split_off(1)
    }
    /// For a pool of connections.
    pub fn gossips(self: &Arc<Times>) -> Vec<Arc<dyn Gossip>> {
        vec![
            Arc::new(OfCluster(self.clone())),
            Arc::new(Other { field: "$configTime", times: self.clone(), of: |t| &t.config }),
            Arc::new(Other { field: "$topologyTime", times: self.clone(), of: |t| &t.topology }),
        ]
    }
}

struct OfCluster(Arc<Times>);

impl Gossip for OfCluster {
    fn field(&self) -> &'static str {
        "$clusterTime"
    }
    fn tell(&self, request: &mut DocBuilder) {
        let (time, signature) = self.0.cluster();
        if !time.is_zero() {
            cluster_time::append(request, time, &signature);
        }
    }
    fn hear(&self, said: &Value<'_>) {
        let Value::Document(said) = said else { return };
        if let Some(Value::Timestamp(time)) = said.get("clusterTime") {
            let signature = said.get("signature").and_then(|v| v.as_doc()).map(Signature::parse);
            self.0.advance_cluster(time, signature.unwrap_or_default());
        }
    }
}

/// A time that carries no proof.
struct Other {
    field: &'static str,
    times: Arc<Times>,
    of: fn(&Times) -> &AtomicU64,
}

impl Gossip for Other {
    fn field(&self) -> &'static str {
        self.field
    }
    fn tell(&self, request: &mut DocBuilder) {
        let time = Timestamp((self.of)(&self.times).load(SeqCst));
        if !time.is_zero() {
            request.timestamp(self.field, time);
        }
    }
    fn hear(&self, said: &Value<'_>) {
        if let Value::Timestamp(time) = said {
            (self.of)(&self.times).fetch_max(time.0, SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_only_go_forward() {
        let times = Arc::new(Times::default());
        let [cluster, config, _] = &times.gossips()[..] else { panic!() };
        let mut d = DocBuilder::new();
        config.tell(&mut d);
        cluster.tell(&mut d);
        assert!(d.finish().is_empty(), "nothing is known, nothing is told");
        let told = |secs| {
            let mut d = DocBuilder::new();
            cluster_time::append(&mut d, Timestamp::new(secs, 1), &Signature::default());
            d.finish()
        };
        for secs in [7, 5] {
            cluster.hear(&told(secs).get("$clusterTime").unwrap_or(Value::Null));
            config.hear(&Value::Timestamp(Timestamp::new(secs, 3)));
        }
        assert_eq!((times.cluster().0, times.config()), (Timestamp::new(7, 1), Timestamp::new(7, 3)));
    }
}
