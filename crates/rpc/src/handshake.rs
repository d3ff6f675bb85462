//! The first exchange on a connection: `hello` as a server says it to another.

use crate::connection::{Connection, Options};
use crate::failure::{CallResult, Failure};
use crate::login::Login;
use pando_base::limits;
use pando_bson::{DocBuf, DocBuilder, RawDoc};

/// Wire versions that this build speaks as an internal client.
const WIRE_VERSIONS: (i32, i32) = (0, 21);

/// What the other side said of itself.
#[derive(Clone, Debug)]
pub struct Peer {
    pub set_name: Option<String>,
    pub max_wire_version: i64,
    pub is_primary: bool,
    pub is_secondary: bool,
    /// The largest message it takes.
    pub message_bytes_max: usize,
    /// The most writes it takes in one command.
    pub batch_writes_max: usize,
}

impl Default for Peer {
    fn default() -> Peer {
        Peer {
            set_name: None,
            max_wire_version: 0,
            is_primary: false,
            is_secondary: false,
            message_bytes_max: limits::WIRE_MESSAGE_BYTES_MAX,
            batch_writes_max: limits::WRITE_BATCH_OPS_MAX,
        }
    }
}

impl Peer {
    /// How many of `docs`, from the front, go into one write command as a sequence: one at least, if there is one.
    pub fn fitting(&self, docs: &[&RawDoc]) -> usize {
        let room = self.message_bytes_max.saturating_sub(limits::RPC_BODY_BYTES_MAX);
        let mut bytes = 0;
        let fits = |doc: &&&RawDoc| {
            bytes += doc.byte_len();
            bytes <= room
        };
        let n = docs.iter().take(self.batch_writes_max).take_while(fits).count();
        n.max(1).min(docs.len())
    }
}

fn hello(options: &Options, login: Option<&Login>) -> DocBuf {
    let mut b = DocBuilder::new();
    b.i32("hello", 1);
    b.doc("client", |c| {
        c.doc("driver", |d| {
            d.str("name", options.name).str("version", env!("CARGO_PKG_VERSION"));
        });
        c.doc("os", |o| {
            o.str("type", std::env::consts::OS);
        });
    });
    if options.internal {
        b.doc("internalClient", |c| {
            c.i32("minWireVersion", WIRE_VERSIONS.0).i32("maxWireVersion", WIRE_VERSIONS.1);
        });
        // A node's connections outlive changes of role at the other end.
        b.bool("hangUpOnStepDown", false);
    }
    if let Some(user) = login.and_then(Login::user_to_look_up) {
        b.str("saslSupportedMechs", &user);
    }
    if let Some(login) = login {
        b.doc("speculativeAuthenticate", |s| login.start(s, "db"));
    }
    b.str("$db", "admin");
    b.finish()
}

pub(crate) async fn run(c: &mut Connection, options: &Options) -> CallResult<Peer> {
    let mut login = Login::begin(c.env(), &options.login);
    let reply = c.call(&hello(options, login.as_ref()), options.connect_limit).await?;
    let challenge = reply.get("speculativeAuthenticate").and_then(|v| v.as_doc()).map(RawDoc::to_buf);
    let known = login.as_ref().and_then(|login| login.other_mechanism(reply));
    let peer = peer_of(reply);
    let min = reply.get("minWireVersion").and_then(|v| v.as_i64()).unwrap_or(0);
    if min > i64::from(WIRE_VERSIONS.1) {
        let what = "its oldest wire version is newer than the newest spoken here";
        return Err(Failure::protocol(c.addr(), what));
    }
    match (&mut login, known) {
        (None, _) => {}
        (Some(login), None) => login.run(c, challenge, options.connect_limit).await?,
        (Some(login), Some(mechanism)) => {
            login.begin_anew(c.env(), mechanism);
            login.run(c, None, options.connect_limit).await?;
        }
    }
    Ok(peer)
}

fn peer_of(reply: &RawDoc) -> Peer {
    let truthy = |field: &str| reply.get(field).is_some_and(|v| v.is_truthy());
    let size = |field: &str| reply.get(field).and_then(|v| v.as_i64()).and_then(|n| usize::try_from(n).ok());
    let ours = Peer::default();
    Peer {
        set_name: reply.get("setName").and_then(|v| v.as_str()).map(str::to_owned),
        max_wire_version: reply.get("maxWireVersion").and_then(|v| v.as_i64()).unwrap_or(0),
        is_primary: truthy("isWritablePrimary"),
        is_secondary: truthy("secondary"),
        message_bytes_max: size("maxMessageSizeBytes")
            .map_or(ours.message_bytes_max, |n| n.min(ours.message_bytes_max)),
        batch_writes_max: size("maxWriteBatchSize")
            .map_or(ours.batch_writes_max, |n| n.min(ours.batch_writes_max)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_bson::doc;

    #[test]
    fn as_many_documents_go_into_one_message_as_the_peer_takes() {
        let doc = doc! { "pad": "x".repeat(1000) }.to_raw();
        let docs: Vec<&RawDoc> = vec![&doc; 10];
        let room = |docs: usize| limits::RPC_BODY_BYTES_MAX + docs * doc.byte_len();
        let peer = |message_bytes_max, batch_writes_max| Peer {
            message_bytes_max,
            batch_writes_max,
            ..Peer::default()
        };
        assert_eq!(peer(room(10), 100).fitting(&docs), 10);
        assert_eq!(peer(room(10) - 1, 100).fitting(&docs), 9);
        assert_eq!(peer(room(10), 4).fitting(&docs), 4);
        assert_eq!(peer(0, 100).fitting(&docs), 1, "the peer says what it thinks of that one");
        assert_eq!(peer(0, 100).fitting(&[]), 0);
    }
}
