//! A new file of the audit log.

use pando_audit::{Event, Who};
use pando_base::{Error, ErrorCode, Result};
use pando_command::Instance;
use pando_env::Host;
use std::io;
use std::path::PathBuf;

/// Begins a new file; nothing where there is no audit log. 37 when the old one stays in use.
pub fn rotate(instance: &Instance, host: &dyn Host) -> Result<()> {
    let Some(log) = instance.audit() else { return Ok(()) };
    let who: Who = log.originator();
    let facts = host.facts();
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
