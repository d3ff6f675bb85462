//! One connection to another node.
//!
//! A request is a body and, for large lists of documents, sequences beside it, which the peer reads as if they were arrays
//! in the body; a message that the peer would not take is not sent.
//! Replies are validated and then read where they arrived, in the connection's own buffer, until the next call.
//! After a failure other than a command error the stream may hold half a message: the connection is unusable and
//! says so ([`Connection::is_usable`]).

use crate::exhaust::Exhaust;
use crate::failure::{CallResult, Failure};
use crate::gossip::Gossips;
use crate::handshake::{self, Peer};
use crate::login_as::LoginAs;
use pando_base::codes::class;
use pando_base::{ErrorCode, limits};
use pando_bson::{DocBuilder, RawDoc};
use pando_env::{Env, Stream};
use pando_wire::{WireError, flags};
use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

/// How to connect.
#[derive(Clone, Debug)]
pub struct Options {
    /// For the connect and for the handshake, each.
    pub connect_limit: Duration,
    /// How this connection shows in the peer's logs and `currentOp`.
    pub name: &'static str,
    /// As a member of the set. Members say in every command what a client leaves to defaults, and see more of the oplog.
    pub internal: bool,
    pub login: LoginAs,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            connect_limit: Duration::from_millis(limits::RPC_CONNECT_MS),
            name: "PandoDB Internal Client",
            internal: true,
            login: LoginAs::default(),
        }
    }
}

/// A message in the input buffer.
#[derive(Clone, Copy)]
pub(crate) struct Received {
    /// Bytes of the input it takes.
    len: usize,
    pub(crate) more_to_come: bool,
}

pub struct Connection {
    env: Env,
    addr: String,
    stream: Box<dyn Stream>,
    /// Received bytes; the message being read lies at the front.
    input: Vec<u8>,
    /// Length of the message at the front that the next receive drops.
    read: usize,
    out: Vec<u8>,
    next_id: i32,
    usable: bool,
    gossips: Gossips,
    pub peer: Peer,
}

/// Documents beside the body of a request, under the name of the argument that they are.
pub type Sequence<'a> = (&'a str, &'a [&'a RawDoc]);

impl Connection {
    /// Connects and shakes hands.
    pub async fn connect(env: &Env, addr: &str, options: &Options) -> CallResult<Connection> {
        let connecting = env.net.connect(addr.to_owned());
        let stream = match env.timeout(options.connect_limit, connecting).await {
            Some(done) => done.map_err(|e| Failure::io(addr, &e))?,
            None => return Err(Failure::timed_out(addr)),
        };
        let mut c = Connection {
            env: env.clone(),
            addr: addr.to_owned(),
            stream,
            input: Vec::new(),
            read: 0,
            out: Vec::new(),
            next_id: 1,
            usable: true,
            gossips: Gossips::default(),
            peer: Peer::default(),
        };
        c.peer = handshake::run(&mut c, options).await?;
        Ok(c)
    }
    /// From now on requests carry these times.
    pub(crate) fn gossip(&mut self, gossips: &Gossips) {
        self.gossips = gossips.clone();
    }
    pub(crate) fn env(&self) -> &Env {
        &self.env
    }
    pub fn addr(&self) -> &str {
        &self.addr
    }
    /// Whether another call may be made.
    pub fn is_usable(&self) -> bool {
        self.usable
    }

    /// Looks whether the peer has closed it, without waiting. Then no other call may be made.
    pub(crate) async fn is_closed_by_peer(&mut self) -> bool {
        let mut closed = self.stream.closed();
        let look = |cx: &mut Context<'_>| Poll::Ready(closed.as_mut().poll(cx).is_ready());
        let is_closed = poll_fn(look).await;
        drop(closed);
        self.usable &= !is_closed;
        is_closed
    }

