//! The first exchange on a connection: `hello` as a server says it to another.

use crate::connection::{Connection, Options};
use crate::failure::{Failure, Outcome};
use pando_bson::{DocBuf, DocBuilder};

/// Wire versions that this build speaks as an internal client.
const WIRE_VERSIONS: (i32, i32) = (0, 21);

/// What the other side said of itself.
#[derive(Clone, Debug, Default)]
pub struct Peer {
    pub set_name: Option<String>,
    pub max_wire_version: i64,
    pub is_primary: bool,
    pub is_secondary: bool,
}

fn hello(options: &Options) -> DocBuf {
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
    b.str("$db", "admin");
    b.finish()
}

pub(crate) async fn run(c: &mut Connection, options: &Options) -> Outcome<Peer> {
    let reply = c.call(&hello(options), options.connect_limit).await?;
    let truthy = |field: &str| reply.get(field).is_some_and(|v| v.is_truthy());
    let peer = Peer {
        set_name: reply.get("setName").and_then(|v| v.as_str()).map(str::to_owned),
        max_wire_version: reply.get("maxWireVersion").and_then(|v| v.as_i64()).unwrap_or(0),
        is_primary: truthy("isWritablePrimary"),
        is_secondary: truthy("secondary"),
    };
    let min = reply.get("minWireVersion").and_then(|v| v.as_i64()).unwrap_or(0);
    if min > i64::from(WIRE_VERSIONS.1) {
        let what = "its oldest wire version is newer than the newest spoken here";
        return Err(Failure::protocol(c.addr(), what));
    }
    Ok(peer)
}
