//! A server's configuration: settings with their meaning, defaults and cross-checks applied.

use super::audit::{self, Audit};
use super::parse::{Refusal, Settings};
use super::security::{self, Security};
use super::tls;
use crate::admission::Sources;
use crate::log::Destination;
use pando_base::limits;
use pando_bson::Document;
use pando_command::roles::ClusterRole;
use pando_command::{Param, Params};
use pando_env::Component;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Everything `Server::start` and the process around it need to know.
#[derive(Clone, Debug)]
pub struct Config {
    pub dbpath: PathBuf,
    pub port: u16,
    /// Host names or addresses, without port.
    pub bind: Vec<String>,
    pub max_connections: usize,
    /// `net.maxIncomingConnectionsOverride`
    pub exempt: Sources,
    /// `net.clientAllowList`; `None` = everybody may connect.
    pub allowed: Option<Sources>,
    pub backlog: u32,
    /// Folder of the Unix socket; `None` = no Unix socket.
    pub unix_socket_dir: Option<PathBuf>,
    pub unix_socket_mode: u32,
    /// Names, in the server's order of preference.
    pub compressors: Vec<String>,
    /// `net.tls`; `None` without TLS.
    pub tls: Option<pando_tls::Settings>,
    pub repl_set: Option<String>,
    /// `--serverless`: of a set whose name it learns.
    pub serverless: bool,
    /// `--shardsvr`, `--configsvr`
    pub cluster_role: Option<ClusterRole>,
    /// `pando up`: initiate a one-member set when there is none yet.
    pub self_initiate: bool,
    pub oplog_bytes: Option<u64>,
    pub oplog_min_retention: Duration,
    pub majority_reads: bool,
    pub cache_bytes: Option<usize>,
    /// `--syncdelay`; `None` = the parameter's default.
    pub checkpoint_secs: Option<f64>,
    /// `--journalCommitInterval`; `None` = the parameter's default.
    pub flush_ms: Option<i64>,
    pub slow_ms: i64,
    pub slow_sample_rate: f64,
    pub log: LogConfig,
    pub fork: bool,
    pub pid_file: Option<PathBuf>,
    pub repair: bool,
    pub security: Security,
    /// `auditLog`; `None` without an audit log.
    pub audit: Option<Audit>,
    /// Permissions that new files and folders do not get; `None` = those that the process was started with.
    pub umask: Option<u32>,
    pub set_parameters: Vec<(String, String)>,
    /// The command line (`getCmdLineOpts.argv`).
    pub argv: Vec<String>,
    /// The settings as a tree (`getCmdLineOpts.parsed`).
    pub parsed: Document,
}

/// How to log.
#[derive(Clone, Debug)]
pub struct LogConfig {
    pub destination: Destination,
    pub verbosity: u8,
    pub components: Vec<(Component, u8)>,
    pub quiet: bool,
}

impl Default for Config {
    /// What `mongod` without options means, except that the folder is `./pando-data`.
    fn default() -> Config {
        Config {
            dbpath: PathBuf::from("pando-data"),
            port: 27017,
            bind: vec!["127.0.0.1".to_owned()],
            max_connections: limits::CONNECTIONS_MAX,
            exempt: Sources::default(),
            allowed: None,
            backlog: limits::LISTEN_BACKLOG,
            unix_socket_dir: Some(PathBuf::from("/tmp")),
            unix_socket_mode: 0o700,
            compressors: ["snappy", "zstd", "zlib"].map(str::to_owned).to_vec(),
            tls: None,
            repl_set: None,
            serverless: false,
            cluster_role: None,
            self_initiate: false,
            oplog_bytes: None,
            oplog_min_retention: Duration::ZERO,
            majority_reads: true,
            cache_bytes: None,
            checkpoint_secs: None,
            flush_ms: None,
            slow_ms: 100,
            slow_sample_rate: 1.0,
            log: LogConfig {
                destination: Destination::Stdout,
                verbosity: 0,
                components: Vec::new(),
                quiet: false,
            },
            fork: false,
            pid_file: None,
            repair: false,
            security: Security::default(),
            audit: None,
            umask: Some(OWN_FILES),
            set_parameters: Vec::new(),
            argv: Vec::new(),
            parsed: Document::new(),
        }
    }
}

