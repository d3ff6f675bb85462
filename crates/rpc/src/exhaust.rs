//! A request whose replies keep coming without further requests.
//!
//! The server may end the stream at any reply (a server that knows no exhaust ends it at the first); the caller
//! then goes on with ordinary calls.

use crate::connection::Connection;
use crate::failure::{Failure, Outcome};
use pando_bson::RawDoc;
use std::time::Duration;

pub struct Exhaust {
    connection: Connection,
    more: bool,
}

impl Exhaust {
    pub(crate) fn new(connection: Connection) -> Exhaust {
        Exhaust { connection, more: true }
    }
    /// Whether another reply will come by itself.
    pub fn is_open(&self) -> bool {
        self.more
    }
    /// The next reply.
    pub async fn next(&mut self, limit: Duration) -> Outcome<&RawDoc> {
        if !self.more {
            return Err(Failure::protocol(self.connection.addr(), "the stream has ended"));
        }
        self.more = false;
        let received = self.connection.receive(limit).await?;
        self.more = received.more_to_come;
        self.connection.reply(received)
    }
    /// Asks again once a stream has ended, on the same connection.
    pub async fn again(&mut self, body: &RawDoc, limit: Duration) -> Outcome<()> {
        if self.more {
            return Err(Failure::protocol(self.connection.addr(), "the stream has not ended"));
        }
        self.connection.send(body, pando_wire::flags::EXHAUST_ALLOWED, limit).await?;
        self.more = true;
        Ok(())
    }
    /// The connection, when the stream has ended.
    pub fn into_connection(self) -> Option<Connection> {
        (!self.more && self.connection.is_usable()).then_some(self.connection)
    }
}
