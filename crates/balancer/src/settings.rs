//! `config.settings`, of which the balancer reads `balancer` and `chunksize` (SH-CAT-6, SH-BAL-2).

use pando_base::limits::CHUNK_MB_MAX;
use pando_base::{Error, Result};
use pando_bson::{DocBuf, RawDoc, Value};

const CHUNK_MB_DEFAULT: u64 = 128;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    #[default]
    Full,
    Off,
}

impl Mode {
    pub fn text(self) -> &'static str {
        match self {
            Mode::Full => "full",
            Mode::Off => "off",
        }
    }
}

/// The time of the day at which it works, in minutes of the config servers' own clock; one that ends before it begins goes over midnight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    pub start: u32,
    pub stop: u32,
}

impl Window {
    /// # Errors
    /// 2 for anything but `{start: "HH:MM", stop: "HH:MM"}` of two different times.
    pub fn parse(doc: &RawDoc) -> Result<Window> {
        let wrong = || {
            let text = format!(
                "activeWindow needs start and stop, two different times of the day like \"23:00\": {doc}"
            );
            Error::bad_value(text)
        };
        let at = |name: &str| doc.get(name).and_then(|v| minutes(v.as_str()?)).ok_or_else(wrong);
        let window = Window { start: at("start")?, stop: at("stop")? };
        if window.start == window.stop { Err(wrong()) } else { Ok(window) }
    }
    /// The start is within, the end is not.
    pub fn is_open_at(self, minute_of_day: u32) -> bool {
        match self.start < self.stop {
            true => (self.start..self.stop).contains(&minute_of_day),
            false => !(self.stop..self.start).contains(&minute_of_day),
        }
    }
}

/// Minutes since midnight.
fn minutes(text: &str) -> Option<u32> {
    let (hours, minutes) = text.split_once(':')?;
    let number = |text: &str, below: u32| {
        let is_one = (1..=2).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
        text.parse::<u32>().ok().filter(|n| is_one && *n < below)
    };
    Some(number(hours, 24)? * 60 + number(minutes, 60)?)
}

/// How the balancer works.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    pub mode: Mode,
    /// `sh.setBalancerState(false)` of old shells.
    pub stopped: bool,
    pub window: Option<Window>,
    /// A migration is over when the donor has deleted what it gave.
    pub waits_for_delete: bool,
    /// The recipient waits for so many members to have what it copies; empty: as it sees fit.
    pub throttle: Option<DocBuf>,
    /// What is too large moves all the same, unless it is marked.
    pub forces_jumbo: bool,
    /// Neighbouring chunks of a shard become one by and by.
    pub merges: bool,
    pub max_chunk_bytes: u64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            mode: Mode::Full,
            stopped: false,
            window: None,
            waits_for_delete: false,
            throttle: None,
            forces_jumbo: false,
            merges: true,
            max_chunk_bytes: CHUNK_MB_DEFAULT << 20,
        }
    }
}

