//! Server-side JavaScript: `$where`, `$function` and `$accumulator` run here, in QuickJS.
//!
//! Each operation has an interpreter of its own ([`Engine`]), made at its first script: nothing a script leaves
//! behind is seen by another operation. It may use a fixed amount of memory, and the operation's deadline and kill
//! reach it wherever it is ([`guard`]). Values go in and out as MongoDB's shells show them ([`to_js`], [`to_bson`]),
//! with the types and helpers of `prelude.js`.

mod alloc;
mod engine;
mod guard;
mod held;
mod interp;
mod natives;
mod source;
mod thrown;
mod to_bson;
mod to_js;
mod wanted;

pub use engine::{Engine, Limits};
