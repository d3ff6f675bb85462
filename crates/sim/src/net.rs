//! Streams in memory: bytes arrive late, in pieces, and sometimes not at all.
//!
//! Every chunk takes some latency; order within a stream holds. A read returns an arbitrary part of what has
//! arrived, so framing is exercised. A writer waits when too much is under way. A stream end that is dropped
//! (its task was killed) reads as closed at the other end. Connections can be made to break at random.
//!
//! Machines can be kept from reaching one another ([`crate::links`]). As with TCP, bytes sent into a cut are sent again
//! until it heals; nobody learns of a peer's end through a cut; and a new connection needs both directions.

use crate::executor::{Core, Sleep, lock, mix_bytes};
use crate::links::{Links, Machine, Refusal};
use pando_env::{BoxFuture, Listener, Net, Stream};
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// First and longest pause before bytes that did not arrive are sent again.
const RESEND: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(2));
/// Bytes under way in one direction before a writer has to wait.
const PIPE_BYTES_MAX: usize = 256 * 1024;
/// The next one is ever larger: no two connections share an address.
const FIRST_FREE_PORT: u32 = 40_000;

/// How the network behaves.
#[derive(Clone, Copy, Debug)]
pub struct NetOptions {
    /// Latency of a chunk in microseconds: uniform between the two.
    pub latency_us: (u64, u64),
    /// Of a million writes, so many break their connection.
    pub break_ppm: u64,
}

impl Default for NetOptions {
    fn default() -> Self {
        NetOptions { latency_us: (20, 400), break_ppm: 0 }
    }
}

#[derive(Default)]
struct Pipe {
    /// When it arrives, and what.
    chunks: VecDeque<(Duration, Vec<u8>)>,
    bytes: usize,
    /// No more will be written.
    closed: bool,
    /// Nobody will read.
    abandoned: bool,
    broken: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl Pipe {
    fn wake(&mut self) -> [Option<Waker>; 2] {
        [self.reader.take(), self.writer.take()]
    }
}

fn break_pipe(pipe: &Mutex<Pipe>) {
    let wakers = {
        let mut pipe = lock(pipe);
        pipe.broken = true;
        pipe.wake()
    };
    wake(wakers);
}

fn wake(wakers: [Option<Waker>; 2]) {
    wakers.into_iter().flatten().for_each(Waker::wake);
}

#[derive(Default)]
struct Backlog {
    waiting: VecDeque<End>,
    acceptor: Option<Waker>,
}

/// The two machines of a connection and its two pipes.
type Wire = ([Machine; 2], [Weak<Mutex<Pipe>>; 2]);

#[derive(Default)]
struct Wires {
    listeners: BTreeMap<String, Arc<Mutex<Backlog>>>,
    /// Which machine an address belongs to, whether or not somebody listens.
    homes: BTreeMap<String, Machine>,
    /// What a machine's connections come from, where that is not the address all share.
    addresses: BTreeMap<Machine, String>,
    connections: Vec<Wire>,
    /// Connections when the gone ones were last dropped from the list.
    swept: usize,
    next_port: u32,
}

/// Changes what one machine sends another, one write at a time.
type Tamper = Box<dyn FnMut(Machine, Machine, &mut Vec<u8>) + Send>;

/// The network of a world as one of its machines sees it; all processes share it.
#[derive(Clone)]
pub struct SimNet {
    core: Arc<Core>,
    wires: Arc<Mutex<Wires>>,
    options: Arc<Mutex<NetOptions>>,
    links: Arc<Mutex<Links>>,
    tamper: Arc<Mutex<Option<Tamper>>>,
    traffic: Arc<Mutex<Traffic>>,
    machine: Machine,
}

/// What went over the wires so far: writes to connections, each a message or more of those that send in one go, and bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Sent {
    pub messages: u64,
    pub bytes: u64,
}

#[derive(Default)]
struct Traffic {
    all: Sent,
    /// By either end.
    of: BTreeMap<Machine, Sent>,
}

impl Traffic {
    fn count(&mut self, ends: [Machine; 2], bytes: usize) {
        self.all.add(bytes);
        for end in ends {
            self.of.entry(end).or_default().add(bytes);
        }
    }
}

impl Sent {
    fn add(&mut self, bytes: usize) {
        self.messages += 1;
        self.bytes += bytes as u64;
    }
}

