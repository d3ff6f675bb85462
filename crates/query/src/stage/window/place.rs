//! Where results of window functions are put: as `$addFields` puts values, so into each document of an array on the way, and with
//! the documents that lead there even where there is nothing to put.

use crate::expr::Held;
use crate::names::NamedList;
use pando_base::Result;
use pando_bson::{ArrayBuilder, DocBuilder, Elem, ElementType, RawDoc, Value};

/// A path, and what is to be there.
pub(super) type Placed<'v> = (&'v [Box<str>], Option<(ElementType, &'v [u8])>);

/// Writes `doc` with many values at their paths, none of which leads to or through another.
pub(super) fn write_all(doc: &RawDoc, values: &[Placed<'_>], b: &mut DocBuilder) -> Result<()> {
    let mut heads: NamedList<Vec<Placed<'_>>> = NamedList::default();
    for (path, value) in values {
        let Some((head, rest)) = path.split_first() else { continue };
        match heads.find(head.as_bytes()) {
            Some(at) => heads[at].1.push((rest, *value)),
            None => heads.push(head, vec![(rest, *value)]),
        }
    }
    let mut written = vec![false; heads.len()];
    for e in doc {
        match heads.find(e.name_bytes()).filter(|at| !written[*at]) {
            Some(at) => {
                written[at] = true;
                put(Some(e), &heads[at].0, &heads[at].1, b)?;
            }
            None => {
                b.elem(e);
            }
        }
    }
    for (at, (name, below)) in heads.iter().enumerate() {
        if !written[at] {
            put(None, name, below, b)?;
        }
    }
    Ok(())
}

fn put(old: Option<Elem<'_>>, name: &str, below: &[Placed<'_>], b: &mut DocBuilder) -> Result<()> {
    if let [([], value)] = below {
        if let Some((ty, data)) = value {
            b.raw(*ty, name, data);
        }
        return Ok(());
    }
    let mut result = Ok(());
    match old.map(|e| e.value()) {
        Some(Value::Document(inner)) => b.doc(name, |sub| result = write_all(inner, below, sub)),
        Some(Value::Array(list)) => b.array(name, |sub| result = put_each(list, below, sub)),
        _ => b.doc(name, |sub| result = write_all(RawDoc::empty(), below, sub)),
    };
    result
}

/// Into every element; a large value in each of them would be without a bound.
fn put_each(list: &RawDoc, below: &[Placed<'_>], b: &mut ArrayBuilder) -> Result<()> {
    let mut held = Held::default();
    for e in list {
        let mut result = Ok(());
        match e.value() {
            Value::Document(inner) => b.doc(|sub| result = write_all(inner, below, sub)),
            Value::Array(list) => b.array(|sub| result = put_each(list, below, sub)),
            _ => b.doc(|sub| result = write_all(RawDoc::empty(), below, sub)),
        };
        result?;
        held.grow_to(b.byte_len(), 0)?;
    }
    Ok(())
}
