//! Byte streams between processes.

use crate::BoxFuture;
use crate::tls::Secured;
use std::io;
use std::net::IpAddr;

pub trait Net: Send + Sync {
    /// `addr` is `host:port` or a Unix socket path starting with `/`; port 0 picks a free one.
    fn listen(&self, addr: String) -> BoxFuture<'static, io::Result<Box<dyn Listener>>>;
    fn connect(&self, addr: String) -> BoxFuture<'static, io::Result<Box<dyn Stream>>>;
    /// The addresses of a host's name. One that is an address already is known without asking anybody.
    fn resolve(&self, host: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let parsed = host.parse().map(|ip| vec![ip]);
        Box::pin(async move { parsed.map_err(|_| io::ErrorKind::NotFound.into()) })
    }
}

pub trait Listener: Send + Sync {
    fn accept(&mut self) -> BoxFuture<'_, io::Result<Box<dyn Stream>>>;
    /// `host:port` really bound.
    fn local_addr(&self) -> String;
}

pub trait Stream: Send {
    /// Reads at least one byte into the spare capacity of `buf` (grown by at most `max`); 0 = peer closed.
    fn read<'a>(&'a mut self, buf: &'a mut Vec<u8>, max: usize) -> BoxFuture<'a, io::Result<usize>>;
    fn write_all<'a>(&'a mut self, bytes: &'a [u8]) -> BoxFuture<'a, io::Result<()>>;
    /// Resolves when the peer has gone; never while it is there or has sent something still unread.
    fn closed(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
    /// What has to happen before the first byte can be read: a handshake, where there is one. It ends in a time of its own.
    fn establish(&mut self) -> BoxFuture<'_, io::Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }
    /// What the handshake settled; `None` on a plain connection.
    fn secured(&self) -> Option<&Secured> {
        None
    }
    fn peer_addr(&self) -> String;
    fn local_addr(&self) -> String;
}
