//! Every option of mongod: its names, its type and what this server does with it.
//!
//! An option is never ignored in silence: it works, or it has no effect for a stated reason that cannot hurt,
//! or the server refuses to start with it.

/// What follows an option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Nothing; `true` in a file.
    Flag,
    /// `true` or `false`, also on the command line.
    Bool,
    Text,
    Int,
    Float,
    /// `name=value`, any number of times; a map in YAML.
    Pairs,
    /// Texts between commas; a list in YAML.
    List,
}

/// What the server does with an option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    Works,
    /// Accepted without effect; the text says why that is safe.
    None(&'static str),
    /// Refused; the text says what is missing.
    Refused(&'static str),
}

/// One option.
#[derive(Clone, Copy, Debug)]
pub struct Opt {
    /// Command line name; empty when it exists only in files.
    pub cli: &'static str,
    pub short: Option<char>,
    /// Place in the YAML tree; empty when it exists only on the command line.
    pub yaml: &'static str,
    pub kind: Kind,
    pub effect: Effect,
    pub help: &'static str,
}

impl Opt {
    /// The key under which parsed values are kept.
    pub fn key(&self) -> &'static str {
        if self.yaml.is_empty() { self.cli } else { self.yaml }
    }
}

/// Headings of `--help`, with the options under each.
pub const GROUPS: &[(&str, &[Opt])] = &[
    ("General options", GENERAL),
    ("Network options", NETWORK),
    ("Log options", LOG),
    ("Storage options", STORAGE),
    ("Replication options", REPLICATION),
    ("Sharding options", SHARDING),
    ("Security options", SECURITY),
    ("Encryption options", super::encryption::OPTIONS),
    ("TLS options", super::tls::OPTIONS),
    ("Audit options", super::audit::OPTIONS),
];

/// All options.
pub fn all() -> impl Iterator<Item = &'static Opt> {
    GROUPS.iter().flat_map(|(_, options)| options.iter())
}

pub(super) const fn opt(cli: &'static str, yaml: &'static str, kind: Kind, help: &'static str) -> Opt {
    Opt { cli, short: None, yaml, kind, effect: Effect::Works, help }
}
const fn none(cli: &'static str, yaml: &'static str, kind: Kind, why: &'static str) -> Opt {
    Opt { cli, short: None, yaml, kind, effect: Effect::None(why), help: why }
}
pub(super) const fn refused(cli: &'static str, yaml: &'static str, kind: Kind, why: &'static str) -> Opt {
    Opt { cli, short: None, yaml, kind, effect: Effect::Refused(why), help: why }
}
const fn short(letter: char, mut o: Opt) -> Opt {
    o.short = Some(letter);
    o
}

use Kind::{Bool, Flag, Float, Int, List, Pairs, Text};

const GENERAL: &[Opt] = &[
    short('h', opt("help", "", Flag, "Show this information")),
    opt("version", "", Flag, "Show the version"),
    short('f', opt("config", "", Text, "Configuration file: YAML, or key=value lines")),
    refused("configExpand", "", Text, "not supported: write the expanded values into the configuration file"),
    opt("fork", "processManagement.fork", Flag, "Run in the background; needs --logpath"),
    opt("pidfilepath", "processManagement.pidFilePath", Text, "File that receives the process id"),
    none(
        "timeZoneInfo",
        "processManagement.timeZoneInfo",
        Text,
        "no effect: the time zone database is built in",
    ),
    opt("shutdown", "", Flag, "Stop the server that runs on --dbpath"),
    opt("setParameter", "setParameter", Pairs, "Set a server parameter, name=value"),
    none("sysinfo", "", Flag, "no effect"),
    none("cpu", "", Flag, "no effect"),
    opt(
        "profile",
        "operationProfiling.mode",
        Text,
        "Only 0 (off) from the start so far; the profile command sets levels",
    ),
    opt(
        "slowms",
        "operationProfiling.slowOpThresholdMs",
        Int,
        "Milliseconds from which an operation is slow (100)",
    ),
    opt(
        "slowOpSampleRate",
        "operationProfiling.slowOpSampleRate",
        Float,
        "Share of slow operations to log (1.0)",
    ),
    refused("profileFilter", "operationProfiling.filter", Text, "profile filters are not supported yet"),
    opt("notablescan", "", Flag, "Refuse queries that no index serves"),
    none(
        "enableFreeMonitoring",
        "cloud.monitoring.free.state",
        Text,
        "no effect: there is no free monitoring",
    ),
    none("freeMonitoringTag", "cloud.monitoring.free.tags", Text, "no effect: there is no free monitoring"),
];