impl Config {
    /// From checked settings. `argv` includes the program's name. Relative paths are taken from `cwd`.
    pub fn from_settings(s: &Settings, argv: Vec<String>, cwd: &Path) -> Result<Config, Refusal> {
        super::router::refuse_on_server(s)?;
        Config::of_process(s, argv, cwd)
    }
    /// What a server and a router have in common is read from the same options.
    pub fn of_process(s: &Settings, argv: Vec<String>, cwd: &Path) -> Result<Config, Refusal> {
        let mut parsed = s.to_document();
        tls::hide_secrets(&mut parsed);
        let argv = tls::without_secrets(argv);
        let mut c = Config { argv, parsed, dbpath: "/data/db".into(), ..Config::default() };
        let path = |text: &str| cwd.join(text);
        if let Some(p) = s.text("storage.dbPath") {
            c.dbpath = path(p);
        }
        network(&mut c, s)?;
        storage(&mut c, s)?;
        c.log = log(s, cwd)?;
        c.repl_set = repl_set(s)?;
        c.serverless = s.flag("replication.serverless");
        if c.serverless && c.repl_set.is_some() {
            return Err("BadValue: serverless cannot be used with replSet or replSetName options".to_owned());
        }
        sharding(&mut c, s)?;
        if let Some(mb) = s.int("replication.oplogSizeMB") {
            if mb < 1 {
                return Err("BadValue: bad --oplogSize, arg must be greater than 0".to_owned());
            }
            c.oplog_bytes = Some(mb as u64 * 1024 * 1024);
        }
        match s.text("replication.enableMajorityReadConcern") {
            None | Some("1" | "true") => {}
            Some("0" | "false") => c.majority_reads = false,
            Some(_) => return Err("BadValue: --enableMajorityReadConcern is true or false".to_owned()),
        }
        profiling(&mut c, s)?;
        c.tls = tls::read(s, cwd)?;
        c.security = security::of_settings(s, cwd)?;
        c.audit = audit::of_settings(s, cwd)?;
        for (name, text) in s.pairs("setParameter") {
            match name.as_str() {
                "logLevel" => c.log.verbosity = level(name, text)?,
                "logComponentVerbosity" => {
                    let tree = pando_bson::extjson::parse(text).map_err(|_| {
                        format!("Bad value for parameter '{name}': expected an object in JSON")
                    })?;
                    component_levels(&mut c.log.components, "", &tree)?;
                }
                // Of the process, which has them before there are parameters.
                "processUmask" | "honorSystemUmask" => {}
                _ => c.set_parameters.push((name.clone(), text.clone())),
            }
        }
        c.umask = umask(s.pairs("setParameter"))?;
        if s.flag("security.javascriptEnabled") && !s.flag("noscripting") {
            c.set_parameters.push(("javascriptEnabled".to_owned(), "true".to_owned()));
        }
        if s.flag("security.redactClientLogData") {
            c.set_parameters.push(("redactClientLogData".to_owned(), "true".to_owned()));
        }
        if s.flag("notablescan") {
            c.set_parameters.push(("notablescan".to_owned(), "true".to_owned()));
        }
        c.fork = s.flag("processManagement.fork");
        c.pid_file = s.text("processManagement.pidFilePath").map(path);
        c.repair = s.flag("repair");
        if c.fork && matches!(c.log.destination, Destination::Stdout) {
            return Err("BadValue: --fork has to be used with --logpath or --syslog".to_owned());
        }
        Ok(c)
    }

