//! TCP and Unix sockets.

use pando_base::limits;
use pando_env::{BoxFuture, Listener, Net, Stream};
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream, lookup_host};

/// Sockets of this machine.
pub struct RealNet {
    /// Connections the kernel holds for us before we accept them.
    pub backlog: u32,
    /// Permissions of Unix socket files.
    pub unix_mode: u32,
}

impl Default for RealNet {
    fn default() -> Self {
        RealNet { backlog: limits::LISTEN_BACKLOG, unix_mode: 0o700 }
    }
}

impl Net for RealNet {
    fn listen(&self, addr: String) -> BoxFuture<'static, io::Result<Box<dyn Listener>>> {
        let (backlog, mode) = (self.backlog, self.unix_mode);
        Box::pin(async move {
            if addr.starts_with('/') {
                return listen_unix(addr, mode);
            }
            let mut last = io::Error::new(io::ErrorKind::AddrNotAvailable, "the address names no interface");
            for at in lookup_host(&addr).await? {
                match listen_tcp(at, backlog) {
                    Ok(listener) => return Ok(listener),
                    Err(e) => last = e,
                }
            }
            Err(last)
        })
    }
    fn connect(&self, addr: String) -> BoxFuture<'static, io::Result<Box<dyn Stream>>> {
        Box::pin(async move {
            if addr.starts_with('/') {
                let inner = UnixStream::connect(&addr).await?;
                return Ok(unix_stream(inner, &addr, &addr));
            }
            tcp_stream(TcpStream::connect(&addr).await?)
        })
    }
    fn resolve(&self, host: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        Box::pin(async move { Ok(lookup_host((host.as_str(), 0)).await?.map(|at| at.ip()).collect()) })
    }
}

fn listen_tcp(at: SocketAddr, backlog: u32) -> io::Result<Box<dyn Listener>> {
    let socket = Socket::new(Domain::for_address(at), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    if at.is_ipv6() {
        // `::` must not swallow IPv4: each address of bind_ip is its own socket.
        socket.set_only_v6(true)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&at.into())?;
    socket.listen(i32::try_from(backlog).unwrap_or(i32::MAX))?;
    Ok(Box::new(Tcp(TcpListener::from_std(socket.into())?)))
}

fn listen_unix(path: String, mode: u32) -> io::Result<Box<dyn Listener>> {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt};
    // A socket file left by a dead server would make bind fail; anything else at that path is not ours.
    if std::fs::symlink_metadata(&path).is_ok_and(|m| m.file_type().is_socket()) {
        std::fs::remove_file(&path)?;
    }
    let inner = UnixListener::bind(&path)?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode))?;
    Ok(Box::new(Unix { inner, path }))
}

struct Tcp(TcpListener);

impl Listener for Tcp {
    fn accept(&mut self) -> BoxFuture<'_, io::Result<Box<dyn Stream>>> {
        Box::pin(async move { tcp_stream(self.0.accept().await?.0) })
    }
    fn local_addr(&self) -> String {
        self.0.local_addr().map_or_else(|_| String::new(), |a| a.to_string())
    }
}

/// Removes its file when dropped.
struct Unix {
    inner: UnixListener,
    path: String,
}

impl Listener for Unix {
    fn accept(&mut self) -> BoxFuture<'_, io::Result<Box<dyn Stream>>> {
        Box::pin(async move {
            let (inner, _) = self.inner.accept().await?;
            Ok(unix_stream(inner, "anonymous unix socket", &self.path))
        })
    }
    fn local_addr(&self) -> String {
        self.path.clone()
    }
}

impl Drop for Unix {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn tcp_stream(inner: TcpStream) -> io::Result<Box<dyn Stream>> {
    inner.set_nodelay(true)?;
    let keepalive = TcpKeepalive::new()
        .with_time(Duration::from_secs(limits::TCP_KEEPALIVE_SECS))
        .with_interval(Duration::from_secs(1));
    SockRef::from(&inner).set_tcp_keepalive(&keepalive)?;
    let (peer, local) = (inner.peer_addr()?.to_string(), inner.local_addr()?.to_string());
    Ok(Box::new(Io { inner, peer, local }))
}

fn unix_stream(inner: UnixStream, peer: &str, local: &str) -> Box<dyn Stream> {
    Box::new(Io { inner, peer: peer.to_owned(), local: local.to_owned() })
}

struct Io<S> {
    inner: S,
    peer: String,
    local: String,
}

/// A socket that can tell whether its peer is still there without taking bytes from it.
trait Gone {
    fn gone(&self) -> impl Future<Output = ()> + Send;
}

impl Gone for TcpStream {
    async fn gone(&self) {
        // Nothing to read means closed; something to read means alive, and it stays unread.
        match self.peek(&mut [0; 1]).await {
            Ok(0) | Err(_) => {}
            Ok(_) => std::future::pending().await,
        }
    }
}

impl Gone for UnixStream {
    async fn gone(&self) {
        // tokio cannot peek into Unix sockets: their clients are on this machine and notice late.
        std::future::pending().await
    }
}

impl<S: AsyncRead + AsyncWrite + Gone + Unpin + Send + Sync> Stream for Io<S> {
    fn read<'a>(&'a mut self, buf: &'a mut Vec<u8>, max: usize) -> BoxFuture<'a, io::Result<usize>> {
        Box::pin(async move {
            if buf.capacity() - buf.len() < max {
                buf.reserve_exact(max);
            }
            let room = buf.capacity() - buf.len();
            let mut limited = tokio::io::AsyncReadExt::take(&mut self.inner, room.min(max) as u64);
            limited.read_buf(buf).await
        })
    }
    fn write_all<'a>(&'a mut self, bytes: &'a [u8]) -> BoxFuture<'a, io::Result<()>> {
        Box::pin(self.inner.write_all(bytes))
    }
    fn closed(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(self.inner.gone())
    }
    fn peer_addr(&self) -> String {
        self.peer.clone()
    }
    fn local_addr(&self) -> String {
        self.local.clone()
    }
}
