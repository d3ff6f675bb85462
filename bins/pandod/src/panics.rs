//! A panic outside what a request reads ends the process, at once and where it happened.
//!
//! The log gets one line, standard error the message, the task's name and what was logged last: whoever restarts the
//! server often keeps only that. The process ends by SIGABRT, so a core dump shows the broken state itself.

// A process that ends has no runtime to lean on.
#![allow(clippy::disallowed_methods)]

use pando_base::panics::{self, Broken};
use pando_base::redaction::ClientText;
use pando_env::{Component, Log};
use std::any::Any;
use std::backtrace::Backtrace;
use std::io::Write;
use std::panic::PanicHookInfo;
use std::time::Duration;

/// Lines of the log that are repeated on standard error.
const LINES: usize = 20;
/// Time to tell; then the process ends anyway (the panic may hold the log's own lock).
const TELLING: Duration = Duration::from_secs(5);

pub(crate) fn install(log: &Log) {
    let log = log.clone();
    std::panic::set_hook(Box::new(move |info| {
        if panics::is_fatal() || info.payload().is::<Broken>() {
            end(&log, info);
        }
        tell(&log, info);
    }));
}

fn message(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    let owned = || payload.downcast_ref::<String>().map(String::as_str);
    let broken = || payload.downcast_ref::<Broken>().map(|b| b.0.as_str());
    text.or_else(owned).or_else(broken).unwrap_or("no message")
}

/// One request is given up, and its connection with it.
fn tell(log: &Log, info: &PanicHookInfo<'_>) {
    log.error(Component::Control, 23134, "A request panicked", |a| {
        a.data("message", &ClientText(message(info.payload())));
        if let Some(at) = info.location() {
            a.show("at", at);
        }
        a.show("backtrace", Backtrace::capture());
    });
}

fn end(log: &Log, info: &PanicHookInfo<'_>) -> ! {
    std::thread::spawn(|| {
        std::thread::sleep(TELLING);
        std::process::abort();
    });
    let (message, task) = (message(info.payload()), panics::work().task);
    let task = if task.is_empty() { "none" } else { task };
    let at = info.location().map(ToString::to_string).unwrap_or_default();
    let backtrace = Backtrace::force_capture();
    let mut err = std::io::stderr().lock();
    // Nobody may listen there: what cannot be written is lost.
    let _ = writeln!(err, "\npandod panicked and ends: {message}\n  task: {task}\n  at: {at}\n{backtrace}");
    log.fatal(Component::Control, 23089, "Fatal assertion", |a| {
        a.data("message", &ClientText(message))
            .str("task", task)
            .str("at", &at)
            .show("backtrace", &backtrace);
    });
    let (recent, _) = log.sink().recent();
    let _ = writeln!(err, "The last lines of the log:");
    for line in recent.iter().skip(recent.len().saturating_sub(LINES)) {
        let _ = writeln!(err, "{}", line.trim_end());
    }
    let _ = err.flush();
    std::process::abort()
}
