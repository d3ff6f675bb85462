//! Who may say what only members say.
//!
//! Heartbeats, requests for votes and reports of positions move terms, votes, the commit point and the configuration
//! itself. As long as members do not prove who they are (there is no keyfile authentication yet), they are taken only from
//! addresses that the configuration in force names:
//!
//! ```text
//!   question ──► from an address of a member? ──yes──► the core
//!                   │no                 ▲
//!                   └─► names resolved anew, at most once a second ──still no──► 13, Unauthorized
//! ```
//! Members on one machine share its loopback addresses, so those count as one. A node without a configuration, and one
//! that was removed, can be told of one by whoever has it, but only at the address from which the question comes.
//! Whoever runs members behind translated addresses switches this off (`membersOnlyFromTheirAddresses`).

use super::Replication;
use super::refused_members::RefusedMembers;
use pando_base::{Error, ErrorCode, Result, limits};
use pando_command::{OpCtx, Param};
use pando_env::Component;
use pando_repl::{MemberState, ReplSetConfig};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What is known of members' addresses.
#[derive(Default)]
pub(crate) struct MemberDoor {
    known: Mutex<Known>,
    pub(crate) refused: RefusedMembers,
}

#[derive(Default)]
struct Known {
    /// By the host's name, without its port. Kept when a name cannot be resolved for a while.
    hosts: BTreeMap<String, Vec<IpAddr>>,
    looked: Option<Duration>,
}

/// The host of `host:port`, without the brackets of an IPv6 address.
fn name_of(host: &str) -> &str {
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    name.trim_start_matches('[').trim_end_matches(']')
}

/// Where a connection comes from; a Unix socket is on this machine.
fn peer_of(remote: &str) -> IpAddr {
    let at = name_of(remote).parse::<IpAddr>();
    at.map_or(IpAddr::from([127, 0, 0, 1]), |ip| ip.to_canonical())
}

fn same(a: IpAddr, b: IpAddr) -> bool {
    let b = b.to_canonical();
    a == b || (a.is_loopback() && b.is_loopback())
}

impl Known {
    fn knows_all(&self, names: &[String]) -> bool {
        names.iter().all(|n| self.hosts.contains_key(n) || n.parse::<IpAddr>().is_ok())
    }
    fn has<'a>(&self, peer: IpAddr, mut names: impl Iterator<Item = &'a str>) -> bool {
        names.any(|n| match n.parse() {
            Ok(ip) => same(peer, ip),
            Err(_) => self.hosts.get(n).is_some_and(|all| all.iter().any(|ip| same(peer, *ip))),
        })
    }
}

impl MemberDoor {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// May this node's network look the names up now?
    fn may_look(&self, now: Duration) -> bool {
        let mut known = self.lock();
        let pause = Duration::from_millis(limits::MEMBER_ADDRESSES_LOOK_MS);
        let may = known.looked.is_none_or(|at| now.saturating_sub(at) >= pause);
        if may {
            known.looked = Some(now);
        }
        may
    }
}

/// Also of those that a split lets go: they learn of it by asking, and have no place in it (SV-SPLIT-11).
fn hosts(config: &ReplSetConfig) -> Vec<String> {
    let leaving = config.recipient_config.iter().flat_map(|r| &r.members);
    config.members.iter().chain(leaving).map(|m| name_of(&m.host).to_owned()).collect()
}

