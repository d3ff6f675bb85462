//! What the process is told when it starts.

use pando_audit::AuditLog;
use pando_auth::ClusterAuth;
use pando_base::{Error, Result};
use pando_bson::DocBuf;
use pando_env::Host;
use pando_env::host::NoHost;
use pando_env::tls::Certificates;
use std::sync::Arc;

/// The MongoDB release whose behaviour this router follows; drivers and tools branch on it.
pub const VERSION: &str = "7.0.0";
pub(crate) const VERSION_ARRAY: [i32; 4] = [7, 0, 0, 0];
/// `maxWireVersion` of MongoDB 7.0.
pub(crate) const MAX_WIRE_VERSION: i32 = 21;
/// Shown by `buildInfo`; a release build sets it.
pub const GIT_VERSION: &str = match option_env!("PANDO_GIT_VERSION") {
    Some(v) => v,
    None => "0000000000000000000000000000000000000000",
};

/// `--configdb`: the config servers' set, and some of its hosts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigDb {
    pub set: String,
    pub hosts: Vec<String>,
}

impl ConfigDb {
    /// `set/host:port,host:port`
    pub fn parse(text: &str) -> Result<ConfigDb> {
        let (set, hosts) = text.split_once('/').filter(|(set, _)| !set.is_empty()).ok_or_else(|| {
            Error::failed_to_parse("configdb supports only replica set connection string".to_owned())
        })?;
        let hosts: Vec<String> =
            hosts.split(',').map(str::trim).filter(|h| !h.is_empty()).map(str::to_owned).collect();
        if hosts.is_empty() {
            return Err(Error::failed_to_parse(format!("no hosts in the config servers' set: {text}")));
        }
        // Hosts without a port listen where config servers do.
        let with_port = |host: String| if host.contains(':') { host } else { format!("{host}:27019") };
        Ok(ConfigDb { set: set.to_owned(), hosts: hosts.into_iter().map(with_port).collect() })
    }
    /// As it was given.
    pub fn text(&self) -> String {
        format!("{}/{}", self.set, self.hosts.join(","))
    }
}

/// Everything [`Router::start`](crate::Router::start) needs beside the world.
pub struct Config {
    pub configdb: ConfigDb,
    /// The port clients reach this router on.
    pub port: u16,
    pub bind_ips: Vec<String>,
    /// Command line as given, for `getCmdLineOpts`.
    pub argv: Vec<String>,
    /// The same as a configuration document.
    pub parsed: DocBuf,
    pub host: Arc<dyn Host>,
    /// The binary's memory allocator, for `buildInfo`.
    pub allocator: &'static str,
    /// Clients may do what they have been granted, and log in for it.
    pub asks_for_logins: bool,
    /// `--keyFile` and `--clusterAuthMode`: how it logs in to the nodes of its cluster.
    pub cluster_auth: Arc<ClusterAuth>,
    /// Those of `net.tls`; `None` without TLS.
    pub certificates: Option<Arc<dyn Certificates>>,
    /// `--auditDestination`: where events are recorded; `None` = nowhere.
    pub audit: Option<Arc<AuditLog>>,
}

impl Config {
    pub fn new(configdb: ConfigDb, port: u16) -> Config {
        Config {
            configdb,
            port,
            bind_ips: Vec::new(),
            argv: Vec::new(),
            parsed: DocBuf::new(),
            host: Arc::new(NoHost),
            allocator: "system",
            asks_for_logins: false,
            cluster_auth: Arc::default(),
            certificates: None,
            audit: None,
        }
    }
    /// `host:port`, as `serverStatus` shows it.
    pub fn host_port(&self) -> String {
        format!("{}:{}", self.host.facts().hostname, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn config_servers_are_a_set_and_its_hosts() {
        let c = ConfigDb::parse("c/h1:29010, h2").unwrap();
        assert_eq!((c.set.as_str(), c.text()), ("c", "c/h1:29010,h2:27019".to_owned()));
        for bad in ["h1:29010", "/h1", "c/", "c/,"] {
            assert!(ConfigDb::parse(bad).is_err(), "{bad}");
        }
    }
}
