//! A request as a handler sees it: the body, its document sequences, and readers for both.

use crate::args::Args;
use pando_base::{Error, ErrorCode, Namespace, Result};
pub use pando_bson::fields::{doubled, duplicate, missing, unknown, wrong_type};
use pando_bson::shape::{Field, Shape};
use pando_bson::{Elem, RawDoc, Value};

/// A kind-1 section: a named run of documents outside the body.
#[derive(Clone, Copy, Debug)]
pub struct Sequence<'a> {
    pub name: &'a str,
    /// Validated documents, one after another.
    pub bytes: &'a [u8],
}

impl<'a> Sequence<'a> {
    pub fn docs(&self) -> Docs<'a> {
        Docs::Sequence { rest: self.bytes }
    }
}

/// The documents of an array field or of a sequence; cheap to clone and walk again.
#[derive(Clone)]
pub enum Docs<'a> {
    Array(pando_bson::raw::Iter<'a>),
    Sequence { rest: &'a [u8] },
}

impl<'a> Iterator for Docs<'a> {
    type Item = &'a RawDoc;
    #[inline]
    fn next(&mut self) -> Option<&'a RawDoc> {
        match self {
            // A null between documents is passed over.
            Docs::Array(iter) => iter.find_map(|e| e.value().as_doc()),
            Docs::Sequence { rest } => {
                if rest.len() < 5 {
                    return None;
                }
                let doc = RawDoc::trusted(rest);
                *rest = rest.get(doc.byte_len()..)?;
                Some(doc)
            }
        }
    }
}

/// One command call.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The registry's name, whatever alias was used.
    pub name: &'static str,
    /// The name as the client wrote it (`ismaster` or `isMaster`).
    pub invoked_as: &'a str,
    pub db: &'a str,
    pub body: &'a RawDoc,
    pub sequences: &'a [Sequence<'a>],
    /// The client accepts a stream of replies (OP_MSG bit 16).
    pub exhaust_allowed: bool,
    /// Came as OP_QUERY (legacy hello).
    pub legacy: bool,
}