impl SimNet {
    pub(crate) fn new(core: Arc<Core>, options: NetOptions) -> SimNet {
        let options = Arc::new(Mutex::new(options));
        let (wires, links, tamper) = (Arc::default(), Arc::default(), Arc::default());
        let traffic = Arc::default();
        SimNet { core, wires, options, links, tamper, traffic, machine: Machine::OUTSIDE }
    }
    /// What everybody has sent so far.
    pub fn sent(&self) -> Sent {
        lock(&self.traffic).all
    }
    /// What a machine has sent and was sent so far.
    pub fn sent_by_and_to(&self, machine: Machine) -> Sent {
        lock(&self.traffic).of.get(&machine).copied().unwrap_or_default()
    }
    /// Connections of a machine that neither end has closed.
    pub fn open_connections(&self, machine: Machine) -> usize {
        let open = |pipe: &Weak<Mutex<Pipe>>| {
            pipe.upgrade().is_some_and(|pipe| {
                let pipe = lock(&pipe);
                !(pipe.closed || pipe.abandoned || pipe.broken)
            })
        };
        let wires = lock(&self.wires);
        let of_it = wires.connections.iter().filter(|(ends, _)| ends.contains(&machine));
        of_it.filter(|(_, pipes)| pipes.iter().all(open)).count()
    }
    /// From now on somebody between the machines changes what they send: from whom, to whom, and the bytes. Their number
    /// stays.
    pub fn tamper(&self, with: impl FnMut(Machine, Machine, &mut Vec<u8>) + Send + 'static) {
        *lock(&self.tamper) = Some(Box::new(with));
    }
    pub fn stop_tampering(&self) {
        *lock(&self.tamper) = None;
    }
    /// The same network, seen from a machine.
    pub(crate) fn at(&self, machine: Machine) -> SimNet {
        SimNet { machine, ..self.clone() }
    }
    /// What lies between the machines.
    pub fn links(&self) -> MutexGuard<'_, Links> {
        lock(&self.links)
    }
    /// Breaks the connections between machines of which `which` says so; both ends see a reset.
    pub fn reset_connections(&self, which: impl Fn(Machine, Machine) -> bool) {
        let mut wires = lock(&self.wires);
        let (gone, kept) = std::mem::take(&mut wires.connections)
            .into_iter()
            .partition::<Vec<_>, _>(|([a, b], _)| which(*a, *b) || which(*b, *a));
        wires.connections = kept;
        drop(wires);
        for pipe in gone.iter().flat_map(|(_, pipes)| pipes).filter_map(Weak::upgrade) {
            break_pipe(&pipe);
        }
    }
    fn connected(&self, peer: Machine, pipes: [&Arc<Mutex<Pipe>>; 2]) {
        let mut wires = lock(&self.wires);
        wires.connections.push(([self.machine, peer], pipes.map(Arc::downgrade)));
        if wires.connections.len() > 2 * wires.swept + 64 {
            wires.connections.retain(|(_, pipes)| pipes.iter().any(|p| p.strong_count() > 0));
            wires.swept = wires.connections.len();
        }
    }
    /// Connections of a machine come from this address from now on.
    pub fn set_address(&self, machine: Machine, host: &str) {
        lock(&self.wires).addresses.insert(machine, host.to_owned());
    }
    pub fn set_options(&self, options: NetOptions) {
        *lock(&self.options) = options;
    }
    fn latency(&self, peer: Machine) -> Duration {
        let (low, high) = lock(&self.options).latency_us;
        let us = low + self.core.rng.below(high.saturating_sub(low) + 1);
        Duration::from_micros(us) + self.links().extra(&self.core, self.machine, peer)
    }
    fn free_port(&self) -> u32 {
        let mut wires = lock(&self.wires);
        wires.next_port = wires.next_port.max(FIRST_FREE_PORT - 1) + 1;
        wires.next_port
    }
}

