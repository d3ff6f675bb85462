//! Bytes through rustls: what the socket brings goes in, what comes out is read; what is written goes in, what comes out goes
//! to the socket.
//!
//! A read may be given up half way, as those of the sockets may: what has come stays here. A write may not; the stream is torn
//! then, and every later call says so.

use crate::words;
use pando_base::limits;
use pando_env::Stream;
use pando_env::tls::HandshakeFailed;
use rustls::{Connection, ProtocolVersion};
use std::io::{self, BufRead, Read, Write};

pub(crate) struct Session {
    socket: Box<dyn Stream>,
    tls: Connection,
    /// From the socket; what lies before `taken` is in `tls`.
    incoming: Vec<u8>,
    taken: usize,
    outgoing: Vec<u8>,
    torn: bool,
    /// The peer has said something: it has accepted what the handshake settled.
    heard: bool,
}

impl Session {
    /// `incoming` has been read already.
    pub(crate) fn new(socket: Box<dyn Stream>, tls: Connection, incoming: Vec<u8>) -> Session {
        Session { socket, tls, incoming, taken: 0, outgoing: Vec::new(), torn: false, heard: false }
    }
    pub(crate) fn tls(&self) -> &Connection {
        &self.tls
    }
    pub(crate) fn version(&self) -> Option<ProtocolVersion> {
        self.tls.protocol_version()
    }

    pub(crate) async fn handshake(&mut self) -> io::Result<()> {
        loop {
            self.flush().await?;
            if !self.tls.is_handshaking() {
                return Ok(());
            }
            if !self.more().await? {
                return Err(HandshakeFailed::error("the connection was closed during the handshake"));
            }
        }
    }

    pub(crate) async fn read(&mut self, buf: &mut Vec<u8>, max: usize) -> io::Result<usize> {
        loop {
            let (n, ended) = self.plain(buf, max)?;
            if n > 0 || ended {
                return Ok(n);
            }
            if !self.more().await? {
                return Ok(0);
            }
        }
    }

    pub(crate) async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        for chunk in bytes.chunks(limits::TLS_CHUNK_BYTES) {
            self.tls.writer().write_all(chunk)?;
            self.flush().await?;
        }
        Ok(())
    }

    /// Resolves when the peer has gone. What it has sent instead stays to be read.
    pub(crate) async fn closed(&mut self) {
        loop {
            match self.tls.reader().fill_buf() {
                Ok([]) => return,
                Ok(_) => return std::future::pending().await,
                Err(_) => {}
            }
            if !matches!(self.more().await, Ok(true)) {
                return;
            }
        }
    }

    /// Decrypted bytes that are there, and whether the peer has said that it is done.
    fn plain(&mut self, buf: &mut Vec<u8>, max: usize) -> io::Result<(usize, bool)> {
        let mut n = 0;
        let mut reader = self.tls.reader();
        while n < max {
            match reader.fill_buf() {
                Ok([]) => return Ok((n, true)),
                Ok(bytes) => {
                    let take = bytes.len().min(max - n);
                    buf.extend_from_slice(&bytes[..take]);
                    reader.consume(take);
                    n += take;
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                // Cut off without a word: whoever reads sees that a message is missing its end.
                Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok((n, true)),
                Err(e) => return Err(e),
            }
        }
        self.heard |= n > 0;
        Ok((n, false))
    }

    /// Takes what has come one step further; waits for something to come if there is nothing. `false` at the end.
    async fn more(&mut self) -> io::Result<bool> {
        if self.taken == self.incoming.len() {
            self.incoming.clear();
            self.taken = 0;
            if self.incoming.capacity() > limits::TLS_CHUNK_BYTES {
                self.incoming = Vec::new();
            }
            if self.socket.read(&mut self.incoming, limits::TLS_READ_BYTES).await? == 0 {
                return Ok(false);
            }
        }
        let mut rest = &self.incoming[self.taken..];
        let before = rest.len();
        while !rest.is_empty() {
            // As much as it takes before what it has decrypted wants to be read.
            match self.tls.read_tls(&mut rest as &mut dyn Read) {
                Ok(0) => break,
                Ok(_) => {}
                Err(_) => break,
            }
            let state = match self.tls.process_new_packets() {
                Ok(state) => state,
                Err(e) => {
                    // The peer is told why, as far as it still listens.
                    let _ = self.flush().await;
                    return Err(self.failure(&e));
                }
            };
            if state.plaintext_bytes_to_read() > 0 || state.peer_has_closed() {
                break;
            }
        }
        let took = before - rest.len();
        self.taken += took;
        self.flush().await?;
        Ok(took > 0)
    }

    /// What breaks before the peer has said a word is about the handshake: with TLS 1.3 the other end may refuse a certificate
    /// after this end was done.
    fn failure(&self, e: &rustls::Error) -> io::Error {
        let text = words::of_handshake(e);
        if self.heard {
            io::Error::new(io::ErrorKind::ConnectionReset, text)
        } else {
            HandshakeFailed::error(text)
        }
    }

    async fn flush(&mut self) -> io::Result<()> {
        if self.torn {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        while self.tls.wants_write() {
            self.tls.write_tls(&mut self.outgoing as &mut dyn Write)?;
        }
        if self.outgoing.is_empty() {
            return Ok(());
        }
        self.torn = true;
        let done = self.socket.write_all(&self.outgoing).await;
        self.torn = done.is_err();
        self.outgoing.clear();
        done
    }
}
