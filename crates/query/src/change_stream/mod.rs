//! What `$changeStream` is asked for, and the tokens that say where in the stream one stands. Who makes events of the log
//! is the server.

mod spec;
mod stages;
mod token;

pub use spec::{BeforeChange, FullDocument, Spec, Start};
pub use stages::check_stages;
pub use token::{Place, Token};
