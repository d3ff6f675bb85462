//! Who may connect, decided before a byte is read.
//!
//! ```text
//!   a connection ─► on the allow-list? ─► not too many from there at once? ─► room (`--maxConns`)? ─► served
//!                      no: closed            no: closed                          no: turned away (`turned_away`)
//! ```
//! Unix sockets have no address: they pass the first two, and members of the set pass the second. Who is exempt passes the last two.

mod rate;
mod sources;

use pando_base::limits;
pub use rate::Rate;
use rate::Rates;
pub use sources::Sources;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Of one process.
#[derive(Debug)]
pub struct Admission {
    max_connections: usize,
    exempt: Sources,
    allowed: Option<Sources>,
    rates: Rates,
}

/// Where a connection comes from.
#[derive(Clone, Copy, Debug)]
pub struct Peer<'a> {
    /// `address:port`, or the path of a Unix socket.
    pub remote: &'a str,
    /// The path of the Unix socket that it came to, or an address.
    pub local: &'a str,
}

/// What becomes of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    Served,
    /// Served, whatever the bounds.
    Exempt,
    NotAllowed,
    /// How many were refused from there since this was last told, once in a while; in between `None`.
    TooFast {
        refused: Option<u64>,
    },
    NoRoom,
}

/// What holds at the moment.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// Monotonic.
    pub at: Duration,
    pub open: usize,
    /// `None` where nothing bounds it.
    pub rate: Option<Rate>,
}

impl Admission {
    pub fn new(max_connections: usize, exempt: Sources, allowed: Option<Sources>) -> Admission {
        Admission { max_connections, exempt, allowed, rates: Rates::default() }
    }
    /// So many, from wherever.
    pub fn bounded(max_connections: usize) -> Admission {
        Admission::new(max_connections, Sources::default(), None)
    }
    pub fn max_connections(&self) -> usize {
        self.max_connections
    }
    /// Whether where connections come from makes a difference.
    pub fn has_sources(&self) -> bool {
        !self.exempt.is_empty() || self.allowed.is_some()
    }

    /// `is_member` is asked only where it decides.
    pub fn admit(&self, peer: Peer<'_>, now: Now, is_member: impl FnOnce() -> bool) -> Verdict {
        let address = peer.remote.parse::<SocketAddr>().ok().map(|a| a.ip().to_canonical());
        let is_listed = |allowed: &Sources| match address {
            Some(address) => allowed.contain(address),
            None => peer.local.starts_with('/'),
        };
        if !self.allowed.as_ref().is_none_or(is_listed) {
            return Verdict::NotAllowed;
        }
        let exempt = match address {
            Some(address) => self.exempt.contain(address),
            None => self.exempt.contain_path(peer.local),
        };
        if exempt {
            return Verdict::Exempt;
        }
        if let (Some(address), Some(rate)) = (address, now.rate)
            && let Err(refused) = self.rates.take(network(address), now.at, rate)
            && !is_member()
        {
            return Verdict::TooFast { refused };
        }
        if now.open >= self.max_connections { Verdict::NoRoom } else { Verdict::Served }
    }
}

/// Whoever has an address of version 6 has the others of its network, too.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => IpAddr::V6((u128::from(v6) & !(u128::MAX >> limits::IPV6_NETWORK_BITS)).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(texts: &[&str]) -> Sources {
        let texts: Vec<String> = texts.iter().map(|t| (*t).to_owned()).collect();
        Sources::parse("net.x", &texts).unwrap()
    }
    fn tcp(remote: &str) -> Peer<'_> {
        Peer { remote, local: "10.0.0.1:27017" }
    }
    const UNIX: Peer<'_> = Peer { remote: "anonymous unix socket", local: "/tmp/mongodb-27017.sock" };

    fn at(ms: u64, open: usize) -> Now {
        Now { at: Duration::from_millis(ms), open, rate: None }
    }

    #[test]
    fn who_is_not_listed_is_not_allowed_and_who_is_exempt_finds_room() {
        let a = Admission::new(2, sources(&["10.1.0.0/16", "/tmp"]), Some(sources(&["10.0.0.0/8", "::1"])));
        let verdict = |peer, open| a.admit(peer, at(0, open), || false);
        assert_eq!(verdict(tcp("11.0.0.1:5"), 0), Verdict::NotAllowed);
        assert_eq!(verdict(tcp("[::2]:5"), 0), Verdict::NotAllowed);
        assert_eq!(verdict(tcp("[::1]:5"), 1), Verdict::Served);
        assert_eq!(verdict(tcp("[::ffff:10.0.0.7]:5"), 1), Verdict::Served);
        assert_eq!(verdict(tcp("10.0.0.7:5"), 2), Verdict::NoRoom);
        assert_eq!(verdict(tcp("10.1.0.7:5"), 2), Verdict::Exempt);
        assert_eq!(verdict(tcp("nowhere"), 0), Verdict::NotAllowed, "no address, and no Unix socket");
        assert_eq!(verdict(UNIX, 2), Verdict::Exempt);
        let other = Peer { local: "/run/mongodb-27017.sock", ..UNIX };
        assert_eq!(verdict(other, 2), Verdict::NoRoom);
        assert_eq!(verdict(other, 1), Verdict::Served);
    }

    #[test]
    fn too_many_from_one_address_are_refused_and_members_are_not() {
        let a = Admission::bounded(100);
        let rate = Some(Rate { per_second: 2, burst: 3 });
        let now = |ms| Now { rate, ..at(ms, 0) };
        let verdict = |peer, ms| a.admit(peer, now(ms), || false);
        for _ in 0..3 {
            assert_eq!(verdict(tcp("10.0.0.7:5"), 0), Verdict::Served);
        }
        assert_eq!(verdict(tcp("10.0.0.7:9"), 0), Verdict::TooFast { refused: Some(1) });
        assert_eq!(verdict(tcp("10.0.0.7:9"), 1), Verdict::TooFast { refused: None });
        assert_eq!(a.admit(tcp("10.0.0.7:9"), now(1), || true), Verdict::Served);
        assert_eq!(verdict(tcp("10.0.0.8:5"), 1), Verdict::Served);
        assert_eq!(verdict(UNIX, 1), Verdict::Served);
        assert_eq!(verdict(tcp("10.0.0.7:5"), 502), Verdict::Served);
        assert_eq!(verdict(tcp("10.0.0.7:5"), 502), Verdict::TooFast { refused: None });
        // A network of version 6 is one source.
        for host in ["[2001:db8::1]:5", "[2001:db8::2]:5", "[2001:db8::3]:5"] {
            assert_eq!(verdict(tcp(host), 0), Verdict::Served);
        }
        assert!(matches!(verdict(tcp("[2001:db8::4]:5"), 0), Verdict::TooFast { .. }));
        assert_eq!(verdict(tcp("[2001:db8:0:1::4]:5"), 0), Verdict::Served);
    }
}
