//! The operators, a family per file. Rows that make them known are in the registry.

pub(super) mod accumulate;
pub(super) mod arith;
pub(super) mod array;
pub(super) mod boolean;
pub(super) mod compare;
pub(super) mod conditional;
pub(super) mod iterate;
pub(super) mod literal;
pub(super) mod math;
pub(super) mod set;
pub(super) mod trig;
pub(super) mod variables;
