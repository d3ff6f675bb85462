//! Documents with arrays give several keys: one per element. Shared by sort keys and index keys.
//!
//! For the paths of one compound key, [`expand`] yields each tuple of values that the document has. All paths
//! may run through one array (each element then fills all of them), but not through two different ones.

use pando_bson::{Elem, ElementType, RawDoc, Value};

/// Two paths of one key run through different arrays; the names of both.
#[derive(Debug)]
pub struct ParallelArrays(pub String, pub String);

#[derive(Clone, Copy)]
struct State<'d> {
    /// Components consumed.
    rest: usize,
    value: Option<Value<'d>>,
    positional: Option<Positional<'d>>,
}

/// The element that a numeric component picks from the array just met.
#[derive(Clone, Copy)]
struct Positional<'d> {
    element: Elem<'d>,
    target: Option<Elem<'d>>,
    rest: usize,
}

/// Calls `sink` for each key of `doc`; missing fields are null, an empty array is undefined.
pub fn expand<'d>(
    paths: &[Vec<&str>],
    doc: &'d RawDoc,
    sink: &mut dyn FnMut(&[Value<'d>]),
) -> Result<(), ParallelArrays> {
    let states = vec![State { rest: 0, value: None, positional: None }; paths.len()];
    expand_from(paths, doc, states, sink)
}

fn expand_from<'d>(
    paths: &[Vec<&str>],
    obj: &'d RawDoc,
    mut states: Vec<State<'d>>,
    sink: &mut dyn FnMut(&[Value<'d>]),
) -> Result<(), ParallelArrays> {
    let mut array: Option<Elem<'d>> = None;
    let mut in_array = vec![false; states.len()];
    let mut unwrap_elements = true;
    for (i, s) in states.iter_mut().enumerate() {
        if s.value.is_some() {
            continue;
        }
        let (found, nested) = match s.positional.take() {
            Some(p) if paths[i].get(s.rest).is_none_or(|part| obj.elem(part).is_none()) => {
                s.rest = p.rest;
                (p.target, p.element.ty == ElementType::Array)
            }
            _ => (element_or_array(obj, &paths[i], &mut s.rest), false),
        };
        match found {
            Some(e) if e.ty == ElementType::Array => {
                if let Some(a) = &array
                    && !std::ptr::eq(a.data().as_ptr(), e.data().as_ptr())
                {
                    return Err(ParallelArrays(e.name().to_owned(), a.name().to_owned()));
                }
                array = Some(e);
                in_array[i] = true;
                unwrap_elements &= !nested;
            }
            found => s.value = Some(found.map_or(Value::Null, |e| e.value())),
        }
    }
    let Some(array) = array else {
        let values: Vec<Value<'d>> = states.iter().map(|s| s.value.unwrap_or(Value::Null)).collect();
        sink(&values);
        return Ok(());
    };
    let elements = RawDoc::trusted(array.data());
    for (i, s) in states.iter_mut().enumerate().filter(|(i, _)| in_array[*i]) {
        if let Some(element) = paths[i].get(s.rest).and_then(|part| elements.elem(part)) {
            let mut rest = s.rest;
            let target = element_or_array(elements, &paths[i], &mut rest);
            s.positional = Some(Positional { element, target, rest });
        }
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
        expand_from(paths, inner, next, sink)
    };
    if elements.is_empty() {
        return each(Value::Undefined);
    }
    elements.iter().try_for_each(|e| each(e.value()))
}

/// Walks from `obj` along the path until its end or an array; `rest` moves on accordingly.
fn element_or_array<'d>(obj: &'d RawDoc, parts: &[&str], rest: &mut usize) -> Option<Elem<'d>> {
    let mut doc = obj;
    loop {
        let e = doc.elem(parts.get(*rest)?)?;
        *rest += 1;
        if *rest == parts.len() || e.ty == ElementType::Array {
            return Some(e);
        }
        doc = e.value().as_doc()?;
    }
}
