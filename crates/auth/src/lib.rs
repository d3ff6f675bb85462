//! Who somebody is, and what they may do, without I/O: the conversations in which a client proves that it knows a password, and the
//! roles that say what is allowed on what.
//!
//! A server keeps no passwords, only what [`scram::Credentials`] says of one: enough to check a proof, not enough to make one.
//! The conversation ([`scram::Server`]) is fed with what the client sent and tells what to send back; whoever holds the connection
//! reads the credentials in between. Members of a set speak the client's part ([`scram::Client`]) to each other, as
//! `__system` of the database `local`, with a key of their [`Keyfile`] as the password.
//!
//! A [`roles::Role`] allows actions on resources, itself and by the roles that it includes. What a user may do is the [`Privileges`] of all
//! roles together; a command asks them with the [`Target`] that it touches.
//!
//! Nothing here prints a secret: [`scram::Key`] and [`Password`] have no contents in `{:?}`, and are overwritten when they are dropped.

mod action;
mod address_range;
mod authority;
pub mod certificate;
pub mod cluster;
mod keyfile;
pub mod login;
mod mechanism;
mod password;
mod privilege;
mod resource;
mod restrictions;
pub mod roles;
pub mod scram;
mod user;
pub mod user_info;

pub use action::{Action, ActionSet};
pub use address_range::AddressRange;
pub use authority::{Authority, SYSTEM_USER};
pub use cluster::{ClusterAuth, ClusterAuthMode, ClusterKeys, SaltedKeys};
pub use keyfile::Keyfile;
pub use login::Login;
pub use mechanism::Mechanism;
pub use password::Password;
pub use privilege::Privileges;
pub use resource::{Resource, Target};
pub use restrictions::{Peers, Restrictions};
pub use user::{Proof, User, UserName};
