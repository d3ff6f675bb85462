//! Listens on every configured address and starts a task per connection.

use crate::admission::{Admission, Now, Peer, Rate, Verdict};
use crate::connection::{Service, serve};
use crate::turned_away::{self, Beyond};
use pando_base::limits;
use pando_base::panics::fence;
use pando_command::{Instance, Node, Param};
use pando_env::sync::Notify;
use pando_env::{Component, Env, Listener, Stream};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::Poll;
use std::time::Duration;

/// Bound, not yet accepting: a server binds before it opens its data, so that a taken port is found first.
pub struct Bound {
    listeners: Vec<Box<dyn Listener>>,
    port: u16,
}

/// Stops the accept loops.
#[derive(Clone, Default)]
pub struct Stop {
    set: Arc<AtomicBool>,
    notify: Notify,
}

impl Stop {
    pub fn new() -> Stop {
        Stop::default()
    }
    pub fn stop(&self) {
        self.set.store(true, Relaxed);
        self.notify.bump();
    }
    pub fn is_set(&self) -> bool {
        self.set.load(Relaxed)
    }
    /// Resolves when [`Stop::stop`] was called.
    pub async fn wait(&self) {
        loop {
            let seen = self.notify.version();
            if self.is_set() {
                return;
            }
            self.notify.changed(seen).await;
        }
    }
}

/// Binds all addresses (`host:port`, port 0 = a free one, the same for all), and the Unix socket
/// `<unix_dir>/mongodb-<port>.sock`.
pub async fn bind(env: &Env, hosts: &[String], port: u16, unix_dir: Option<&str>) -> std::io::Result<Bound> {
    let mut bound = Bound { listeners: Vec::new(), port };
    for host in hosts {
        let addr = if host.contains(':') {
            format!("[{host}]:{}", bound.port)
        } else {
            format!("{host}:{}", bound.port)
        };
        let listener = env.net.listen(addr).await?;
        if bound.port == 0 {
            bound.port =
                listener.local_addr().rsplit_once(':').and_then(|(_, p)| p.parse().ok()).unwrap_or(0);
        }
        bound.listeners.push(listener);
    }
    if let Some(dir) = unix_dir {
        let path = format!("{}/mongodb-{}.sock", dir.trim_end_matches('/'), bound.port);
        bound.listeners.push(env.net.listen(path).await?);
    }
    Ok(bound)
}

impl Bound {
    /// The port really bound.
    pub fn port(&self) -> u16 {
        self.port
    }
    /// Starts accepting and logs "Waiting for connections" (id 23016), which launchers wait for.
    pub fn serve<S: Node>(self, service: &Service<S>, admission: Admission, stop: &Stop) {
        let env = service.node.instance().env.named("listener");
        for listener in &self.listeners {
            let addr = listener.local_addr();
            let shown = addr.rsplit_once(':').map_or(addr.as_str(), |(host, _)| host).to_owned();
            env.log.info(Component::Network, 23015, "Listening on", |a| {
                a.str("address", shown.trim_matches(['[', ']']));
            });
        }
        let params = &service.node.instance().params;
        let ssl = if params.text(Param::tlsMode) == "disabled" { "off" } else { "on" };
        env.log.info(Component::Network, 23016, "Waiting for connections", |a| {
            a.i64("port", i64::from(self.port)).str("ssl", ssl);
        });
        let metrics = &service.node.instance().metrics.connections;
        metrics.has_sources.store(admission.has_sources(), Relaxed);
        let admission = Arc::new(admission);
        let beyond = Beyond::default();
        for listener in self.listeners {
            let (env, service, stop, beyond) = (env.clone(), service.clone(), stop.clone(), beyond.clone());
            let (spawning, admission) = (env.clone(), admission.clone());
            let task = accept(env, service, listener, admission, stop, beyond);
            spawning.spawn("listener", task);
        }
    }
}

/// Counts one, until it is dropped.
struct Exempt(Arc<Instance>);

impl Exempt {
    fn new(instance: &Arc<Instance>) -> Exempt {
        instance.metrics.connections.limit_exempt.add(1);
        Exempt(instance.clone())
    }
}
impl Drop for Exempt {
    fn drop(&mut self) {
        self.0.metrics.connections.limit_exempt.add(-1);
    }
}

/// What becomes of a connection; counts and tells what is refused.
fn look_at<S: Node>(env: &Env, node: &S, admission: &Admission, stream: &dyn Stream) -> Verdict {
    let (params, counts) = (&node.instance().params, &node.instance().metrics.connections);
    let per_second = params.int(Param::connectionRatePerAddress) as u32;
    let burst = params.int(Param::connectionBurstPerAddress) as u32;
    let rate = (per_second > 0).then_some(Rate { per_second, burst });
    let open = counts.current.get();
    let now = Now { at: env.clock.mono(), open: open.max(0) as usize, rate };
    let (remote, local) = (stream.peer_addr(), stream.local_addr());
    let peer = Peer { remote: &remote, local: &local };
    let verdict = admission.admit(peer, now, || node.is_member_address(&remote));
    match verdict {
        Verdict::Served | Verdict::Exempt => {}
        Verdict::NoRoom => {
            counts.rejected.inc();
            let text = "Connection refused because there are too many open connections";
            env.log.info(Component::Network, 22942, text, |a| {
                a.str("remote", &remote).i64("connectionCount", open);
            });
        }
        Verdict::NotAllowed => {
            counts.not_allowed.inc();
            let text = "Connection refused because net.clientAllowList does not have its address";
            env.log.debug(1, Component::Network, 9_100_080, text, |a| {
                a.str("remote", &remote);
            });
        }
        Verdict::TooFast { refused } => {
            counts.too_fast.inc();
            counts.has_sources.store(true, Relaxed);
            if let Some(refused) = refused {
                let text =
                    "Connections refused because too many came from one address (connectionRatePerAddress)";
                env.log.info(Component::Network, 9_100_081, text, |a| {
                    a.str("remote", &remote).i64("refusedSinceLastTold", refused as i64);
                });
            }
        }
    }
    verdict
}

async fn accept<S: Node>(
    env: Env,
    service: Service<S>,
    mut listener: Box<dyn Listener>,
    admission: Arc<Admission>,
    stop: Stop,
    beyond: Beyond,
) {
    loop {
        let stream = {
            let mut accepting = listener.accept();
            let mut stopping = pin!(stop.wait());
            std::future::poll_fn(|cx| {
                if stopping.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(None);
                }
                accepting.as_mut().poll(cx).map(Some)
            })
            .await
        };
        match stream {
            None => return,
            Some(Ok(stream)) => {
                let exempt = match look_at(&env, &*service.node, &admission, &*stream) {
                    Verdict::Served => None,
                    Verdict::Exempt => Some(Exempt::new(service.node.instance())),
                    Verdict::NotAllowed | Verdict::TooFast { .. } => continue,
                    Verdict::NoRoom => {
                        turned_away::look_at(&beyond, &service, stream);
                        continue;
                    }
                };
                let service = service.clone();
                let serving = async move {
                    let _counted = exempt;
                    serve(service, stream).await;
                };
                // What a request breaks while it reads is its own.
                env.spawn("connection", fence("connection", serving));
            }
            Some(Err(e)) => {
                // Usually out of file descriptors: wait for some connection to end instead of spinning.
                env.log.warn(Component::Network, 22987, "Error accepting new connection", |a| {
                    a.show("error", &e);
                });
                env.clock.sleep(Duration::from_millis(limits::ACCEPT_RETRY_MS)).await;
            }
        }
    }
}
