//! The life of one connection: read a message, run it, write the reply, again.
//!
//! One task per connection, and the command runs inline in it. The read buffer grows with the bytes that
//! arrive, never with the length a message claims; a buffer that a large message left behind is given back
//! when the connection falls idle. A reply is one write: handlers leave room for the header in front of the
//! document ([`HEADROOM`](pando_command::reply::HEADROOM)).

use crate::counts::{Streaming, count_packed, count_request};
use pando_base::{ErrorCode, limits};
use pando_bson::RawDoc;
use pando_command::pipeline::{self, Answer, Incoming};
use pando_command::reply::{Encoded, HEADROOM, error_reply};
use pando_command::unfinished::Room;
use pando_command::{Client, Next, Node, Registry, Sequence};
use pando_env::{Component, Stream};
use pando_wire::{Compressors, Envelope, Frame, Scratch, Style, WireError};
use std::future::Future;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// What connections serve: a role and its table of commands.
pub struct Service<S: 'static> {
    pub node: Arc<S>,
    registry: fn(&S) -> &Registry<S>,
}

impl<S> Service<S> {
    pub fn new(node: Arc<S>, registry: fn(&S) -> &Registry<S>) -> Service<S> {
        Service { node, registry }
    }
    fn registry(&self) -> &Registry<S> {
        (self.registry)(&self.node)
    }
}

impl<S> Clone for Service<S> {
    fn clone(&self) -> Self {
        Service { node: self.node.clone(), registry: self.registry }
    }
}

/// Serves one client until it leaves, misbehaves, or a reply cannot be written.
pub async fn serve<S: Node>(service: Service<S>, stream: Box<dyn Stream>) {
    serve_from(service, stream, Vec::new()).await;
}

/// The same where something has been read already.
pub(crate) async fn serve_from<S: Node>(service: Service<S>, stream: Box<dyn Stream>, input: Vec<u8>) {
    let instance = service.node.instance().clone();
    let client = instance.connection(stream.peer_addr(), stream.local_addr());
    let guard = Registered::new(client.clone());
    let mut c = Connection {
        service,
        client,
        stream,
        input,
        arriving: None,
        unpack: Scratch::new(),
        out: Output { pack: Scratch::new(), head: Vec::new(), next_id: 1 },
    };
    let end = match c.establish().await {
        Ok(()) => c.run().await,
        Err(end) => end,
    };
    if let End::Handshake(why) = &end {
        c.tell_of_handshake(why);
    }
    if let End::Refused(why) = end {
        c.client.env.log.info(
            Component::Network,
            22988,
            "Error receiving request from client. Ending connection from remote",
            |a| {
                a.str("error", why).str("remote", &c.stream.peer_addr()).i64("connectionId", c.client.id);
            },
        );
    }
    drop(guard);
}

/// Why a connection ended.
pub(crate) enum End {
    /// The client closed it, or the network did.
    Closed,
    /// The bytes could not be trusted.
    Refused(&'static str),
    /// TLS could not be settled.
    Handshake(String),
}

pub(crate) struct Connection<S: 'static> {
    service: Service<S>,
    pub(crate) client: Arc<Client>,
    pub(crate) stream: Box<dyn Stream>,
    /// Received, not yet served.
    pub(crate) input: Vec<u8>,
    /// The message that has begun and is not complete.
    arriving: Option<Arriving>,
    unpack: Scratch,
    out: Output,
}

struct Arriving {
    since: Duration,
    /// For all of it, once it has outgrown what each connection may hold.
    room: Option<Room>,
}

/// Everything a reply needs.
struct Output {
    pack: Scratch,
    head: Vec<u8>,
    next_id: i32,
}

impl<S: Node> Connection<S> {
    async fn run(&mut self) -> End {
        loop {
            if let Some(end) = self.misplaced_handshake() {
                return end;
            }
            match pando_wire::message_len(&self.input) {
                Ok(Some(len)) if self.input.len() >= len => {
                    // It has its room no longer: it is complete.
                    self.arriving = None;
                    if let Err(end) = self.one(len).await {
                        return end;
                    }
                    self.input.drain(..len);
                }
                Ok(wanted) => {
                    if let Err(end) = self.receive(wanted).await {
                        return end;
                    }
                }
                Err(WireError::Close(why)) => return End::Refused(why),
                Err(WireError::Reply(..)) => return End::Refused("malformed header"),
            }
        }
    }

    pub(crate) fn has_said_nothing(&self) -> bool {
        self.out.next_id == 1
    }