impl<'a> Request<'a> {
    /// The command's own element: `find: "coll"`.
    pub fn first(&self) -> Elem<'a> {
        self.body.first().unwrap_or_else(|| Elem::new(pando_bson::ElementType::Null, "", &[]))
    }
    /// The collection named by the first element; code 2 when it is not a string.
    pub fn coll(&self) -> Result<&'a str> {
        match self.first().value() {
            Value::String(s) | Value::Symbol(s) => Ok(s),
            Value::Binary { subtype: 4, .. } => {
                Err(Error::bad_value("Collection name must be provided. UUID is not valid in this context"))
            }
            Value::NotUtf8(_) => Err(Error::bad_value("a collection name has to be UTF-8")),
            other => Err(Error::bad_value(format!("collection name has invalid type {}", other.type_name()))),
        }
    }
    /// As [`Request::ns`] for commands that call a name of another type a bad namespace (73).
    pub fn ns_of_ddl(&self) -> Result<Namespace> {
        let bad_type = |e: Error| Error::new(ErrorCode::InvalidNamespace, e.message.to_string());
        Namespace::new(self.db, self.coll().map_err(bad_type)?)
    }
    /// `db.coll` of the first element, checked.
    pub fn ns(&self) -> Result<Namespace> {
        Namespace::new(self.db, self.coll()?)
    }
    /// Walks the arguments in order; generic ones and the command's own element are left out.
    /// `struct_name` is the prefix MongoDB puts before field names in its messages
    /// (usually the command's name; `FindCommandRequest` for find).
    pub fn args(&self, struct_name: &'static str) -> Args<'a> {
        Args::new(struct_name, self.body)
    }
    /// As [`Request::args`] without those of the command's own that are null: it takes them for not given. One that it
    /// does not know is there even so.
    pub fn given_args(
        &self,
        struct_name: &'static str,
        own: &'static [&'static str],
    ) -> impl Iterator<Item = crate::Arg<'a>> {
        self.args(struct_name).filter(move |arg| !(arg.is_absent() && own.contains(&arg.name())))
    }
    /// The documents of `field`, from the body's array or from a sequence. `None` = absent.
    /// Elements that are not documents are refused with MongoDB's text.
    pub fn docs(&self, struct_name: &str, field: &str) -> Result<Option<Docs<'a>>> {
        if let Some(seq) = self.sequences.iter().find(|s| s.name == field) {
            return Ok(Some(seq.docs()));
        }
        let Some(elem) = self.body.elem(field) else { return Ok(None) };
        let list = elem.value();
        Shape::List(&Shape::Object).check(&format!("{struct_name}.{field}"), &list)?;
        let Value::Array(array) = list else {
            return Err(wrong_type(struct_name, field, &list, &["array"]));
        };
        Ok(Some(Docs::Array(array.iter())))
    }
    /// Calls `each` with the documents of `field`, each once it is known to be one. The field must be there (40414).
    pub fn each_doc(
        &self,
        struct_name: &str,
        field: &str,
        mut each: impl FnMut(&'a RawDoc) -> Result<()>,
    ) -> Result<()> {
        if self.sequences.iter().any(|s| s.name == field) {
            return self.required_docs(struct_name, field)?.try_for_each(each);
        }
        let Some((list, Value::Array(array))) = self.body.elem(field).map(|e| (e, e.value())) else {
            return self.required_docs(struct_name, field)?.try_for_each(each);
        };
        let mut checked = false;
        for item in array {
            match item.value() {
                Value::Document(d) => each(d)?,
                // A null between documents is passed over.
                _ if checked => {}
                _ => {
                    Shape::List(&Shape::Object).check(&format!("{struct_name}.{field}"), &list.value())?;
                    checked = true;
                }
            }
        }
        Ok(())
    }
    /// As [`Request::docs`], but the field must be there (40414).
    pub fn required_docs(&self, struct_name: &str, field: &str) -> Result<Docs<'a>> {
        self.docs(struct_name, field)?.ok_or_else(|| missing(struct_name, field))
    }
    /// Error when the arguments are others than these, or of other types.
    pub fn check(&self, owner: &'static str, fields: &[Field]) -> Result<()> {
        for arg in self.args(owner) {
            match fields.iter().find(|f| f.name == arg.name()) {
                Some(f) => arg.check(&f.shape)?,
                None => return Err(arg.unknown()),
            }
        }
        Ok(())
    }
    /// Statement numbers of a retryable write: among what every command carries, but typed by these.
    pub fn check_statement_numbers(&self, owner: &str) -> Result<()> {
        for e in self.body {
            let shape = match e.name_bytes() {
                b"stmtId" => Shape::Int,
                b"stmtIds" => Shape::List(&Shape::Int),
                _ => continue,
            };
            shape.check(&format!("{owner}.{}", e.name()), &e.value())?;
        }
        Ok(())
    }
    /// The string that the command's own element must be.
    pub fn first_str(&self, owner: &'static str) -> Result<&'a str> {
        match self.first().value() {
            Value::String(s) => Ok(s),
            Value::Null | Value::Undefined => Err(missing(owner, owner)),
            v => Err(wrong_type(owner, owner, &v, &["string"])),
        }
    }
    /// Refuses sequences other than the named ones (40415).
    pub fn only_sequences(&self, struct_name: &str, allowed: &[&str]) -> Result<()> {
        match self.sequences.iter().find(|s| !allowed.contains(&s.name)) {
            Some(seq) => Err(unknown(struct_name, seq.name)),
            None => Ok(()),
        }
    }
}

/// 323: a field outside the Stable API.
pub fn unstable_field(struct_name: &str, field: &str) -> Error {
    Error::new(
        ErrorCode::APIStrictError,
        format!("BSON field '{struct_name}.{field}' is not allowed with apiStrict:true."),
    )
}
