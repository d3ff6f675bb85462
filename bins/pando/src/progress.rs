//! How far a long command is: a line that is drawn anew in a terminal, one every few seconds elsewhere.

use pando_env::Env;
use std::io::{IsTerminal, Write};
use std::time::Duration;

pub(crate) struct Progress {
    env: Env,
    what: &'static str,
    total: u64,
    done: u64,
    begun: Duration,
    shown: Option<Duration>,
    terminal: bool,
}

impl Progress {
    pub(crate) fn new(env: &Env, what: &'static str, total: u64) -> Progress {
        let terminal = std::io::stderr().is_terminal();
        Progress { env: env.clone(), what, total, done: 0, begun: env.clock.mono(), shown: None, terminal }
    }
    pub(crate) fn add(&mut self, bytes: u64) {
        self.done += bytes;
        let every = if self.terminal { Duration::from_millis(200) } else { Duration::from_secs(5) };
        let now = self.env.clock.mono();
        if now - self.shown.unwrap_or(self.begun) >= every {
            self.shown = Some(now);
            self.show(now);
        }
    }
    fn show(&self, now: Duration) {
        let line = line(self.what, self.done, self.total, now - self.begun);
        let mut err = std::io::stderr().lock();
        // A terminal that is gone is no reason to stop.
        let _ = match self.terminal {
            true => write!(err, "\r\x1b[K{line}"),
            false => writeln!(err, "{line}"),
        };
        let _ = err.flush();
    }
    pub(crate) fn finish(self) {
        if self.terminal && self.shown.is_some() {
            let _ = write!(std::io::stderr().lock(), "\r\x1b[K");
        }
    }
}

fn line(what: &str, done: u64, total: u64, took: Duration) -> String {
    let percent = (done * 100).checked_div(total).unwrap_or(100).min(100);
    let filled = (percent / 5) as usize;
    let bar = format!("{}{}", "=".repeat(filled), " ".repeat(20 - filled));
    let per_second = done as f64 / took.as_secs_f64().max(0.001);
    let left = if done == 0 { 0.0 } else { total.saturating_sub(done) as f64 / per_second };
    format!(
        "{what} [{bar}] {percent:3}%  {} of {}  {}/s  {left:.0} s left",
        size(done),
        size(total),
        size(per_second as u64)
    )
}

/// Bytes for people.
pub(crate) fn size(bytes: u64) -> String {
    let mut n = bytes as f64;
    for unit in ["B", "KB", "MB", "GB"] {
        if n < 1000.0 {
            return if unit == "B" { format!("{bytes} B") } else { format!("{n:.1} {unit}") };
        }
        n /= 1000.0;
    }
    format!("{n:.1} TB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_how_far_how_fast_and_how_long_still() {
        let shown = line("backup", 250_000_000, 1_000_000_000, Duration::from_secs(5));
        assert_eq!(shown, "backup [=====               ]  25%  250.0 MB of 1.0 GB  50.0 MB/s  15 s left");
        assert!(line("backup", 0, 0, Duration::ZERO).contains("100%"));
    }
}
