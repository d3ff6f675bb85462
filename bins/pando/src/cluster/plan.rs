//! Who is in a cluster, on which ports, in which folders; and whether that can be.
//!
//! The first router has the port that the user named, the config servers and the shards those after it, further routers
//! the last ones: what sets know themselves by stays the same when shards or routers are added.

use super::folder_of_router;
use crate::admin::{Admin, Made};
use crate::set::process::Process;
use crate::set::{self, Role, ground};
use crate::tls::Local;
use pando_base::limits;
use std::path::{Path, PathBuf};

const CONFIG: &str = "config";

/// What the options say.
pub(crate) struct Wanted {
    pub(crate) shards: usize,
    pub(crate) members: usize,
    pub(crate) routers: usize,
    pub(crate) port: u16,
    pub(crate) data: PathBuf,
    /// `--tls`.
    pub(crate) tls: Option<Local>,
    /// `--auth`.
    pub(crate) admin: Option<Admin>,
    /// Options every server gets.
    pub(crate) options: Vec<String>,
}

pub(crate) struct Plan {
    /// `./pando-data/cluster`.
    pub(crate) home: PathBuf,
    pub(crate) config: set::Plan,
    pub(crate) shards: Vec<set::Plan>,
    /// Their ports.
    pub(crate) routers: Vec<u16>,
    pub(crate) tls: Option<Local>,
    pub(crate) admin: Option<Admin>,
}

impl Plan {
    pub(crate) fn new(wanted: Wanted) -> Result<Plan, String> {
        let Wanted { shards, members, routers, port, data, tls, admin, mut options } = wanted;
        options.extend(secured(tls.as_ref(), admin.as_ref()));
        let of_config = members.min(limits::CLUSTER_CONFIG_SERVERS_MAX);
        if usize::from(port) + routers + of_config + shards * members > usize::from(u16::MAX) || port == 0 {
            return Err("--port must leave room for the ports of the other servers".to_owned());
        }
        let home = data.join("cluster");
        let mut next = port + 1;
        let mut set = |name: String, members: usize, role| {
            let first_port = next;
            next += members as u16;
            let home = home.join(&name);
            set::Plan {
                members,
                set: name,
                role,
                home,
                first_port,
                tls: None,
                admin: None,
                options: options.clone(),
            }
        };
        let config = set(CONFIG.to_owned(), of_config, Role::Config);
        let shards = (1..=shards).map(|i| set(format!("shard{i}"), members, Role::Shard)).collect();
        let routers = [port].into_iter().chain(next..next + routers as u16 - 1).collect();
        Ok(Plan { home, config, shards, routers, tls, admin })
    }
    /// The config servers first.
    pub(crate) fn sets(&self) -> impl Iterator<Item = &set::Plan> {
        [&self.config].into_iter().chain(&self.shards)
    }
    /// How many processes hold data.
    pub(crate) fn servers(&self) -> usize {
        self.sets().map(|s| s.members).sum()
    }
    pub(crate) fn router(&self, i: usize) -> String {
        format!("127.0.0.1:{}", self.routers[i])
    }
    pub(crate) fn uri(&self, made: Option<&Made>) -> String {
        let hosts: Vec<String> = (0..self.routers.len()).map(|i| self.router(i)).collect();
        let user = made.map(Made::of_uri).unwrap_or_default();
        let tls = self.tls.as_ref().map(Local::of_uri).unwrap_or_default();
        let options = tls.strip_prefix('&').map(|rest| format!("?{rest}")).unwrap_or_default();
        format!("mongodb://{user}{}/{options}", hosts.join(","))
    }
    /// All processes, not started yet: config servers, shards, routers.
    pub(crate) fn processes(&self, binary: &Path) -> Vec<Process> {
        let configdb = format!("{CONFIG}/{}", self.config.hosts().join(","));
        let options = secured(self.tls.as_ref(), self.admin.as_ref());
        let router = |(i, port): (usize, &u16)| {
            Process::router(binary, (&configdb, &options), *port, &folder_of_router(&self.home, i))
        };
        let servers = self.sets().flat_map(|s| s.processes(binary));
        servers.chain(self.routers.iter().enumerate().map(router)).collect()
    }
    /// The program that the processes run, once nothing stands in the way. Folders are made last.
    pub(crate) fn check(&self) -> Result<PathBuf, String> {
        let binary = ground::binary()?;
        let known = (1..).take_while(|i| self.home.join(format!("shard{i}")).is_dir()).count();
        if known > self.shards.len() {
            return Err(format!(
                "{} holds a cluster of {known} shards: say --shards {known}, or name another folder with --data",
                self.home.display()
            ));
        }
        self.shards.iter().chain([&self.config]).try_for_each(ground::look)?;
        for port in &self.routers {
            ground::port_is_free(*port, "A router takes it, perhaps still one of an earlier `pando up`")?;
        }
        self.sets().try_for_each(ground::make_folders)?;
        for folder in (0..self.routers.len()).map(|i| folder_of_router(&self.home, i)) {
            std::fs::create_dir_all(&folder)
                .map_err(|e| format!("{} cannot be created: {e}", folder.display()))?;
        }
        Ok(binary)
    }
}

/// What every process is told of TLS and logins.
fn secured(tls: Option<&Local>, admin: Option<&Admin>) -> Vec<String> {
    tls.into_iter().flat_map(Local::options).chain(admin.into_iter().flat_map(Admin::options)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(shards: usize, members: usize, routers: usize) -> Plan {
        let (data, options) = (PathBuf::from("d"), Vec::new());
        let wanted = Wanted { shards, members, routers, port: 100, data, tls: None, admin: None, options };
        Plan::new(wanted).expect("there are ports")
    }

    #[test]
    fn shards_and_routers_that_are_added_leave_the_others_their_ports() {
        let (few, more) = (plan(2, 3, 1), plan(3, 3, 2));
        assert_eq!(few.config.hosts(), ["127.0.0.1:101", "127.0.0.1:102", "127.0.0.1:103"]);
        assert!(few.sets().zip(more.sets()).all(|(a, b)| a.hosts() == b.hosts() && a.home == b.home));
        assert_eq!((few.routers, more.routers), (vec![100], vec![100, 113]));
    }

    #[test]
    fn there_are_three_config_servers_at_most() {
        assert_eq!([plan(1, 1, 1), plan(1, 7, 1)].map(|p| p.config.members), [1, 3]);
    }
}
