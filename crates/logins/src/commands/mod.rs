//! Commands about logins, as every node has them.

pub mod authenticate;
pub mod connection_status;
mod hello;
pub mod log_application_message;
pub mod log_rotate;
mod prelude;
pub mod rotate_certificates;
pub mod sasl;

pub use hello::append_logins;
