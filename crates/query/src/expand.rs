//! Documents with arrays give several keys: one per element. Index keys and sort keys are made here.
//!
//! For the paths of one compound key, [`expand`] yields each tuple of values that the document has. All paths
//! may run through one array (each element then fills all of them), but not through two different ones.

use pando_bson::{Elem, ElementType, RawDoc, Value};

/// Why a document has no keys.
#[derive(Debug)]
pub enum NoKeys {
    /// Two paths run through different arrays; the names of both.
    ParallelArrays(String, String),
    /// A part of a path names the element at a position of an array, and a field of an embedded document in that array.
    Ambiguous(String),
}

/// Who takes the keys of a document.
pub trait Keys {
    /// A field that a numeric part of a path could mean beside the element at that position is an error.
    const POSITIONS_ARE_CLEAR: bool;

    /// The values of one key, a value per path: null where a path leads nowhere, undefined for an empty array. `missing` paths
    /// lead nowhere.
    fn key(&mut self, values: &[Value<'_>], missing: usize);
    /// The first `parts` parts of a path lead to an array.
    fn through_array(&mut self, path: usize, parts: usize);
}

/// Sort keys: a closure that takes the values.
impl<F: FnMut(&[Value<'_>])> Keys for F {
    const POSITIONS_ARE_CLEAR: bool = false;

    fn key(&mut self, values: &[Value<'_>], _missing: usize) {
        self(values);
    }
    fn through_array(&mut self, _path: usize, _parts: usize) {}
}

/// How far one path has come.
#[derive(Clone, Copy)]
struct State<'d> {
    /// Parts that were walked.
    rest: usize,
    value: Option<Value<'d>>,
    positional: Option<Positional<'d>>,
}

/// An array element that a path names by its position (`a.1.b`).
#[derive(Clone, Copy)]
struct Positional<'d> {
    element: Elem<'d>,
    /// What the rest of the path leads to from there, and how much of the path is then walked.
    target: Option<Elem<'d>>,
    rest: usize,
}

/// Gives each key of `doc` to `keys`. The path `left_out` is not walked: its value is null, for `keys` to fill in.
pub fn expand<S: AsRef<str>>(
    paths: &[&[S]],
    left_out: Option<usize>,
    doc: &RawDoc,
    keys: &mut impl Keys,
) -> Result<(), NoKeys> {
    let start = |i| State { rest: 0, value: (left_out == Some(i)).then_some(Value::Null), positional: None };
    expand_from(paths, doc, (0..paths.len()).map(start).collect(), 0, keys)
}

fn expand_from<'d, S: AsRef<str>, K: Keys>(
    paths: &[&[S]],
    obj: &'d RawDoc,
    mut states: Vec<State<'d>>,
    mut missing: usize,
    keys: &mut K,
) -> Result<(), NoKeys> {
    let mut array: Option<Elem<'d>> = None;
    let mut in_array = vec![false; states.len()];
    let mut unwrap_elements = true;
    for (i, s) in states.iter_mut().enumerate().filter(|(_, s)| s.value.is_none()) {
        let (found, nested) = next_element::<S, K>(obj, paths[i], s)?;
        match found {
            Some(e) if e.ty == ElementType::Array => {
                the_one_array(&mut array, e)?;
                in_array[i] = true;
                unwrap_elements &= !nested;
                keys.through_array(i, s.rest);
            }
            Some(e) => s.value = Some(e.value()),
            None => {
                s.value = Some(Value::Null);
                missing += 1;
            }
        }
    }
    let Some(array) = array else {
        let values: Vec<Value<'d>> = states.iter().map(|s| s.value.unwrap_or(Value::Null)).collect();
        keys.key(&values, missing);
        return Ok(());
    };
    let elements = RawDoc::trusted(array.data());
    for (i, s) in states.iter_mut().enumerate().filter(|(i, _)| in_array[*i]) {
        s.positional = positional(elements, paths[i], s.rest);
    }
    let mut each = |entry: Value<'d>| {
        let mut next = states.clone();
        for (i, s) in next.iter_mut().enumerate().filter(|(i, _)| in_array[*i]) {
            if s.rest == paths[i].len() {
                // An array inside an array is a value of its own, but for the empty one.
                let unwrap = unwrap_elements || elements.is_empty();
                s.value = Some(if unwrap { entry } else { array.value() });
            }
        }
        let inner = match entry {
            Value::Document(d) => d,
            _ => RawDoc::empty(),
        };
        expand_from(paths, inner, next, missing, keys)
    };
    if elements.is_empty() {
        return each(Value::Undefined);
    }
    elements.iter().try_for_each(|e| each(e.value()))
}

/// Keeps the array that was met; a second one is refused.
fn the_one_array<'d>(array: &mut Option<Elem<'d>>, met: Elem<'d>) -> Result<(), NoKeys> {
    match array {
        Some(a) if !std::ptr::eq(a.data().as_ptr(), met.data().as_ptr()) => {
            Err(NoKeys::ParallelArrays(met.shown_name().into_owned(), a.shown_name().into_owned()))
        }
        _ => {
            *array = Some(met);
            Ok(())
        }
    }
}

/// The element that the next part of a path names by its position, if it names one.
fn positional<'d, S: AsRef<str>>(elements: &'d RawDoc, path: &[S], rest: usize) -> Option<Positional<'d>> {
    let element = path.get(rest).and_then(|part| elements.elem(part.as_ref()))?;
    let mut rest = rest;
    let target = element_or_array(elements, path, &mut rest);
    Some(Positional { element, target, rest })
}

/// What the rest of a path leads to, up to the first array; and whether that is an array inside an array (reached by
/// position), which is a value as a whole.
fn next_element<'d, S: AsRef<str>, K: Keys>(
    obj: &'d RawDoc,
    path: &[S],
    s: &mut State<'d>,
) -> Result<(Option<Elem<'d>>, bool), NoKeys> {
    let Some(p) = s.positional.take() else { return Ok((element_or_array(obj, path, &mut s.rest), false)) };
    match path.get(s.rest).is_some_and(|part| obj.elem(part.as_ref()).is_some()) {
        true if K::POSITIONS_ARE_CLEAR => Err(NoKeys::Ambiguous(p.element.shown_name().into_owned())),
        true => Ok((element_or_array(obj, path, &mut s.rest), false)),
        false => {
            s.rest = p.rest;
            Ok((p.target, p.element.ty == ElementType::Array))
        }
    }
}

/// Walks from `obj` along the path until its end or an array; `rest` moves on accordingly.
fn element_or_array<'d, S: AsRef<str>>(obj: &'d RawDoc, path: &[S], rest: &mut usize) -> Option<Elem<'d>> {
    let mut doc = obj;
    loop {
        let e = doc.elem(path.get(*rest)?.as_ref())?;
        *rest += 1;
        if *rest == path.len() || e.ty == ElementType::Array {
            return Some(e);
        }
        doc = e.value().as_doc()?;
    }
}