impl Net for SimNet {
    fn listen(&self, addr: String) -> BoxFuture<'static, io::Result<Box<dyn Listener>>> {
        let net = self.clone();
        Box::pin(async move {
            let addr = match addr.strip_suffix(":0") {
                Some(host) => format!("{host}:{}", net.free_port()),
                None => addr,
            };
            let mut wires = lock(&net.wires);
            if wires.listeners.contains_key(&addr) {
                return Err(io::ErrorKind::AddrInUse.into());
            }
            let backlog = Arc::new(Mutex::new(Backlog::default()));
            wires.listeners.insert(addr.clone(), backlog.clone());
            wires.homes.insert(addr.clone(), net.machine);
            drop(wires);
            Ok(Box::new(SimListener { net: net.clone(), addr, backlog }) as Box<dyn Listener>)
        })
    }
    fn connect(&self, addr: String) -> BoxFuture<'static, io::Result<Box<dyn Stream>>> {
        let net = self.clone();
        Box::pin(async move {
            let peer = lock(&net.wires).homes.get(&addr).copied().unwrap_or(net.machine);
            net.core.sleep(net.latency(peer)).await;
            let mut pause = RESEND.0;
            while net.links().is_cut(net.machine, peer) || net.links().is_cut(peer, net.machine) {
                net.core.sleep(pause).await;
                pause = (pause * 2).min(RESEND.1);
            }
            let refusal = net.links().refusal(peer);
            if refusal == Some(Refusal::Refused) {
                return Err(io::ErrorKind::ConnectionRefused.into());
            }
            let Some(backlog) = lock(&net.wires).listeners.get(&addr).cloned() else {
                return Err(io::ErrorKind::ConnectionRefused.into());
            };
            // Whoever listens there may have begun meanwhile.
            let peer = lock(&net.wires).homes.get(&addr).copied().unwrap_or(peer);
            let host = lock(&net.wires).addresses.get(&net.machine).cloned();
            let client = format!("{}:{}", host.as_deref().unwrap_or("127.0.0.1"), net.free_port());
            let (there, back) =
                (Arc::new(Mutex::new(Pipe::default())), Arc::new(Mutex::new(Pipe::default())));
            let near = End::new(&net, peer, (&back, &there), (client.clone(), addr.clone()));
            let far = End::new(&net.at(peer), net.machine, (&there, &back), (addr, client));
            if refusal == Some(Refusal::Closed) {
                drop(far);
                return Ok(Box::new(near) as Box<dyn Stream>);
            }
            net.connected(peer, [&there, &back]);
            let acceptor = {
                let mut backlog = lock(&backlog);
                backlog.waiting.push_back(far);
                backlog.acceptor.take()
            };
            if let Some(waker) = acceptor {
                waker.wake();
            }
            Ok(Box::new(near) as Box<dyn Stream>)
        })
    }
}

struct SimListener {
    net: SimNet,
    addr: String,
    backlog: Arc<Mutex<Backlog>>,
}

