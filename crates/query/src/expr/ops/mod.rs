//! The operators, a family per file. Rows that make them known are in the registry.

pub(super) mod accumulate;
pub(super) mod arith;
pub(super) mod array;
pub(super) mod boolean;
mod code_points;
pub(super) mod compare;
pub(super) mod conditional;
pub(super) mod convert;
pub(super) mod date_count;
pub(super) mod date_parts;
pub(super) mod date_text;
pub(super) mod function;
pub(super) mod iterate;
pub(super) mod literal;
pub(super) mod math;
pub(super) mod misc;
pub(super) mod objects;
pub(super) mod regexes;
pub(super) mod set;
pub(super) mod strings;
pub(super) mod trig;
pub(super) mod variables;
