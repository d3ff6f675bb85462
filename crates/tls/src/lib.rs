//! TLS around the byte streams of [`pando_env::net`], with rustls.
//!
//! Nothing else knows rustls: [`TlsNet`] is a network like the one that it wraps, so listener, connections and calls between
//! members stay what they are, and the simulator has none of this.
//!
//! ```text
//!   listener, rpc          TlsNet                     the real sockets
//!   accept ──────────► [accepted]  sniffs, shakes ──► Stream
//!   connect ─────────► [dialed]    checks the host ─► Stream
//!                          ▲
//!                 [Tls]: what the files say now; rotated as a whole
//! ```
//!
//! * [`settings`] is what options say, [`files`] turns it into certificates, keys and lists, with MongoDB's errors;
//! * [`verify`] decides whether a certificate is good, [`names`] whether it is of the host that was dialed, [`subject`] spells
//!   whose it is;
//! * [`local`] makes certificates for trying it and for tests;
//! * [`session`] carries bytes through rustls, [`accepted`] is the server's end of a connection.

mod accepted;
mod certificate;
mod files;
mod loaded;
pub mod local;
mod names;
mod net;
mod pem;
mod protocols;
mod session;
mod settings;
mod state;
mod subject;
mod verify;
mod words;

pub use certificate::subject_of;
pub use net::TlsNet;
pub use protocols::Protocol;
pub use settings::{ReadFile, Settings};
pub use state::Tls;
