//! `update`, and one of its statements.

use super::args::{WriteArgs, check_batch_size, check_statement_ids};
use crate::fields::bool_field;
use crate::spell::{self, spell_hint};
use pando_base::{Error, Namespace, Result};
use pando_bson::shape::Shape;
use pando_bson::{DocBuilder, Elem, RawDoc, Value};
use pando_command::request::missing;
use pando_command::{Arg, Args, Names, Request};
use pando_query::QueryCtx;
use pando_query::matcher::Place;
use pando_query::plan::Hint;
use pando_query::stage::first_look;
use pando_query::update::UpdatePlan;

/// The whole command.
#[derive(Clone)]
pub struct UpdateArgs<'a> {
    pub ns: Namespace,
    pub write: WriteArgs<'a>,
    /// 1 to 100,000 of them.
    pub updates: Vec<UpdateStatement<'a>>,
}

impl<'a> UpdateArgs<'a> {
    /// Reads the whole command; `may_write` says of a name what the role says, once all else is read.
    pub fn parse(
        req: &Request<'a>,
        may_write: impl FnOnce(&Namespace) -> Result<()>,
    ) -> Result<UpdateArgs<'a>> {
        let mut updates = Vec::new();
        let write = WriteArgs::parse(req, "update", "updates", |doc| {
            updates.push(UpdateStatement::parse(doc)?);
            Ok(())
        })?;
        let ns = req.ns()?;
        for (i, s) in updates.iter_mut().enumerate() {
            s.index = i;
            s.let_vars = write.let_vars;
            s.bypass_validation = write.bypass_validation;
        }
        check_batch_size(updates.len())?;
        check_statement_ids(req.body, updates.len())?;
        may_write(&ns)?;
        Ok(UpdateArgs { ns, write, updates })
    }

    /// Writes everything behind the collection's name.
    pub fn spell(&self, b: &mut DocBuilder) {
        self.write.spell(b);
        b.array("updates", |list| {
            for s in &self.updates {
                list.doc(|d| s.spell(d));
            }
        });
    }
}

/// One element of `updates`.
#[derive(Clone)]
pub struct UpdateStatement<'a> {
    pub filter: &'a RawDoc,
    /// Operators or a whole document, or a pipeline.
    pub update: Value<'a>,
    pub array_filters: Option<&'a RawDoc>,
    pub collation: Option<&'a RawDoc>,
    /// Variables of a pipeline, written `c`.
    pub constants: Option<&'a RawDoc>,
    /// Of the command, not of the statement.
    pub let_vars: Option<&'a RawDoc>,
    pub hint: Option<Hint>,
    pub multi: bool,
    pub upsert: bool,
    /// An upsert inserts the constant `new` instead of the pipeline's result for an empty document.
    pub upsert_supplied: bool,
    /// Of the command, not of the statement.
    pub bypass_validation: bool,
    /// Place in the command, for retries.
    pub index: usize,
    /// Arguments that nobody acts on.
    pub passthrough: Vec<Elem<'a>>,
}

impl Default for UpdateStatement<'_> {
    fn default() -> Self {
        UpdateStatement {
            filter: RawDoc::empty(),
            update: Value::Null,
            array_filters: None,
            collation: None,
            constants: None,
            let_vars: None,
            hint: None,
            multi: false,
            upsert: false,
            upsert_supplied: false,
            bypass_validation: false,
            index: 0,
            passthrough: Vec::new(),
        }
    }
}

