//! The log itself: one lock, so that records stand in the order in which they were taken.

use crate::event::Event;
use crate::filter::Filter;
use crate::form::Format;
use crate::originator;
use crate::sink::Sink;
use crate::who::Who;
use pando_base::Uuid;
use pando_base::panics::poisoned;
use pando_env::Clock;
use pando_metrics::{Collector, Counter};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

/// What is asked for.
#[derive(Debug, Default)]
pub struct Settings {
    pub format: Format,
    pub filter: Option<Filter>,
}

/// What happens when a record cannot be written: the process ends.
type Broken = Box<dyn Fn(&io::Error) + Send + Sync>;

/// One per process.
pub struct AuditLog {
    clock: Arc<dyn Clock>,
    settings: Settings,
    sink: Mutex<Box<dyn Sink>>,
    broken: Broken,
    /// Stands for the server where there is no connection.
    process: Uuid,
    written: Counter,
    filtered: Counter,
    /// Events without all of their arguments.
    pub truncated: Counter,
    /// Changes that were recorded, and those of them that are on the disk.
    changes: AtomicU64,
    synced: AtomicU64,
}

impl AuditLog {
    /// `broken` is told of a record that could not be written, and is not expected to return in a real process.
    pub fn new(
        clock: Arc<dyn Clock>,
        settings: Settings,
        sink: Box<dyn Sink>,
        process: Uuid,
        broken: impl Fn(&io::Error) + Send + Sync + 'static,
    ) -> AuditLog {
        AuditLog {
            clock,
            settings,
            sink: Mutex::new(sink),
            broken: Box::new(broken),
            process,
            written: Counter::default(),
            filtered: Counter::default(),
            truncated: Counter::default(),
            changes: AtomicU64::new(0),
            synced: AtomicU64::new(0),
        }
    }
    /// The server itself.
    pub fn system(&self) -> Who {
        Who::system(self.process)
    }
    /// Whoever this thread works for.
    pub fn originator(&self) -> Who {
        originator::current().unwrap_or_else(|| self.system())
    }
    /// Writes an event that is wanted. Returns when it outlives the process.
    pub fn record(&self, who: &Who, event: &Event) {
        if let Some(bytes) = self.record_of(who, event) {
            let written = self.sink.lock().unwrap_or_else(poisoned).write(&bytes);
            self.note(written);
            if event.is_change {
                self.changes.fetch_add(1, SeqCst);
            }
        }
    }
    /// Returns when every change recorded so far is on the disk. Takes as long as the disk does where there is one.
    pub fn sync(&self) {
        let changes = self.changes.load(SeqCst);
        if changes == self.synced.load(SeqCst) {
            return;
        }
        let work = self.sink.lock().unwrap_or_else(poisoned).sync();
        match work.and_then(|work| work.map_or(Ok(()), |work| work())) {
            Ok(()) => drop(self.synced.fetch_max(changes, SeqCst)),
            Err(e) => (self.broken)(&e),
        }
    }
    /// Begins a new file, and tells so in it. `told` makes the event of how it went.
    pub fn rotate(
        &self,
        who: &Who,
        told: impl FnOnce(&io::Result<Option<std::path::PathBuf>>) -> Event,
    ) -> io::Result<()> {
        let mut sink = self.sink.lock().unwrap_or_else(poisoned);
        let done = sink.rotate(self.clock.wall_ms());
        if sink.rotates()
            && let Some(bytes) = self.record_of(who, &told(&done))
        {
            let written = sink.write(&bytes);
            self.note(written);
        }
        done.map(drop)
    }
    /// What is to be written of an event; `None` when the filter does not want it.
    fn record_of(&self, who: &Who, event: &Event) -> Option<Vec<u8>> {
        let record = event.document(who, self.clock.wall_ms());
        if self.settings.filter.as_ref().is_some_and(|filter| !filter.wants(&record)) {
            self.filtered.inc();
            return None;
        }
        Some(self.settings.format.bytes_of(&record))
    }
    fn note(&self, written: io::Result<()>) {
        match written {
            Ok(()) => self.written.inc(),
            Err(e) => (self.broken)(&e),
        }
    }
    /// `serverStatus.auditLog`; no section of MongoDB's.
    pub fn collect(&self, to: &mut Collector<'_>) {
        to.counter("written", self.written.get(), "events", "Events of the audit log");
        to.counter("filtered", self.filtered.get(), "events", "Events that the audit filter did not want");
        let help = "Events of commands with arguments beyond the bound";
        to.counter("truncated", self.truncated.get(), "events", help);
    }
}