    /// The parameters of a server with this configuration.
    pub fn params(&self) -> Result<Params, Refusal> {
        let params = Params::new();
        // Test commands first: they decide which other parameters exist.
        let (first, rest): (Vec<_>, Vec<_>) =
            self.set_parameters.iter().partition(|(name, _)| name == "enableTestCommands");
        for (name, text) in first.into_iter().chain(rest) {
            params.set_at_startup(name, text).map_err(|e| e.message.to_string())?;
        }
        params.force_int(Param::slowOpThresholdMs, self.slow_ms);
        params.force_int(Param::processUmask, i64::from(self.umask.unwrap_or(OWN_FILES)));
        params.force_int(Param::honorSystemUmask, i64::from(self.umask.is_none()));
        params.force_double(Param::slowOpSampleRate, self.slow_sample_rate);
        if let Some(ms) = self.flush_ms {
            params.force_int(Param::journalCommitInterval, ms);
        }
        if let Some(secs) = self.checkpoint_secs {
            params.force_double(Param::syncdelay, secs);
        }
        Ok(params)
    }
    /// Addresses for the listener: `host:port` of each bound name, then the Unix socket.
    pub fn listen_addrs(&self) -> Vec<String> {
        self.bind
            .iter()
            .map(|host| match host.contains(':') && !host.starts_with('[') {
                true => format!("[{host}]:{}", self.port),
                false => format!("{host}:{}", self.port),
            })
            .collect()
    }
}

/// Files and folders are their owner's alone.
const OWN_FILES: u32 = 0o077;

/// `processUmask`, unless `honorSystemUmask` leaves it to whoever starts the process.
fn umask(parameters: &[(String, String)]) -> Result<Option<u32>, Refusal> {
    let given = |name: &str| parameters.iter().find(|(n, _)| n == name).map(|(_, text)| text.as_str());
    let mask = given("processUmask").map_or(Ok(OWN_FILES), octal)?;
    match given("honorSystemUmask") {
        None | Some("false" | "0") => Ok(Some(mask)),
        Some("true" | "1") if mask == OWN_FILES => Ok(None),
        Some("true" | "1") => {
            Err("BadValue: honorSystemUmask and processUmask do not go together".to_owned())
        }
        Some(text) => Err(format!("BadValue: honorSystemUmask is true or false, not '{text}'")),
    }
}

/// Only what the group and others get can be taken away, or nobody could read the files.
fn octal(text: &str) -> Result<u32, Refusal> {
    let mask = u32::from_str_radix(text, 8).ok().filter(|mask| mask & !OWN_FILES == 0);
    mask.ok_or_else(|| format!("BadValue: processUmask is an octal number from 0 to 077, not '{text}'"))
}

fn network(c: &mut Config, s: &Settings) -> Result<(), Refusal> {
    if let Some(port) = s.int("net.port") {
        c.port = u16::try_from(port).map_err(|_| "BadValue: bad --port number".to_owned())?;
    }
    addresses(c, s)?;
    if let Some(n) = s.int("net.maxIncomingConnections") {
        if n < 5 {
            return Err("BadValue: maxConns has to be at least 5".to_owned());
        }
        c.max_connections = (n as usize).min(limits::CONNECTIONS_MAX);
    }
    if let Some(list) = s.list("net.maxIncomingConnectionsOverride") {
        c.exempt = Sources::parse("net.maxIncomingConnectionsOverride", list)?;
    }
    if let Some(list) = s.list("net.clientAllowList") {
        c.allowed = Some(Sources::parse("net.clientAllowList", list)?);
    }
    if let Some(n) = s.int("net.listenBacklog") {
        c.backlog = u32::try_from(n).ok().filter(|n| *n > 0).ok_or("BadValue: bad --listenBacklog number")?;
    }
    unix_socket(c, s)?;
    if let Some(list) = s.text("net.compression.compressors") {
        c.compressors.clear();
        for name in
            list.split(',').map(str::trim).filter(|n| !n.is_empty() && *n != "disabled" && *n != "noop")
        {
            if !["snappy", "zstd", "zlib"].contains(&name) {
                return Err(format!(
                    "BadValue: Invalid network message compressor specified in configuration: {name}"
                ));
            }
            c.compressors.push(name.to_owned());
        }
    }
    Ok(())
}

