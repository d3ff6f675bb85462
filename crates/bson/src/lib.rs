//! Documents: read in place, compared in MongoDB's order, built without intermediate trees.
//!
//! Two shapes of the same thing:
//! * [`RawDoc`] / [`DocBuf`] — the bytes themselves (like `str` / `String`). Walking one yields [`Elem`]s,
//!   which decode to [`Value`] only when asked. All hot paths live here.
//! * [`Bson`] / [`Document`] — owned trees, for expressions and updates that change values.
//!
//! Bytes enter through [`RawDoc::validate`] once (wire messages, dump files); what came from there may be
//! viewed again with [`RawDoc::trusted`]. Even on malformed bytes no accessor panics or reads out of bounds:
//! iteration simply ends.
//!
//! Strings and names are bytes that nearly always are UTF-8. Where they are not, they are kept as they are: such a value
//! decodes to [`Value::NotUtf8`], such a name to one that is no word ([`raw::NOT_A_WORD`]).

pub mod builder;
pub mod column;
pub mod compare;
pub mod decimal128;
pub mod depth;
pub mod extjson;
pub mod fields;
pub mod hash;
pub mod hashed;
pub mod keystring;
pub mod name;
pub mod owned;
pub mod raw;
mod scan;
pub mod shape;
pub mod text;
pub mod types;
pub mod validate;

pub use builder::{ArrayBuilder, DocBuilder, Nested};
pub use compare::{StringOrder, canonical_type, cmp_bson, cmp_docs, cmp_values, values_equal};
pub use hash::{hash_bson, hash_value};
pub use name::{AsName, Name};
pub use owned::{Bson, Document};
pub use raw::{DocBuf, Elem, NotUtf8, RawDoc, Texts, Value};
pub use types::{Binary, Decimal128, ElementType, ObjectId, Regex};