    /// Reads more of a message of `wanted` bytes (unknown before its header is there).
    async fn receive(&mut self, wanted: Option<usize>) -> Result<(), End> {
        if !self.input.is_empty() {
            return self.receive_rest(wanted).await;
        }
        let missing = wanted.unwrap_or(limits::READ_CHUNK_BYTES);
        let max = missing.clamp(limits::READ_CHUNK_BYTES, limits::READ_GROWTH_BYTES_MIN);
        let large = self.input.capacity() > limits::IDLE_BUFFER_BYTES_MAX;
        let env = &self.client.env;
        let read = if large {
            let pause = Duration::from_millis(limits::IDLE_BUFFER_MS);
            match env.timeout(pause, self.stream.read(&mut self.input, max)).await {
                Some(read) => read,
                None => {
                    self.input = Vec::new();
                    self.unpack.release();
                    self.out.pack.release();
                    self.stream.read(&mut self.input, max).await
                }
            }
        } else {
            self.stream.read(&mut self.input, max).await
        };
        self.took(read)
    }
    fn took(&self, read: std::io::Result<usize>) -> Result<(), End> {
        match read {
            Ok(0) | Err(_) => Err(End::Closed),
            Ok(n) => {
                self.client.instance.metrics.network.physical_bytes_in.add(n as u64);
                Ok(())
            }
        }
    }

    /// A message has begun: its bytes may not stay away for long, and a long one waits for room.
    async fn receive_rest(&mut self, wanted: Option<usize>) -> Result<(), End> {
        const LATE: End = End::Refused("a message was begun and did not arrive in time");
        let have = self.input.len();
        let env = self.client.env.clone();
        let now = env.clock.mono();
        let arriving = self.arriving.get_or_insert(Arriving { since: now, room: None });
        let pause = Duration::from_millis(limits::MESSAGE_PAUSE_MS_MAX);
        let whole = wanted.unwrap_or(limits::READ_CHUNK_BYTES);
        let share = Duration::from_secs((whole / limits::MESSAGE_BYTES_PER_SEC_MIN) as u64);
        let left = (arriving.since + pause + share).saturating_sub(now).min(pause);
        if have > limits::UNFINISHED_FREE_BYTES && arriving.room.is_none() {
            let waiting = self.client.instance.unfinished.take(whole);
            arriving.room = Some(env.timeout(left, waiting).await.ok_or(LATE)?);
            // The wait was not the sender's.
            arriving.since = env.clock.mono();
        }
        let missing = whole.saturating_sub(have);
        // At most doubles what has really arrived, above a floor that costs nothing.
        let max = missing.clamp(limits::READ_CHUNK_BYTES, limits::READ_GROWTH_BYTES_MIN.max(have));
        let read = env.timeout(left, self.stream.read(&mut self.input, max)).await.ok_or(LATE)?;
        self.took(read)
    }

    // tour: insert 1/9
    // tour: find 1/9
    /// Serves the message in the first `len` bytes of the input.
    async fn one(&mut self, len: usize) -> Result<(), End> {
        let allowed: Compressors = self.client.compressors();
        let decoded = pando_wire::decode(&self.input[..len], allowed, &mut self.unpack);
        count_request(&self.client.instance.metrics, len, &decoded);
        let (frame, envelope) = match decoded {
            Ok(Some(decoded)) => decoded,
            Ok(None) => return Err(End::Refused("incomplete message")),
            Err(WireError::Close(why)) => return Err(End::Refused(why)),
            Err(WireError::Reply(envelope, e)) => {
                if !envelope.wants_reply() {
                    return Ok(());
                }
                let reply = match envelope.style {
                    Style::QueryFailure => {
                        Encoded::copy_of(&pando_wire::encode_error_body(envelope.style, &e))
                    }
                    _ => error_reply(&e),
                };
                self.out.send(&mut self.stream, &self.client, &envelope, reply, false, None).await?;
                return if e.code.is(pando_base::codes::class::CLOSES) { Err(End::Closed) } else { Ok(()) };
            }
        };
        let mut few = [Sequence { name: "", bytes: &[] }; 2];
        let mut many = Vec::new();
        let msg = incoming(&frame, &envelope, &mut few, &mut many);
        let running = pipeline::run(self.service.registry(), &*self.service.node, &self.client, msg);
        let outcome = attended(running, &mut self.stream, &self.client).await;
        answer(&self.service, &self.client, &mut self.stream, &mut self.out, &envelope, msg, outcome).await
    }
}

/// The pipeline's view of a frame. Sequences are rarely more than one: they need no allocation.
fn incoming<'a>(
    frame: &Frame<'a>,
    envelope: &Envelope,
    few: &'a mut [Sequence<'a>; 2],
    many: &'a mut Vec<Sequence<'a>>,
) -> Incoming<'a> {
    match frame {
        Frame::Msg(m) => {
            let view = |s: &pando_wire::Sequence<'a>| Sequence { name: s.name, bytes: s.bytes() };
            let sequences: &[Sequence<'a>] = if m.sequences.len() <= few.len() {
                for (slot, s) in few.iter_mut().zip(&m.sequences) {
                    *slot = view(s);
                }
                &few[..m.sequences.len()]
            } else {
                many.extend(m.sequences.iter().map(view));
                many
            };
            Incoming { body: m.body, sequences, exhaust_allowed: envelope.exhaust_allowed(), legacy_db: None }
        }
        Frame::Query(q) => {
            Incoming { body: q.command, sequences: &[], exhaust_allowed: false, legacy_db: Some(q.db) }
        }
    }
}

