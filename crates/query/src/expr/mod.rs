//! Aggregation expressions: `{$add: ["$a", 1]}`, parsed once, evaluated over raw documents.
//!
//! [`Expr::parse`] makes a compiled tree; [`Expr::eval`] runs it in a [`Scope`] and gives a [`Val`], which
//! borrows from the document whenever it can. A field path finds bytes without building trees.
//!
//! Three rules that hold everywhere: *missing* is not null (a missing field of a built object is left out, a
//! missing array element becomes null); most operators give null when an argument is missing, null or
//! undefined; numbers promote int → long → double → decimal.
//!
//! Operators live in [`ops`], a file per family, with one row each in [`registry`]. They know the [`tree`] and the parser
//! ([`parse`]), which know none of them: the registry gives itself to the parser. Errors carry MongoDB's numbers and texts.
//! [`Expr::optimize`] folds what is constant; where an error turns up there, MongoDB's message says so, and the caller adds
//! that context ([`optimize_error`]).

mod join;
mod ops;
mod parse;
mod path;
mod registry;
mod room;
mod scope;
pub(crate) mod spelled;
mod tree;
mod value;

pub use parse::{ParseCtx, check_readable_var_name, check_user_var_name};
pub(crate) use parse::{SEARCH_META, check_object_name as check_field_name, named, optional};
pub use path::FieldPath;
pub(crate) use room::Held;
pub use scope::{Frame, Scope, VarId};
pub use tree::{Call, CloneOp, Expr, Nary, NaryFn, Op, optimize_error};
pub(crate) use tree::{Part, Steps, parts};
pub use value::{Val, shown};

#[cfg(test)]
mod optimize_tests;
#[cfg(test)]
mod tests;
