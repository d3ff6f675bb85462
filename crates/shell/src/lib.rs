//! Between the network and the command pipeline, and between the user and the configuration.
//!
//! * [`listener`] accepts connections, of those that may come ([`admission`]); [`connection`] is the life of one,
//!   [`secured`] what TLS adds to it, [`turned_away`] that of one too many;
//! * [`options`] turns a command line and a configuration file into a [`Config`];
//! * [`log`] writes MongoDB's JSON lines, [`audit`] the records of the audit log.

pub mod admission;
pub mod audit;
pub mod connection;
mod counts;
pub mod listener;
pub mod log;
pub mod options;
mod secured;
mod turned_away;

pub use connection::Service;
pub use listener::Stop;
pub use options::Config;
