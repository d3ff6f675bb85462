//! Migrations: donor and recipient as they ship, together, in every order of events that there is (`model`), and each through every
//! accident of the kit (`kit`).

#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

mod kit;
mod model;
mod world;
