//! What a user must be allowed to run a command: actions on a resource.
//!
//! The table of commands says it for every command whose arguments do not matter. Of the others ([`Privileges::ByArguments`])
//! the command itself tells when it has read them.

pub use pando_auth::Action;

/// What an action is allowed on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resource {
    /// The collection that the command names first.
    Collection,
    /// The database that it is sent to.
    Database,
    /// The set or the cluster as a whole.
    Cluster,
}

/// What a command needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Privileges {
    /// Nothing: it runs before anybody has logged in.
    Open,
    /// A login, whoever it is.
    Login,
    /// Each of these actions on the resource.
    Needs(Resource, &'static [Action]),
    /// What the arguments say.
    ByArguments,
    /// To be another member, a router, or somebody with the action `internal`.
    Internal,
}
