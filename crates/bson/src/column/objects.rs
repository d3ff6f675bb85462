//! Objects (or arrays) of one shape: a stream for each leaf of a reference document.

use super::stream::{Slot, Stream};
use super::{Input, Literal, Part, Rows, malformed};
use crate::builder::DocBuilder;
use crate::raw::RawDoc;
use crate::types::ElementType;
use pando_base::Result;

/// The shape of the objects.
enum Shape {
    Leaf { name: Vec<u8>, stream: usize },
    Nested { name: Vec<u8>, ty: ElementType, members: Vec<Shape> },
}

struct Streams<'a, 'b> {
    input: &'a mut Input<'b>,
    all: Vec<Stream>,
}

/// Reads up to the end of the sequence. Returns the last object.
pub(super) fn decode(control: u8, input: &mut Input<'_>, rows: &mut Rows<'_, '_>) -> Result<Option<Literal>> {
    let ty = if control == 0xF2 { ElementType::Array } else { ElementType::Document };
    let reference = RawDoc::trusted(input.value(ty)?);
    let mut all = Vec::new();
    let shape = shape_of(reference, control != 0xF0, &mut all);
    if all.is_empty() {
        return Err(malformed("a reference document without values"));
    }
    let mut streams = Streams { input, all };
    let mut last = None;
    while streams.goes_on()? {
        let mut b = DocBuilder::new();
        if streams.append(&shape, &mut b)? || reference.is_empty() {
            let data = b.finish().into_bytes();
            rows.give(ty, &data)?;
            last = Some(Literal { ty, data });
        } else {
            rows.skip()?;
        }
    }
    Ok(last)
}

fn shape_of(doc: &RawDoc, into_arrays: bool, streams: &mut Vec<Stream>) -> Vec<Shape> {
    let mut shape = Vec::new();
    for e in doc {
        let name = e.name_bytes().to_vec();
        let enters = e.ty == ElementType::Document || (into_arrays && e.ty == ElementType::Array);
        shape.push(if enters {
            let members = shape_of(RawDoc::trusted(e.data()), into_arrays, streams);
            Shape::Nested { name, ty: e.ty, members }
        } else {
            let mut stream = Stream::default();
            stream.begin(Literal { ty: e.ty, data: e.data().to_vec() });
            streams.push(stream);
            Shape::Leaf { name, stream: streams.len() - 1 }
        });
    }
    shape
}

impl Streams<'_, '_> {
    /// Whether there is another object. All streams end together.
    fn goes_on(&mut self) -> Result<bool> {
        if self.all[0].has_more() {
            return Ok(true);
        }
        if self.input.bytes.get(self.input.at) != Some(&0) {
            return Ok(true);
        }
        self.input.at += 1;
        match self.all.iter_mut().any(|s| s.has_more()) {
            true => Err(malformed("objects that end apart")),
            false => Ok(false),
        }
    }

    /// The next value of a stream; `None` when the object has none there.
    fn next(&mut self, stream: usize) -> Result<Option<&Literal>> {
        loop {
            match self.all[stream].next()? {
                Some(Slot::Value) => return self.all[stream].value().map(Some),
                Some(Slot::Missing) => return Ok(None),
                None => {}
            }
            match self.input.next()? {
                Part::Literal(v) => {
                    self.all[stream].begin(v);
                    return self.all[stream].value().map(Some);
                }
                Part::Differences { control, blocks } => self.all[stream].take_blocks(control, blocks)?,
                Part::End => return Err(malformed("an object that ends too early")),
                Part::Objects { .. } => return Err(malformed("objects within objects")),
            }
        }
    }

    /// Appends what the next object has; false when that is nothing.
    fn append(&mut self, shape: &[Shape], b: &mut DocBuilder) -> Result<bool> {
        let mut any = false;
        for member in shape {
            match member {
                Shape::Leaf { name, stream } => {
                    if let Some(v) = self.next(*stream)? {
                        b.raw(v.ty, name, &v.data);
                        any = true;
                    }
                }
                Shape::Nested { name, ty, members } => {
                    let mut inner = DocBuilder::new();
                    // One that is empty in the reference document is empty in all.
                    if self.append(members, &mut inner)? || members.is_empty() {
                        b.raw(*ty, name, inner.finish().as_bytes());
                        any = true;
                    }
                }
            }
        }
        Ok(any)
    }
}
