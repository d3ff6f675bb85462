//! Documents of a tenant that comes from another set: what that set's log says is carried out here as a primary's own write.
//!
//! The data is exactly what it was there when the entry was made. So nothing is made to fit: an insert of what is there, an update or a
//! delete of what is not, is an error.

use crate::read::source::find_id;
use crate::schema::collection::Collection;
use crate::write::crud::UpdateForm;
use crate::write::op::WriteOp;
use crate::write::unit::WriteUnit;
use pando_base::{Error, ErrorCode, Result};
use pando_bson::{DocBuf, RawDoc};
use pando_oplog::diff;
use pando_oplog::entry::{EntryView, OpType};

impl WriteUnit {
    /// Carries out an `i`, `u` or `d` entry, or one of a transaction's operations.
    ///
    /// # Errors
    /// 11000 for an insert of what is there, 96 for what is about a document that is not.
    pub fn carry_out(&mut self, op: &WriteOp<'_>, coll: &Collection, e: &EntryView<'_>) -> Result<()> {
        match e.op {
            OpType::Insert if e.o_is_array => e.o.iter().try_for_each(|d| {
                let doc = d.value().as_doc().ok_or_else(|| not_there(coll, e))?;
                self.put_told(op, coll, doc)
            }),
            OpType::Insert => self.put_told(op, coll, e.o),
            OpType::Update | OpType::Delete => self.change_told(op, coll, e),
            OpType::Command | OpType::Noop => Err(Error::internal(format!("not of a document: {}", e.doc))),
        }
    }
    /// Inserts a document of another set as it is there, behind those that are here.
    pub fn put_told(&mut self, op: &WriteOp<'_>, coll: &Collection, doc: &RawDoc) -> Result<()> {
        self.insert(op, coll, doc, coll.shared.take_rids(1), &[])
    }
    fn change_told(&mut self, op: &WriteOp<'_>, coll: &Collection, e: &EntryView<'_>) -> Result<()> {
        let id = e.document_id().ok_or_else(|| not_there(coll, e))?;
        let (rid, old) = find_id(&self.txn, coll, id)?.ok_or_else(|| not_there(coll, e))?;
        let old = RawDoc::trusted(&old);
        if e.op == OpType::Delete {
            return self.delete(op, coll, &rid, old, &[]);
        }
        let new: DocBuf;
        let (new, form) = match e.diff() {
            Some(d) => {
                new = diff::apply(old, d)?;
                (&*new, UpdateForm::Diff(d))
            }
            None => (e.o, UpdateForm::Replacement),
        };
        self.update(op, coll, &rid, old, new, form, &[])
    }
}

fn not_there(coll: &Collection, e: &EntryView<'_>) -> Error {
    let text = format!("{} has no such document, against what another set says: {}", coll.ns, e.doc);
    Error::new(ErrorCode::OperationFailed, text)
}
