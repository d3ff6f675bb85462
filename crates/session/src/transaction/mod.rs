//! Multi-document transactions of one session, as far as they can be decided without doing anything: which number is
//! active, what state it is in, and whether a request for a number may go on.

mod machine;

pub use machine::{DurableState, Machine, State};
