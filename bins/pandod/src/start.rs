//! A server's process from its configuration to its exit code: log, lock, listen, serve, stop.

use crate::encryption;
use crate::exit;
use crate::panics;
use crate::version;
use crate::watchdog;
use pando_base::Error;
use pando_base::redaction::WithCode;
use pando_command::params::Param;
use pando_encryption::Keys;
use pando_encryption::disk::SealedDisk;
use pando_env::log::{Attrs, LogSink, push_json_string};
use pando_env::tls::Certificates;
use pando_env::{Component, Env, Host, Log};
use pando_env_tokio::lock::DataLock;
use pando_env_tokio::process::{self, Signals};
use pando_env_tokio::{RealClock, RealHost, RealNet};
use pando_process::secured::Secured;
use pando_process::until_asked::until_asked;
use pando_server::Server;
use pando_shell::admission::Admission;
use pando_shell::listener::{self, Bound};
use pando_shell::log::{Destination, JsonLog};
use pando_shell::{Config, Service, Stop};
use pando_wire::{Compressor, Compressors};
use std::fmt::Display;
use std::sync::Arc;

/// What is known once clients can connect.
pub struct Running {
    pub port: u16,
    pub server: Arc<Server>,
}

/// Why a server could not start: the message is logged, the code is the process's.
struct Failure {
    id: i32,
    text: &'static str,
    error: String,
    /// `error` as JSON.
    json: String,
    code: u8,
}

impl Failure {
    fn open(error: impl Display) -> Failure {
        let (text, error) = ("DBException in initAndListen, terminating", error.to_string());
        let mut json = String::new();
        push_json_string(&mut json, &error);
        Failure { id: 20557, text, error, json, code: exit::CANNOT_START }
    }
    fn initialize(error: &Error) -> Failure {
        let text = "Error during global initialization";
        let mut a = Attrs::default();
        a.i64("code", i64::from(error.code.0))
            .str("codeName", &error.code.name())
            .str("errmsg", &error.message);
        Failure { id: 20574, text, error: error.to_string(), json: a.finish(), code: exit::FAILED }
    }
    fn listen(error: &std::io::Error) -> Failure {
        let (text, error) = ("Error setting up listener", process::words(error));
        let mut a = Attrs::default();
        a.i64("code", 9001).str("codeName", "SocketException").str("errmsg", &error);
        Failure { id: 20568, text, error, json: a.finish(), code: exit::NET }
    }
}

/// How it ended.
pub struct Ended {
    /// One of [`exit`].
    pub code: u8,
    /// What went wrong, for the terminal; the log has it too.
    pub error: Option<String>,
    /// It has other files now and is to be started again.
    again: bool,
}

impl Ended {
    fn with(code: u8) -> Ended {
        Ended { code, error: None, again: false }
    }
    fn error(code: u8, error: impl Display) -> Ended {
        Ended { code, error: Some(error.to_string()), again: false }
    }
    fn failed(error: impl Display) -> Ended {
        Ended::error(exit::FAILED, error)
    }
}

/// Runs a server until it is asked to stop. `ready` is called when clients can connect.
pub fn serve(config: Config, ready: impl FnOnce(&Running)) -> Ended {
    if let Some(mask) = config.umask {
        process::set_umask(mask);
    }
    let mut destination = config.log.destination.clone();
    if let Destination::File { append, .. } = &mut destination {
        // What led to the new start is in the file.
        *append |= process::was_started_again();
    }
    let sink = match JsonLog::open(Arc::new(RealClock::new()), destination) {
        Ok(sink) => sink,
        Err(e) => return Ended::failed(format!("Failed to open the log file: {e}")),
    };
    sink.set_verbosity(Component::Default, Some(config.log.verbosity));
    for (component, level) in &config.log.components {
        sink.set_verbosity(*component, Some(*level));
    }
    let log = Log::new(sink.clone(), "initandlisten");
    panics::install(&log);
    process::raise_open_files();
    let runtime = match pando_env_tokio::runtime() {
        Ok(rt) => rt,
        Err(e) => return Ended::failed(format!("Failed to start the runtime: {e}")),
    };
    let mut ended = runtime.block_on(run(config, &log, &sink, ready));
    if ended.again {
        log.info(Component::Control, 9100023, "Starting again", |_| {});
        // A new image of the same process: nothing of the old one can reach the new files.
        ended = Ended::failed(process::start_again());
    }
    log.info(Component::Control, 20565, "Now exiting", |_| {});
    log.info(Component::Control, 23138, "Shutting down", |a| {
        a.i64("exitCode", i64::from(ended.code));
    });
    // Connections are still open and tasks still wait; all data is on disk, so they end with the process.
    runtime.shutdown_background();
    ended
}

