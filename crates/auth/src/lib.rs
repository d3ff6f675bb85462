//! Who somebody is: the conversations in which a client proves that it knows a password, without I/O.
//!
//! A server keeps no passwords, only what [`scram::Credentials`] says of one: enough to check a proof, not enough to make one.
//! The conversation ([`scram::Server`]) is fed with what the client sent and tells what to send back; whoever holds the connection
//! reads the credentials in between. Members of a set speak the client's part ([`scram::Client`]) to each other, as
//! `__system` of the database `local`, with a key of their [`Keyfile`] as the password.
//!
//! Nothing here prints a secret: [`scram::Key`] and [`Password`] have no contents in `{:?}`, and are overwritten when they are dropped.

mod keyfile;
mod mechanism;
mod password;
pub mod scram;

pub use keyfile::Keyfile;
pub use mechanism::Mechanism;
pub use password::Password;
