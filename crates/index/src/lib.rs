//! Indexes without their storage: from a specification and a document to keys. Pure: no I/O, no clock, no catalog.
//!
//! ```text
//!   createIndexes ──► spec.rs spec_check.rs ─► stored_spec.rs   what may be asked for, and the form that is stored
//!                     partial.rs geo_spec.rs text_spec.rs wildcard.rs collation.rs ttl.rs storage_engine.rs   options with rules of their own
//!
//!   document ───────► keys.rs ─► key_set.rs           plain, compound and hashed fields, arrays
//!                     geo_keys.rs text_keys.rs wildcard_keys.rs bucket_keys.rs        what other kinds do
//! ```
//!
//! [`IndexSpec::parse`] checks what a client sends, with MongoDB's codes and texts; [`IndexSpec::from_stored`] reads
//! what passed before. [`KeyGen`] is an index's recipe, made once; [`KeyGen::keys`] fills a [`KeySet`] with the keys of a
//! document, as bytes that compare like the values do. Whoever owns the index gives the keys a place: rows of a
//! table, or an owner of a range of keys.

mod bucket_keys;
mod collation;
mod geo_keys;
mod geo_spec;
mod key_set;
mod keys;
mod partial;
mod spec;
mod spec_check;
pub mod storage_engine;
mod stored_spec;
mod text_keys;
mod text_spec;
mod ttl;
mod unknown_options;
mod wildcard;
mod wildcard_keys;

pub use collation::full_form as full_collation;
pub use key_set::{Key, KeySet, changes};
pub use keys::KeyGen;
pub use spec::{IndexSpec, Requested, is_id_key, same_key};
pub use spec_check::{check_id_index_spec, check_ttl_value};
pub use ttl::{check_reach, ttl_seconds};
pub use unknown_options::without_unknown_options;
