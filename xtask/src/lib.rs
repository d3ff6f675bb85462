//! Housekeeping of the source tree: `cargo xtask tidy` (also run by `cargo test`), `cargo xtask tour insert`.
//!
//! Everything here reads files as text; nothing is built, so it is quick and needs no dependency.

pub mod bounds;
pub mod circles;
pub mod finders;
pub mod functions;
pub mod layers;
pub mod links;
pub mod log_ids;
pub mod log_words;
pub mod parts;
pub mod sizes;
pub mod supply;
pub mod systems;
pub mod tidy;
pub mod tour;
pub mod tree;
