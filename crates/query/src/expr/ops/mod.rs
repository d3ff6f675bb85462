//! The operators, a family per file. Rows that make them known are in the registry.

pub(super) mod arith;
pub(super) mod boolean;
pub(super) mod compare;
pub(super) mod conditional;
pub(super) mod literal;
pub(super) mod variables;