    /// Runs a command and returns its reply; `ok: 0` is a failure of kind `Command`.
    pub async fn call(&mut self, body: &RawDoc, limit: Duration) -> CallResult<&RawDoc> {
        self.call_with(body, &[], limit).await
    }
    /// The same with documents beside the body. [`Peer::fitting`] tells how many go into one message.
    pub async fn call_with(
        &mut self,
        body: &RawDoc,
        sequences: &[Sequence<'_>],
        limit: Duration,
    ) -> CallResult<&RawDoc> {
        self.send(body, sequences, 0, limit).await?;
        let received = self.receive(limit).await?;
        if received.more_to_come {
            self.usable = false;
            return Err(Failure::protocol(&self.addr, "a stream of replies nobody asked for"));
        }
        // A process that shuts down answers so on every connection that it has, and the next one at its address makes new ones.
        self.usable &= !self.tells_of_shutdown(received.len);
        self.reply(received)
    }
    /// Runs a command whose replies may keep coming. The connection is busy until the stream has ended.
    pub async fn stream(self, body: &RawDoc, limit: Duration) -> CallResult<Exhaust> {
        self.stream_of(body, flags::EXHAUST_ALLOWED, limit).await
    }
    /// The same one reply at a time: every one has to be asked for.
    pub async fn one_by_one(self, body: &RawDoc, limit: Duration) -> CallResult<Exhaust> {
        self.stream_of(body, 0, limit).await
    }
    async fn stream_of(mut self, body: &RawDoc, bits: u32, limit: Duration) -> CallResult<Exhaust> {
        self.send(body, &[], bits, limit).await?;
        Ok(Exhaust::new(self, bits))
    }

    fn encode(&mut self, id: i32, bits: u32, body: &RawDoc, sequences: &[Sequence<'_>]) {
        self.out.clear();
        if self.gossips.is_empty() {
            return pando_wire::encode_msg(&mut self.out, id, 0, bits, body, sequences);
        }
        let start = pando_wire::open_msg(&mut self.out, id, 0, bits);
        let mut request = DocBuilder::append_to(std::mem::take(&mut self.out));
        self.gossips.append(body, &mut request);
        self.out = request.into_buffer();
        pando_wire::append_sequences(&mut self.out, sequences);
        pando_wire::close_msg(&mut self.out, start);
    }
    pub(crate) async fn send(
        &mut self,
        body: &RawDoc,
        sequences: &[Sequence<'_>],
        bits: u32,
        limit: Duration,
    ) -> CallResult<()> {
        if !self.usable {
            return Err(Failure::protocol(&self.addr, "the connection is broken"));
        }
        let id = self.next_id;
        self.next_id = self.next_id.wrapping_add(1).max(1);
        self.encode(id, bits, body, sequences);
        if self.out.len() > self.peer.message_bytes_max {
            return Err(Failure::too_large(&self.addr, self.out.len(), self.peer.message_bytes_max));
        }
        // Until the reply is there: a call that is dropped half way leaves the connection unusable.
        self.usable = false;
        match self.env.timeout(limit, self.stream.write_all(&self.out)).await {
            Some(done) => done.map_err(|e| Failure::io(&self.addr, &e)),
            None => Err(Failure::timed_out(&self.addr)),
        }
    }

    /// Waits for the next whole message.
    pub(crate) async fn receive(&mut self, limit: Duration) -> CallResult<Received> {
        self.usable = false;
        self.input.drain(..self.read);
        self.read = 0;
        let deadline = self.env.clock.mono() + limit;
        let len = loop {
            let wanted = match pando_wire::message_len(&self.input) {
                Ok(wanted) => wanted,
                Err(_) => return Err(Failure::protocol(&self.addr, "malformed header")),
            };
            match wanted {
                Some(len) if self.input.len() >= len => break len,
                wanted => self.read_some(wanted, deadline).await?,
            }
        };
        let bits = match pando_wire::decode_reply(&self.input[..len]) {
            Ok(m) => m.flags,
            Err(WireError::Close(why)) => return Err(Failure::protocol(&self.addr, why)),
            Err(WireError::Reply(_, e)) => return Err(Failure::protocol(&self.addr, &e.message)),
        };
        self.read = len;
        let more_to_come = bits & flags::MORE_TO_COME != 0;
        self.usable = !more_to_come;
        Ok(Received { len, more_to_come })
    }
    async fn read_some(&mut self, wanted: Option<usize>, deadline: Duration) -> CallResult<()> {
        let have = self.input.len();
        let missing = wanted.map_or(limits::READ_CHUNK_BYTES, |len| len.saturating_sub(have));
        let max = missing.clamp(limits::READ_CHUNK_BYTES, limits::READ_GROWTH_BYTES_MIN.max(have));
        let left = deadline.saturating_sub(self.env.clock.mono());
        match self.env.timeout(left, self.stream.read(&mut self.input, max)).await {
            Some(Ok(0)) => Err(Failure::io(&self.addr, &std::io::ErrorKind::UnexpectedEof.into())),
            Some(Ok(_)) => Ok(()),
            Some(Err(e)) => Err(Failure::io(&self.addr, &e)),
            None => Err(Failure::timed_out(&self.addr)),
        }
    }

    /// The body of a received message, in place, as `receive` has decoded it: one body section behind the header, its flags and its kind.
    fn body(&self, len: usize) -> &RawDoc {
        const BODY_AT: usize = pando_wire::Header::LEN + 4 + 1;
        RawDoc::trusted(self.input.get(BODY_AT..len).unwrap_or_default())
    }
    fn tells_of_shutdown(&self, len: usize) -> bool {
        let code = self.body(len).get("code").and_then(|v| v.as_i64());
        let code = code.and_then(|code| i32::try_from(code).ok());
        code.is_some_and(|code| ErrorCode(code).is(class::SHUTDOWN))
    }
    pub(crate) fn reply(&self, received: Received) -> CallResult<&RawDoc> {
        let body = self.body(received.len);
        self.gossips.hear(body);
        match body.get("ok") {
            Some(ok) if ok.is_truthy() => Ok(body),
            _ => Err(Failure::of_reply(body)),
        }
    }
}
