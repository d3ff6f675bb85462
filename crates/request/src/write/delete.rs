//! `delete`, and one of its statements.

use super::args::{WriteArgs, check_batch_size, check_statement_ids};
use crate::spell::{self, spell_hint};
use pando_base::{Error, Namespace, Result};
use pando_bson::{DocBuilder, Elem, RawDoc, Value};
use pando_command::args::safe_i64;
use pando_command::request::missing;
use pando_command::{Arg, Args, Names, Request};
use pando_query::plan::Hint;

/// The whole command.
#[derive(Clone)]
pub struct DeleteArgs<'a> {
    pub ns: Namespace,
    pub write: WriteArgs<'a>,
    /// 1 to 100,000 of them.
    pub deletes: Vec<DeleteStatement<'a>>,
}

impl<'a> DeleteArgs<'a> {
    /// Reads the whole command; `may_write` says of a name what the role says, once all else is read.
    pub fn parse(
        req: &Request<'a>,
        may_write: impl FnOnce(&Namespace) -> Result<()>,
    ) -> Result<DeleteArgs<'a>> {
        let mut deletes = Vec::new();
        let write = WriteArgs::parse(req, "delete", "deletes", |doc| {
            deletes.push(DeleteStatement::parse(doc)?);
            Ok(())
        })?;
        let ns = req.ns()?;
        for (i, s) in deletes.iter_mut().enumerate() {
            s.index = i;
            s.let_vars = write.let_vars;
        }
        check_batch_size(deletes.len())?;
        check_statement_ids(req.body, deletes.len())?;
        may_write(&ns)?;
        Ok(DeleteArgs { ns, write, deletes })
    }

    /// Writes everything behind the collection's name.
    pub fn spell(&self, b: &mut DocBuilder) {
        self.write.spell(b);
        b.array("deletes", |list| {
            for s in &self.deletes {
                list.doc(|d| s.spell(d));
            }
        });
    }
}

/// One element of `deletes`.
#[derive(Clone)]
pub struct DeleteStatement<'a> {
    pub filter: &'a RawDoc,
    pub collation: Option<&'a RawDoc>,
    /// Of the command, not of the statement.
    pub let_vars: Option<&'a RawDoc>,
    pub hint: Option<Hint>,
    /// All that match are to go, not one.
    pub multi: bool,
    /// Place in the command, for retries.
    pub index: usize,
    /// Arguments that nobody acts on.
    pub passthrough: Vec<Elem<'a>>,
}

impl Default for DeleteStatement<'_> {
    fn default() -> Self {
        DeleteStatement {
            filter: RawDoc::empty(),
            collation: None,
            let_vars: None,
            hint: None,
            multi: false,
            index: 0,
            passthrough: Vec::new(),
        }
    }
}

impl<'a> DeleteStatement<'a> {
    /// Reads `{q, limit, ...}`.
    pub fn parse(doc: &'a RawDoc) -> Result<DeleteStatement<'a>> {
        const OWNER: &str = "delete.deletes";
        let mut s = DeleteStatement::default();
        let (mut q, mut limit) = (None, None);
        let mut before = Names::default();
        for arg in Args::of_doc(OWNER, doc) {
            let v = arg.value();
            match arg.name() {
                "q" if arg.is_absent() => {}
                "q" => q = Some(arg.doc()?),
                // Anything that is not a number counts as 0, as in MongoDB.
                "limit" => limit = Some(parse_limit(&v)?),
                _ if s.take(&arg)? => {}
                _ => return Err(arg.unknown()),
            }
            if !arg.is_absent() {
                arg.once(&mut before)?;
            }
        }
        s.filter = q.ok_or_else(|| missing(OWNER, "q"))?;
        s.multi = limit.ok_or_else(|| missing(OWNER, "limit"))?;
        Ok(s)
    }

    /// Takes in an option that a delete has in every command; false when it is none.
    pub(crate) fn take(&mut self, arg: &Arg<'a>) -> Result<bool> {
        match arg.name() {
            "collation" if arg.is_absent() => {}
            "collation" => self.collation = Some(arg.doc()?).filter(|d| !d.is_empty()),
            "hint" => self.hint = Hint::parse(arg.value())?,
            "sampleId" => self.passthrough.push(arg.elem()),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Writes `{q, limit, ...}`, without what belongs to the command.
    pub fn spell(&self, b: &mut DocBuilder) {
        b.raw_doc("q", self.filter).i32("limit", if self.multi { 0 } else { 1 });
        self.spell_options(b);
    }
    /// The part that is the same in every command.
    pub(crate) fn spell_options(&self, b: &mut DocBuilder) {
        spell::doc(b, "collation", self.collation);
        spell_hint(b, self.hint.as_ref());
        spell::passthrough(b, &self.passthrough);
    }
}

/// Whether all are to go that match.
fn parse_limit(v: &Value<'_>) -> Result<bool> {
    match (safe_i64(v).unwrap_or(0), number(v)) {
        (0, 0.0) => Ok(true),
        (1, 1.0) => Ok(false),
        (_, f) => {
            let text = format!("The limit field in delete objects must be 0 or 1. Got {f}");
            Err(Error::failed_to_parse(text))
        }
    }
}

fn number(v: &Value<'_>) -> f64 {
    match v {
        Value::Decimal128(d) => d.to_f64(),
        v => v.as_f64().unwrap_or(0.0),
    }
}
