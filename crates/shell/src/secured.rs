//! What TLS adds to a connection: its handshake before the first message, and what is told of it.

use crate::connection::{Connection, End};
use pando_command::{Node, Param};
use pando_env::Component;
use pando_env::tls::{First, HandshakeFailed, Peer, Secured, TlsVersion};

const REJECTED: &str = "SSL peer certificate validation failed";
const NONE_SHOWN: &str = "no SSL certificate provided by peer; connection rejected";

impl<S: Node> Connection<S> {
    /// Settles what the client speaks, before anything is read of it.
    pub(crate) async fn establish(&mut self) -> Result<(), End> {
        match self.stream.establish().await {
            Ok(()) => {}
            Err(e) => {
                return Err(
                    HandshakeFailed::in_error(&e).map_or(End::Closed, |why| End::Handshake(why.into()))
                );
            }
        }
        match self.stream.secured() {
            Some(secured) => {
                let secured = secured.clone();
                self.count(&secured);
                self.tell(&secured);
                self.client.set_secured(secured);
            }
            None => self.tell_of_plain(),
        }
        Ok(())
    }

    fn count(&self, secured: &Secured) {
        let counts = &self.client.instance.metrics.transport_security;
        match secured.version {
            TlsVersion::V1_2 => counts.v1_2.inc(),
            TlsVersion::V1_3 => counts.v1_3.inc(),
        }
    }
    fn tell(&self, secured: &Secured) {
        let log = &self.client.env.log;
        if secured.log_version {
            log.info(Component::Network, 23218, "Accepted connection with TLS", |a| {
                a.str("tlsVersion", secured.version.name()).str("remoteHost", &self.stream.peer_addr());
            });
        }
        match &secured.peer {
            Peer::None if !self.client.instance.params.bool(Param::suppressNoTLSPeerCertificateWarning) => {
                log.warn(Component::Network, 23234, "No SSL certificate provided by peer", |_| {});
            }
            Peer::Unproven(why) => log.warn(Component::Network, 23235, REJECTED, |a| {
                a.str("reason", why);
            }),
            _ => {}
        }
    }
    fn tell_of_plain(&self) {
        if self.client.instance.params.text(Param::tlsMode) == "preferTLS" {
            let text = "SSL mode is set to 'preferred' and connection to remote is not using SSL.";
            self.client.env.log.info(Component::Network, 23838, text, |a| {
                a.i64("connectionId", self.client.id).str("remote", &self.stream.peer_addr());
            });
        }
    }

    /// A client that wants TLS of a server without it would wait for long: its handshake looks like the beginning of a large
    /// message.
    pub(crate) fn misplaced_handshake(&self) -> Option<End> {
        let text = "SSL handshake received but server is started without SSL support";
        let first = self.has_said_nothing();
        let misplaced = first && self.stream.secured().is_none() && First::of(&self.input) == First::Tls;
        misplaced.then(|| End::Handshake(text.to_owned()))
    }

    pub(crate) fn tell_of_handshake(&self, why: &str) {
        let log = &self.client.env.log;
        if why == NONE_SHOWN {
            let text = "No SSL certificate provided by peer; connection rejected";
            log.error(Component::Network, 23255, text, |_| {});
        } else if why.starts_with(REJECTED) {
            log.error(Component::Network, 23256, REJECTED, |a| {
                a.str("error", why);
            });
        }
        let text = "Error receiving request from client. Ending connection from remote";
        log.info(Component::Network, 22988, text, |a| {
            a.object("error", |e| {
                e.i64("code", 141).str("codeName", "SSLHandshakeFailed").str("errmsg", why);
            });
            a.str("remote", &self.stream.peer_addr()).i64("connectionId", self.client.id);
        });
    }
}
