//! A network whose connections speak TLS as the mode says.

use crate::accepted::Accepted;
use crate::session::Session;
use crate::state::Tls;
use crate::words;
use pando_env::tls::{Certificates, HandshakeFailed};
use pando_env::{BoxFuture, Listener, Net, Stream};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, Connection};
use std::io;
use std::net::IpAddr;
use std::sync::Arc;

/// The network below, with TLS on it.
pub struct TlsNet {
    below: Arc<dyn Net>,
    tls: Arc<Tls>,
}

impl TlsNet {
    pub fn new(below: Arc<dyn Net>, tls: Arc<Tls>) -> TlsNet {
        TlsNet { below, tls }
    }
}

impl Net for TlsNet {
    fn listen(&self, addr: String) -> BoxFuture<'static, io::Result<Box<dyn Listener>>> {
        let (listening, tls) = (self.below.listen(addr), self.tls.clone());
        Box::pin(async move {
            let below = listening.await?;
            Ok(Box::new(Door { below, tls }) as Box<dyn Listener>)
        })
    }
    fn connect(&self, addr: String) -> BoxFuture<'static, io::Result<Box<dyn Stream>>> {
        let (connecting, tls) = (self.below.connect(addr.clone()), self.tls.clone());
        Box::pin(async move {
            let socket = connecting.await?;
            if !tls.mode().dials() || addr.starts_with('/') {
                return Ok(socket);
            }
            let dialed = dial(&tls, socket, &addr).await;
            if let Some(why) = dialed.as_ref().err().and_then(HandshakeFailed::in_error) {
                tls.was_refused(&addr, why);
            }
            dialed
        })
    }
    fn resolve(&self, host: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        self.below.resolve(host)
    }
}

/// `host:port` without the port, and an address without its brackets.
fn host_of(addr: &str) -> &str {
    let host = addr.rsplit_once(':').map_or(addr, |(host, _)| host);
    host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host)
}

/// Whoever waits for this bounds it.
async fn dial(tls: &Tls, socket: Box<dyn Stream>, addr: &str) -> io::Result<Box<dyn Stream>> {
    let host = host_of(addr).to_owned();
    let name = ServerName::try_from(host.clone())
        .map_err(|_| HandshakeFailed::error(format!("'{host}' is no name that a certificate could have")))?;
    let client = ClientConnection::new(tls.current().dialer.clone(), name)
        .map_err(|e| HandshakeFailed::error(words::of_handshake(&e)))?;
    let (peer, local) = (socket.peer_addr(), socket.local_addr());
    let mut session = Session::new(socket, Connection::Client(client), Vec::new());
    session.handshake().await?;
    Ok(Box::new(Dialed { session, peer, local }))
}

struct Door {
    below: Box<dyn Listener>,
    tls: Arc<Tls>,
}

impl Listener for Door {
    fn accept(&mut self) -> BoxFuture<'_, io::Result<Box<dyn Stream>>> {
        Box::pin(async move {
            let socket = self.below.accept().await?;
            // The handshake is the connection's own affair: nobody waits here for a slow one.
            Ok(Box::new(Accepted::new(self.tls.clone(), socket)) as Box<dyn Stream>)
        })
    }
    fn local_addr(&self) -> String {
        self.below.local_addr()
    }
}

struct Dialed {
    session: Session,
    peer: String,
    local: String,
}

impl Stream for Dialed {
    fn read<'a>(&'a mut self, buf: &'a mut Vec<u8>, max: usize) -> BoxFuture<'a, io::Result<usize>> {
        Box::pin(self.session.read(buf, max))
    }
    fn write_all<'a>(&'a mut self, bytes: &'a [u8]) -> BoxFuture<'a, io::Result<()>> {
        Box::pin(self.session.write_all(bytes))
    }
    fn closed(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(self.session.closed())
    }
    fn peer_addr(&self) -> String {
        self.peer.clone()
    }
    fn local_addr(&self) -> String {
        self.local.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::host_of;

    #[test]
    fn a_host_is_what_stands_before_the_port() {
        assert_eq!(host_of("a.b:27017"), "a.b");
        assert_eq!(host_of("[::1]:27017"), "::1");
        assert_eq!(host_of("10.0.0.1:1"), "10.0.0.1");
    }
}
