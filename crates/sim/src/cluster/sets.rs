//! The sets of a cluster: each is looked at as a set alone is ([`crate::set`]), and its rules must hold.

use crate::set::invariants::{self, Invariant};
use crate::set::look::Watch;
use crate::world::{Line, World};
use crate::{Exit, FaultyDisk, Node};
use pando_bson::{Bson, Document, doc};
use pando_command::roles::ClusterRole;
use std::time::Duration;

/// Files of the logs: small, so that they are sealed and dropped within a run.
const LOG_SEGMENT_BYTES: u64 = 64 << 10;

/// One of them.
pub(super) struct MemberSet {
    pub(super) name: String,
    role: ClusterRole,
    pub(super) nodes: Vec<Node>,
    pub(super) watch: Watch,
    rules: Vec<Box<dyn Invariant>>,
}

impl MemberSet {
    pub(super) fn new(
        world: &World,
        seed: u64,
        (name, role): (&str, ClusterRole),
        (first_port, members): (u16, u16),
    ) -> MemberSet {
        let member = |i: u16| {
            let port = first_port + i;
            let disk = FaultyDisk::new(seed.wrapping_mul(1 << 16).wrapping_add(u64::from(port)));
            let mut node = Node::member(world, disk, port);
            name.clone_into(&mut node.set);
            node.role = Some(role);
            node.contains_panics = true;
            node.storage.log_segment_bytes = Some(LOG_SEGMENT_BYTES);
            node.boot();
            node
        };
        MemberSet {
            name: name.to_owned(),
            role,
            nodes: (0..members).map(member).collect(),
            watch: Watch::new(members.into(), first_port),
            // Nobody asks members of a cluster for write concerns one by one.
            rules: invariants::all(&Default::default()),
        }
    }
    pub(super) fn addrs(&self) -> Vec<String> {
        self.nodes.iter().map(Node::addr).collect()
    }
    /// `set/host,host`
    pub(super) fn connection_string(&self) -> String {
        format!("{}/{}", self.name, self.addrs().join(","))
    }
    /// The first configuration.
    pub(super) fn config(&self) -> Document {
        let members = self.addrs().into_iter().enumerate().map(|(i, host)| {
            let host: &str = &host;
            Bson::from(doc! { "_id": i as i32, "host": host })
        });
        let mut config = doc! { "_id": self.name.as_str() };
        if self.role == ClusterRole::Config {
            config.push("configsvr", true);
        }
        config.push("members", members.collect::<Vec<_>>());
        config
    }
    /// Looks at all members: what breaks a rule. Lines of other sets are passed over.
    pub(super) fn look(&mut self, now: Duration, lines: &[Line], problems: &mut Vec<String>) {
        let (rules, name) = (&mut self.rules, &self.name);
        let mut found = Vec::new();
        let looked = self.watch.look(&self.nodes, now, lines.to_vec(), &mut |look| {
            rules.iter_mut().for_each(|rule| rule.look(look, &mut found));
        });
        found.extend(looked.err());
        for (i, node) in self.nodes.iter().enumerate() {
            if let Some(Exit::Failed(why)) = node.exit() {
                found.push(format!("member {i} ended by itself: {why}"));
            }
        }
        problems.extend(found.into_iter().map(|p| format!("set {name}: {p}")));
    }
}
