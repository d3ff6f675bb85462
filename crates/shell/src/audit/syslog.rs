//! The machine's syslog, by the socket that its daemon reads: one datagram a record.
//!
//! A datagram that is longer than the daemon takes is cut, as MongoDB's documentation warns: whoever needs every byte writes to a file.

use pando_audit::Sink;
use pando_base::limits::SYSLOG_RECORD_BYTES_MAX;
use std::io::{self, ErrorKind};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

/// Where syslog daemons listen.
pub(super) const SOCKET: &str = "/dev/log";
/// Facility "user", severity "informational" (RFC 3164).
const PRIORITY: u32 = 8 + 6;

/// `--auditDestination syslog`.
pub struct Syslog {
    path: PathBuf,
    socket: UnixDatagram,
    head: String,
}

impl Syslog {
    pub fn connect(path: impl AsRef<Path>) -> io::Result<Syslog> {
        let path = path.as_ref().to_owned();
        let head = format!("<{PRIORITY}>pandod[{}]: ", std::process::id());
        Ok(Syslog { socket: connect(&path)?, path, head })
    }
    fn send(&self, message: &[u8]) -> io::Result<()> {
        self.socket.send(message).map(drop)
    }
}

fn connect(path: &Path) -> io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    let in_words = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", path.display()));
    socket.connect(path).map_err(in_words)?;
    Ok(socket)
}

impl Sink for Syslog {
    fn write(&mut self, record: &[u8]) -> io::Result<()> {
        let record = record.strip_suffix(b"\n").unwrap_or(record);
        let mut message = self.head.clone().into_bytes();
        message.extend_from_slice(&record[..record.len().min(SYSLOG_RECORD_BYTES_MAX)]);
        match self.send(&message) {
            // The daemon has started again.
            Err(e)
                if matches!(
                    e.kind(),
                    ErrorKind::ConnectionRefused | ErrorKind::NotConnected | ErrorKind::ConnectionReset
                ) =>
            {
                self.socket = connect(&self.path)?;
                self.send(&message)
            }
            done => done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_a_message_also_to_a_daemon_that_started_again() {
        let path = std::env::temp_dir().join(format!("pando-syslog-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        assert!(Syslog::connect(&path).err().unwrap().to_string().contains("pando-syslog"));
        let read = |from: &UnixDatagram| {
            let mut buf = vec![0; 1 << 20];
            let n = from.recv(&mut buf).unwrap();
            String::from_utf8_lossy(&buf[..n]).into_owned()
        };
        let daemon = UnixDatagram::bind(&path).unwrap();
        let mut sink = Syslog::connect(&path).unwrap();
        sink.write(b"{\"atype\":\"startup\"}\n").unwrap();
        let me = std::process::id();
        assert_eq!(read(&daemon), format!("<14>pandod[{me}]: {{\"atype\":\"startup\"}}"));
        drop(daemon);
        std::fs::remove_file(&path).unwrap();
        assert!(sink.write(b"lost?").is_err());
        let daemon = UnixDatagram::bind(&path).unwrap();
        sink.write(&vec![b'x'; 2 * SYSLOG_RECORD_BYTES_MAX]).unwrap();
        assert!(read(&daemon).len() < SYSLOG_RECORD_BYTES_MAX + 100);
        std::fs::remove_file(&path).unwrap();
    }
}
