//! One socket, one request at a time, no driver's opinions.

use pando_bson::{DocBuf, Document, RawDoc};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const OP_MSG: i32 = 2013;
/// A reply may take this long (an index build on a slow machine).
const REPLY_WITHIN: Duration = Duration::from_secs(60);

/// A connection to a server.
pub struct Client {
    sock: TcpStream,
    next_id: i32,
}

impl Client {
    pub fn connect(host_port: &str) -> io::Result<Client> {
        let sock = TcpStream::connect(host_port)?;
        sock.set_nodelay(true)?;
        sock.set_read_timeout(Some(REPLY_WITHIN))?;
        Ok(Client { sock, next_id: 1 })
    }

    /// Sends a command to database `db`; the reply, whatever its `ok`.
    pub fn command(&mut self, db: &str, cmd: &Document) -> io::Result<Document> {
        Ok(Document::from(&*self.run(db, cmd.clone())?))
    }

    /// The same; the reply as it came.
    pub fn run(&mut self, db: &str, mut cmd: Document) -> io::Result<DocBuf> {
        cmd.push("$db", db);
        self.send(&cmd.to_raw())?;
        self.receive()
    }

    fn send(&mut self, body: &RawDoc) -> io::Result<()> {
        let bytes = body.as_bytes();
        let mut out = Vec::with_capacity(bytes.len() + 21);
        for n in [bytes.len() as i32 + 21, self.next_id, 0, OP_MSG, 0] {
            out.extend_from_slice(&n.to_le_bytes());
        }
        out.push(0);
        out.extend_from_slice(bytes);
        self.next_id += 1;
        self.sock.write_all(&out)
    }

    fn receive(&mut self) -> io::Result<DocBuf> {
        let mut head = [0u8; 16];
        self.sock.read_exact(&mut head)?;
        let len = i32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let mut body = vec![0u8; len - 16];
        self.sock.read_exact(&mut body)?;
        let doc = RawDoc::validate(&body[5..]).map_err(|e| io::Error::other(e.message.to_string()))?;
        Ok(doc.to_buf())
    }
}
