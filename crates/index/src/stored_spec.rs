//! How an index specification is stored and shown: checked, with its defaults, in MongoDB's order.

use crate::spec::{is_id_key, seconds};
use crate::spec_check::Fields;
use pando_bson::{DocBuf, DocBuilder, RawDoc};

/// The stored form: `v`, uniqueness, `key`, `name`, then the other options in the order they came.
pub(crate) fn normalized(raw: &RawDoc, f: &Fields<'_>, collation: Option<&RawDoc>) -> DocBuf {
    let mut b = DocBuilder::with_capacity(raw.byte_len() + 64);
    b.i32("v", f.version);
    if f.unique && !is_id_key(f.key) {
        b.bool("unique", true);
    }
    if f.prepare_unique {
        b.bool("prepareUnique", true);
    }
    b.raw_doc("key", f.key);
    b.str("name", if is_id_key(f.key) { "_id_" } else { f.name });
    for e in raw {
        match e.name() {
            "v" | "unique" | "prepareUnique" | "key" | "name" | "ns" | "dropDups" | "_id" | "collation"
            | "clustered" => {}
            "sparse" | "background" => {
                b.bool(e.name(), e.value().is_truthy());
            }
            "hidden" => {
                if e.value().is_truthy() {
                    b.bool("hidden", true);
                }
            }
            "expireAfterSeconds" => {
                b.i32_or_i64(e.name(), seconds(e.value()).unwrap_or(i64::from(i32::MAX)));
            }
            _ if crate::geo_spec::put_option(e, f.kind, &mut b) => {}
            _ => {
                b.elem(e);
            }
        }
    }
    crate::geo_spec::put_default(raw, f.kind, &mut b);
    if let Some(c) = collation {
        b.raw_doc("collation", c);
    }
    b.finish()
}