/// Where to listen. A path among the addresses is where the Unix socket is made.
fn addresses(c: &mut Config, s: &Settings) -> Result<(), Refusal> {
    if s.flag("net.bindIpAll") && s.text("net.bindIp").is_some() {
        return Err("BadValue: Only one of bind_ip and bind_ip_all can be given".to_owned());
    }
    let ipv6 = s.flag("net.ipv6");
    if s.flag("net.bindIpAll") {
        c.bind = vec!["0.0.0.0".to_owned()];
        if ipv6 {
            c.bind.push("::".to_owned());
        }
    }
    if let Some(list) = s.text("net.bindIp") {
        c.bind.clear();
        for name in list.split([',', ';']).map(str::trim).filter(|n| !n.is_empty()) {
            match name {
                "localhost" => c.bind.push("127.0.0.1".to_owned()),
                "*" => c.bind.push("0.0.0.0".to_owned()),
                _ if name.starts_with('/') => c.unix_socket_dir = Some(PathBuf::from(name)),
                _ => c.bind.push(name.to_owned()),
            }
            match name {
                "localhost" if ipv6 => c.bind.push("::1".to_owned()),
                "*" if ipv6 => c.bind.push("::".to_owned()),
                _ => {}
            }
        }
        c.bind.dedup();
        if c.bind.is_empty() {
            return Err("BadValue: bind_ip names no address".to_owned());
        }
    }
    Ok(())
}

fn unix_socket(c: &mut Config, s: &Settings) -> Result<(), Refusal> {
    let unix_off = s.flag("nounixsocket") || s.given_flag("net.unixDomainSocket.enabled") == Some(false);
    if let Some(dir) = s.text("net.unixDomainSocket.pathPrefix") {
        c.unix_socket_dir = Some(PathBuf::from(dir));
    }
    if unix_off {
        c.unix_socket_dir = None;
    }
    if let Some(mode) = s.text("net.unixDomainSocket.filePermissions") {
        c.unix_socket_mode = u32::from_str_radix(mode.trim_start_matches("0o"), 8)
            .ok()
            .filter(|m| *m <= 0o777)
            .ok_or_else(|| format!("BadValue: bad --filePermissions '{mode}'"))?;
    }
    Ok(())
}

fn storage(c: &mut Config, s: &Settings) -> Result<(), Refusal> {
    match s.text("storage.engine") {
        None | Some("wiredTiger" | "pando") => {}
        Some(other) => return Err(format!("Cannot start server with an unknown storage engine: {other}")),
    }
    if s.given_flag("storage.journal.enabled") == Some(false) {
        return Err("storage.journal.enabled: the log cannot be turned off".to_owned());
    }
    if let Some(gb) = s.float("storage.wiredTiger.engineConfig.cacheSizeGB") {
        if !(0.0..=10_000.0).contains(&gb) {
            return Err("BadValue: wiredTigerCacheSizeGB must be between 0.25 and 10000".to_owned());
        }
        c.cache_bytes = Some((gb * f64::from(1u32 << 30)) as usize);
    }
    if let Some(secs) = s.float("storage.syncPeriodSecs") {
        if !(0.0..=32_400.0).contains(&secs) {
            return Err("BadValue: syncdelay out of allowed range (0-32400)".to_owned());
        }
        c.checkpoint_secs = Some(secs);
    }
    if let Some(ms) = s.int("storage.journal.commitIntervalMs") {
        if !(1..=500).contains(&ms) {
            return Err("BadValue: --journalCommitInterval out of allowed range (1-500ms)".to_owned());
        }
        c.flush_ms = Some(ms);
    }
    if let Some(hours) = s.float("storage.oplogMinRetentionHours") {
        if !(0.0..=1e6).contains(&hours) {
            return Err(
                "BadValue: bad --oplogMinRetentionHours, argument must be greater or equal to 0".to_owned()
            );
        }
        c.oplog_min_retention = Duration::from_secs_f64(hours * 3600.0);
    }
    Ok(())
}

