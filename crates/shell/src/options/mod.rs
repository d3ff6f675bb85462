//! Options: the table ([`table`]), how they are read ([`parse`], [`yaml`]) and what they mean ([`Config`]).

pub mod audit;
pub mod config;
pub mod encryption;
pub mod parse;
pub mod router;
pub mod security;
pub mod table;
mod tls;
mod yaml;

pub use config::Config;
pub use parse::{Refusal, Settings};
pub use tls::secrets_of;