async fn run(config: Config, log: &Log, sink: &JsonLog, ready: impl FnOnce(&Running)) -> Ended {
    let host = Arc::new(RealHost::new(&config.dbpath));
    announce(log, &config, &host);
    let (mut signals, lock, bound, running) = match open(&config, log, host).await {
        Ok(opened) => opened,
        Err(f) => {
            log.error(Component::Control, f.id, f.text, |a| {
                a.own_json("error", &f.json);
            });
            return Ended::error(f.code, f.error);
        }
    };
    let stop = Stop::new();
    let mut broken = Vec::new();
    if config.repair {
        broken = running.server.check_all().await;
    } else {
        if let Some(path) = &config.pid_file
            && let Err(e) = std::fs::write(path, format!("{}\n", std::process::id()))
        {
            log.warn(Component::Control, 20561, "Could not write the pid file", |a| {
                a.show("path", path.display()).show("error", &e);
            });
        }
        let service = Service::new(running.server.clone(), |server| &server.registry);
        let admission = Admission::new(config.max_connections, config.exempt.clone(), config.allowed.clone());
        bound.serve(&service, admission, &stop);
        sink.startup_done();
        ready(&running);
        let rotate = || sink.rotate().is_ok() & running.server.rotate_audit_log().is_ok();
        until_asked(running.server.lifecycle.wait_shutdown_requested(), &mut signals, log, rotate).await;
    }
    if let Some(why) = running.server.lifecycle.fatal_error() {
        // At once: whatever is answered from here on may rest on what the disk has lost, and the set takes this member for
        // alive as long as its port is open.
        return Ended::error(exit::ABRUPT, why);
    }
    running.server.take_leave().await;
    stop.stop();
    let ended = running.server.shutdown().await;
    if let Some(why) = running.server.lifecycle.fatal_error() {
        return Ended::error(exit::ABRUPT, why);
    }
    if let Err(e) = ended {
        log.error(Component::Control, 4784932, "The server did not stop cleanly", |a| {
            a.data("error", &WithCode(&e));
        });
        return Ended::error(exit::ABRUPT, e);
    }
    if !broken.is_empty() {
        return Ended::failed(format!("--repair could not mend everything: {}", broken.join("\n")));
    }
    match lock.release() {
        Ok(()) => Ended { again: running.server.lifecycle.wants_restart(), ..Ended::with(exit::CLEAN) },
        Err(e) => Ended::failed(e),
    }
}

type Opened = (Signals, DataLock, Bound, Running);

/// Lock, listen, open: in this order, so that a second server finds out before it touches data.
async fn open(config: &Config, log: &Log, host: Arc<RealHost>) -> Result<Opened, Failure> {
    let dir = &config.dbpath;
    if !dir.is_dir() {
        return Err(Failure::open(format!(
            "NonExistentPath: Data directory {} not found. Create the missing directory or specify another path using \
             (1) the --dbpath command line option, or (2) by adding the 'storage.dbPath' option in the configuration \
             file.",
            dir.display()
        )));
    }
    let lock = DataLock::acquire(dir).map_err(|e| Failure::open(e.0))?;
    if lock.after_crash {
        log.warn(Component::Storage, 22271, "Detected unclean shutdown - Lock file is not empty", |a| {
            a.show("lockFile", dir.join("mongod.lock").display());
        });
    }
    match listen_and_open(config, log, host).await {
        Ok((signals, bound, running)) => Ok((signals, lock, bound, running)),
        Err(failure) => {
            lock.give_back();
            Err(failure)
        }
    }
}

async fn listen_and_open(
    config: &Config,
    log: &Log,
    host: Arc<RealHost>,
) -> Result<(Signals, Bound, Running), Failure> {
    let signals = Signals::new().map_err(Failure::open)?;
    let net = RealNet { backlog: config.backlog, unix_mode: config.unix_socket_mode };
    let env = pando_env_tokio::env(&config.dbpath, log.clone(), net).map_err(Failure::open)?;
    let params = config.params().map_err(Failure::open)?;
    let encryption = config.security.encryption.as_ref();
    let masters = encryption::read_given(encryption, log).map_err(|e| Failure::initialize(&e))?;
    let new_data_key = encryption.is_some_and(|e| e.new_data_key);
    let keys = encryption::open(&env, masters.as_ref(), new_data_key).map_err(Failure::open)?;
    let (env, secured) = Secured::by(config, env, &params).map_err(|e| Failure::initialize(&e))?;
    let unix = config.unix_socket_dir.as_ref().and_then(|d| d.to_str());
    let bound =
        listener::bind(&env, &config.bind, config.port, unix).await.map_err(|e| Failure::listen(&e))?;
    let server = start(env, config, bound.port(), host, secured, keys).await.map_err(Failure::open)?;
    let running = Running { port: bound.port(), server };
    Ok((signals, bound, running))
}

