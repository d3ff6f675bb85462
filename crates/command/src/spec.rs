//! What a command is: one row of an alphabetical table, and the registry that finds rows by name.

use crate::metrics::Counter;
use crate::{OpCtx, Reply, Request};
use pando_base::{Error, ErrorCode, HashMap, Result};
use pando_env::BoxFuture;

/// Runs one command. `S` is the server's state: a role (replica-set member, router) has its own table.
pub type Handler<S> = for<'a> fn(&'a S, &'a OpCtx, Request<'a>) -> BoxFuture<'a, Result<Reply>>;

/// Properties the pipeline acts on, as bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flags(pub u32);

impl Flags {
    pub const NONE: Flags = Flags(0);
    /// Only on `admin` (code 13 elsewhere).
    pub const ADMIN_ONLY: Flags = Flags(1);
    /// Allowed before authentication.
    pub const NO_AUTH: Flags = Flags(1 << 1);
    /// Reads user data: counts as a read in `opLatencies`.
    pub const READ: Flags = Flags(1 << 2);
    /// Writes user data: needs a primary, accepts `writeConcern` and waits for it.
    pub const WRITE: Flags = Flags(1 << 3);
    /// Runs on a secondary whatever the read preference says.
    pub const SECONDARY_OK: Flags = Flags(1 << 4);
    /// Runs on a secondary when the read preference allows it.
    pub const SECONDARY_OPT_IN: Flags = Flags(1 << 5);
    /// Allowed as a statement of a transaction.
    pub const IN_TXN: Flags = Flags(1 << 6);
    /// May carry `txnNumber` without a transaction (a retryable write).
    pub const RETRYABLE: Flags = Flags(1 << 7);
    /// Supports read concerns other than local.
    pub const READ_CONCERN: Flags = Flags(1 << 8);
    /// Accepts `writeConcern` without being refused on a secondary by the pipeline (commit, DDL on `local`).
    pub const WRITE_CONCERN: Flags = Flags(1 << 9);
    /// Runs while the node is in recovery or maintenance.
    pub const MAINTENANCE_OK: Flags = Flags(1 << 10);
    /// Only with `enableTestCommands`.
    pub const TEST_ONLY: Flags = Flags(1 << 11);
    /// Not shown by `listCommands`.
    pub const HIDDEN: Flags = Flags(1 << 12);
    /// `maxTimeMS` is not a deadline but something the command reads itself (getMore).
    pub const OWN_MAX_TIME: Flags = Flags(1 << 13);
    /// Not counted in `opcounters.command` (the command counts its own operations).
    pub const OWN_OPCOUNTER: Flags = Flags(1 << 14);
    /// Never logged as slow and not in the profile (hello, isMaster: they wait on purpose).
    pub const QUIET: Flags = Flags(1 << 15);
    /// Contents must not reach logs or profiles (authentication).
    pub const SENSITIVE: Flags = Flags(1 << 16);
    /// Refused with `apiDeprecationErrors` (324).
    pub const DEPRECATED_IN_V1: Flags = Flags(1 << 17);
    /// Belongs to config servers: refused with 20 elsewhere.
    pub const CONFIG_ROLE: Flags = Flags(1 << 18);
    /// Belongs to members of a shard: refused with 193 elsewhere.
    pub const SHARD_ROLE: Flags = Flags(1 << 19);
    /// Reads its own arguments before anybody looks at concerns and the time limit, and then asks
    /// [`OpCtx::arguments_read`]: of two mistakes MongoDB names the one in the command itself.
    pub const ARGS_FIRST: Flags = Flags(1 << 20);

    /// Its first value is not looked at as a collection's name: NUL may stand in it.
    pub const NAMES_NOTHING: Flags = Flags(1 << 21);
    /// Of read concerns it does not take `snapshot`.
    pub const NO_SNAPSHOT: Flags = Flags(1 << 22);

    /// Knows its arguments: `help` is none of them.
    pub const TYPED: Flags = Flags(1 << 22);
    /// Reads what is there now, and nothing newer can be waited for (`afterClusterTime`).
    pub const NOW: Flags = Flags(1 << 23);

    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
    /// Any of the bits.
    pub const fn any(self, other: Flags) -> bool {
        self.0 & other.0 != 0
    }
    pub const fn or(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

impl std::ops::BitOr for Flags {
    type Output = Flags;
    fn bitor(self, other: Flags) -> Flags {
        self.or(other)
    }
}

/// One row. A command that is known but not built yet has a row without a handler and is refused as not supported.
pub struct CommandSpec<S: 'static> {
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    pub flags: Flags,
    /// Part of Stable API version 1.
    pub api_v1: bool,
    pub help: &'static str,
    pub handler: Option<Handler<S>>,
}

impl<S> CommandSpec<S> {
    /// Why a row without a handler does not run: the role that this node has not, or 115.
    pub fn refusal(&self) -> Error {
        let name = self.name;
        if self.flags.has(Flags::CONFIG_ROLE) {
            return Error::new(
                ErrorCode::IllegalOperation,
                format!("{name} can only be run on config servers"),
            );
        }
        if self.flags.has(Flags::SHARD_ROLE) {
            let text = "Cannot accept sharding commands if not started with --shardsvr";
            return Error::new(ErrorCode::NoShardingEnabled, text);
        }
        Error::new(
            ErrorCode::CommandNotSupported,
            format!("The {name} command is not supported by this server"),
        )
    }
}

/// How often a command ran (`metrics.commands.<name>`).
#[derive(Default)]
pub struct CommandCounts {
    pub total: Counter,
    pub failed: Counter,
}

/// The table with an index by name and alias, and a counter per row.
pub struct Registry<S: 'static> {
    table: &'static [CommandSpec<S>],
    by_name: HashMap<&'static str, u16>,
    counts: Vec<CommandCounts>,
    /// Requests for names that are not in the table.
    pub unknown: Counter,
}

impl<S: 'static> Registry<S> {
    /// `table` must be sorted by name (checked by [`Registry::check`] in the server's tests).
    pub fn new(table: &'static [CommandSpec<S>]) -> Registry<S> {
        let mut by_name = HashMap::default();
        for (i, spec) in table.iter().enumerate() {
            by_name.insert(spec.name, i as u16);
            for alias in spec.aliases {
                by_name.insert(alias, i as u16);
            }
        }
        let counts = table.iter().map(|_| CommandCounts::default()).collect();
        Registry { table, by_name, counts, unknown: Counter::default() }
    }
    /// The row of a name or alias.
    pub fn find(&self, name: &str) -> Option<(&'static CommandSpec<S>, &CommandCounts)> {
        let i = usize::from(*self.by_name.get(name)?);
        Some((&self.table[i], &self.counts[i]))
    }
    /// All rows in order with their counters.
    pub fn rows(&self) -> impl Iterator<Item = (&'static CommandSpec<S>, &CommandCounts)> {
        self.table.iter().zip(&self.counts)
    }
    /// What is wrong with the table, if anything: order, duplicate names.
    pub fn check(&self) -> Result<(), String> {
        if let Some(w) = self.table.windows(2).find(|w| w[0].name >= w[1].name) {
            return Err(format!("{} must come before {}", w[1].name, w[0].name));
        }
        let names: usize = self.table.iter().map(|s| 1 + s.aliases.len()).sum();
        if names != self.by_name.len() {
            return Err("a name or alias occurs twice".to_owned());
        }
        Ok(())
    }
}
