//! The gate: bytes from outside become a [`RawDoc`] here, once.
//!
//! One loop with one depth counter, whatever nests (documents, arrays, scopes of code), so that no mix of
//! types can reset it. Checked: every length against its enclosing document, terminators, known type bytes,
//! boolean bytes. Not checked, as in MongoDB: whether names and strings are UTF-8, array index names, repeated names, the
//! inside of binary data.
//!
//! Errors carry code 22 (InvalidBSON), or 15 (Overflow) for nesting and 10334 for size, with the dotted path of
//! the element at fault.

use crate::raw::RawDoc;
use crate::scan::find_nul;
use crate::types::ElementType;
use pando_base::{Error, ErrorCode, Result, limits};

/// Frames kept without allocation; deeper ones go to a `Vec`.
const INLINE_FRAMES: usize = 12;

/// What is wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    Length,
    NestedTooShort,
    Size,
    Terminator,
    Text,
    Bool,
    Type(u8),
    Depth,
}

impl RawDoc {
    /// Checks that `bytes` are exactly one valid document.
    pub fn validate(bytes: &[u8]) -> Result<&RawDoc> {
        let doc = RawDoc::validate_prefix(bytes)?;
        if doc.byte_len() != bytes.len() {
            return Err(fail(bytes, &Frames::default(), Fault::Length));
        }
        Ok(doc)
    }

    /// Checks the document at the front of `bytes`; more may follow it.
    pub fn validate_prefix(bytes: &[u8]) -> Result<&RawDoc> {
        RawDoc::validate_prefix_within(bytes, limits::BSON_INTERNAL_BYTES_MAX)
    }

    /// The same for a document of up to `max` bytes.
    pub fn validate_prefix_within(bytes: &[u8], max: usize) -> Result<&RawDoc> {
        let len = match bytes.first_chunk::<4>() {
            Some(head) => i32::from_le_bytes(*head),
            None => return Err(outermost("BSON data has to be at least 5 bytes")),
        };
        if len < 5 || len as usize > bytes.len() {
            return Err(outermost("Incorrect BSON length"));
        }
        let doc = &bytes[..len as usize];
        if doc.last() != Some(&0) {
            return Err(outermost("BSON object not terminated with EOO"));
        }
        if doc.len() > max {
            return Err(too_large(RawDoc::trusted(doc)));
        }
        let mut frames = Frames::default();
        match walk(doc, &mut frames) {
            Ok(()) => Ok(RawDoc::trusted(doc)),
            Err(fault) => Err(fail(doc, &frames, fault)),
        }
    }
}

/// An open document: where it ends, and where the name is that it was opened under.
#[derive(Clone, Copy, Default)]
struct Frame {
    end: u32,
    name: u32,
}

/// The documents that enclose the current element, without the outermost.
#[derive(Default)]
struct Frames {
    depth: usize,
    inline: [Frame; INLINE_FRAMES],
    more: Vec<Frame>,
    /// Name of the element being looked at, for the error message.
    current: u32,
}

impl Frames {
    fn push(&mut self, frame: Frame) -> bool {
        if self.depth == limits::BSON_DEPTH_MAX {
            return false;
        }
        match self.inline.get_mut(self.depth) {
            Some(slot) => *slot = frame,
            None => {
                self.more.truncate(self.depth - INLINE_FRAMES);
                self.more.push(frame);
            }
        }
        self.depth += 1;
        true
    }
    fn get(&self, level: usize) -> Option<Frame> {
        if level >= self.depth {
            return None;
        }
        match self.inline.get(level) {
            Some(frame) => Some(*frame),
            None => self.more.get(level - INLINE_FRAMES).copied(),
        }
    }
}

