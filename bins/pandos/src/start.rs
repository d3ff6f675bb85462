//! A router's process from its configuration to its exit code: log, listen, ask the config servers, serve, stop.

use pando_command::Params;
use pando_env::log::{Attrs, LogSink};
use pando_env::tls::Certificates;
use pando_env::{Component, Env, Log};
use pando_env_tokio::process::{self, Signals};
use pando_env_tokio::{RealClock, RealHost, RealNet};
use pando_process::command_line::Ended;
use pando_process::exit;
use pando_process::secured::Secured;
use pando_process::until_asked::until_asked;
use pando_router::{ConfigDb, Router};
use pando_shell::admission::Admission;
use pando_shell::listener::{self, Bound};
use pando_shell::log::JsonLog;
use pando_shell::{Config, Service, Stop};
use pando_wire::{Compressor, Compressors};
use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;

fn failed(code: u8, error: impl Display) -> Ended {
    Ended { code, error: Some(error.to_string()) }
}

/// Runs a router until it is asked to stop. `ready` is called when clients can connect.
pub(crate) fn serve(config: Config, configdb: ConfigDb, allocator: &'static str, ready: &dyn Fn()) -> Ended {
    if let Some(mask) = config.umask {
        process::set_umask(mask);
    }
    let sink = match JsonLog::open(Arc::new(RealClock::new()), config.log.destination.clone()) {
        Ok(sink) => sink,
        Err(e) => return failed(exit::FAILED, format!("Failed to open the log file: {e}")),
    };
    sink.set_verbosity(Component::Default, Some(config.log.verbosity));
    for (component, level) in &config.log.components {
        sink.set_verbosity(*component, Some(*level));
    }
    let log = Log::new(sink.clone(), "mongosMain");
    process::raise_open_files();
    let runtime = match pando_env_tokio::runtime() {
        Ok(rt) => rt,
        Err(e) => return failed(exit::FAILED, format!("Failed to start the runtime: {e}")),
    };
    let router = pando_router::Config { allocator, ..pando_router::Config::new(configdb, config.port) };
    let ended = runtime.block_on(run(config, router, &log, &sink, ready));
    log.info(Component::Control, 23138, "Shutting down", |a| {
        a.i64("exitCode", i64::from(ended.code));
    });
    // Connections are still open and tasks still wait: nothing of them is to be kept.
    runtime.shutdown_background();
    ended
}

/// What is known when the address is taken and nobody is served yet.
struct Opened {
    signals: Signals,
    bound: Bound,
    env: Env,
    secured: Secured,
    params: Params,
    host: Arc<RealHost>,
}

async fn open(config: &Config, log: &Log) -> Result<Opened, Ended> {
    let signals = Signals::new().map_err(|e| failed(exit::FAILED, e))?;
    let here = Path::new(".");
    let host = Arc::new(RealHost::new(here));
    let net = RealNet { backlog: config.backlog, unix_mode: config.unix_socket_mode };
    let env = pando_env_tokio::env(here, log.clone(), net).map_err(|e| failed(exit::FAILED, e))?;
    let params = config.params().map_err(|e| failed(exit::BAD_OPTIONS, e))?;
    let (env, secured) = Secured::by(config, env, &params).map_err(|e| {
        let mut a = Attrs::default();
        a.i64("code", i64::from(e.code.0)).str("codeName", &e.code.name()).str("errmsg", &e.message);
        let error = a.finish();
        log.error(Component::Control, 20574, "Error during global initialization", |a| {
            a.own_json("error", &error);
        });
        failed(exit::FAILED, e)
    })?;
    secured.show_in(&params);
    let unix = config.unix_socket_dir.as_ref().and_then(|d| d.to_str());
    let bound = listener::bind(&env, &config.bind, config.port, unix).await.map_err(|e| {
        let words = process::words(&e);
        log.error(Component::Network, 20568, "Error setting up listener", |a| {
            a.str("error", &words);
        });
        failed(exit::NET, words)
    })?;
    Ok(Opened { signals, bound, env, secured, params, host })
}

async fn run(
    config: Config,
    router: pando_router::Config,
    log: &Log,
    sink: &JsonLog,
    ready: &dyn Fn(),
) -> Ended {
    let Opened { mut signals, bound, env, secured, params, host } = match open(&config, log).await {
        Ok(opened) => opened,
        Err(ended) => return ended,
    };
    let rotate = || sink.rotate().is_ok();
    let router_config = pando_router::Config {
        bind_ips: config.bind.clone(),
        argv: config.argv.clone(),
        parsed: config.parsed.to_raw(),
        host,
        port: bound.port(),
        asks_for_logins: config.security.authorization,
        cluster_auth: secured.cluster_auth,
        certificates: secured.tls.map(|tls| tls as Arc<dyn Certificates>),
        audit: secured.audit,
        ..router
    };
    let starting = Router::start(env, router_config, params);
    let router = match until_asked(starting, &mut signals, log, rotate).await {
        Some(Ok(router)) => router,
        Some(Err(e)) => return failed(exit::FAILED, e),
        None => return Ended { code: exit::CLEAN, error: None },
    };
    let offered = config.compressors.iter().filter_map(|name| Compressor::from_name(name));
    router.instance.set_compressors(offered.fold(Compressors::NONE, Compressors::with));
    if let Some(path) = &config.pid_file
        && let Err(e) = std::fs::write(path, format!("{}\n", std::process::id()))
    {
        log.warn(Component::Control, 20561, "Could not write the pid file", |a| {
            a.show("path", path.display()).show("error", &e);
        });
    }
    let limit = i64::try_from(config.max_connections).unwrap_or(i64::MAX);
    router.instance.metrics.connections.limit.set(limit);
    let stop = Stop::new();
    let service = Service::new(router.clone(), |router: &Router| &router.registry);
    let admission = Admission::new(config.max_connections, config.exempt.clone(), config.allowed.clone());
    bound.serve(&service, admission, &stop);
    sink.startup_done();
    ready();
    let rotate = || sink.rotate().is_ok() & router.rotate_audit_log().is_ok();
    until_asked(router.wait_shutdown_requested(), &mut signals, log, rotate).await;
    router.stop();
    stop.stop();
    Ended { code: exit::CLEAN, error: None }
}
