//! The server's end of a connection: who speaks first is the client, and its first bytes tell whether it wants TLS.

use crate::certificate;
use crate::loaded::Loaded;
use crate::protocols::Protocol;
use crate::session::Session;
use crate::state::Tls;
use crate::verify::Purpose;
use crate::words;
use pando_base::limits;
use pando_env::tls::{Certificates, First, HandshakeFailed, Peer, Secured, TlsMode, TlsVersion};
use pando_env::{BoxFuture, Stream};
use rustls::pki_types::UnixTime;
use rustls::{Connection, ProtocolVersion, ServerConnection};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

pub(crate) struct Accepted {
    tls: Arc<Tls>,
    state: State,
    peer: String,
    local: String,
    secured: Option<Secured>,
}

enum State {
    /// Nobody knows yet what it speaks.
    Fresh(Box<dyn Stream>),
    /// With what was read to find out.
    Plain(Box<dyn Stream>, Vec<u8>),
    Tls(Box<Session>),
    Failed,
}

impl Accepted {
    pub(crate) fn new(tls: Arc<Tls>, socket: Box<dyn Stream>) -> Accepted {
        let (peer, local) = (socket.peer_addr(), socket.local_addr());
        Accepted { tls, state: State::Fresh(socket), peer, local, secured: None }
    }

    async fn find_out(&mut self) -> io::Result<()> {
        let State::Fresh(mut socket) = std::mem::replace(&mut self.state, State::Failed) else {
            return Ok(());
        };
        let env = self.tls.env.clone();
        let limit = Duration::from_millis(limits::TLS_HANDSHAKE_MS);
        let late = || HandshakeFailed::error("the handshake was not done in time");
        let required = || self.tls.mode() == TlsMode::Require;
        let mut early = Vec::new();
        // A connection that may speak plainly may also be silent for long, as it may without TLS.
        let begun = if required() {
            env.timeout(limit, socket.read(&mut early, limits::TLS_READ_BYTES)).await.ok_or_else(late)??
        } else {
            socket.read(&mut early, limits::TLS_READ_BYTES).await?
        };
        if begun == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let started = env.clock.mono();
        let rest = || limit.saturating_sub(env.clock.mono().saturating_sub(started));
        while First::of(&early) == First::Unknown {
            let reading = socket.read(&mut early, limits::TLS_READ_BYTES);
            if env.timeout(rest(), reading).await.ok_or_else(late)?? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        if First::of(&early) == First::Plain {
            if required() {
                return Err(HandshakeFailed::error("The server is configured to only allow SSL connections"));
            }
            self.state = State::Plain(socket, early);
            return Ok(());
        }
        let loaded = self.tls.current();
        let acceptor = loaded
            .acceptor
            .clone()
            .ok_or_else(|| HandshakeFailed::error("there is no certificate to show"))?;
        let server =
            ServerConnection::new(acceptor).map_err(|e| HandshakeFailed::error(words::of_handshake(&e)))?;
        let mut session = Session::new(socket, Connection::Server(server), early);
        env.timeout(rest(), session.handshake()).await.ok_or_else(late)??;
        self.secured = Some(self.settled(&session, &loaded)?);
        self.state = State::Tls(Box::new(session));
        Ok(())
    }

    /// What the handshake has settled.
    fn settled(&self, session: &Session, loaded: &Loaded) -> io::Result<Secured> {
        let settings = &self.tls.settings;
        let (version, named) = match session.version() {
            Some(ProtocolVersion::TLSv1_2) => (TlsVersion::V1_2, Protocol::V1_2),
            _ => (TlsVersion::V1_3, Protocol::V1_3),
        };
        let server_name = match session.tls() {
            Connection::Server(server) => server.server_name().map(str::to_owned),
            Connection::Client(_) => None,
        };
        let log_version = settings.log_versions.contains(&named);
        Ok(Secured { version, server_name, peer: self.peer_of(session, loaded)?, log_version })
    }
    fn peer_of(&self, session: &Session, loaded: &Loaded) -> io::Result<Peer> {
        let Some(trust) = &loaded.incoming else { return Ok(Peer::NotAsked) };
        let shown = session.tls().peer_certificates().unwrap_or_default();
        let Some((end, between)) = shown.split_first() else { return Ok(Peer::None) };
        if self.tls.settings.allow_invalid_certificates {
            let now = UnixTime::since_unix_epoch(Duration::from_millis(
                u64::try_from(self.tls.env.clock.wall_ms()).unwrap_or_default(),
            ));
            if let Err(e) = trust.check(end, between, now, Purpose::Client) {
                return Ok(Peer::Unproven(words::of_certificate(&e)));
            }
        }
        // Nobody can be told by a name that cannot be read.
        let subject = certificate::subject_of(end);
        let unreadable = || HandshakeFailed::error(words::rejected("the subject cannot be read"));
        subject.map(Peer::Proven).ok_or_else(unreadable)
    }

    async fn established(&mut self) -> io::Result<()> {
        if !matches!(self.state, State::Fresh(_)) {
            return Ok(());
        }
        let done = self.find_out().await;
        if done.as_ref().is_err_and(|e| HandshakeFailed::in_error(e).is_some()) {
            self.tls.failed_in.fetch_add(1, Relaxed);
        }
        done
    }
}

impl Stream for Accepted {
    fn establish(&mut self) -> BoxFuture<'_, io::Result<()>> {
        Box::pin(self.established())
    }
    fn secured(&self) -> Option<&Secured> {
        self.secured.as_ref()
    }
    fn read<'a>(&'a mut self, buf: &'a mut Vec<u8>, max: usize) -> BoxFuture<'a, io::Result<usize>> {
        Box::pin(async move {
            self.established().await?;
            match &mut self.state {
                State::Plain(socket, early) if early.is_empty() => socket.read(buf, max).await,
                State::Plain(_, early) => {
                    let n = early.len().min(max);
                    buf.extend(early.drain(..n));
                    Ok(n)
                }
                State::Tls(session) => session.read(buf, max).await,
                State::Fresh(_) | State::Failed => Err(io::ErrorKind::NotConnected.into()),
            }
        })
    }
    fn write_all<'a>(&'a mut self, bytes: &'a [u8]) -> BoxFuture<'a, io::Result<()>> {
        Box::pin(async move {
            self.established().await?;
            match &mut self.state {
                State::Plain(socket, _) => socket.write_all(bytes).await,
                State::Tls(session) => session.write_all(bytes).await,
                State::Fresh(_) | State::Failed => Err(io::ErrorKind::NotConnected.into()),
            }
        })
    }
    fn closed(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            match &mut self.state {
                State::Plain(socket, early) if early.is_empty() => socket.closed().await,
                State::Tls(session) => session.closed().await,
                State::Plain(..) | State::Fresh(_) => std::future::pending().await,
                State::Failed => {}
            }
        })
    }
    fn peer_addr(&self) -> String {
        self.peer.clone()
    }
    fn local_addr(&self) -> String {
        self.local.clone()
    }
}
