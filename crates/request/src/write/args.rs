//! What write commands are told beside their statements.

use crate::constants::RUNTIME_CONSTANTS;
use crate::fields::bool_field;
use crate::spell;
use pando_base::{Error, ErrorCode, Result, limits};
use pando_bson::shape::Shape;
use pando_bson::{DocBuilder, Elem, RawDoc, Value};
use pando_command::{Arg, Request};

#[derive(Clone)]
pub struct WriteArgs<'a> {
    pub ordered: bool,
    pub bypass_validation: bool,
    pub let_vars: Option<&'a RawDoc>,
    pub collection_uuid: Option<Value<'a>>,
    /// A time series, named by its collection of buckets.
    pub by_buckets: bool,
    /// Arguments that are checked here and acted on nowhere.
    pub passthrough: Vec<Elem<'a>>,
}

impl Default for WriteArgs<'_> {
    fn default() -> Self {
        WriteArgs {
            ordered: true,
            bypass_validation: false,
            let_vars: None,
            collection_uuid: None,
            by_buckets: false,
            passthrough: Vec::new(),
        }
    }
}

impl<'a> WriteArgs<'a> {
    /// Reads the arguments of the command `owner` (insert, update, delete), whose statements are the list or the sequence
    /// `statements`; `each` reads one of them. Those of a list are read at its place, those of a sequence last.
    pub fn parse(
        req: &Request<'a>,
        owner: &'static str,
        statements: &'static str,
        mut each: impl FnMut(&'a RawDoc) -> Result<()>,
    ) -> Result<WriteArgs<'a>> {
        let mut a = WriteArgs::default();
        let mut listed = false;
        let beside = req.sequences.iter().any(|s| s.name == statements);
        for arg in req.args(owner).and(&["stmtId", "stmtIds"]) {
            if arg.is_absent() && is_nullable(owner, arg.name()) {
                continue;
            }
            match arg.name() {
                name if name == statements => {
                    listed = true;
                    if !beside {
                        req.each_doc(owner, statements, &mut each)?;
                    }
                }
                // Among what every command carries, but typed by these.
                "stmtId" => arg.check(&Shape::Int)?,
                "stmtIds" => arg.check(&Shape::List(&Shape::Int))?,
                "collectionUUID" => {
                    arg.check(&Shape::Uuid)?;
                    a.collection_uuid = Some(arg.value());
                }
                "isTimeseriesNamespace" => a.by_buckets = bool_field(&arg)?,
                "encryptionInformation" => {
                    arg.no_encryption()?;
                    a.passthrough.push(arg.elem());
                }
                "legacyRuntimeConstants" if owner != "insert" => {
                    arg.check(&RUNTIME_CONSTANTS)?;
                    a.passthrough.push(arg.elem());
                }
                _ if a.take(owner, &arg)? => {}
                _ => return Err(arg.unknown()),
            }
        }
        req.only_sequences(owner, &[statements])?;
        if beside || !listed {
            req.each_doc(owner, statements, &mut each)?;
        }
        Ok(a)
    }

    /// Takes in an argument that `bulkWrite` has as well; false when it is none.
    pub(crate) fn take(&mut self, owner: &str, arg: &Arg<'a>) -> Result<bool> {
        match arg.name() {
            "ordered" => self.ordered = arg.bool()?,
            "bypassDocumentValidation" => self.bypass_validation = arg.boolish()?,
            "let" if owner != "insert" => self.let_vars = Some(arg.doc()?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Writes the arguments that [`WriteArgs::parse`] reads; statements are written by whoever has them.
    pub fn spell(&self, b: &mut DocBuilder) {
        if !self.ordered {
            b.bool("ordered", false);
        }
        spell::flag(b, "bypassDocumentValidation", self.bypass_validation);
        spell::doc(b, "let", self.let_vars);
        if let Some(uuid) = self.collection_uuid {
            b.value("collectionUUID", uuid);
        }
        spell::flag(b, "isTimeseriesNamespace", self.by_buckets);
        spell::passthrough(b, &self.passthrough);
    }
}

/// Arguments that may be null, which counts as not given.
fn is_nullable(owner: &str, name: &str) -> bool {
    matches!(name, "ordered" | "bypassDocumentValidation" | "collectionUUID" | "encryptionInformation")
        || (owner != "insert" && matches!(name, "let" | "legacyRuntimeConstants"))
}

/// Code 16 unless 1 to 100,000.
pub fn check_batch_size(n: usize) -> Result<()> {
    if n == 0 || n > limits::WRITE_BATCH_OPS_MAX {
        return Err(Error::new(
            ErrorCode::InvalidLength,
            format!(
                "Write batch sizes must be between 1 and {}. Got {n} operations.",
                limits::WRITE_BATCH_OPS_MAX
            ),
        ));
    }
    Ok(())
}

/// Code 16 unless there is one number for each statement, where numbers are listed.
pub fn check_statement_ids(body: &RawDoc, n: usize) -> Result<()> {
    let listed = match body.get("stmtIds") {
        Some(Value::Array(list)) => list.iter().count(),
        _ => return Ok(()),
    };
    if body.elem("stmtId").is_some() {
        let text = "May not specify both stmtId and stmtIds in write command.";
        return Err(Error::new(ErrorCode::InvalidOptions, text));
    }
    if listed != n {
        return Err(Error::new(
            ErrorCode::InvalidLength,
            format!(
                "Number of statement ids must match the number of batch entries. Got {listed} statement ids but {n} \
                 operations."
            ),
        ));
    }
    Ok(())
}
