//! The arguments of `find`, as `explain` and views need them too.

use crate::resume_token;
use pando_base::{Error, Result};
use pando_bson::shape::{Field, Shape};
use pando_bson::{RawDoc, Value};
use pando_command::request::unstable_field;
use pando_command::{Arg, Args};
use pando_query::plan::Hint;

/// What a router tells of its clock; nothing follows from it here.
pub(crate) const RUNTIME_CONSTANTS: Shape = Shape::Fields(&[
    Field::required("localNow", Shape::Date),
    Field::required("clusterTime", Shape::Timestamp),
    Field::optional("jsScope", Shape::Object),
    Field::optional("isMapReduce", Shape::Bool),
    Field::optional("userRoles", Shape::List(&Shape::Any)),
]);

#[derive(Clone, Default)]
pub(crate) struct FindArgs<'a> {
    pub(crate) filter: Option<&'a RawDoc>,
    pub(crate) sort: Option<&'a RawDoc>,
    pub(crate) projection: Option<&'a RawDoc>,
    pub(crate) hint: Option<Hint>,
    pub(crate) skip: u64,
    /// `None` and 0 = no limit.
    pub(crate) limit: Option<u64>,
    pub(crate) batch_size: Option<u64>,
    pub(crate) single_batch: bool,
    pub(crate) min: Option<&'a RawDoc>,
    pub(crate) max: Option<&'a RawDoc>,
    pub(crate) return_key: bool,
    pub(crate) show_record_id: bool,
    pub(crate) tailable: bool,
    pub(crate) await_data: bool,
    pub(crate) no_cursor_timeout: bool,
    pub(crate) allow_partial: bool,
    pub(crate) read_once: bool,
    pub(crate) collation: Option<&'a RawDoc>,
    pub(crate) allow_disk_use: Option<bool>,
    pub(crate) lets: Option<&'a RawDoc>,
    /// Names a `term`: another member of the set reads the oplog.
    pub(crate) for_member: bool,
    pub(crate) by_uuid: bool,
    /// Each batch tells where a scan could go on.
    pub(crate) resume_token: bool,
    pub(crate) resume_after: Option<&'a RawDoc>,
}

/// Arguments that complain about a null too.
fn refuses_null(name: &str) -> bool {
    const NAMES: &[&str] = &[
        "filter",
        "sort",
        "projection",
        "hint",
        "singleBatch",
        "returnKey",
        "showRecordId",
        "tailable",
        "awaitData",
        "noCursorTimeout",
        "allowDiskUse",
        "allowPartialResults",
        "readOnce",
        "min",
        "max",
        "collation",
        "oplogReplay",
        "$_requestResumeToken",
        "$_resumeAfter",
    ];
    NAMES.contains(&name)
}

/// `sort`, `filter` and their like complain in a way of their own.
fn doc_field<'a>(arg: &Arg<'a>) -> Result<&'a RawDoc> {
    match arg.value() {
        Value::Document(d) => Ok(d),
        _ => Err(Error::type_mismatch(format!("Expected field {}to be of type object", arg.name()))),
    }
}

pub(crate) fn bool_field(arg: &Arg<'_>) -> Result<bool> {
    match arg.value() {
        Value::Boolean(b) => Ok(b),
        v => Err(Error::type_mismatch(format!(
            "Field '{}' should be a boolean value, but found: {}",
            arg.name(),
            v.type_name()
        ))),
    }
}

