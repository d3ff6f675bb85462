//! A connection on which requests run ahead of their replies: a thread writes, the caller reads.

use pando_bson::{DocBuf, Document, RawDoc};
use std::io::{self, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

const OP_MSG: i32 = 2013;
/// Longer than any command may take; a reply that does not come is a hang.
const PATIENCE: Duration = Duration::from_secs(30);

pub struct Wire {
    requests: Sender<Vec<u8>>,
    replies: BufReader<TcpStream>,
    next_id: i32,
    last_reply: Instant,
}

/// A reply, and how long the server had for it.
pub struct Reply {
    pub body: DocBuf,
    pub took: Duration,
}

fn write_all(mut sock: TcpStream, requests: Receiver<Vec<u8>>) {
    for bytes in requests {
        if sock.write_all(&bytes).is_err() {
            return;
        }
    }
}

/// Appends one message.
fn push_message(out: &mut Vec<u8>, id: i32, db: &str, cmd: &Document) {
    let mut cmd = cmd.clone();
    cmd.push("$db", db);
    let body = cmd.to_raw();
    let bytes = body.as_bytes();
    for n in [bytes.len() as i32 + 21, id, 0, OP_MSG, 0] {
        out.extend_from_slice(&n.to_le_bytes());
    }
    out.push(0);
    out.extend_from_slice(bytes);
}

impl Wire {
    pub fn connect(host_port: &str) -> io::Result<Wire> {
        let to = host_port.to_socket_addrs()?.next().ok_or_else(|| io::Error::other("no such address"))?;
        let sock = TcpStream::connect_timeout(&to, Duration::from_secs(5))?;
        sock.set_nodelay(true)?;
        sock.set_read_timeout(Some(PATIENCE))?;
        let (requests, written) = channel();
        let writer = sock.try_clone()?;
        std::thread::spawn(move || write_all(writer, written));
        Ok(Wire {
            requests,
            replies: BufReader::with_capacity(1 << 16, sock),
            next_id: 0,
            last_reply: Instant::now(),
        })
    }

    /// Sends commands without waiting; as many replies will come.
    pub fn send<'a>(&mut self, calls: impl Iterator<Item = (&'a str, &'a Document)>) {
        let mut out = Vec::new();
        for (db, cmd) in calls {
            self.next_id += 1;
            push_message(&mut out, self.next_id, db, cmd);
        }
        let _ = self.requests.send(out);
    }

    /// The next reply.
    pub fn receive(&mut self) -> io::Result<Reply> {
        if self.replies.buffer().is_empty() {
            self.last_reply = self.last_reply.max(Instant::now() - PATIENCE);
        }
        let mut head = [0; 16];
        self.replies.read_exact(&mut head)?;
        let len = i32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        if !(26..=64 << 20).contains(&len) {
            return Err(io::Error::other(format!("a reply of {len} bytes")));
        }
        let mut body = vec![0; len - 16];
        self.replies.read_exact(&mut body)?;
        let now = Instant::now();
        let took = now - self.last_reply;
        self.last_reply = now;
        if body[4] != 0 {
            return Err(io::Error::other("the reply is no body section"));
        }
        let doc = RawDoc::validate(&body[5..])
            .map_err(|e| io::Error::other(format!("the reply: {}", e.message)))?;
        Ok(Reply { body: doc.to_buf(), took })
    }

    /// What follows is measured from now.
    pub fn restart_clock(&mut self) {
        self.last_reply = Instant::now();
    }

    /// One command and its reply.
    pub fn run(&mut self, db: &str, cmd: &Document) -> io::Result<Document> {
        self.restart_clock();
        self.send([(db, cmd)].into_iter());
        Ok(Document::from(&*self.receive()?.body))
    }
}
