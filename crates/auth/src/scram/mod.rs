//! SCRAM (RFC 5802, RFC 7677): a password is proven without being sent, and the server proves that it knows the user.
//!
//! ```text
//! client                                         server
//!   n,,n=user,r=cnonce                   ──►
//!                                        ◄──     r=cnonce+snonce,s=salt,i=iterations
//!   c=biws,r=cnonce+snonce,p=proof       ──►     proof XOR HMAC(stored key, all of it) hashes to the stored key?
//!                                        ◄──     v=HMAC(server key, all of it)
//!   (empty, from clients that do not skip it)    done
//! ```
//!
//! A user that is not there is spoken to like any other, with a salt that is always the same for its name, and fails where a wrong
//! password fails: nobody learns from the answers, or from how long they take, which names exist.

mod client;
mod credentials;
mod digest;
mod message;
mod server;

pub use client::Client;
pub use credentials::{Credentials, Decoy};
pub use digest::Key;
pub use message::ClientFirst;
pub use server::{Answer, NONCE, Server};
