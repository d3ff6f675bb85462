//! The walk over a document's bytes.

use super::{Folder, Mode, Node, RowMeta, meta, slice};
use crate::matcher::first_matching_member;
use pando_base::{Error, Result, patience};
use pando_bson::{ArrayBuilder, DocBuilder, Elem, ElementType, RawDoc};

pub(super) struct Walk<'a> {
    pub(super) mode: Mode,
    /// The whole document, for computed fields.
    pub(super) root: &'a RawDoc,
    pub(super) row: &'a RowMeta<'a>,
    /// The positional `$` has done its work further up.
    pub(super) reduced: bool,
}

fn has_positional(f: &Folder) -> bool {
    f.children.iter().any(|(_, n)| match n {
        Node::Positional => true,
        Node::Folder(f) => has_positional(f),
        _ => false,
    })
}

impl Walk<'_> {
    pub(super) fn document(&self, folder: &Folder, doc: &RawDoc, out: &mut DocBuilder) -> Result<()> {
        let mut left = folder.children.len();
        for e in doc {
            patience::spend(1)?;
            let Some((node_name, node)) = folder.child(e.name_bytes()) else {
                if self.mode == Mode::Exclusion {
                    out.elem(e);
                } else if left == 0 {
                    break;
                }
                continue;
            };
            left -= usize::from(left > 0);
            self.field(node_name, node, e, out)?;
        }
        if folder.adds {
            self.additions(folder, doc, out)?;
        }
        Ok(())
    }

    /// A field the document has.
    fn field(&self, node_name: &str, node: &Node, e: Elem<'_>, out: &mut DocBuilder) -> Result<()> {
        match node {
            Node::Include => {
                out.elem(e);
            }
            Node::Exclude => {}
            Node::Slice(s) if e.ty == ElementType::Array => {
                slice::write(*s, RawDoc::trusted(e.data()), e.name_bytes(), out);
            }
            Node::Slice(_) => {
                out.elem(e);
            }
            Node::Positional => self.positional(e, out)?,
            // An inclusion appends these; an exclusion replaces the field where it stands.
            Node::ElemMatch(_) | Node::Meta(_) | Node::Computed(_) => {
                if self.mode == Mode::Exclusion {
                    self.added(node, node_name, Some(e), out)?;
                }
            }
            Node::Folder(f) => match e.ty {
                ElementType::Document => {
                    let sub = RawDoc::trusted(e.data());
                    let mut result = Ok(());
                    out.doc(e.name_bytes(), |b| result = self.document(f, sub, b));
                    result?;
                }
                ElementType::Array if !self.reduced && has_positional(f) => {
                    // The outermost array on the path is the one that is reduced.
                    let item = self.matched(e)?;
                    let mut result = Ok(());
                    out.array(e.name_bytes(), |b| result = self.matched_item(f, item, b));
                    result?;
                }
                ElementType::Array => {
                    let mut result = Ok(());
                    let items = RawDoc::trusted(e.data());
                    out.array(e.name_bytes(), |b| result = self.array(f, items, b));
                    result?;
                }
                _ => self.scalar_under_folder(f, e, out)?,
            },
        }
        Ok(())
    }

    fn scalar_under_folder(&self, f: &Folder, e: Elem<'_>, out: &mut DocBuilder) -> Result<()> {
        if f.adds {
            let mut result = Ok(());
            out.doc(e.name_bytes(), |b| result = self.document(f, RawDoc::empty(), b));
            return result;
        }
        if self.mode == Mode::Exclusion {
            out.elem(e);
        }
        Ok(())
    }

    fn array(&self, f: &Folder, items: &RawDoc, out: &mut ArrayBuilder) -> Result<()> {
        for item in items {
            let mut result = Ok(());
            match item.ty {
                ElementType::Document => {
                    out.doc(|b| result = self.document(f, RawDoc::trusted(item.data()), b));
                }
                ElementType::Array => {
                    out.array(|b| result = self.array(f, RawDoc::trusted(item.data()), b));
                }
                _ if f.adds && self.mode == Mode::Inclusion => {
                    out.doc(|b| result = self.document(f, RawDoc::empty(), b));
                }
                _ if self.mode == Mode::Exclusion => {
                    out.raw(item.ty, item.data());
                }
                _ => {}
            }
            result?;
        }
        Ok(())
    }

    fn positional(&self, e: Elem<'_>, out: &mut DocBuilder) -> Result<()> {
        if e.ty != ElementType::Array {
            out.elem(e);
            return Ok(());
        }
        if self.reduced {
            out.elem(e);
            return Ok(());
        }
        let item = self.matched(e)?;
        out.array(e.name_bytes(), |b| {
            b.raw(item.ty, item.data());
        });
        Ok(())
    }

    /// The element of `array` that the filter matched.
    fn matched<'e>(&self, array: Elem<'e>) -> Result<Elem<'e>> {
        let Some(at) = self.row.array_index else {
            return Err(Error::location(
                51246,
                "positional operator '.$' couldn't find a matching element in the array",
            ));
        };
        let mismatch = || Error::location(51247, "positional operator '.$' element mismatch");
        RawDoc::trusted(array.data()).iter().nth(at as usize).ok_or_else(mismatch)
    }

    fn matched_item(&self, f: &Folder, item: Elem<'_>, out: &mut ArrayBuilder) -> Result<()> {
        let inner = Walk { reduced: true, ..*self };
        let mut result = Ok(());
        if item.ty == ElementType::Document {
            out.doc(|b| result = inner.document(f, RawDoc::trusted(item.data()), b));
        }
        result
    }

    /// What the walk did not write: computed values, and folders that hold some.
    fn additions(&self, folder: &Folder, doc: &RawDoc, out: &mut DocBuilder) -> Result<()> {
        for (name, node) in folder.children.iter() {
            match node {
                Node::Folder(f) if f.adds => {
                    if doc.elem(name).is_none() {
                        let mut result = Ok(());
                        out.doc(name, |b| result = self.document(f, RawDoc::empty(), b));
                        result?;
                    }
                }
                Node::ElemMatch(_) | Node::Meta(_) | Node::Computed(_) => {
                    let here = doc.elem(name);
                    if self.mode == Mode::Inclusion || here.is_none() {
                        self.added(node, name, here, out)?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn added(&self, node: &Node, name: &str, here: Option<Elem<'_>>, out: &mut DocBuilder) -> Result<()> {
        match node {
            Node::Computed(c) => c.write(self.root, self.row, name, out)?,
            Node::Meta(m) => meta::write(*m, self.row, name, out),
            Node::ElemMatch(m) => {
                let array = here.filter(|e| e.ty == ElementType::Array);
                if let Some(item) = array.and_then(|a| first_matching_member(m, a)) {
                    out.array(name, |b| {
                        b.raw(item.ty, item.data());
                    });
                }
            }
            _ => {}
        }
        Ok(())
    }
}
