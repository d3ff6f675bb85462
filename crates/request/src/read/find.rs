//! The arguments of `find`, as `explain` and views need them too.

use super::resume_token;
use crate::constants::RUNTIME_CONSTANTS;
use crate::fields::bool_field;
use crate::spell::{self, spell_hint};
use pando_base::{Error, Result};
use pando_bson::shape::Shape;
use pando_bson::{DocBuilder, Elem, RawDoc, Value};
use pando_command::request::unstable_field;
use pando_command::{Arg, Args};
use pando_query::plan::Hint;

/// What a query asks for, whichever command brought it.
#[derive(Clone, Default)]
pub struct FindArgs<'a> {
    pub filter: Option<&'a RawDoc>,
    pub sort: Option<&'a RawDoc>,
    pub projection: Option<&'a RawDoc>,
    pub hint: Option<Hint>,
    pub skip: u64,
    /// `None` and 0 = no limit.
    pub limit: Option<u64>,
    pub batch_size: Option<u64>,
    pub single_batch: bool,
    pub min: Option<&'a RawDoc>,
    pub max: Option<&'a RawDoc>,
    pub return_key: bool,
    pub show_record_id: bool,
    pub tailable: bool,
    pub await_data: bool,
    pub no_cursor_timeout: bool,
    pub allow_partial: bool,
    pub read_once: bool,
    pub collation: Option<&'a RawDoc>,
    pub allow_disk_use: Option<bool>,
    pub let_vars: Option<&'a RawDoc>,
    /// The term of another member of the set that reads the oplog.
    pub term: Option<i64>,
    /// As given: who looks the collection up checks its type and the UUID itself.
    pub collection_uuid: Option<Value<'a>>,
    /// Each batch tells where a scan could go on.
    pub resume_token: bool,
    pub resume_after: Option<&'a RawDoc>,
    /// `ntoreturn` was there, which ended with the old protocol.
    pub to_return: bool,
    /// Arguments that are checked here and acted on nowhere.
    pub passthrough: Vec<Elem<'a>>,
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

impl<'a> FindArgs<'a> {
    /// Reads everything behind the collection's name. `strict`: only what the Stable API has.
    pub fn parse(args: Args<'a>, strict: bool) -> Result<FindArgs<'a>> {
        let a = FindArgs::read(args, strict)?;
        a.check()?;
        Ok(a)
    }
    /// Reads each argument by itself; [`FindArgs::check`] looks at them together.
    pub fn read(args: Args<'a>, strict: bool) -> Result<FindArgs<'a>> {
        let mut a = FindArgs::default();
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
                "let" => a.let_vars = Some(arg.doc()?),
                "allowPartialResults" => a.allow_partial = bool_field(&arg)?,
                "readOnce" => a.read_once = bool_field(&arg)?,
                "ntoreturn" => {
                    arg.i64_at_least(0)?;
                    a.to_return = true;
                }
                "term" => a.term = Some(arg.i64()?),
                "collectionUUID" => a.collection_uuid = Some(arg.value()),
                "$_requestResumeToken" => a.resume_token = bool_field(&arg)?,
                "$_resumeAfter" => a.resume_after = Some(doc_field(&arg)?).filter(|d| !d.is_empty()),
                _ => {
                    match name {
                        "encryptionInformation" => arg.no_encryption()?,
                        // In the words of a release that has forgotten what it means.
                        "oplogReplay" if !matches!(arg.value(), Value::Boolean(_)) => {
                            return Err(Error::type_mismatch(
                                "Expected field oplogReplayto be of type object",
                            ));
                        }
                        "oplogReplay" => {}
                        "options" => arg.check(&Shape::Object)?,
                        "runtimeConstants" => arg.check(&RUNTIME_CONSTANTS)?,
                        "includeQueryStatsMetrics" | "querySettings" => {}
                        _ => return Err(arg.unknown()),
                    }
                    a.passthrough.push(arg.elem());
                }
            }
        }
        Ok(a)
    }

    /// Writes the arguments that [`FindArgs::parse`] reads.
    pub fn spell(&self, b: &mut DocBuilder) {
        spell::doc(b, "filter", self.filter);
        spell::doc(b, "sort", self.sort);
        spell::doc(b, "projection", self.projection);
        spell_hint(b, self.hint.as_ref());
        spell::count(b, "skip", Some(self.skip).filter(|n| *n > 0));
        spell::count(b, "limit", self.limit);
        spell::count(b, "batchSize", self.batch_size);
        spell::flag(b, "singleBatch", self.single_batch);
        spell::doc(b, "min", self.min);
        spell::doc(b, "max", self.max);
        spell::flag(b, "returnKey", self.return_key);
        spell::flag(b, "showRecordId", self.show_record_id);
        spell::flag(b, "tailable", self.tailable);
        spell::flag(b, "awaitData", self.await_data);
        spell::flag(b, "noCursorTimeout", self.no_cursor_timeout);
        spell::flag(b, "allowPartialResults", self.allow_partial);
        spell::flag(b, "readOnce", self.read_once);
        spell::doc(b, "collation", self.collation);
        if let Some(allowed) = self.allow_disk_use {
            b.bool("allowDiskUse", allowed);
        }
        spell::doc(b, "let", self.let_vars);
        if let Some(term) = self.term {
            b.i64("term", term);
        }
        if let Some(uuid) = self.collection_uuid {
            b.value("collectionUUID", uuid);
        }
        spell::flag(b, "$_requestResumeToken", self.resume_token);
        spell::doc(b, "$_resumeAfter", self.resume_after);
        spell::passthrough(b, &self.passthrough);
    }

    /// `ntoreturn` ended with the old protocol.
    fn to_return_refused(&self) -> Error {
        if self.limit.is_some() || self.batch_size.is_some() {
            return Error::bad_value("'limit' or 'batchSize' fields can not be set with 'ntoreturn' field.");
        }
        Error::location(5746102, "the ntoreturn find command parameter is not supported when FCV >= 5.1")
    }

    /// Err when arguments do not go together.
    pub fn check(&self) -> Result<()> {
        if self.to_return {
            return Err(self.to_return_refused());
        }
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
