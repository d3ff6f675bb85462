//! Requests back into documents.
//!
//! A router reads a command once, changes what each shard is to do (a limit, a sort key, a batch size), and spells it
//! again. Nothing may be lost on the way: what no node of this server acts on stays in the request as it came
//! (`passthrough`) and is written behind the rest. Arguments that say what is true without them (`skip: 0`) may go.

use pando_bson::{DocBuilder, Elem, RawDoc};
use pando_query::plan::Hint;

pub(crate) fn doc(b: &mut DocBuilder, name: &str, v: Option<&RawDoc>) {
    if let Some(v) = v {
        b.raw_doc(name, v);
    }
}
pub(crate) fn count(b: &mut DocBuilder, name: &str, v: Option<u64>) {
    if let Some(v) = v {
        b.i64(name, i64::try_from(v).unwrap_or(i64::MAX));
    }
}
/// Only when it is set: false is what all of them are without being named.
pub(crate) fn flag(b: &mut DocBuilder, name: &str, v: bool) {
    if v {
        b.bool(name, true);
    }
}
pub(crate) fn passthrough(b: &mut DocBuilder, elems: &[Elem<'_>]) {
    for e in elems {
        b.elem(*e);
    }
}
pub(crate) fn spell_hint(b: &mut DocBuilder, hint: Option<&Hint>) {
    match hint {
        None => {}
        Some(Hint::Name(name)) => drop(b.str("hint", name)),
        Some(Hint::Pattern(keys)) => drop(b.raw_doc("hint", keys)),
        Some(Hint::Natural(direction)) => {
            let n = if direction.is_forward() { 1 } else { -1 };
            b.doc("hint", |d| {
                d.i32("$natural", n);
            });
        }
    }
}
