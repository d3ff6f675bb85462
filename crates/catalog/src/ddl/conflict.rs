//! A wanted index against those that exist: the same, in the way, or new.

use crate::schema::collection::Collection;
use pando_base::{Error, ErrorCode, Result, limits};
use pando_bson::{Elem, RawDoc};
use pando_index::{IndexSpec, is_id_key};
use pando_query::source::IndexKind;

/// What a specification is to a collection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    New,
    Exists,
    /// There, but still being built.
    Building,
}

/// Options that do not make an index another one.
const NOT_COMPARED: &[&str] = &[
    "v",
    "key",
    "name",
    "ns",
    "background",
    "unique",
    "sparse",
    "hidden",
    "prepareUnique",
    "collation",
    "partialFilterExpression",
    "originalSpec",
    "wildcardProjection",
];

fn compared(doc: &RawDoc) -> impl Iterator<Item = Elem<'_>> {
    doc.iter().filter(|e| !NOT_COMPARED.contains(&e.name()))
}

fn same_options(a: &IndexSpec, b: &IndexSpec) -> bool {
    let within = |x: &RawDoc, y: &RawDoc| {
        compared(x).all(|e| {
            y.elem(e.name()).is_some_and(|o| match (e.value().as_f64(), o.value().as_f64()) {
                (Some(m), Some(n)) => m == n,
                _ => e.ty == o.ty && e.data() == o.data(),
            })
        })
    };
    within(&a.doc, &b.doc) && within(&b.doc, &a.doc)
}

/// Compares a specification with one that exists; `None` when they can live side by side.
pub(crate) fn against(wanted: &IndexSpec, existing: &IndexSpec) -> Option<Result<()>> {
    let both = || format!("Requested index: {}, existing index: {}", wanted.doc, existing.doc);
    let same = wanted.same_signature(existing);
    if wanted.name == existing.name {
        if !same {
            return Some(Err(Error::new(
                ErrorCode::IndexKeySpecsConflict,
                format!(
                    "An existing index has the same name as the requested index. When index names are not \
                     specified, they are auto generated and can cause conflicts. Please refer to our documentation. \
                     {}",
                    both()
                ),
            )));
        }
        if !same_options(wanted, existing) {
            return Some(Err(Error::new(
                ErrorCode::IndexOptionsConflict,
                format!(
                    "An equivalent index already exists with the same name but different options. {}",
                    both()
                ),
            )));
        }
        return Some(Ok(()));
    }
    if !same {
        return None;
    }
    let message = if same_options(wanted, existing) {
        format!("Index already exists with a different name: {}", existing.name)
    } else {
        format!("An equivalent index already exists with a different name and options. {}", both())
    };
    Some(Err(Error::new(ErrorCode::IndexOptionsConflict, message)))
}

/// Compares a specification with all indexes of a collection.
pub(crate) fn with_collection(wanted: &IndexSpec, coll: &Collection) -> Result<Verdict> {
    if is_id_key(&wanted.key) {
        return Ok(Verdict::Exists);
    }
    // The index of the same name decides before those with the same key.
    let named = coll.indexes.iter().filter(|i| i.spec.name == wanted.name);
    let others = coll.indexes.iter().filter(|i| i.spec.name != wanted.name);
    for i in named.chain(others) {
        if let Some(r) = against(wanted, &i.spec) {
            r?;
            return Ok(if i.is_ready() { Verdict::Exists } else { Verdict::Building });
        }
    }
    if wanted.kind == IndexKind::Text
        && let Some(other) = coll.indexes.iter().find(|i| i.spec.kind == IndexKind::Text)
    {
        let text = format!(
            "only one text index per collection allowed, found existing text index \"{}\"",
            other.spec.name
        );
        return Err(Error::new(ErrorCode::CannotCreateIndex, text));
    }
    Ok(Verdict::New)
}

/// Two specifications of one command may not collide. `building` chooses between MongoDB's two wordings.
pub(crate) fn among(specs: &[IndexSpec], building: bool) -> Result<()> {
    for (i, wanted) in specs.iter().enumerate() {
        for earlier in &specs[..i] {
            match against(wanted, earlier) {
                Some(Ok(())) if building => {
                    return Err(Error::new(
                        ErrorCode::OperationFailed,
                        "Cannot build two identical indexes. Try again without duplicate indexes.",
                    ));
                }
                Some(Ok(())) => {
                    return Err(Error::new(
                        ErrorCode::IndexAlreadyExists,
                        format!("Identical index already exists: {}", earlier.name),
                    ));
                }
                Some(Err(e)) => return Err(e),
                None => {}
            }
        }
    }
    Ok(())
}

/// Error when a collection would have too many indexes.
pub(crate) fn check_count(ns: &pando_base::Namespace, have: usize, new: &[&IndexSpec]) -> Result<()> {
    let room = limits::INDEXES_PER_COLLECTION_MAX.saturating_sub(have);
    match new.get(room) {
        Some(spec) => Err(Error::new(
            ErrorCode::CannotCreateIndex,
            format!("add index fails, too many indexes for {ns} key:{}", spec.key),
        )),
        None => Ok(()),
    }
}
