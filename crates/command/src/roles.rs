//! What a process is in a set or a cluster.

/// Kinds of processes, as bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Roles(u8);

impl Roles {
    pub const NONE: Roles = Roles(0);
    pub const STANDALONE: Roles = Roles(1);
    /// Of a replica set that is no part of a cluster.
    pub const MEMBER: Roles = Roles(1 << 1);
    pub const SHARD: Roles = Roles(1 << 2);
    pub const CONFIG: Roles = Roles(1 << 3);
    pub const ROUTER: Roles = Roles(1 << 4);

    /// Holds data, whatever it belongs to.
    pub const D: Roles = Roles::STANDALONE.or(Roles::MEMBER).or(Roles::SHARD).or(Roles::CONFIG);
    pub const S: Roles = Roles::SHARD;
    pub const C: Roles = Roles::CONFIG;
    pub const R: Roles = Roles::ROUTER;

    pub const fn or(self, other: Roles) -> Roles {
        Roles(self.0 | other.0)
    }
    /// Any of the others.
    pub const fn any(self, other: Roles) -> bool {
        self.0 & other.0 != 0
    }
}

impl std::ops::BitOr for Roles {
    type Output = Roles;
    fn bitor(self, other: Roles) -> Roles {
        self.or(other)
    }
}

/// What a set is to a cluster (`--shardsvr`, `--configsvr`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClusterRole {
    Shard,
    /// It holds the cluster's metadata.
    Config,
}
