//! `insert`.

use super::args::{WriteArgs, check_batch_size, check_statement_ids};
use pando_base::{Namespace, Result};
use pando_bson::{DocBuilder, RawDoc};
use pando_command::Request;

/// The whole command.
#[derive(Clone)]
pub struct InsertArgs<'a> {
    pub ns: Namespace,
    pub write: WriteArgs<'a>,
    /// 1 to 100,000 of them, as they came.
    pub documents: Vec<&'a RawDoc>,
}

impl<'a> InsertArgs<'a> {
    /// Reads the whole command; `may_write` says of a name what the role says, once all else is read.
    pub fn parse(
        req: &Request<'a>,
        may_write: impl FnOnce(&Namespace) -> Result<()>,
    ) -> Result<InsertArgs<'a>> {
        let mut documents: Vec<&RawDoc> = Vec::new();
        let write = WriteArgs::parse(req, "insert", "documents", |doc| {
            documents.push(doc);
            Ok(())
        })?;
        let ns = req.ns()?;
        check_batch_size(documents.len())?;
        check_statement_ids(req.body, documents.len())?;
        may_write(&ns)?;
        Ok(InsertArgs { ns, write, documents })
    }

    /// Writes everything behind the collection's name.
    pub fn spell(&self, b: &mut DocBuilder) {
        self.write.spell(b);
        b.array("documents", |list| {
            for doc in &self.documents {
                list.raw_doc(doc);
            }
        });
    }
}
