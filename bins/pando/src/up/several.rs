//! What the options of `pando up` mean when it is to start processes: `--members`, `--shards`.

use super::shown;
use crate::admin::Admin;
use crate::set::Role;
use crate::tls::Local;
use crate::{cluster, set};
use pando_base::limits;
use pando_shell::options::parse;

pub(super) enum Several {
    Set(set::Plan),
    Cluster(cluster::Plan),
}

/// `None` where one process is enough.
pub(super) fn wanted(args: &[String]) -> Option<Result<Several, String>> {
    let is =
        |arg: &String, name: &str| arg == name || arg.strip_prefix(name).is_some_and(|r| r.starts_with('='));
    let at = |name| args.iter().position(|arg| is(arg, name));
    if at("--shards").or(at("--routers")).is_none() {
        let members = at("--members")?;
        if value_of(args, members).is_ok_and(|n| n == "1") {
            return None;
        }
    }
    Some(Given::parse(args).and_then(|given| match given.shards {
        Some(shards) => given.cluster(shards).map(Several::Cluster),
        None => given.set().map(Several::Set),
    }))
}

/// `--name value` or `--name=value`.
fn value_of(args: &[String], at: usize) -> Result<String, String> {
    match args[at].split_once('=') {
        Some((_, value)) => Ok(value.to_owned()),
        None => args.get(at + 1).cloned().ok_or_else(|| format!("{} needs a value", args[at])),
    }
}

/// The options, before it is looked at whether they go together. What is no number is 0, which is refused.
struct Given {
    members: usize,
    shards: Option<usize>,
    routers: Option<usize>,
    data: String,
    set: Option<String>,
    port: u16,
    tls: bool,
    auth: bool,
    /// For every server.
    options: Vec<String>,
}

impl Given {
    fn parse(args: &[String]) -> Result<Given, String> {
        let mut g = Given {
            members: 1,
            shards: None,
            routers: None,
            data: "pando-data".to_owned(),
            set: None,
            port: 27017,
            tls: false,
            auth: false,
            options: Vec::new(),
        };
        let mut at = 0;
        while at < args.len() {
            let name = args[at].split('=').next().unwrap_or_default();
            let value = || value_of(args, at);
            let number = || value().map(|v| v.parse().unwrap_or(0));
            let mut alone = args[at].contains('=');
            match name {
                "--members" => g.members = number()?,
                "--shards" => g.shards = Some(number()?),
                "--routers" => g.routers = Some(number()?),
                "--data" | "--dbpath" => g.data = value()?,
                "--replSet" => g.set = Some(value()?),
                "--port" => g.port = value()?.parse().map_err(|_| "--port takes a port number".to_owned())?,
                "--tls" | "--auth" => {
                    g.tls |= name == "--tls";
                    g.auth |= name == "--auth";
                    alone = true;
                }
                "--fork" | "--logpath" | "--bind_ip" | "--log" | "--shardsvr" | "--configsvr" => {
                    return Err(format!("{name} does not go together with --members or --shards"));
                }
                _ => {
                    g.options.push(args[at].clone());
                    alone = true;
                }
            }
            at += if alone { 1 } else { 2 };
        }
        if g.members.is_multiple_of(2) || g.members > limits::SET_MEMBERS_MAX {
            return Err(
                "--members takes an odd number from 1 to 7: an even one survives no more failures".to_owned()
            );
        }
        // Found out here, not by each member.
        parse::command_line(&g.options)?;
        Ok(g)
    }
    fn set(mut self) -> Result<set::Plan, String> {
        if self.routers.is_some() {
            return Err("--routers goes together with --shards".to_owned());
        }
        if usize::from(self.port) + self.members > usize::from(u16::MAX) || self.port == 0 {
            return Err("--port must leave room for the ports of the other members".to_owned());
        }
        let data = shown(&self.data);
        let tls = if self.tls { Some(Local::prepare(&data.join("tls"))?) } else { None };
        let admin = if self.auth { Some(Admin::prepare(&data)?) } else { None };
        self.options.extend(tls.iter().flat_map(Local::options));
        self.options.extend(admin.iter().flat_map(Admin::options));
        let set = self.set.unwrap_or_else(|| "rs0".to_owned());
        Ok(set::Plan {
            members: self.members,
            home: data.join(&set),
            set,
            role: Role::Alone,
            first_port: self.port,
            tls,
            admin,
            options: self.options,
        })
    }
    fn cluster(self, shards: usize) -> Result<cluster::Plan, String> {
        let routers = self.routers.unwrap_or(1);
        for (name, n, most) in [
            ("--shards", shards, limits::CLUSTER_SHARDS_MAX),
            ("--routers", routers, limits::CLUSTER_ROUTERS_MAX),
        ] {
            if n == 0 || n > most {
                return Err(format!("{name} takes a number from 1 to {most}"));
            }
        }
        if self.set.is_some() {
            return Err(
                "--replSet does not go together with --shards: each shard has a name of its own".to_owned()
            );
        }
        let data = shown(&self.data);
        let tls = if self.tls { Some(Local::prepare(&data.join("tls"))?) } else { None };
        let admin = if self.auth { Some(Admin::prepare(&data)?) } else { None };
        let wanted = cluster::Wanted {
            shards,
            members: self.members,
            routers,
            port: self.port,
            data,
            tls,
            admin,
            options: self.options,
        };
        cluster::Plan::new(wanted)
    }
}