async fn start(
    env: Env,
    config: &Config,
    port: u16,
    host: Arc<RealHost>,
    secured: Secured,
    keys: Option<Arc<Keys>>,
) -> Result<Arc<Server>, Error> {
    let params = config.params().map_err(Error::bad_value)?;
    secured.show_in(&params);
    let Secured { tls, cluster_auth, audit } = secured;
    watchdog::start(&env.log, params.int(Param::syncStallSecs))?;
    crate::allocator::start()?;
    let env =
        if params.bool(Param::unsyncedWritesInMemory) { pando_env_tokio::losing_unsynced(env) } else { env };
    let env = match &keys {
        Some(keys) => SealedDisk::around(env, keys.clone()),
        None => env,
    };
    let mut storage = pando_storage::Options {
        replicated: config.repl_set.is_some() || config.serverless,
        keys,
        ..Default::default()
    };
    if let Some(bytes) = config.oplog_bytes {
        storage.oplog_bytes_max = bytes;
    }
    if let Some(bytes) = config.cache_bytes {
        storage = storage.with_memory(bytes);
    }
    let names =
        Compressor::ALL.iter().map(|c| c.name()).filter(|n| config.compressors.iter().any(|c| c == n));
    let server_config = pando_server::Config {
        allocator: crate::allocator::NAME,
        oplog_min_retention: config.oplog_min_retention,
        majority_reads: config.majority_reads,
        asks_for_logins: config.security.authorization,
        audit,
        cluster_auth,
        signs_cluster_times: config.security.authorization,
        port,
        bind_ips: config.bind.clone(),
        repl_set: config.repl_set.clone(),
        serverless: config.serverless,
        cluster_role: config.cluster_role,
        auto_initiate: config.self_initiate.then(|| format!("127.0.0.1:{port}")),
        storage,
        argv: config.argv.clone(),
        parsed: config.parsed.to_raw(),
        params,
        host,
        certificates: tls.map(|tls| tls as Arc<dyn Certificates>),
        compressors: names.collect(),
        max_connections: u32::try_from(config.max_connections).unwrap_or(u32::MAX),
        ..pando_server::Config::default()
    };
    let server = Server::start(env, server_config).await?;
    let offered = config.compressors.iter().filter_map(|name| Compressor::from_name(name));
    server.instance.set_compressors(offered.fold(Compressors::NONE, Compressors::with));
    Ok(server)
}

/// The lines every start begins with; launchers and support scripts read them.
fn announce(log: &Log, config: &Config, host: &RealHost) {
    let facts = host.facts();
    log.info(Component::Control, 4615611, "PandoDB starting", |a| {
        a.i64("pid", i64::from(facts.pid))
            .i64("port", i64::from(config.port))
            .show("dbPath", config.dbpath.display())
            .str("architecture", "64-bit")
            .str("host", &facts.hostname);
    });
    log.info(Component::Control, 23403, "Build Info", |a| {
        a.object("buildInfo", |b| {
            b.str("version", pando_server::VERSION)
                .str("pandodb", version::OWN)
                .str("gitVersion", pando_server::GIT_VERSION)
                .own_json("modules", "[]")
                .str("allocator", crate::allocator::NAME)
                .object("environment", |e: &mut Attrs| {
                    e.str("distarch", std::env::consts::ARCH).str("target_arch", std::env::consts::ARCH);
                });
        });
    });
    log.info(Component::Control, 51765, "Operating System", |a| {
        a.object("os", |o| {
            o.str("name", &facts.os_name).str("version", &facts.os_version);
        });
    });
    log.info(Component::Control, 21951, "Options set by command line", |a| {
        a.own_json("options", &pando_command::json::relaxed(&config.parsed.to_raw()));
    });
    if config.bind.iter().any(|b| !b.starts_with("127.") && b != "::1") {
        let text = "Access control is not available yet and the server listens on more than localhost. Read and write \
                    access to data is unrestricted";
        log.warn(Component::Control, 22120, text, |_| {});
    }
}
