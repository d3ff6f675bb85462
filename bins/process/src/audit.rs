//! Opens the audit log, and ends the process when it breaks.

use crate::exit;
use pando_audit::{AuditLog, Filter, Settings};
use pando_base::{Error, ErrorCode, Uuid};
use pando_env::{Component, Env};
use pando_shell::audit;
use pando_shell::options::audit::Audit;
use std::sync::Arc;

/// The audit log that was asked for, if one was.
pub fn open(wanted: Option<&Audit>, env: &Env) -> Result<Option<Arc<AuditLog>>, Error> {
    let Some(wanted) = wanted else { return Ok(None) };
    let sink = audit::open(wanted).map_err(|e| {
        let text = format!("The audit log cannot be opened: {e}");
        Error::new(ErrorCode::FileNotOpen, text)
    })?;
    let filter = wanted.filter.as_deref().map(Filter::parse).transpose()?;
    let settings = Settings { format: wanted.format, filter };
    let mut process = [0; 16];
    env.rng.fill(&mut process);
    let log = env.log.clone();
    let broken = move |e: &std::io::Error| {
        log.fatal(
            Component::Access,
            9_100_074,
            "An event of the audit log could not be written, the process ends",
            |a| {
                a.show("error", e);
            },
        );
        // Nothing may be done that nobody will know of, not even what is left to do in good order.
        std::process::exit(i32::from(exit::ABRUPT));
    };
    let process = Uuid::from_random(process);
    Ok(Some(Arc::new(AuditLog::new(env.clock.clone(), settings, sink, process, broken))))
}
