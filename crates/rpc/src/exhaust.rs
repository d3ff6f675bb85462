//! A request whose replies keep coming without further requests.
//!
//! The server may end the stream at any reply (one that knows no exhaust, or was not allowed any, ends it at the first); the
//! caller then asks again.

use crate::connection::Connection;
use crate::failure::{CallResult, Failure};
use pando_bson::RawDoc;
use std::time::Duration;

pub struct Exhaust {
    connection: Connection,
    bits: u32,
    more: bool,
}

impl Exhaust {
    pub(crate) fn new(connection: Connection, bits: u32) -> Exhaust {
        Exhaust { connection, bits, more: true }
    }
    /// Whether another reply will come by itself.
    pub fn is_open(&self) -> bool {
        self.more
    }
    /// The next reply.
    pub async fn next(&mut self, limit: Duration) -> CallResult<&RawDoc> {
        if !self.more {
            return Err(Failure::protocol(self.connection.addr(), "the stream has ended"));
        }
        self.more = false;
        let received = self.connection.receive(limit).await?;
        self.more = received.more_to_come;
        self.connection.reply(received)
    }
    /// Asks again once a stream has ended, on the same connection.
    pub async fn again(&mut self, body: &RawDoc, limit: Duration) -> CallResult<()> {
        if self.more {
            return Err(Failure::protocol(self.connection.addr(), "the stream has not ended"));
        }
        self.connection.send(body, &[], self.bits, limit).await?;
        self.more = true;
        Ok(())
    }
    /// The connection, when the stream has ended.
    pub fn into_connection(self) -> Option<Connection> {
        (!self.more && self.connection.is_usable()).then_some(self.connection)
    }
}
