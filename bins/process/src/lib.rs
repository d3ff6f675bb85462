//! What the processes of a server and of a router have in common, from their command line to their end.
//!
//! ```text
//!   arguments ─► command_line: help, version, the file of settings ─► in the background, if so asked
//!   options ─► secured: key file, TLS on the network, audit log ─► what a server or a router is started with
//!   signals ─► until_asked: the end, or another file to log to
//! ```

pub mod audit;
pub mod command_line;
pub mod exit;
mod keyfile;
pub mod secret_file;
pub mod secured;
pub mod tls;
pub mod until_asked;
