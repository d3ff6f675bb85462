//! Who caused an event, and from where.

use pando_auth::UserName;
use pando_auth::roles::RoleName;
use pando_base::Uuid;
use pando_bson::{DocBuilder, Value};
use std::net::SocketAddr;

/// One end of a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    Ip(SocketAddr),
    /// The path of a Unix socket.
    Unix(String),
    /// There is no connection: the server does it by itself.
    System,
}

impl Place {
    /// From the address as a stream tells it; what is no address and port is a Unix socket's.
    pub fn of(address: Option<&str>) -> Place {
        match address.map(|text| (text, text.parse())) {
            None => Place::System,
            Some((_, Ok(at))) => Place::Ip(at),
            Some((text, Err(_))) => Place::Unix(text.to_owned()),
        }
    }
    /// As a field of a record.
    pub fn append_to(&self, name: &str, b: &mut DocBuilder) {
        b.doc(name, |d| {
            match self {
                Place::Ip(at) => d.str("ip", &at.ip().to_string()).i32("port", i32::from(at.port())),
                Place::Unix(path) => d.str("unix", path),
                Place::System => d.bool("isSystemUser", true),
            };
        });
    }
}

/// Whoever caused an event.
#[derive(Clone, Debug)]
pub struct Who {
    /// Stays the same as long as its connection does.
    pub connection: Uuid,
    pub local: Place,
    pub remote: Place,
    pub user: Option<UserName>,
    /// The user's roles, with all that they include.
    pub roles: Vec<RoleName>,
}

impl Who {
    /// The server itself.
    pub fn system(process: Uuid) -> Who {
        let (local, remote) = (Place::System, Place::System);
        Who { connection: process, local, remote, user: None, roles: Vec::new() }
    }
    pub(crate) fn append_to(&self, b: &mut DocBuilder) {
        b.uuid("uuid", &self.connection.0);
        self.local.append_to("local", b);
        self.remote.append_to("remote", b);
        append_users(b, "users", self.user.as_ref());
        append_roles(b, "roles", &self.roles);
    }
}

pub(crate) fn append_users<'u>(
    b: &mut DocBuilder,
    name: &str,
    users: impl IntoIterator<Item = &'u UserName>,
) {
    b.array(name, |a| {
        for user in users {
            a.doc(|d| {
                d.str("user", &user.user).str("db", &user.db);
            });
        }
    });
}

pub(crate) fn append_roles<'r>(
    b: &mut DocBuilder,
    name: &str,
    roles: impl IntoIterator<Item = &'r RoleName>,
) {
    b.array(name, |a| {
        for role in roles {
            a.value(Value::Document(&role.document().to_raw()));
        }
    });
}