const NETWORK: &[Opt] = &[
    opt("port", "net.port", Int, "Port to listen on (27017); 0 picks a free one"),
    opt("bind_ip", "net.bindIp", Text, "Addresses to listen on, separated by commas (localhost)"),
    opt("bind_ip_all", "net.bindIpAll", Flag, "Listen on all addresses"),
    opt("ipv6", "net.ipv6", Flag, "Listen on IPv6 addresses too"),
    opt("maxConns", "net.maxIncomingConnections", Int, "Connections at the same time (1000000)"),
    opt(
        "",
        "net.maxIncomingConnectionsOverride",
        List,
        "Addresses, ranges (CIDR) and paths of Unix sockets that maxConns does not bound",
    ),
    opt(
        "clientAllowList",
        "net.clientAllowList",
        List,
        "Addresses and ranges (CIDR) from which connections are taken, members' too (all); Unix sockets always are",
    ),
    opt("listenBacklog", "net.listenBacklog", Int, "Connections the kernel may queue"),
    opt(
        "networkMessageCompressors",
        "net.compression.compressors",
        Text,
        "Compressors offered to clients (snappy,zstd,zlib), or disabled",
    ),
    opt("nounixsocket", "", Flag, "Do not listen on a Unix socket"),
    opt("", "net.unixDomainSocket.enabled", Flag, ""),
    opt("unixSocketPrefix", "net.unixDomainSocket.pathPrefix", Text, "Folder of the Unix socket (/tmp)"),
    opt(
        "filePermissions",
        "net.unixDomainSocket.filePermissions",
        Text,
        "Permissions of the Unix socket (0700)",
    ),
    none("", "net.wireObjectCheck", Flag, "documents from clients are always checked"),
    none("", "net.serviceExecutor", Text, "there is one kind of executor"),
    refused("", "net.http.enabled", Flag, "the HTTP interface does not exist"),
];

const LOG: &[Opt] = &[
    opt("logpath", "systemLog.path", Text, "File to log to instead of standard output"),
    opt("logappend", "systemLog.logAppend", Flag, "Append to the log file instead of renaming an old one"),
    opt("logRotate", "systemLog.logRotate", Text, "On rotation: rename or reopen"),
    opt("", "systemLog.destination", Text, ""),
    short('v', opt("verbose", "systemLog.verbosity", Text, "More log lines; -vv to -vvvvv for still more")),
    opt("quiet", "systemLog.quiet", Flag, "Fewer log lines"),
    none("traceExceptions", "systemLog.traceAllExceptions", Flag, "no effect: there are no exceptions"),
    refused("syslog", "", Flag, "logging to syslog is not supported: use --logpath"),
    refused(
        "syslogFacility",
        "systemLog.syslogFacility",
        Text,
        "logging to syslog is not supported: use --logpath",
    ),
    none("timeStampFormat", "systemLog.timeStampFormat", Text, "no effect: times are UTC with their offset"),
];