impl<'a> UpdateStatement<'a> {
    /// Reads `{q, u, ...}`.
    pub fn parse(doc: &'a RawDoc) -> Result<UpdateStatement<'a>> {
        const OWNER: &str = "update.updates";
        let mut s = UpdateStatement::default();
        let (mut q, mut u) = (None, None);
        let mut before = Names::default();
        for arg in Args::of_doc(OWNER, doc) {
            if arg.is_absent()
                && matches!(arg.name(), "q" | "c" | "upsert" | "multi" | "collation" | "sampleId")
            {
                continue;
            }
            match arg.name() {
                "q" => q = Some(arg.doc()?),
                "u" => u = Some(UpdateStatement::change(&arg)?),
                "c" => s.constants = Some(arg.doc()?),
                _ if s.take(&arg)? => {}
                _ => return Err(arg.unknown()),
            }
            arg.once(&mut before)?;
        }
        s.filter = q.ok_or_else(|| missing(OWNER, "q"))?;
        s.update = u.ok_or_else(|| missing(OWNER, "u"))?;
        // Stages that nobody knows are a mistake of the command, not of one of its statements.
        if let Value::Array(stages) = s.update {
            first_look(stages, None)?;
        }
        Ok(s)
    }

    /// Takes in an option that an update has in every command; false when it is none.
    pub(crate) fn take(&mut self, arg: &Arg<'a>) -> Result<bool> {
        match arg.name() {
            "multi" => self.multi = arg.bool()?,
            "upsert" => self.upsert = arg.bool()?,
            "collation" => self.collation = Some(arg.doc()?).filter(|d| !d.is_empty()),
            "arrayFilters" => {
                arg.check(&Shape::List(&Shape::Object))?;
                self.array_filters = Some(arg.array()?);
            }
            "hint" => self.hint = Hint::parse(arg.value())?,
            "upsertSupplied" => self.upsert_supplied = bool_field(arg)?,
            "sampleId" => self.passthrough.push(arg.elem()),
            _ => return Ok(false),
        }
        Ok(true)
    }
    /// What changes a document: operators or a document, or a pipeline.
    pub(crate) fn change(arg: &Arg<'a>) -> Result<Value<'a>> {
        match arg.value() {
            Value::Array(stages) if stages.iter().any(|e| e.value().as_doc().is_none()) => {
                Err(Error::type_mismatch("Each element of the 'pipeline' array must be an object"))
            }
            v @ (Value::Document(_) | Value::Array(_)) => Ok(v),
            _ => Err(Error::failed_to_parse("Update argument must be either an object or an array")),
        }
    }
    /// What it does, once its parts go together.
    pub fn plan(&self, q: &QueryCtx) -> Result<UpdatePlan> {
        if self.upsert_supplied {
            if !self.upsert {
                return Err(Error::failed_to_parse(
                    "cannot specify 'upsertSupplied: true' for a non-upsert operation",
                ));
            }
            if self.supplied().is_none() {
                return Err(Error::failed_to_parse(
                    "the parameter 'upsertSupplied' is set to 'true', but no document was supplied",
                ));
            }
        }
        if self.constants.is_some() && !matches!(self.update, Value::Array(_)) {
            return Err(Error::location(51198, "Constant values may only be specified for pipeline updates"));
        }
        let plan = UpdatePlan::parse(self.update, self.array_filters, q)?;
        if self.multi && plan.is_replacement() {
            return Err(Error::failed_to_parse("multi update is not supported for replacement-style update"));
        }
        Ok(plan)
    }
    /// What its filter is for.
    pub fn place(&self) -> Place {
        if self.upsert { Place::Upsert } else { Place::Query }
    }
    /// What an upsert inserts when the client says so.
    pub fn supplied(&self) -> Option<&'a RawDoc> {
        self.constants?.get("new").and_then(|v| v.as_doc()).filter(|_| self.upsert_supplied)
    }

    /// Writes `{q, u, ...}`, without what belongs to the command.
    pub fn spell(&self, b: &mut DocBuilder) {
        b.raw_doc("q", self.filter).value("u", self.update);
        spell::doc(b, "c", self.constants);
        self.spell_options(b);
    }
    /// The part that is the same in every command.
    pub(crate) fn spell_options(&self, b: &mut DocBuilder) {
        spell::flag(b, "multi", self.multi);
        spell::flag(b, "upsert", self.upsert);
        spell::flag(b, "upsertSupplied", self.upsert_supplied);
        spell::doc(b, "collation", self.collation);
        if let Some(filters) = self.array_filters {
            b.raw_array("arrayFilters", filters);
        }
        spell_hint(b, self.hint.as_ref());
        spell::passthrough(b, &self.passthrough);
    }
}
