//! Processes that ended are started again.

use super::process::Process;
use super::restart::Restarts;
use super::status::{Seen, Show, Watch};
use std::time::Duration;

/// Looks once at all processes; what happens is said, and `watch` forgets who is gone.
pub(crate) fn look(
    processes: &mut [Process],
    restarts: &mut Restarts,
    now: Duration,
    (watch, show): (&Watch, &mut Show),
) {
    for (i, process) in processes.iter_mut().enumerate() {
        let host = process.host().to_owned();
        if let Some(how) = process.ended() {
            let pause = restarts.ended(i, now);
            watch.set(i, Seen::down());
            show.say(&format!("{host} ended ({how}); it is started again in {} ms", pause.as_millis()));
        }
        if restarts.is_due(i, now) {
            match process.start() {
                Ok(()) => show.say(&format!("{host} is started again, process {}", process.pid())),
                Err(e) => {
                    show.say(&format!("{e}; next try in {} ms", restarts.ended(i, now).as_millis()));
                }
            }
        }
    }
}
