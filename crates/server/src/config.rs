//! What the process is told when it starts.

use pando_audit::AuditLog;
use pando_auth::ClusterAuth;
use pando_base::limits;
use pando_bson::DocBuf;
use pando_command::roles::ClusterRole;
use pando_command::{Params, Roles};
use pando_env::Host;
use pando_env::host::NoHost;
use pando_env::tls::Certificates;
use pando_repl::Membership;
use pando_rpc::LoginAs;
use std::sync::Arc;
use std::time::Duration;

/// The MongoDB release whose behaviour this server follows; drivers and tools branch on it.
pub const VERSION: &str = "7.0.0";
pub const VERSION_ARRAY: [i32; 4] = [7, 0, 0, 0];
/// `maxWireVersion` of MongoDB 7.0.
pub const MAX_WIRE_VERSION: i32 = 21;
/// Shown by `buildInfo`; a release build sets it.
pub const GIT_VERSION: &str = match option_env!("PANDO_GIT_VERSION") {
    Some(v) => v,
    None => "0000000000000000000000000000000000000000",
};

/// Everything `Server::start` needs beside the world.
pub struct Config {
    /// The port clients reach this server on; part of the member name that `replSetInitiate: {}` makes.
    pub port: u16,
    pub bind_ips: Vec<String>,
    /// `--replSet`: part of a set of this name.
    pub repl_set: Option<String>,
    /// `--serverless`: part of a set whose name is learnt. Without either this node is alone.
    pub serverless: bool,
    /// `--shardsvr`, `--configsvr`: part of a cluster; `None` = of none.
    pub cluster_role: Option<ClusterRole>,
    /// Initiate a set of this one member under this host name if there is no configuration yet.
    pub auto_initiate: Option<String>,
    pub storage: pando_storage::Options,
    /// Command line as given, for `getCmdLineOpts`.
    pub argv: Vec<String>,
    /// The same as a configuration document.
    pub parsed: DocBuf,
    pub params: Params,
    pub host: Arc<dyn Host>,
    /// Those of `net.tls`; `None` without TLS.
    pub certificates: Option<Arc<dyn Certificates>>,
    /// Compressors offered in `hello`, in the order of preference (`snappy`, `zstd`, `zlib`).
    pub compressors: Vec<&'static str>,
    pub max_connections: u32,
    /// The binary's memory allocator, for `buildInfo`.
    pub allocator: &'static str,
    /// `--oplogMinRetentionHours`.
    pub oplog_min_retention: Duration,
    /// `--auth`: clients may do what they have been granted, and log in for it.
    pub asks_for_logins: bool,
    /// `--auditDestination`: where events are recorded; `None` = nowhere.
    pub audit: Option<Arc<AuditLog>>,
    /// `--keyFile` and `--clusterAuthMode`: how members log in to each other.
    pub cluster_auth: Arc<ClusterAuth>,
    /// Whether times that clients hand on must be signed. As with MongoDB, they are where clients have to say who they are.
    pub signs_cluster_times: bool,
    /// `--enableMajorityReadConcern`. Without it stable follows what is written, not what is committed, and what a rollback
    /// takes back is fetched from another member.
    pub majority_reads: bool,
    /// Writes for which a secondary puts one more worker to work.
    pub writes_per_worker: usize,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            port: 27017,
            bind_ips: vec!["127.0.0.1".to_owned()],
            repl_set: None,
            serverless: false,
            cluster_role: None,
            auto_initiate: None,
            storage: pando_storage::Options::default(),
            argv: vec!["pandod".to_owned()],
            parsed: DocBuf::new(),
            params: Params::new(),
            host: Arc::new(NoHost),
            certificates: None,
            compressors: vec!["snappy", "zstd", "zlib"],
            max_connections: 65_536,
            allocator: "system",
            oplog_min_retention: Duration::ZERO,
            asks_for_logins: false,
            audit: None,
            cluster_auth: Arc::default(),
            signs_cluster_times: false,
            majority_reads: true,
            writes_per_worker: limits::APPLY_ENTRIES_PER_WORKER_MIN,
        }
    }
}

impl Config {
    /// What this process is, for the table of commands.
    pub fn roles(&self) -> Roles {
        match (self.cluster_role, self.membership()) {
            (Some(ClusterRole::Shard), _) => Roles::SHARD,
            (Some(ClusterRole::Config), _) => Roles::CONFIG,
            (None, Membership::Standalone) => Roles::STANDALONE,
            (None, Membership::Of(_) | Membership::ToBeLearnt) => Roles::MEMBER,
        }
    }
    pub(crate) fn membership(&self) -> Membership {
        match &self.repl_set {
            Some(name) => Membership::Of(name.clone()),
            None if self.serverless => Membership::ToBeLearnt,
            None => Membership::Standalone,
        }
    }
    pub(crate) fn is_replicated(&self) -> bool {
        self.membership() != Membership::Standalone
    }
    /// How this server logs in to other members.
    pub(crate) fn member_login(&self) -> LoginAs {
        LoginAs::Member(self.cluster_auth.clone())
    }
    /// `host:port` as statistics name this server.
    pub fn host_port(&self) -> String {
        format!("{}:{}", self.host.facts().hostname, self.port)
    }
    /// The name by which other members would reach this node: a bound address if one was named, else the host.
    pub fn member_host(&self) -> String {
        let bound =
            self.bind_ips.iter().find(|ip| !matches!(ip.as_str(), "0.0.0.0" | "::" | "*" | "localhost"));
        let name = match bound {
            Some(ip) if ip.contains(':') => format!("[{ip}]"),
            Some(ip) if !ip.starts_with('/') => ip.clone(),
            _ => self.host.facts().hostname,
        };
        format!("{name}:{}", self.port)
    }
}