impl Replication {
    /// The one door for members' commands. `from` is the host that the sender says to be at, where it says so.
    pub(crate) async fn admit_member(&self, ctx: &OpCtx, command: &str, from: Option<&str>) -> Result<()> {
        let Some(remote) = ctx.client.remote.as_deref() else { return Ok(()) };
        // Whoever sent it has proven to be a member.
        if self.instance.asks_for_logins() {
            return Ok(());
        }
        if !self.instance.params.bool(Param::membersOnlyFromTheirAddresses) {
            return Ok(());
        }
        let state = self.member.state();
        let (names, ours) = match (&state.config, from) {
            (Some(config), _) if state.member != MemberState::Removed => (hosts(config), true),
            (_, Some(from)) if !from.is_empty() => (vec![name_of(from).to_owned()], false),
            // It cannot have an effect.
            _ => return Ok(()),
        };
        let peer = peer_of(remote);
        if self.is_at(peer, &names, ours).await {
            return Ok(());
        }
        if let Some(line) = self.member_door.refused.note(peer, self.env.clock.mono()) {
            self.env.log.warn(Component::Repl, 9100007, "A members' command came from elsewhere", |a| {
                a.str("command", command).str("remote", remote);
                a.bool("oneOfMany", line.of.is_none()).u64("untoldSinceTheLastLine", line.untold);
            });
        }
        Err(Error::new(
            ErrorCode::Unauthorized,
            format!(
                "not authorized on admin to execute command {command}: only members of the set may, and {peer} is no \
                 member's address"
            ),
        ))
    }

    async fn is_at(&self, peer: IpAddr, names: &[String], ours: bool) -> bool {
        let known = |names: &[String]| self.member_door.lock().has(peer, names.iter().map(String::as_str));
        if known(names) {
            return true;
        }
        // Names of a new configuration are looked up at once, what a stranger names at most so often.
        let new = ours && !self.member_door.lock().knows_all(names);
        if !new && !self.member_door.may_look(self.env.clock.mono()) {
            return false;
        }
        self.resolve_members(names).await;
        known(names)
    }

    async fn resolve_members(&self, names: &[String]) {
        let limit = Duration::from_millis(limits::MEMBER_ADDRESSES_WAIT_MS);
        for name in names {
            let found = self.env.timeout(limit, self.env.net.resolve(name.clone())).await;
            let mut known = self.member_door.lock();
            if known.hosts.len() > 2 * limits::REPLSET_MEMBERS_MAX {
                known.hosts.clear();
            }
            match found {
                Some(Ok(all)) => drop(known.hosts.insert(name.clone(), all)),
                // It leads where it led before; one that never did is not asked for each time.
                _ => drop(known.hosts.entry(name.clone()).or_default()),
            }
        }
    }

    /// Without asking anybody: is that where a member of the configuration in force was last found?
    pub(crate) fn is_member_address(&self, remote: &str) -> bool {
        let Some(config) = self.member.config() else { return false };
        let names = hosts(&config);
        self.member_door.lock().has(peer_of(remote), names.iter().map(String::as_str))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(rows: &[(&str, &[&str])]) -> Known {
        let ips = |all: &[&str]| all.iter().map(|ip| ip.parse().unwrap()).collect();
        Known { hosts: rows.iter().map(|(n, all)| ((*n).to_owned(), ips(all))).collect(), looked: None }
    }

    #[test]
    fn members_are_told_by_their_addresses() {
        let set = known(&[("a", &["10.0.0.1"]), ("b", &["fd00::2"])]);
        let has = |remote: &str| set.has(peer_of(remote), ["a", "b", "10.0.0.2"].into_iter());
        assert!(
            has("10.0.0.1:50001") && has("10.0.0.2:1") && has("[fd00::2]:7") && has("[::ffff:10.0.0.1]:7")
        );
        assert!(!has("10.0.0.3:50001") && !has("127.0.0.1:50001") && !has("anonymous unix socket"));
        assert!(!set.has(peer_of("10.0.0.2:1"), ["a"].into_iter()));
    }

    #[test]
    fn members_on_one_machine_share_its_loopback_addresses() {
        let set = known(&[("here", &["127.0.1.1"])]);
        let has = |remote: &str| set.has(peer_of(remote), ["here"].into_iter());
        assert!(
            has("127.0.0.1:50001") && has("[::1]:7") && has("anonymous unix socket") && !has("10.0.0.1:1")
        );
    }

    #[test]
    fn a_host_is_its_name_without_port_and_brackets() {
        assert_eq!([name_of("a.b:27017"), name_of("[::1]:27017"), name_of("a")], ["a.b", "::1", "a"]);
    }
}
