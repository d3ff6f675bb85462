//! What the audit log has of the server's start, its end, and new files.

use crate::Server;
use pando_audit::{Event, Who};
use pando_base::{Error, ErrorCode, Result};
use std::io;
use std::path::PathBuf;

impl Server {
    /// Records something that the server does, for whoever this thread works for.
    pub(crate) fn audit(&self, event: impl FnOnce() -> Event) {
        if let Some(log) = self.instance.audit() {
            log.record(&log.originator(), &event());
        }
    }
    pub(crate) fn audit_startup(&self) {
        self.audit(|| {
            let parameter = self.settings.cluster_parameters.change_streams().document();
            Event::startup(&self.config.parsed, &[parameter])
        });
    }
    /// Begins a new file of the audit log; nothing where there is none. 37 when the old one stays in use.
    pub fn rotate_audit_log(&self) -> Result<()> {
        let Some(log) = self.instance.audit() else { return Ok(()) };
        let who: Who = log.originator();
        let facts = self.config.host.facts();
        let told = |done: &io::Result<Option<PathBuf>>| {
            let about = (facts.pid, facts.os_name.as_str(), facts.os_version.as_str());
            match done {
                Ok(old) => Event::rotate_log(about, old.as_deref(), None),
                Err(e) => Event::rotate_log(about, None, Some(&e.to_string())),
            }
        };
        log.rotate(&who, told).map_err(|e| {
            let text = format!("Failed to rotate the audit log: {e}. The old file stays in use");
            Error::new(ErrorCode::FileRenameFailed, text)
        })
    }
}