const STORAGE: &[Opt] = &[
    opt("dbpath", "storage.dbPath", Text, "Folder of the data files (/data/db)"),
    opt(
        "storageEngine",
        "storage.engine",
        Text,
        "Only one engine exists; the name wiredTiger is accepted for it",
    ),
    opt(
        "wiredTigerCacheSizeGB",
        "storage.wiredTiger.engineConfig.cacheSizeGB",
        Float,
        "Memory for cached data, in GiB",
    ),
    opt("syncdelay", "storage.syncPeriodSecs", Float, "Seconds between checkpoints (60)"),
    opt(
        "journalCommitInterval",
        "storage.journal.commitIntervalMs",
        Int,
        "Milliseconds between log flushes (100)",
    ),
    none("journal", "", Flag, "no effect: the log is always on"),
    refused("nojournal", "", Flag, "the log cannot be turned off"),
    opt("", "storage.journal.enabled", Flag, ""),
    none("directoryperdb", "storage.directoryPerDB", Flag, "no effect: collections share files"),
    opt("repair", "", Flag, "Recover, check all data, mend counts and indexes, then exit"),
    none("upgrade", "", Flag, "no effect: data files are upgraded when opened"),
    refused("restore", "", Flag, "restoring part of a backup is not supported"),
    opt(
        "oplogMinRetentionHours",
        "storage.oplogMinRetentionHours",
        Float,
        "Hours of oplog to keep whatever its size",
    ),
    none(
        "wiredTigerCollectionBlockCompressor",
        "storage.wiredTiger.collectionConfig.blockCompressor",
        Text,
        "no effect: tables have one compressor",
    ),
    none(
        "wiredTigerJournalCompressor",
        "storage.wiredTiger.engineConfig.journalCompressor",
        Text,
        "no effect: the log has one form",
    ),
    none(
        "wiredTigerIndexPrefixCompression",
        "storage.wiredTiger.indexConfig.prefixCompression",
        Text,
        "no effect: index keys are always stored by prefix",
    ),
    none(
        "wiredTigerDirectoryForIndexes",
        "storage.wiredTiger.engineConfig.directoryForIndexes",
        Flag,
        "no effect: collections and indexes share files",
    ),
    none(
        "zstdDefaultCompressionLevel",
        "storage.wiredTiger.engineConfig.zstdCompressionLevel",
        Int,
        "no effect",
    ),
];

const REPLICATION: &[Opt] = &[
    opt("replSet", "replication.replSetName", Text, "Name of the replica set this server is a member of"),
    opt("", "replication.replSet", Text, ""),
    opt("serverless", "replication.serverless", Bool, "Learn the set's name from its first configuration"),
    opt("oplogSize", "replication.oplogSizeMB", Int, "Size of the oplog in MB"),
    opt(
        "enableMajorityReadConcern",
        "replication.enableMajorityReadConcern",
        Text,
        "false: no majority reads, stable follows what is written",
    ),
];

const SHARDING: &[Opt] = &[
    opt("configsvr", "", Flag, "Be a config server of a cluster; the default port is 27019"),
    opt("shardsvr", "", Flag, "Be a shard of a cluster; the default port is 27018"),
    opt("", "sharding.clusterRole", Text, ""),
    opt(
        "configdb",
        "sharding.configDB",
        Text,
        "The config servers: their set's name, a slash and some of their hosts",
    ),
];

const NO_AUTH_YET: &str = "not supported yet";

const SECURITY: &[Opt] = &[
    opt("noauth", "", Flag, "Run without authentication (the default)"),
    opt("auth", "", Flag, "Clients log in, and may do what they have been granted"),
    opt("", "security.authorization", Text, ""),
    opt("keyFile", "security.keyFile", Text, "Key that members log in to each other with; implies --auth"),
    opt(
        "clusterAuthMode",
        "security.clusterAuthMode",
        Text,
        "How members log in to each other: keyFile, sendKeyFile, sendX509 or x509",
    ),
    opt(
        "transitionToAuth",
        "security.transitionToAuth",
        Flag,
        "Log in to other members, and ask nobody to (while members are restarted one by one)",
    ),
    refused("clusterIpSourceAllowlist", "security.clusterIpSourceAllowlist", Text, NO_AUTH_YET),
    opt(
        "redactClientLogData",
        "security.redactClientLogData",
        Flag,
        "The log shows ### in place of values that clients have sent",
    ),
    opt("noscripting", "", Flag, "Refuse $where, $function and $accumulator (the default here)"),
    opt("", "security.javascriptEnabled", Flag, ""),
    refused("awsIamSessionToken", "", Text, NO_AUTH_YET),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_explained() {
        let mut seen = std::collections::BTreeSet::new();
        for o in all() {
            assert!(!o.cli.is_empty() || !o.yaml.is_empty());
            assert!(o.cli.is_empty() || seen.insert(o.cli), "{}", o.cli);
            assert!(o.yaml.is_empty() || seen.insert(o.yaml) || o.yaml == o.cli, "{}", o.yaml);
            assert!(o.cli.is_empty() || !o.help.is_empty(), "{} has no help", o.cli);
        }
    }
}
