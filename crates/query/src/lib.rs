//! Queries as pure code: documents and index entries come in through [`source::Source`], results go out.
//!
//! * [`matcher`] — filters (`{a: {$gt: 5}}`) over raw documents
//! * [`projection`] — which fields of a document are returned
//! * [`expr`] — aggregation expressions; [`stage`] — pipeline stages and accumulators; [`update`] — update operators
//! * [`geo`] — places: geometries, what contains or is near what
//! * [`number`] — arithmetic with MongoDB's promotions
//! * [`collation`], [`regex`], [`jsonschema`], [`sort`] — what those share
//! * [`script`] — JavaScript, run by an engine from outside
//! * [`text`] — terms and scores of text search
//! * [`timeseries`] — measurements in buckets
//! * [`change_stream`] — what change streams are asked for
//! * [`named`] — how often each of those was named
//! * [`vocabulary`] — the names that the tables of operators and stages hold
//! * [`plan`] — filter + sort + indexes to a plan; [`exec`] — the resumable pull executor that runs it
//!
//! No clock, no randomness, no I/O: the caller supplies them in [`ctx::QueryCtx`], [`source::Source`] and
//! [`sort::SpillSpace`].

mod accumulator;
pub mod change_stream;
pub mod collation;
pub mod ctx;
pub mod date;
pub mod distinct_values;
pub mod doc_size;
pub mod exec;
pub mod expand;
pub mod expr;
pub mod facts;
pub mod geo;
pub mod jsonschema;
pub mod matcher;
pub mod mismatch;
pub mod named;
mod names;
pub mod number;
pub mod plan;
pub mod projection;
pub mod regex;
mod reply_depth;
pub mod script;
pub mod sort;
pub mod source;
pub mod stage;
pub mod text;
pub mod timeseries;
pub mod update;
mod value_set;
pub mod vocabulary;

pub use ctx::{QueryCtx, Variables};

#[cfg(test)]
mod testing;
