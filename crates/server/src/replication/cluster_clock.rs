//! The cluster time in this server's own calls to other nodes, and what their replies say of it (T-CC-1).
//!
//! Heartbeats and the data path do without: they tell positions (`$replData`).

use pando_base::{Result, Timestamp};
use pando_bson::{DocBuilder, Value};
use pando_command::cluster_time::{self, Signature};
use pando_command::generic_args::parse_cluster_time;
use pando_env::{Component, Env, Log};
use pando_rpc::{Bounds, Gossip, Options, Pool};
use std::sync::{Arc, OnceLock, Weak};

/// Who has a cluster time.
pub(crate) trait ClusterTime: Send + Sync {
    /// `None` outside of a set.
    fn cluster_time(&self) -> Option<(Timestamp, Signature)>;
    /// Refuses times that nobody can have signed, and those too far ahead.
    fn advance(&self, time: Timestamp, by: &Signature) -> Result<()>;
}

/// Knows nothing until its server is there.
pub(crate) struct ClusterClock {
    log: Log,
    server: OnceLock<Weak<dyn ClusterTime>>,
}

impl ClusterClock {
    /// And connections whose calls hand it on.
    pub(crate) fn with_pool(env: &Env, options: Options) -> (Arc<ClusterClock>, Pool) {
        let clock = Arc::new(ClusterClock { log: env.log.clone(), server: OnceLock::new() });
        let pool = Pool::with(env.clone(), options, Bounds::default(), vec![clock.clone()]);
        (clock, pool)
    }
    pub(crate) fn serve<T: ClusterTime + 'static>(&self, server: &Arc<T>) {
        let server: Arc<dyn ClusterTime> = server.clone();
        self.server.get_or_init(|| Arc::downgrade(&server));
    }
}

impl Gossip for ClusterClock {
    fn field(&self) -> &'static str {
        "$clusterTime"
    }
    fn tell(&self, request: &mut DocBuilder) {
        let known = self.server.get().and_then(Weak::upgrade).and_then(|server| server.cluster_time());
        if let Some((time, signature)) = known {
            cluster_time::append(request, time, &signature);
        }
    }
    fn hear(&self, said: &Value<'_>) {
        let Some(server) = self.server.get().and_then(Weak::upgrade) else { return };
        if let Err(e) = parse_cluster_time(said).and_then(|(time, by)| server.advance(time, &by)) {
            let text = "The cluster time of another node was not taken over";
            self.log.debug(1, Component::Control, 9100071, text, |a| {
                a.data("error", &e);
            });
        }
    }
}