impl<'a> FindArgs<'a> {
    /// Reads everything behind the collection's name. `strict`: only what the Stable API has.
    pub(crate) fn parse(args: Args<'a>, strict: bool) -> Result<FindArgs<'a>> {
        let mut a = FindArgs::default();
        let mut to_return = false;
        for arg in args {
            let name = arg.name();
            if strict && is_unstable(name) {
                return Err(unstable_field("FindCommandRequest", name));
            }
            if arg.is_absent() && !refuses_null(name) {
                if !is_known(name) {
                    return Err(arg.unknown());
                }
                continue;
            }
            match name {
                "filter" => a.filter = Some(doc_field(&arg)?),
                "sort" => a.sort = Some(doc_field(&arg)?).filter(|d| !d.is_empty()),
                "projection" => a.projection = Some(doc_field(&arg)?).filter(|d| !d.is_empty()),
                "hint" => a.hint = Hint::parse(arg.value())?,
                "skip" => a.skip = arg.i64_at_least(0)? as u64,
                "limit" => a.limit = Some(arg.i64_at_least(0)? as u64).filter(|n| *n > 0),
                "batchSize" => a.batch_size = Some(arg.i64_at_least(0)? as u64),
                "singleBatch" => a.single_batch = bool_field(&arg)?,
                "min" => a.min = Some(doc_field(&arg)?).filter(|d| !d.is_empty()),
                "max" => a.max = Some(doc_field(&arg)?).filter(|d| !d.is_empty()),
                "returnKey" => a.return_key = bool_field(&arg)?,
                "showRecordId" => a.show_record_id = bool_field(&arg)?,
                "tailable" => a.tailable = bool_field(&arg)?,
                "awaitData" => a.await_data = bool_field(&arg)?,
                "noCursorTimeout" => a.no_cursor_timeout = bool_field(&arg)?,
                "collation" => a.collation = Some(doc_field(&arg)?).filter(|d| !d.is_empty()),
                "allowDiskUse" => a.allow_disk_use = Some(bool_field(&arg)?),
                "let" => a.lets = Some(arg.doc()?),
                "allowPartialResults" => a.allow_partial = bool_field(&arg)?,
                "readOnce" => a.read_once = bool_field(&arg)?,
                "ntoreturn" => {
                    arg.i64_at_least(0)?;
                    to_return = true;
                }
                "term" => {
                    arg.i64()?;
                    a.for_member = true;
                }
                "collectionUUID" => a.by_uuid = true,
                "$_requestResumeToken" => a.resume_token = bool_field(&arg)?,
                "$_resumeAfter" => a.resume_after = Some(doc_field(&arg)?).filter(|d| !d.is_empty()),
                "encryptionInformation" => arg.no_encryption()?,
                "oplogReplay" => drop(bool_field(&arg)?),
                "options" => arg.check(&Shape::Object)?,
                "runtimeConstants" => arg.check(&RUNTIME_CONSTANTS)?,
                "includeQueryStatsMetrics" | "querySettings" => {}
                _ => return Err(arg.unknown()),
            }
        }
        if to_return {
            return Err(a.to_return_refused());
        }
        a.check()?;
        Ok(a)
    }

    /// `ntoreturn` ended with the old protocol.
    fn to_return_refused(&self) -> Error {
        if self.limit.is_some() || self.batch_size.is_some() {
            return Error::bad_value("'limit' or 'batchSize' fields can not be set with 'ntoreturn' field.");
        }
        Error::location(5746102, "the ntoreturn find command parameter is not supported when FCV >= 5.1")
    }

    fn check(&self) -> Result<()> {
        if self.await_data && !self.tailable {
            return Err(Error::failed_to_parse("Cannot set 'awaitData' without also setting 'tailable'"));
        }
        if self.tailable {
            if self.single_batch {
                return Err(Error::bad_value("Cannot use tailable option with the 'singleBatch' option"));
            }
            let natural = |d: &RawDoc| {
                pando_query::plan::natural_of(d).is_ok_and(|n| n.is_some_and(|n| n.is_forward()))
            };
            if self.sort.is_some_and(|s| !natural(s)) {
                return Err(Error::bad_value(
                    "cannot use tailable option with a sort other than {$natural: 1}",
                ));
            }
        }
        resume_token::check(self)?;
        if let (Some(min), Some(max)) = (self.min, self.max)
            && !min.iter().map(|e| e.name()).eq(max.iter().map(|e| e.name()))
        {
            return Err(Error::location(51176, "min and max must have the same field names"));
        }
        Ok(())
    }
}

/// Not in Stable API version 1.
fn is_unstable(name: &str) -> bool {
    matches!(
        name,
        "min"
            | "max"
            | "returnKey"
            | "showRecordId"
            | "tailable"
            | "awaitData"
            | "noCursorTimeout"
            | "oplogReplay"
            | "readOnce"
            | "term"
            | "collectionUUID"
            | "$_requestResumeToken"
            | "$_resumeAfter"
    )
}

fn is_known(name: &str) -> bool {
    matches!(
        name,
        "skip"
            | "limit"
            | "batchSize"
            | "singleBatch"
            | "min"
            | "max"
            | "returnKey"
            | "showRecordId"
            | "tailable"
            | "awaitData"
            | "noCursorTimeout"
            | "collation"
            | "allowDiskUse"
            | "let"
            | "oplogReplay"
            | "allowPartialResults"
            | "readOnce"
            | "ntoreturn"
            | "term"
            | "runtimeConstants"
            | "encryptionInformation"
            | "options"
            | "collectionUUID"
            | "$_requestResumeToken"
            | "$_resumeAfter"
            | "includeQueryStatsMetrics"
            | "querySettings"
    )
}
