//! Tenants that move from one set to another: both machines as they ship, and whatever may go wrong between them.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

mod model;
mod states;
mod time_limits;
mod world;