fn profiling(c: &mut Config, s: &Settings) -> Result<(), Refusal> {
    match s.text("operationProfiling.mode") {
        None | Some("off" | "0") => {}
        Some("slowOp" | "1" | "all" | "2") => {
            return Err("--profile: profiling from the start is not supported yet: use the profile command"
                .to_owned());
        }
        Some(_) => {
            return Err("Bad value for operationProfiling.mode: use off, slowOp or all (0, 1, 2)".to_owned());
        }
    }
    c.slow_ms = s.int("operationProfiling.slowOpThresholdMs").unwrap_or(c.slow_ms);
    if let Some(rate) = s.float("operationProfiling.slowOpSampleRate") {
        if !(0.0..=1.0).contains(&rate) {
            return Err("BadValue: slowOpSampleRate must be between 0 and 1".to_owned());
        }
        c.slow_sample_rate = rate;
    }
    Ok(())
}

/// `name` or `name/seeds` (seeds only mattered to very old versions).
/// A part of a cluster is a set, on a port of its own kind.
fn sharding(c: &mut Config, s: &Settings) -> Result<(), Refusal> {
    let told = match s.text("sharding.clusterRole") {
        None => None,
        Some("shardsvr") => Some(ClusterRole::Shard),
        Some("configsvr") => Some(ClusterRole::Config),
        Some(other) => return Err(format!("BadValue: Bad value for sharding.clusterRole: {other}")),
    };
    c.cluster_role = match (s.flag("shardsvr"), s.flag("configsvr")) {
        (true, true) => return Err("BadValue: a server is a shard or a config server, not both".to_owned()),
        (true, false) => Some(ClusterRole::Shard),
        (false, true) => Some(ClusterRole::Config),
        (false, false) => told,
    };
    let (name, port) = match c.cluster_role {
        None => return Ok(()),
        Some(ClusterRole::Shard) => ("shardsvr", 27018),
        Some(ClusterRole::Config) => ("configsvr", 27019),
    };
    if c.serverless {
        let text = "BadValue: serverless cannot be used with shardsvr or configsvr: tenants are served by sets of no cluster";
        return Err(text.to_owned());
    }
    if c.repl_set.is_none() {
        return Err(format!(
            "BadValue: Cannot start a {name} as a standalone server. Please use the option --replSet to start the \
             node as a replica set."
        ));
    }
    if s.int("net.port").is_none() {
        c.port = port;
    }
    Ok(())
}

fn repl_set(s: &Settings) -> Result<Option<String>, Refusal> {
    let Some(text) = s.text("replication.replSetName").or_else(|| s.text("replication.replSet")) else {
        return Ok(None);
    };
    let name = text.split('/').next().unwrap_or("");
    if name.is_empty() {
        return Err("BadValue: the replica set's name is empty".to_owned());
    }
    Ok(Some(name.to_owned()))
}

fn log(s: &Settings, cwd: &Path) -> Result<LogConfig, Refusal> {
    let reopen = match s.text("systemLog.logRotate") {
        None | Some("rename") => false,
        Some("reopen") => true,
        Some(other) => return Err(format!("unknown value for the logRotate option: {other}")),
    };
    let append = s.flag("systemLog.logAppend");
    if reopen && !append {
        return Err("BadValue: logAppend must equal true if logRotate is set to reopen".to_owned());
    }
    let destination = match (s.text("systemLog.path"), s.text("systemLog.destination")) {
        (_, Some("syslog")) => return Err("logging to syslog is not supported: use a file".to_owned()),
        (None, Some("file")) => {
            return Err(
                "BadValue: systemLog.path is required when systemLog.destination is 'file'".to_owned()
            );
        }
        (_, Some(other)) if other != "file" => {
            return Err(format!("BadValue: Bad value for systemLog.destination: {other}"));
        }
        (Some(path), _) => Destination::File { path: cwd.join(path), append, reopen },
        (None, _) => Destination::Stdout,
    };
    let verbosity = match s.text("systemLog.verbosity") {
        None => 0,
        Some(v) if v.chars().all(|c| c == 'v') => v.len().min(5) as u8,
        Some(v) => level("verbose", v)?,
    };
    let mut components = Vec::new();
    for (name, level) in &s.component_verbosity {
        let component = component(name)
            .ok_or_else(|| format!("Unrecognized option: systemLog.component.{name}.verbosity"))?;
        if *level >= 0 {
            components.push((component, (*level).min(5) as u8));
        }
    }
    Ok(LogConfig { destination, verbosity, components, quiet: s.flag("systemLog.quiet") })
}

