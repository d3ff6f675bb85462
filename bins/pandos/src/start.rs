//! A router's process from its configuration to its exit code: log, listen, ask the config servers, serve, stop.

use crate::exit;
use pando_env::log::LogSink;
use pando_env::{Component, Log};
use pando_env_tokio::process::{self, Asked, Signals};
use pando_env_tokio::{RealClock, RealHost, RealNet};
use pando_router::{ConfigDb, Router};
use pando_shell::admission::Admission;
use pando_shell::listener;
use pando_shell::log::JsonLog;
use pando_shell::{Config, Service, Stop};
use pando_wire::{Compressor, Compressors};
use std::fmt::Display;
use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

/// How it ended.
pub(crate) struct Ended {
    /// One of [`exit`].
    pub(crate) code: u8,
    /// What went wrong, for the terminal.
    pub(crate) error: Option<String>,
}

impl Ended {
    fn error(code: u8, error: impl Display) -> Ended {
        Ended { code, error: Some(error.to_string()) }
    }
}

/// Runs a router until it is asked to stop. `ready` is called when clients can connect.
pub(crate) fn serve(
    config: Config,
    configdb: ConfigDb,
    allocator: &'static str,
    ready: impl FnOnce(),
) -> Ended {
    if let Some(mask) = config.umask {
        process::set_umask(mask);
    }
    let sink = match JsonLog::open(Arc::new(RealClock::new()), config.log.destination.clone()) {
        Ok(sink) => sink,
        Err(e) => return Ended::error(exit::FAILED, format!("Failed to open the log file: {e}")),
    };
    sink.set_verbosity(Component::Default, Some(config.log.verbosity));
    for (component, level) in &config.log.components {
        sink.set_verbosity(*component, Some(*level));
    }
    let log = Log::new(sink.clone(), "mongosMain");
    process::raise_open_files();
    let runtime = match pando_env_tokio::runtime() {
        Ok(rt) => rt,
        Err(e) => return Ended::error(exit::FAILED, format!("Failed to start the runtime: {e}")),
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

async fn run(
    config: Config,
    router: pando_router::Config,
    log: &Log,
    sink: &JsonLog,
    ready: impl FnOnce(),
) -> Ended {
    let mut signals = match Signals::new() {
        Ok(signals) => signals,
        Err(e) => return Ended::error(exit::FAILED, e),
    };
    let here = Path::new(".");
    let host = Arc::new(RealHost::new(here));
    let net = RealNet { backlog: config.backlog, unix_mode: config.unix_socket_mode };
    let env = match pando_env_tokio::env(here, log.clone(), net) {
        Ok(env) => env,
        Err(e) => return Ended::error(exit::FAILED, e),
    };
    let params = match config.params() {
        Ok(params) => params,
        Err(e) => return Ended::error(exit::BAD_OPTIONS, e),
    };
    let unix = config.unix_socket_dir.as_ref().and_then(|d| d.to_str());
    let bound = match listener::bind(&env, &config.bind, config.port, unix).await {
        Ok(bound) => bound,
        Err(e) => {
            log.error(Component::Network, 20568, "Error setting up listener", |a| {
                a.str("error", &process::words(&e));
            });
            return Ended::error(exit::NET, process::words(&e));
        }
    };
    let router_config = pando_router::Config {
        bind_ips: config.bind.clone(),
        argv: config.argv.clone(),
        parsed: config.parsed.to_raw(),
        host,
        port: bound.port(),
        ..router
    };
    let starting = Router::start(env, router_config, params);
    let router = match until_asked(starting, &mut signals, log, sink).await {
        Some(Ok(router)) => router,
        Some(Err(e)) => return Ended::error(exit::FAILED, e),
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
    until_asked(router.wait_shutdown_requested(), &mut signals, log, sink).await;
    router.stop();
    stop.stop();
    Ended { code: exit::CLEAN, error: None }
}

/// What `work` comes to; nothing when the process is asked to end before. SIGUSR1 rotates the log on the way.
async fn until_asked<F: Future>(
    work: F,
    signals: &mut Signals,
    log: &Log,
    sink: &JsonLog,
) -> Option<F::Output> {
    let mut work = pin!(work);
    loop {
        let mut asked = pin!(signals.next());
        let first = std::future::poll_fn(|cx| {
            if let Poll::Ready(done) = work.as_mut().poll(cx) {
                return Poll::Ready(Ok(done));
            }
            asked.as_mut().poll(cx).map(Err)
        })
        .await;
        match first {
            Ok(done) => return Some(done),
            Err(Asked::Stop(number, name)) => {
                log.named("SignalHandler").info(Component::Control, 23377, "Received signal", |a| {
                    a.i64("signal", i64::from(number)).str("error", name);
                });
                return None;
            }
            Err(Asked::RotateLog) => {
                let done = sink.rotate();
                log.info(Component::Control, 23166, "Log rotated", |a| {
                    a.bool("ok", done.is_ok());
                });
            }
        }
    }
}