impl Listener for SimListener {
    fn accept(&mut self) -> BoxFuture<'_, io::Result<Box<dyn Stream>>> {
        Box::pin(std::future::poll_fn(|cx| {
            let mut backlog = lock(&self.backlog);
            match backlog.waiting.pop_front() {
                Some(end) => Poll::Ready(Ok(Box::new(end) as Box<dyn Stream>)),
                None => {
                    backlog.acceptor = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        }))
    }
    fn local_addr(&self) -> String {
        self.addr.clone()
    }
}

impl Drop for SimListener {
    fn drop(&mut self) {
        lock(&self.net.wires).listeners.remove(&self.addr);
        // Those who were not accepted see their connection closed.
        let waiting = std::mem::take(&mut lock(&self.backlog).waiting);
        drop(waiting);
    }
}

/// One end of a connection.
struct End {
    net: SimNet,
    incoming: Arc<Mutex<Pipe>>,
    outgoing: Arc<Mutex<Pipe>>,
    local: String,
    peer: String,
    /// At the other end.
    machine: Machine,
    arrival: Option<Pin<Box<Sleep>>>,
    /// Pause before the next look whether a cut has healed.
    resend: Duration,
}

impl End {
    fn new(
        net: &SimNet,
        machine: Machine,
        (incoming, outgoing): (&Arc<Mutex<Pipe>>, &Arc<Mutex<Pipe>>),
        addrs: (String, String),
    ) -> End {
        End {
            net: net.clone(),
            incoming: incoming.clone(),
            outgoing: outgoing.clone(),
            local: addrs.0,
            peer: addrs.1,
            machine,
            arrival: None,
            resend: RESEND.0,
        }
    }
    fn break_both(&self) {
        break_pipe(&self.incoming);
        break_pipe(&self.outgoing);
    }
    /// Nothing comes through: true once it is worth another look.
    fn poll_cut(&mut self, cx: &mut Context<'_>) -> bool {
        if !self.net.links().is_cut(self.machine, self.net.machine) {
            self.resend = RESEND.0;
            return true;
        }
        let pause = self.resend;
        let sleep = self.arrival.get_or_insert_with(|| Box::pin(self.net.core.sleep(pause)));
        if sleep.as_mut().poll(cx).is_ready() {
            self.resend = (pause * 2).min(RESEND.1);
            let next = self.arrival.insert(Box::pin(self.net.core.sleep(self.resend)));
            let _ = next.as_mut().poll(cx);
        }
        lock(&self.incoming).reader = Some(cx.waker().clone());
        false
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut Vec<u8>, max: usize) -> Poll<io::Result<usize>> {
        loop {
            let now = self.net.core.now();
            if lock(&self.incoming).broken {
                return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
            }
            let waits_for_nothing = {
                let pipe = lock(&self.incoming);
                pipe.chunks.is_empty() && !pipe.closed
            };
            if !waits_for_nothing && !self.poll_cut(cx) {
                return Poll::Pending;
            }
            let mut pipe = lock(&self.incoming);
            let Some((at, chunk)) = pipe.chunks.front_mut() else {
                if pipe.closed {
                    return Poll::Ready(Ok(0));
                }
                pipe.reader = Some(cx.waker().clone());
                return Poll::Pending;
            };
            if *at <= now {
                let most = chunk.len().min(max.max(1));
                // Often all of it, sometimes a piece.
                let n = match self.net.core.rng.below(4) {
                    0 => 1 + self.net.core.rng.below(most as u64) as usize,
                    _ => most,
                };
                buf.extend(chunk.drain(..n));
                if chunk.is_empty() {
                    pipe.chunks.pop_front();
                }
                pipe.bytes -= n;
                let writer = pipe.writer.take();
                drop(pipe);
                self.net.core.note(mix_bytes(&buf[buf.len() - n..]));
                wake([None, writer]);
                return Poll::Ready(Ok(n));
            }
            let wait = *at - now;
            drop(pipe);
            let sleep = self.arrival.insert(Box::pin(self.net.core.sleep(wait)));
            match sleep.as_mut().poll(cx) {
                Poll::Ready(()) => self.arrival = None,
                Poll::Pending => {
                    // A break must not wait for the chunk.
                    lock(&self.incoming).reader = Some(cx.waker().clone());
                    return Poll::Pending;
                }
            }
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<()>> {
        let ppm = lock(&self.net.options).break_ppm;
        if ppm > 0 && self.net.core.rng.below(1_000_000) < ppm {
            self.break_both();
        }
        let now = self.net.core.now();
        let latency = self.net.latency(self.machine);
        // Nobody hears through a cut that the other end is gone.
        let cut = self.net.links().is_cut(self.machine, self.net.machine);
        let mut pipe = lock(&self.outgoing);
        if pipe.broken || (pipe.abandoned && !cut) {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        if pipe.bytes > PIPE_BYTES_MAX {
            pipe.writer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        if !bytes.is_empty() {
            let after = pipe.chunks.back().map_or(Duration::ZERO, |(at, _)| *at);
            let mut bytes = bytes.to_vec();
            if let Some(tamper) = &mut *lock(&self.net.tamper) {
                tamper(self.net.machine, self.machine, &mut bytes);
            }
            lock(&self.net.traffic).count([self.net.machine, self.machine], bytes.len());
            pipe.bytes += bytes.len();
            pipe.chunks.push_back(((now + latency).max(after), bytes));
        }
        let reader = pipe.reader.take();
        drop(pipe);
        wake([reader, None]);
        Poll::Ready(Ok(()))
    }
}

impl Stream for End {
    fn read<'a>(&'a mut self, buf: &'a mut Vec<u8>, max: usize) -> BoxFuture<'a, io::Result<usize>> {
        Box::pin(std::future::poll_fn(move |cx| self.poll_read(cx, buf, max)))
    }
    fn write_all<'a>(&'a mut self, bytes: &'a [u8]) -> BoxFuture<'a, io::Result<()>> {
        Box::pin(std::future::poll_fn(move |cx| self.poll_write(cx, bytes)))
    }
    fn peer_addr(&self) -> String {
        self.peer.clone()
    }
    fn local_addr(&self) -> String {
        self.local.clone()
    }
}

impl Drop for End {
    fn drop(&mut self) {
        let wakers = {
            let mut out = lock(&self.outgoing);
            out.closed = true;
            out.wake()
        };
        wake(wakers);
        let wakers = {
            let mut incoming = lock(&self.incoming);
            incoming.abandoned = true;
            incoming.wake()
        };
        wake(wakers);
    }
}