fn component(path: &str) -> Option<Component> {
    Component::ALL.iter().copied().find(|c| c.path() == path)
}

/// A verbosity, 0 to 5.
fn level(name: &str, text: &str) -> Result<u8, Refusal> {
    text.parse().ok().filter(|n| *n <= 5).ok_or_else(|| format!("BadValue: bad {name} '{text}' (0 to 5)"))
}

/// `{verbosity: 1, storage: {verbosity: 2, journal: {..}}, network: 3}`; -1 = as the parent.
fn component_levels(out: &mut Vec<(Component, u8)>, path: &str, tree: &Document) -> Result<(), Refusal> {
    for (name, value) in tree.iter() {
        let at = match (path, name) {
            ("", "verbosity") => "default".to_owned(),
            (_, "verbosity") => path.to_owned(),
            ("", _) => name.to_owned(),
            _ => format!("{path}.{name}"),
        };
        match (value.as_doc(), value.as_i64()) {
            (Some(inner), _) => component_levels(out, &at, inner)?,
            (None, Some(n)) => {
                let c = component(&at).ok_or_else(|| format!("Invalid component name {at}"))?;
                if n >= 0 {
                    out.push((c, n.min(5) as u8));
                }
            }
            (None, None) => return Err(format!("logComponentVerbosity: {at} must be a number")),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::parse::{command_line, config_file};
    use super::*;

    fn config(line: &str) -> Result<Config, Refusal> {
        let args: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
        Config::from_settings(&command_line(&args)?, args, Path::new("/w"))
    }

    #[test]
    fn defaults_are_safe_and_paths_absolute() {
        let c = config("--dbpath d --logpath l").unwrap();
        assert_eq!(c.listen_addrs(), ["127.0.0.1:27017"]);
        assert_eq!(c.dbpath, Path::new("/w/d"));
        assert_eq!(
            c.log.destination,
            Destination::File { path: "/w/l".into(), append: false, reopen: false }
        );
        assert_eq!(c.unix_socket_dir.as_deref(), Some(Path::new("/tmp")));
    }

    #[test]
    fn addresses_and_sockets_follow_the_options() {
        let c = config("--bind_ip localhost,10.0.0.1 --ipv6 --port 5 --nounixsocket").unwrap();
        assert_eq!(c.listen_addrs(), ["127.0.0.1:5", "[::1]:5", "10.0.0.1:5"]);
        assert_eq!(c.unix_socket_dir, None);
        assert_eq!(config("--bind_ip_all").unwrap().listen_addrs(), ["0.0.0.0:27017"]);
        let c = config("--networkMessageCompressors zstd,zlib,snappy,noop --filePermissions 0777").unwrap();
        assert_eq!(c.compressors, ["zstd", "zlib", "snappy"]);
        assert_eq!(c.unix_socket_mode, 0o777);
    }

    #[test]
    fn a_set_is_named_or_learnt() {
        let c = config("--serverless true").unwrap();
        assert_eq!((c.serverless, c.repl_set), (true, None));
        assert!(!config("--serverless off --replSet rs").unwrap().serverless);
        let both = "BadValue: serverless cannot be used with replSet or replSetName options";
        assert_eq!(config("--serverless=1 --replSet rs").unwrap_err(), both);
        let choices = "Error parsing command line: the argument ('maybe') for option '--serverless' is invalid. Valid choices are \
                       'on|off', 'yes|no', '1|0' and 'true|false'";
        assert_eq!(config("--serverless maybe").unwrap_err(), choices);
        for role in ["--shardsvr", "--configsvr"] {
            assert!(
                config(&format!("--serverless true {role}")).unwrap_err().starts_with("BadValue: serverless")
            );
        }
    }

    #[test]
    fn majority_reads_can_be_turned_off() {
        assert!(config("--replSet rs").unwrap().majority_reads);
        assert!(config("--replSet rs --enableMajorityReadConcern").unwrap().majority_reads);
        assert!(!config("--replSet rs --enableMajorityReadConcern=false").unwrap().majority_reads);
        assert!(!config("--replSet rs --enableMajorityReadConcern false").unwrap().majority_reads);
    }

    #[test]
    fn files_are_their_owners_alone_unless_somebody_says_otherwise() {
        let mask = |options: &str| config(options).map(|c| c.umask);
        assert_eq!(mask(""), Ok(Some(0o077)));
        assert_eq!(mask("--setParameter processUmask=0027"), Ok(Some(0o027)));
        assert_eq!(mask("--setParameter honorSystemUmask=true"), Ok(None));
        for bad in ["99", "0770", "x"] {
            assert!(mask(&format!("--setParameter processUmask={bad}")).is_err(), "{bad}");
        }
        assert!(mask("--setParameter honorSystemUmask=perhaps").is_err());
        assert!(mask("--setParameter processUmask=0 --setParameter honorSystemUmask=true").is_err());
    }

    #[test]
    fn sources_are_lists_in_files() {
        let read = |text: &str| Config::from_settings(&config_file(text)?, Vec::new(), Path::new("/"));
        let c = read(
            "net:\n  maxIncomingConnectionsOverride: [\"127.0.0.1\", \"/tmp\"]\n  clientAllowList: [\"10.0.0.0/8\"]\n",
        );
        let list = |texts: &[&str]| {
            Sources::parse("", &texts.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>()).unwrap()
        };
        let c = c.unwrap();
        assert_eq!((c.exempt, c.allowed), (list(&["127.0.0.1", "/tmp"]), Some(list(&["10.0.0.0/8"]))));
        let e = read("net:\n  maxIncomingConnectionsOverride: abc\n").unwrap_err();
        assert!(e.ends_with("is of type StringVector, but value in YAML config is not a list type"), "{e}");
        assert!(read("net:\n  clientAllowList: [\"nowhere\"]\n").unwrap_err().contains("Invalid IP address"));
    }

    #[test]
    fn contradictions_and_wrong_values_are_refused() {
        for line in [
            "--port 99999",
            "--fork",
            "--storageEngine mmapv1",
            "--bind_ip a --bind_ip_all",
            "--logRotate reopen",
            "--syncdelay -1",
            "--journalCommitInterval 0",
            "--enableMajorityReadConcern=perhaps",
            "--networkMessageCompressors lz4",
            "--replSet /x",
        ] {
            assert!(config(line).is_err(), "{line}");
        }
    }

    #[test]
    fn parameters_are_checked_at_startup() {
        let c = config("--setParameter enableTestCommands=1 --setParameter cursorTimeoutMillis=5 --slowms 7")
            .unwrap();
        let p = c.params().unwrap();
        let flushing = |line: &str| {
            let p = config(line).unwrap().params().unwrap();
            (p.int(Param::journalCommitInterval), p.double(Param::syncdelay))
        };
        assert_eq!(flushing("--slowms 7"), (100, 60.0));
        assert_eq!(flushing("--journalCommitInterval 30 --syncdelay 2.5"), (30, 2.5));
        assert_eq!(flushing("--setParameter journalCommitInterval=30 --setParameter syncdelay=5"), (30, 5.0));
        assert_eq!((p.int(Param::cursorTimeoutMillis), p.int(Param::slowOpThresholdMs)), (5, 7));
        let c = config(
            "--setParameter logComponentVerbosity={\"verbosity\":1,\"storage\":{\"journal\":{\"verbosity\":2}}}",
        )
        .unwrap();
        assert_eq!(c.log.components, [(Component::Default, 1), (Component::Journal, 2)]);
        assert!(config("--setParameter logLevel=9").is_err());
        let c = config("--setParameter nosuch=1").unwrap();
        assert_eq!(c.params().err(), Some("Unknown --setParameter 'nosuch'".to_owned()));
    }
}
