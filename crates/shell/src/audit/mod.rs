//! Where the records of the audit log go in a real process: a file, the console, syslog.

mod file;
mod syslog;

pub use file::AuditFile;
pub use syslog::Syslog;

use crate::options::audit::{Audit, Destination};
use pando_audit::Sink;
use std::io::{self, Write};

/// Opens what the options name; the error says what could not be opened.
pub fn open(wanted: &Audit) -> io::Result<Box<dyn Sink>> {
    Ok(match &wanted.destination {
        Destination::Console => Box::new(Console),
        Destination::Syslog => Box::new(Syslog::connect(syslog::SOCKET)?),
        Destination::File { path, reopen } => Box::new(AuditFile::open(path, *reopen)?),
    })
}

/// Standard output, where the server's log may go as well.
struct Console;

impl Sink for Console {
    fn write(&mut self, record: &[u8]) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(record)?;
        out.flush()
    }
}