/// Walks all elements of `doc` (length and last byte already checked) in one loop.
fn walk(doc: &[u8], frames: &mut Frames) -> Result<(), Fault> {
    let mut at = 4;
    // `open` ends with the innermost document, so that no read strays into its parent.
    let mut open = doc;
    loop {
        let tag = *open.get(at).ok_or(Fault::Length)?;
        if tag == 0 {
            at += 1;
            if at != open.len() {
                return Err(Fault::Length);
            }
            if frames.depth == 0 {
                return Ok(());
            }
            frames.depth -= 1;
            open = match frames.depth.checked_sub(1).and_then(|level| frames.get(level)) {
                Some(parent) => &doc[..parent.end as usize],
                None => doc,
            };
            continue;
        }
        frames.current = at as u32 + 1;
        let name = open.get(at + 1..).ok_or(Fault::Length)?;
        let len = find_nul(name).ok_or(Fault::Length)?;
        at += len + 2;
        let ty = ElementType::from_byte(tag).ok_or(Fault::Type(tag))?;
        let data = open.get(at..).ok_or(Fault::Length)?;
        match value(ty, data)? {
            Shape::Flat(size) => at += size,
            Shape::Nested { skip, size } => {
                let (start, end) = (at + skip, at + skip + size);
                if !frames.push(Frame { end: end as u32, name: frames.current }) {
                    return Err(Fault::Depth);
                }
                open = &doc[..end];
                at = start + 4;
            }
        }
    }
}

enum Shape {
    /// Whole value checked; this many bytes.
    Flat(usize),
    /// A document of `size` bytes starts after `skip` and ends with the value.
    Nested { skip: usize, size: usize },
}

#[inline]
fn value(ty: ElementType, data: &[u8]) -> Result<Shape, Fault> {
    use ElementType::*;
    let size = match ty {
        Double | DateTime | Timestamp | Int64 => 8,
        Int32 => 4,
        ObjectId => 12,
        Decimal128 => 16,
        Null | Undefined | MinKey | MaxKey => 0,
        Boolean => match data.first() {
            Some(0 | 1) => 1,
            _ => return Err(Fault::Bool),
        },
        String | JavaScript | Symbol => counted(data)?,
        DbPointer => counted(data)? + 12,
        Binary => length(data)?.checked_add(5).ok_or(Fault::Size)?,
        Regex => {
            let pattern = cstr(data)?;
            pattern + cstr(&data[pattern..])?
        }
        Document | Array => return Ok(Shape::Nested { skip: 0, size: nested(data)? }),
        JavaScriptWithScope => {
            let total = length(data)?;
            if total > data.len() {
                return Err(Fault::Size);
            }
            let code = counted(data.get(4..total).ok_or(Fault::NestedTooShort)?)?;
            let size = nested(&data[4 + code..total])?;
            if 4 + code + size != total {
                return Err(Fault::Length);
            }
            return Ok(Shape::Nested { skip: 4 + code, size });
        }
    };
    // One byte more than the value: the enclosing document still needs its terminator.
    if size < data.len() { Ok(Shape::Flat(size)) } else { Err(Fault::Size) }
}

#[inline]
fn length(data: &[u8]) -> Result<usize, Fault> {
    let head = data.first_chunk::<4>().ok_or(Fault::Size)?;
    usize::try_from(i32::from_le_bytes(*head)).map_err(|_| Fault::Size)
}

/// Size of a length-prefixed, zero-terminated string.
#[inline]
fn counted(data: &[u8]) -> Result<usize, Fault> {
    let len = length(data)?;
    let body = data.get(4..).and_then(|rest| rest.get(..len)).ok_or(Fault::Size)?;
    match body.split_last() {
        Some((0, _)) => Ok(4 + len),
        _ => Err(Fault::Text),
    }
}

/// Size of a zero-terminated string, terminator included.
fn cstr(data: &[u8]) -> Result<usize, Fault> {
    Ok(find_nul(data).ok_or(Fault::Length)? + 1)
}

#[inline]
fn nested(data: &[u8]) -> Result<usize, Fault> {
    let size = length(data)?;
    if size < 5 {
        return Err(Fault::NestedTooShort);
    }
    match data.get(size - 1) {
        Some(0) => Ok(size),
        Some(_) => Err(Fault::Terminator),
        None => Err(Fault::Size),
    }
}

#[cold]
fn outermost(what: &str) -> Error {
    Error::new(
        ErrorCode::InvalidBSON,
        format!("{what} in element with field name '?' in object with unknown _id"),
    )
}

