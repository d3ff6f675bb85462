//! What a command is: one row of an alphabetical table, and the registry that finds rows and their handlers by name.

use crate::privilege::Privileges;
use crate::roles::Roles;
use crate::{OpCtx, Reply, Request};
use pando_auth::Authority;
use pando_base::{Error, ErrorCode, HashMap, Result};
use pando_env::BoxFuture;
use pando_metrics::{Collector, Counter, Source, group};
use std::ops::Deref;

/// Runs one command. `S` is the server's state: a role (replica-set member, router) has its own table.
pub type Handler<S> = for<'a> fn(&'a S, &'a OpCtx, Request<'a>) -> BoxFuture<'a, Result<Reply>>;

/// What a command says of its arguments: whether somebody may run it with these. Arguments that cannot be read are no matter of
/// privileges: the check says what it can say without them, and the command says what is wrong.
pub type Check<S> = fn(&S, &OpCtx, &Request<'_>, &Authority) -> Result<bool>;

/// Properties the pipeline acts on, as bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flags(pub u32);

impl Flags {
    pub const NONE: Flags = Flags(0);
    /// Only on `admin` (code 13 elsewhere).
    pub const ADMIN_ONLY: Flags = Flags(1);
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
    /// Writes, and waits for members as it sees fit: a request may not say how.
    pub const OWN_WRITE_CONCERN: Flags = Flags(1 << 18);
    /// Not counted in `opcounters.command` (the command counts its own operations).
    pub const OWN_OPCOUNTER: Flags = Flags(1 << 14);
    /// Never logged as slow and not in the profile (hello, isMaster: they wait on purpose).
    pub const QUIET: Flags = Flags(1 << 15);
    /// Contents must not reach logs, profiles or the audit log as they are (see [`crate::secrets`]).
    pub const SENSITIVE: Flags = Flags(1 << 16);
    /// Refused with `apiDeprecationErrors` (324).
    pub const DEPRECATED_IN_V1: Flags = Flags(1 << 17);
    /// Reads its own arguments before anybody looks at concerns and the time limit, and then asks
    /// [`OpCtx::arguments_read`]: of two mistakes MongoDB names the one in the command itself.
    pub const ARGS_FIRST: Flags = Flags(1 << 20);
    /// Its first value is not looked at as a collection's name: NUL may stand in it.
    pub const NAMES_NOTHING: Flags = Flags(1 << 21);
    /// Of read concerns it does not take `snapshot`.
    pub const NO_SNAPSHOT: Flags = Flags(1 << 22);
    /// Knows its arguments: `help` is none of them.
    pub const TYPED: Flags = Flags(1 << 24);
    /// Reads what is there now, and nothing newer can be waited for (`afterClusterTime`).
    pub const NOW: Flags = Flags(1 << 23);

    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
    /// A command on `admin` names a collection of another database by its full name.
    pub(crate) fn name_in_full(self, name: &str) -> bool {
        self.has(Flags::ADMIN_ONLY) && name.contains('.')
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

/// One row of the table: what is true of a command whoever serves it.
#[derive(Clone, Copy, Debug)]
pub struct CommandRow {
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    pub flags: Flags,
    /// Part of Stable API version 1.
    pub api_v1: bool,
    /// Who serves it.
    pub roles: Roles,
    pub privileges: Privileges,
    pub help: &'static str,
}

impl CommandRow {
    /// A command of every role that needs a login; the rest can be set.
    pub const fn new(name: &'static str, flags: Flags) -> CommandRow {
        CommandRow {
            name,
            aliases: &[],
            flags,
            api_v1: false,
            roles: Roles::D.or(Roles::R),
            privileges: Privileges::Login,
            help: "-",
        }
    }
    /// Why a command without a handler does not run on a process of these roles: it has not the command's role, or 115.
    pub fn refusal(&self, process: Roles) -> Error {
        let name = self.name;
        let is_of_others = !self.roles.any(process);
        if is_of_others && self.roles == Roles::C {
            return Error::new(
                ErrorCode::IllegalOperation,
                format!("{name} can only be run on config servers"),
            );
        }
        if is_of_others && (self.roles == Roles::S || self.roles == Roles::S.or(Roles::R)) {
            let text = "Cannot accept sharding commands if not started with --shardsvr";
            return Error::new(ErrorCode::NoShardingEnabled, text);
        }
        Error::new(
            ErrorCode::CommandNotSupported,
            format!("The {name} command is not supported by this server"),
        )
    }
    /// What is wrong with a table, if anything: order, names that occur twice, rows that say too little or too much.
    pub fn check(rows: &[CommandRow]) -> Result<(), String> {
        if let Some(w) = rows.windows(2).find(|w| w[0].name >= w[1].name) {
            return Err(format!("{} must come before {}", w[1].name, w[0].name));
        }
        let mut names: Vec<&str> =
            rows.iter().flat_map(|r| r.aliases.iter().copied().chain([r.name])).collect();
        names.sort_unstable();
        if let Some(w) = names.windows(2).find(|w| w[0] == w[1]) {
            return Err(format!("{} occurs twice", w[0]));
        }
        for r in rows {
            let wrong = match r.privileges {
                _ if r.roles == Roles::NONE => "is served by nobody",
                _ if r.flags.has(Flags::READ.or(Flags::WRITE)) => "reads and writes",
                _ if r.help.is_empty() => "has no help line",
                Privileges::Needs(_, []) => "needs no action on a resource",
                _ => continue,
            };
            return Err(format!("{} {wrong}", r.name));
        }
        Ok(())
    }
}

/// A command as a role has it: its row, the handler if there is one, and how often it ran.
pub struct Command<S: 'static> {
    row: &'static CommandRow,
    pub handler: Option<Handler<S>>,
    /// For a row that says [`Privileges::ByArguments`].
    pub(crate) check: Option<Check<S>>,
    pub counts: CommandCounts,
}

impl<S> Deref for Command<S> {
    type Target = CommandRow;
    fn deref(&self) -> &CommandRow {
        self.row
    }
}

group! {
    /// How often a command ran (`metrics.commands.<name>`).
    pub struct CommandCounts {
        /// Commands that returned an error, by name
        pub failed: Counter = "failed", "commands";
        /// Commands that were run, by name
        pub total: Counter = "total", "commands";
    }
}

/// `metrics.commands`: those that somebody serves.
impl<S> Source for Registry<S> {
    fn collect(&self, to: &mut Collector<'_>) {
        let help = "Requests for commands that there are not";
        to.counter("<UNKNOWN>", self.unknown.get(), "commands", help);
        for command in self.commands.iter().filter(|c| c.handler.is_some()) {
            to.labelled("command", command.name, |to| command.counts.collect(to));
        }
    }
}

/// The commands of a role, found by name and alias.
pub struct Registry<S: 'static> {
    /// In the order of the table.
    commands: Vec<Command<S>>,
    by_name: HashMap<&'static str, u16>,
    /// Requests for names that are not in the table.
    pub unknown: Counter,
}

impl<S: 'static> Registry<S> {
    /// The rows that a process of these roles knows, with its handlers. A handler whose row it does not have is never called
    /// ([`Registry::strangers`] names it).
    pub fn new(
        roles: Roles,
        rows: &'static [CommandRow],
        handlers: &[(&'static str, Handler<S>)],
        checks: &[(&'static str, Check<S>)],
    ) -> Registry<S> {
        let mut commands = Vec::new();
        let mut by_name = HashMap::default();
        for row in rows.iter().filter(|r| r.roles.any(roles)) {
            let handler = handlers.iter().find(|(name, _)| *name == row.name).map(|(_, h)| *h);
            let check = checks.iter().find(|(name, _)| *name == row.name).map(|(_, c)| *c);
            for name in row.aliases.iter().chain([&row.name]) {
                by_name.insert(*name, commands.len() as u16);
            }
            commands.push(Command { row, handler, check, counts: CommandCounts::default() });
        }
        Registry { commands, by_name, unknown: Counter::default() }
    }
    /// The command of a name or alias.
    pub fn find(&self, name: &str) -> Option<&Command<S>> {
        let i = usize::from(*self.by_name.get(name)?);
        self.commands.get(i)
    }
    /// All commands in order.
    pub fn commands(&self) -> impl Iterator<Item = &Command<S>> {
        self.commands.iter()
    }
    /// Commands whose privileges depend on their arguments, with a handler and nobody who looks at the arguments, for a test to refuse.
    pub fn unchecked(&self) -> Vec<&'static str> {
        let by_arguments = |c: &&Command<S>| c.privileges == Privileges::ByArguments && c.handler.is_some();
        self.commands.iter().filter(by_arguments).filter(|c| c.check.is_none()).map(|c| c.name).collect()
    }
    /// Those of the handlers that no command here has, for a test to refuse.
    pub fn strangers<'a>(&self, handlers: &'a [(&'static str, Handler<S>)]) -> Vec<&'a str> {
        let known = |name: &str| self.find(name).is_some_and(|c| c.name == name);
        handlers.iter().map(|(name, _)| *name).filter(|name| !known(name)).collect()
    }
}