impl Settings {
    /// `balancer`, `chunksize` and `automerge` as they are in `config.settings`, where they are there.
    ///
    /// # Errors
    /// 2 for a value that nobody can go by: the balancer does nothing until it is mended.
    pub fn parse(
        balancer: Option<&RawDoc>,
        chunk_size: Option<&RawDoc>,
        auto_merge: Option<&RawDoc>,
    ) -> Result<Settings> {
        let mut settings = Settings::default();
        let enabled = auto_merge.and_then(|doc| doc.get("enabled"));
        settings.merges = enabled.is_none_or(|v| v.is_truthy());
        if let Some(doc) = balancer {
            let flag = |name: &str| doc.get(name).is_some_and(|v| v.is_truthy());
            settings.stopped = flag("stopped");
            settings.waits_for_delete = flag("_waitForDelete");
            settings.throttle = match doc.get("_secondaryThrottle") {
                Some(Value::Document(concern)) => Some(concern.to_buf()),
                given => given.filter(Value::is_truthy).map(|_| DocBuf::default()),
            };
            settings.forces_jumbo = flag("attemptToBalanceJumboChunks");
            settings.mode = match doc.get("mode").as_ref().map(|v| v.as_str()) {
                // The second one had chunks split and not moved: nothing is split for its size any more.
                None | Some(Some("full")) => Mode::Full,
                Some(Some("off" | "autoSplitOnly")) => Mode::Off,
                Some(_) => return Err(Error::bad_value(format!("Invalid balancer mode: {doc}"))),
            };
            settings.window = match doc.get("activeWindow") {
                None | Some(Value::Null | Value::Undefined) => None,
                Some(Value::Document(window)) => Some(Window::parse(window)?),
                Some(_) => return Err(Error::bad_value(format!("activeWindow is no object: {doc}"))),
            };
        }
        if let Some(doc) = chunk_size {
            let mb = doc.get("value").and_then(|v| v.as_i64()).and_then(|mb| u64::try_from(mb).ok());
            let is_one = |mb: &u64| (1..=CHUNK_MB_MAX).contains(mb);
            let wrong =
                || Error::bad_value(format!("{doc} is not a valid chunk size: 1 to {CHUNK_MB_MAX} MB"));
            settings.max_chunk_bytes = mb.filter(is_one).ok_or_else(wrong)? << 20;
        }
        Ok(settings)
    }
    /// Whether anything is to be moved at a minute of the day.
    pub fn may_balance_at(&self, minute_of_day: u32) -> bool {
        self.mode == Mode::Full
            && !self.stopped
            && self.window.is_none_or(|window| window.is_open_at(minute_of_day))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_bson::doc;

    fn parsed(balancer: pando_bson::Document) -> Result<Settings> {
        Settings::parse(Some(&balancer.to_raw()), None, None)
    }

    #[test]
    fn a_window_over_midnight_is_open_on_both_sides_of_it() {
        let window = Window::parse(&doc! { "start": "23:00", "stop": "6:30" }.to_raw()).unwrap();
        let open: Vec<bool> =
            [22 * 60 + 59, 23 * 60, 0, 6 * 60 + 29, 6 * 60 + 30].map(|at| window.is_open_at(at)).to_vec();
        assert_eq!(open, [false, true, true, true, false]);
        let by_day = Window { start: 60, stop: 120 };
        assert!(!by_day.is_open_at(59) && by_day.is_open_at(60) && !by_day.is_open_at(120));
        for (start, stop) in [
            ("24:00", "1:00"),
            ("1:60", "2:00"),
            ("1:00", "1:00"),
            ("+1:00", "2:00"),
            ("1", "2:00"),
            ("", ":"),
        ] {
            assert!(
                Window::parse(&doc! { "start": start, "stop": stop }.to_raw()).is_err(),
                "{start} {stop}"
            );
        }
    }

    #[test]
    fn whoever_stops_the_balancer_stops_it() {
        assert!(Settings::default().may_balance_at(0));
        for stops in [doc! { "mode": "off" }, doc! { "stopped": true }, doc! { "mode": "autoSplitOnly" }] {
            assert!(!parsed(stops.clone()).unwrap().may_balance_at(0), "{stops:?}");
        }
        assert!(parsed(doc! { "mode": "half" }).is_err());
        assert!(parsed(doc! { "activeWindow": 5 }).is_err());
        let throttle = |of: pando_bson::Document| parsed(of).unwrap().throttle;
        assert_eq!(throttle(doc! { "_secondaryThrottle": false }), None);
        assert_eq!(throttle(doc! { "_secondaryThrottle": true }), Some(DocBuf::default()));
        let two = doc! { "w": 2 };
        assert_eq!(throttle(doc! { "_secondaryThrottle": two.clone() }), Some(two.to_raw()));
        let bytes = |mb: i32| {
            Settings::parse(None, Some(&doc! { "value": mb }.to_raw()), None).map(|s| s.max_chunk_bytes)
        };
        assert_eq!(bytes(1).unwrap(), 1 << 20);
        assert!(bytes(0).is_err() && bytes(1025).is_err() && bytes(-1).is_err());
    }
}
