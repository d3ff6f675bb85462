//! Commands that read.

pub mod aggregate;
pub mod count;
pub mod distinct;
pub mod find;
pub mod get_more;
pub mod resume_token;