/// MongoDB's error for a document over the size limit.
#[cold]
pub fn too_large(doc: &RawDoc) -> Error {
    let (bytes, max) = (doc.byte_len(), limits::BSON_INTERNAL_BYTES_MAX);
    let first = match doc.first() {
        Some(e) if e.data().len() <= 256 => format!(" First element: {}: {}", e.shown_name(), e.value()),
        _ => String::new(),
    };
    Error::new(
        ErrorCode::BSONObjectTooLarge,
        format!(
            "BSONObj size: {bytes} (0x{bytes:X}) is invalid. Size must be between 0 and {max}({}MB){first}",
            max / (1024 * 1024)
        ),
    )
}

#[cold]
fn fail(doc: &[u8], frames: &Frames, fault: Fault) -> Error {
    let what = match fault {
        Fault::Length | Fault::Terminator => "incorrect BSON length",
        Fault::NestedTooShort => "Nested BSON object has to be at least 5 bytes",
        Fault::Size => "BSON size is larger than buffer size",
        Fault::Text => "Not null terminated string",
        Fault::Bool => "BSON bool is neither false nor true",
        Fault::Type(_) => "Unrecognized BSON type",
        Fault::Depth => "BSONObj exceeds maximum nested object depth",
    };
    let what = match fault {
        Fault::Type(tag) => format!("{what} {}", tag as i8),
        _ => what.to_owned(),
    };
    let code = if fault == Fault::Depth { ErrorCode::Overflow } else { ErrorCode::InvalidBSON };
    let names = (0..frames.depth)
        .filter_map(|level| frames.get(level))
        .map(|frame| frame.name)
        .chain([frames.current]);
    let path: Vec<_> = names
        .map(|at| {
            let rest = doc.get(at as usize..).unwrap_or_default();
            let name = rest.split(|b| *b == 0).next().unwrap_or_default();
            String::from_utf8_lossy(name).into_owned()
        })
        .collect();
    let mut path = path.join(".");
    if frames.current == 0 {
        path = "?".to_owned();
    }
    Error::new(code, format!("{what} in element with field name '{path}' in object with unknown _id"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DocBuilder, Value, doc};

    fn wrap(elements: &[u8]) -> Vec<u8> {
        let mut out = (elements.len() as i32 + 5).to_le_bytes().to_vec();
        out.extend_from_slice(elements);
        out.push(0);
        out
    }
    fn nest(ty: u8, depth: usize) -> Vec<u8> {
        let mut doc = wrap(&[]);
        for _ in 0..depth {
            let mut elements = vec![ty, b'a', 0];
            elements.extend_from_slice(&doc);
            doc = wrap(&elements);
        }
        doc
    }
    fn code_with_scope(scope: &[u8]) -> Vec<u8> {
        let mut out = vec![0x0F, b'c', 0];
        out.extend_from_slice(&(4 + 6 + scope.len() as i32).to_le_bytes());
        out.extend_from_slice(&[2, 0, 0, 0, b'x', 0]);
        out.extend_from_slice(scope);
        out
    }
    fn every_type() -> Vec<u8> {
        let mut b = DocBuilder::new();
        b.document(&doc! { "d": 1.5, "s": "héllo", "o": { "a": [1, 2i64, { "é": true }] } });
        b.binary("b", 0, b"xyz").object_id("i", crate::ObjectId([7; 12])).bool("t", true).date("dt", -1);
        b.null("n").regex("r", "a.*", "i").value("u", Value::Undefined).value("y", Value::Symbol("sym"));
        b.value("p", Value::DbPointer { ns: "a.b", id: crate::ObjectId([1; 12]) });
        b.value("j", Value::JavaScript("f()"));
        b.value("w", Value::JavaScriptWithScope { code: "g", scope: &doc! { "q": 1 }.to_raw() });
        b.timestamp("ts", pando_base::Timestamp::new(1, 1)).decimal("dec", crate::Decimal128::ZERO);
        b.value("lo", Value::MinKey).value("hi", Value::MaxKey);
        b.finish().into_bytes()
    }

    #[test]
    fn valid_documents_pass_whole_and_as_prefix() {
        let bytes = every_type();
        assert_eq!(RawDoc::validate(&bytes).unwrap().byte_len(), bytes.len());
        let mut longer = bytes.clone();
        longer.extend_from_slice(b"rest");
        assert!(RawDoc::validate(&longer).is_err());
        assert_eq!(RawDoc::validate_prefix(&longer).unwrap().byte_len(), bytes.len());
    }

    #[test]
    fn faults_are_named_with_code_and_path() {
        let cases: &[(&[u8], &str)] = &[
            (&[8, b'a', 0, 2], "BSON bool is neither false nor true"),
            (&[2, b'a', 0, 0, 0, 0, 0], "Not null terminated string"),
            (&[2, b'a', 0, 2, 0, 0, 0, b'a', b'b'], "Not null terminated string"),
            (&[2, b'a', 0, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0], "BSON size is larger than buffer size"),
            (&[2, b'a', 0, 0xFF, 0xFF, 0xFF, 0x7F, 0, 0], "BSON size is larger than buffer size"),
            (&[0x55, b'a', 0, 2], "Unrecognized BSON type 85"),
            (&[3, b'a', 0, 4, 0, 0, 0, 0], "Nested BSON object has to be at least 5 bytes"),
            (&[3, b'a', 0, 6, 0, 0, 0, 0, 0], "incorrect BSON length"),
            (&[11, b'a', 0, b'x', 0], "BSON size is larger than buffer size"),
            (&[5, b'a', 0, 0xFF, 0xFF, 0xFF, 0xFF, 0], "BSON size is larger than buffer size"),
            (&[16, b'a', 0, 1, 0, 0], "BSON size is larger than buffer size"),
        ];
        for (elements, text) in cases {
            let inner = wrap(elements);
            let mut outer = vec![3, b'x', 0];
            outer.extend_from_slice(&inner);
            let err = RawDoc::validate(&wrap(&outer)).unwrap_err();
            assert_eq!(err.code, ErrorCode::InvalidBSON, "{elements:?}");
            assert!(err.message.starts_with(text), "{elements:?}: {}", err.message);
            assert!(err.message.contains("'x.a"), "{}", err.message);
        }
    }

    #[test]
    fn one_depth_counter_for_everything_that_nests() {
        for ty in [3, 4] {
            assert!(RawDoc::validate(&nest(ty, limits::BSON_DEPTH_MAX)).is_ok());
            let err = RawDoc::validate(&nest(ty, limits::BSON_DEPTH_MAX + 1)).unwrap_err();
            assert_eq!(err.code, ErrorCode::Overflow);
        }
        let mut doc = wrap(&[]);
        for level in 0..=limits::BSON_DEPTH_MAX {
            doc = wrap(&code_with_scope(&doc));
            assert_eq!(RawDoc::validate(&doc).is_ok(), level < limits::BSON_DEPTH_MAX, "{level}");
        }
    }

    #[test]
    fn scope_must_fill_its_code_element() {
        let good = code_with_scope(&wrap(&[]));
        assert!(RawDoc::validate(&wrap(&good)).is_ok());
        for total in [0u8, 4, 9, 14, 16, 99] {
            let mut bad = good.clone();
            bad[3] = total;
            assert!(RawDoc::validate(&wrap(&bad)).is_err(), "{total}");
        }
    }

    #[test]
    fn what_passes_reads_back_whole_and_cuts_never_pass() {
        let bytes = every_type();
        for cut in 0..bytes.len() {
            assert!(RawDoc::validate(&bytes[..cut]).is_err());
            let mut shorter = bytes[..cut].to_vec();
            if cut >= 4 {
                shorter[..4].copy_from_slice(&(cut as i32).to_le_bytes());
                assert!(RawDoc::validate(&shorter).is_err() || shorter.last() == Some(&0));
            }
        }
    }

    #[test]
    fn too_large_has_its_own_code() {
        let mut bytes = vec![0u8; limits::BSON_INTERNAL_BYTES_MAX + 1];
        let len = bytes.len() as i32;
        bytes[..4].copy_from_slice(&len.to_le_bytes());
        assert_eq!(RawDoc::validate(&bytes).unwrap_err().code, ErrorCode::BSONObjectTooLarge);
    }
}
