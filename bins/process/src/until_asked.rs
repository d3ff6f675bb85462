//! A process works until it is asked to end.

use pando_env::{Component, Log};
use pando_env_tokio::process::{Asked, Signals};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

/// What `work` comes to; nothing when the process is asked to end before. SIGUSR1 lets `rotate` begin other files on the way, which tells
/// whether it could.
pub async fn until_asked<F: Future>(
    work: F,
    signals: &mut Signals,
    log: &Log,
    rotate: impl Fn() -> bool,
) -> Option<F::Output> {
    let mut work = pin!(work);
    loop {
        let mut asked = pin!(signals.next());
        let first = poll_fn(|cx| {
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
                let done = rotate();
                log.info(Component::Control, 23166, "Log rotated", |a| {
                    a.bool("ok", done);
                });
            }
        }
    }
}
