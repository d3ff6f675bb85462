//! The end: who asks for it, and how processes are stopped.

use super::TICK;
use super::process::Process;
use super::status::complain;
use pando_base::limits;
use pando_env::Env;
use pando_env_tokio::process::{Asked, Signals};
use std::future::Future;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

/// `fut`, or `None` when the user asks to stop first.
pub(crate) async fn unless_asked<T>(signals: &mut Signals, fut: impl Future<Output = T>) -> Option<T> {
    let (mut fut, mut asked) = (pin!(fut), pin!(stop_asked(signals)));
    std::future::poll_fn(|cx| {
        if asked.as_mut().poll(cx).is_ready() {
            return Poll::Ready(None);
        }
        fut.as_mut().poll(cx).map(Some)
    })
    .await
}

async fn stop_asked(signals: &mut Signals) {
    while signals.next().await == Asked::RotateLog {}
}

/// All of them at once; a second Ctrl-C, or a minute, ends the patience.
pub(crate) async fn stop(env: &Env, signals: &mut Signals, processes: &mut [Process]) {
    for p in processes.iter_mut() {
        p.terminate();
    }
    let until = env.clock.mono() + Duration::from_millis(limits::SET_STOP_MS);
    let wait = async {
        while processes.iter_mut().any(Process::is_running) && env.clock.mono() < until {
            env.clock.sleep(TICK).await;
        }
    };
    unless_asked(signals, wait).await;
    for p in processes.iter_mut().filter_map(|p| p.is_running().then_some(p)) {
        let line = format!("Process {} does not stop; it is killed. Its log: {}", p.pid(), p.log().display());
        complain(&line);
        p.kill();
    }
}