/// Runs an operation; if it has to wait and its client goes away meanwhile, it is interrupted (279), unless it
/// is a write.
async fn attended(
    running: impl Future<Output = Answer>,
    stream: &mut Box<dyn Stream>,
    client: &Client,
) -> Answer {
    let mut running = std::pin::pin!(running);
    // Most operations never wait: this body starts, and watches the socket, only if it is polled.
    let mut gone = std::pin::pin!(async { stream.closed().await });
    let mut left = false;
    std::future::poll_fn(|cx| {
        if let Poll::Ready(outcome) = running.as_mut().poll(cx) {
            return Poll::Ready(outcome);
        }
        if !left && gone.as_mut().poll(cx).is_ready() {
            left = true;
            client.kill_op(ErrorCode::ClientDisconnect, |op| !op.is_write);
        }
        Poll::Pending
    })
    .await
}

/// Sends the reply; for an exhaust stream, keeps producing replies until it ends.
async fn answer<S: Node>(
    service: &Service<S>,
    client: &Arc<Client>,
    stream: &mut Box<dyn Stream>,
    out: &mut Output,
    envelope: &Envelope,
    msg: Incoming<'_>,
    mut outcome: Answer,
) -> Result<(), End> {
    if !envelope.wants_reply() {
        return if outcome.close { Err(End::Closed) } else { Ok(()) };
    }
    let mut response_to = None;
    let mut streaming = None;
    loop {
        if outcome.close {
            return Err(End::Closed);
        }
        let next = outcome.next.take().filter(|_| msg.exhaust_allowed);
        if next.is_some() && streaming.is_none() {
            streaming = Streaming::begin(&client.instance.metrics.connections, msg.body);
        }
        let id = out.send(stream, client, envelope, outcome.reply, next.is_some(), response_to).await?;
        if outcome.close_after {
            return Err(End::Closed);
        }
        let body = match &next {
            None => return Ok(()),
            Some(Next::Again) => msg.body,
            Some(Next::With(body)) => body,
        };
        response_to = Some(id);
        let again = Incoming { body, ..msg };
        let running = pipeline::run(service.registry(), &*service.node, client, again);
        outcome = attended(running, stream, client).await;
    }
}

impl Output {
    /// Writes one reply; returns its request id, which the next reply of a stream answers.
    async fn send(
        &mut self,
        stream: &mut Box<dyn Stream>,
        client: &Client,
        envelope: &Envelope,
        reply: Encoded,
        more_to_come: bool,
        response_to: Option<i32>,
    ) -> Result<i32, End> {
        let id = self.next_id;
        self.next_id = self.next_id.wrapping_add(1).max(1);
        let response_to = response_to.unwrap_or(envelope.request_id);
        let network = &client.instance.metrics.network;
        network.bytes_out.add(reply.buf.len() as u64);
        let bytes = if envelope.style == Style::Msg && envelope.compressor.is_none() {
            let mut buf = reply.buf;
            let sum = envelope.flags & pando_wire::flags::CHECKSUM_PRESENT;
            let more = if more_to_come { pando_wire::flags::MORE_TO_COME } else { 0 };
            self.head.clear();
            pando_wire::open_msg(&mut self.head, id, response_to, sum | more);
            match buf.first_chunk_mut::<HEADROOM>() {
                Some(front) if self.head.len() == HEADROOM => front.copy_from_slice(&self.head),
                _ => return Err(End::Closed),
            }
            pando_wire::close_msg(&mut buf, 0);
            buf
        } else {
            let mut buf = Vec::with_capacity(reply.buf.len() + 64);
            let doc: &RawDoc = reply.doc();
            let pack = &mut self.pack;
            let packed =
                pando_wire::encode_reply(&mut buf, envelope, id, response_to, more_to_come, doc, pack);
            count_packed(&client.instance.metrics, envelope, packed);
            buf
        };
        network.physical_bytes_out.add(bytes.len() as u64);
        match stream.write_all(&bytes).await {
            Ok(()) => Ok(id),
            Err(_) => Err(End::Closed),
        }
    }
}

/// Counts a connection while it lives, also when its task is dropped or panics.
struct Registered {
    client: Arc<Client>,
}

impl Registered {
    fn new(client: Arc<Client>) -> Registered {
        let counts = &client.instance.metrics.connections;
        counts.current.add(1);
        counts.total_created.inc();
        if !client.instance.params.bool(pando_command::Param::quiet) {
            client.env.log.named("listener").info(Component::Network, 22943, "Connection accepted", |a| {
                a.str("remote", client.remote.as_deref().unwrap_or(""))
                    .i64("connectionId", client.id)
                    .i64("connectionCount", counts.current.get());
            });
        }
        Registered { client }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.client.left();
        let counts = &self.client.instance.metrics.connections;
        counts.current.add(-1);
        self.client.instance.clients.remove(self.client.id);
        if !self.client.instance.params.bool(pando_command::Param::quiet) {
            self.client.env.log.info(Component::Network, 22944, "Connection ended", |a| {
                a.str("remote", self.client.remote.as_deref().unwrap_or(""))
                    .i64("connectionId", self.client.id)
                    .i64("connectionCount", counts.current.get());
            });
        }
    }
}
