//! Dotted paths and MongoDB's walk along them through documents and arrays.
//!
//! A path yields zero or more candidates in a document; a predicate holds if it holds for any of them:
//! * through sub-documents the walk is plain; a missing field (or a scalar in mid-path) yields *missing*;
//! * an array at the end yields each element and then the array itself (or only itself, [`Leaf::Whole`]);
//! * an array in mid-path is entered one level: each sub-document continues with the rest of the path, scalars
//!   yield nothing, and nested arrays are entered only where the next component is their position;
//! * a component that is a number is tried both as a field name and as an array position, and an element
//!   reached by position at the end of the path is not unwound further;
//! * an array before an empty component that ends the path is at its end: `"a."` is for arrays what `"a"` is.

use pando_base::patience;
use pando_bson::{Elem, ElementType, RawDoc};

/// A field path split at its dots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    dotted: String,
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) name: Box<str>,
    /// All digits: may also be an array position.
    pub(crate) position: bool,
}

/// What an array at the end of a path yields.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Leaf {
    /// Its elements, then itself.
    Elements,
    /// Only itself.
    Whole,
}

/// A candidate: the element (`None` = missing) and the name of the outermost array position it came through.
pub(crate) type Candidate<'a> = (Option<Elem<'a>>, Option<&'a [u8]>);

impl Path {
    pub fn new(dotted: &str) -> Path {
        let parts = dotted
            .split('.')
            .map(|name| Part {
                name: name.into(),
                position: !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit()),
            })
            .collect();
        Path { dotted: dotted.to_owned(), parts }
    }
    /// One component, dots and all: the name of a key field.
    pub(crate) fn flat(name: &str) -> Path {
        Path { dotted: name.to_owned(), parts: vec![Part { name: name.into(), position: false }] }
    }
    /// The path as written.
    pub fn dotted(&self) -> &str {
        &self.dotted
    }
    /// Number of components, at least one.
    pub fn len(&self) -> usize {
        self.parts.len()
    }
    pub fn is_empty(&self) -> bool {
        self.dotted.is_empty()
    }
    pub fn components(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().map(|p| &*p.name)
    }
    pub(crate) fn first(&self) -> &str {
        &self.parts[0].name
    }
    pub(crate) fn rest(&self) -> &[Part] {
        &self.parts[1..]
    }
}

/// Calls `test` with the candidates of `rest` below `e` (the value of the component before `rest`) until it
/// returns true; returns whether it did.
pub(crate) fn any<'a>(
    e: Option<Elem<'a>>,
    rest: &[Part],
    leaf: Leaf,
    test: &mut dyn FnMut(Candidate<'a>) -> bool,
) -> bool {
    let Some(e) = e else { return test((None, None)) };
    match e.ty {
        ElementType::Array => in_array(RawDoc::trusted(e.data()), Some(e), rest, leaf, test),
        _ if rest.is_empty() => test((Some(e), None)),
        ElementType::Document => any(child(&e, &rest[0]), &rest[1..], leaf, test),
        _ => test((None, None)),
    }
}

fn child<'a>(e: &Elem<'a>, part: &Part) -> Option<Elem<'a>> {
    RawDoc::trusted(e.data()).elem(&part.name)
}

/// Bytes of an array walked in one step.
const BYTES_PER_STEP: usize = 32;

fn in_array<'a>(
    items: &'a RawDoc,
    whole: Option<Elem<'a>>,
    rest: &[Part],
    leaf: Leaf,
    test: &mut dyn FnMut(Candidate<'a>) -> bool,
) -> bool {
    if patience::is_over(1 + items.byte_len() / BYTES_PER_STEP) {
        return false;
    }
    let Some((next, after)) =
        rest.split_first().filter(|(next, after)| !(next.name.is_empty() && after.is_empty()))
    else {
        if leaf == Leaf::Elements && items.iter().any(|x| test((Some(x), Some(x.name_bytes())))) {
            return true;
        }
        return test((whole, None));
    };
    for x in items {
        let here = next.position && x.name_bytes() == next.name.as_bytes();
        let found = match x.ty {
            ElementType::Document => {
                let position = x.name_bytes();
                any(child(&x, next), after, leaf, &mut |(e, _)| test((e, Some(position))))
                    || here
                        && match after.split_first() {
                            None => test((Some(x), None)),
                            Some((field, deeper)) => any(child(&x, field), deeper, leaf, test),
                        }
            }
            _ if !here => false,
            // Reached by its own number, so there is no position to remember.
            _ if after.is_empty() => test((Some(x), None)),
            ElementType::Array => in_array(RawDoc::trusted(x.data()), Some(x), after, leaf, test),
            _ => false,
        };
        if found {
            return true;
        }
    }
    false
}
