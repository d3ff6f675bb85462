//! The arguments of `explain`, and those of the command within.

use super::aggregate::AggregateArgs;
use super::count::CountArgs;
use super::distinct::DistinctArgs;
use super::find::FindArgs;
use super::map_reduce::MapReduceArgs;
use crate::declare::kinds::Text;
use crate::declare::{arguments, kind};
use crate::write::args::{WriteArgs, check_batch_size};
use crate::write::delete::DeleteStatement;
use crate::write::find_and_modify::FindAndModifyArgs;
use crate::write::update::UpdateStatement;
use pando_base::{Error, ErrorCode, Namespace, Result};
use pando_bson::shape::Shape;
use pando_bson::{DocBuilder, RawDoc, Value};
use pando_command::Request;
use pando_command::concern::had_wrong_type;
use pando_command::generic_args::{check_max_time_of_aggregate, parse_max_time_ms};
use pando_command::request::{missing, wrong_type};

arguments! {
    /// What `explain` asks for beside the command that it explains.
    pub struct ExplainArgs of "explain" as "explain", refusing {
        "verbosity" verbosity: optional Verbosity,
    }
}

kind! { pub Verbosity like Text { SHAPE: Shape::Word(&["queryPlanner", "executionStats", "allPlansExecution"]) } }

impl ExplainArgs<'_> {
    /// The command within, which is `explain`'s own element.
    pub fn inner<'a>(req: &Request<'a>) -> Result<&'a RawDoc> {
        let inner = match req.first().value() {
            Value::Document(inner) => inner,
            Value::Null | Value::Undefined => return Err(missing("explain", "explain")),
            v => return Err(wrong_type("explain", "explain", &v, &["object"])),
        };
        Ok(inner)
    }
    /// Error when the command within names another database.
    pub fn check_database(inner: &RawDoc, outer: &str) -> Result<()> {
        match inner.get("$db").and_then(|v| v.as_str()) {
            Some(db) if db != outer => {
                let text = format!("Mismatched $db in explain command. Expected {outer} but got {db}");
                Err(Error::new(ErrorCode::InvalidNamespace, text))
            }
            _ => Ok(()),
        }
    }
}

/// A command that can be explained.
#[derive(Clone)]
pub enum Explained<'a> {
    Aggregate(AggregateArgs<'a>),
    MapReduce(MapReduceArgs<'a>),
    Find(FindArgs<'a>),
    Count(CountArgs<'a>),
    Distinct(DistinctArgs<'a>),
    Update(WriteArgs<'a>, UpdateStatement<'a>),
    Delete(WriteArgs<'a>, DeleteStatement<'a>),
    FindAndModify(FindAndModifyArgs<'a>),
}

impl<'a> Explained<'a> {
    /// Whether a command of this name can be explained.
    pub fn has(name: &str) -> bool {
        const NAMES: &[&str] =
            &["aggregate", "count", "delete", "distinct", "find", "findAndModify", "mapReduce", "update"];
        NAMES.contains(&name)
    }
    /// Reads the command `inner`. `named` finds what it names: for some commands before their arguments are read, for
    /// others behind them. `arguments_read` is called once each argument has been read by itself.
    pub fn parse(
        inner: &Request<'a>,
        strict: bool,
        named: impl FnOnce(&Request<'a>) -> Result<Namespace>,
        arguments_read: impl Fn() -> Result<()>,
    ) -> Result<(Namespace, Explained<'a>)> {
        check_envelope(inner.name, inner.body)?;
        let command = match inner.name {
            "aggregate" => {
                let ns = named(inner)?;
                return Ok((ns, Explained::Aggregate(AggregateArgs::parse_explained(inner)?)));
            }
            "find" => {
                check_name_type(inner)?;
                Explained::Find(FindArgs::parse(inner.args("FindCommandRequest"), strict)?)
            }
            "distinct" => Explained::Distinct(DistinctArgs::parse(inner)?),
            "mapReduce" => Explained::MapReduce(MapReduceArgs::parse(inner)?),
            "count" => {
                check_name_type(inner)?;
                Explained::Count(CountArgs::parse(inner)?)
            }
            "update" => {
                let mut all = Vec::new();
                let args = WriteArgs::parse(inner, "update", "updates", |doc| {
                    all.push(UpdateStatement::parse(doc)?);
                    Ok(())
                })?;
                let ns = named(inner)?;
                let statement = one_statement(all, arguments_read)?;
                let let_vars = args.let_vars;
                return Ok((ns, Explained::Update(args, UpdateStatement { let_vars, ..statement })));
            }
            "delete" => {
                let mut all = Vec::new();
                let args = WriteArgs::parse(inner, "delete", "deletes", |doc| {
                    all.push(DeleteStatement::parse(doc)?);
                    Ok(())
                })?;
                let ns = named(inner)?;
                return Ok((ns, Explained::Delete(args, one_statement(all, arguments_read)?)));
            }
            "findAndModify" => Explained::FindAndModify(FindAndModifyArgs::parse(inner)?),
            "explain" => {
                return Err(Error::new(ErrorCode::IllegalOperation, "Explain cannot explain itself."));
            }
            name => {
                return Err(Error::new(ErrorCode::IllegalOperation, format!("Cannot explain cmd: {name}")));
            }
        };
        let ns = named(inner)?;
        match &command {
            Explained::MapReduce(args) => args.check()?,
            Explained::FindAndModify(args) => arguments_read().and_then(|()| args.check())?,
            _ => {}
        }
        Ok((ns, command))
    }

    /// Writes the arguments of the command within.
    pub fn spell(&self, b: &mut DocBuilder) {
        match self {
            Explained::Aggregate(a) => a.spell(b),
            Explained::MapReduce(a) => a.spell(b),
            Explained::Find(a) => a.spell(b),
            Explained::Count(a) => a.spell(b),
            Explained::Distinct(a) => a.spell(b),
            Explained::FindAndModify(a) => a.spell(b),
            Explained::Update(a, statement) => {
                a.spell(b);
                b.array("updates", |list| {
                    list.doc(|d| statement.spell(d));
                });
            }
            Explained::Delete(a, statement) => {
                a.spell(b);
                b.array("deletes", |list| {
                    list.doc(|d| statement.spell(d));
                });
            }
        }
    }
}

/// What every command carries must be right within, too: the parts that a command has among its own arguments by the
/// words of those.
fn check_envelope(name: &str, body: &RawDoc) -> Result<()> {
    let owner = if name == "find" { "FindCommandRequest" } else { name };
    for field in ["readConcern", "writeConcern"] {
        let owns = field == "readConcern" && matches!(name, "find" | "aggregate" | "count")
            || field == "writeConcern" && matches!(name, "aggregate" | "findAndModify");
        if let Some(v) = body.get(field).filter(|_| owns) {
            Shape::Object.check(&format!("{owner}.{field}"), &v)?;
        }
    }
    // The others take it as they are told it outside.
    if let Some(v) = body.get("readConcern").filter(|v| v.as_doc().is_none())
        && name == "distinct"
    {
        return Err(had_wrong_type("readConcern", "object", &v));
    }
    match body.get("maxTimeMS") {
        Some(v) if name == "aggregate" => check_max_time_of_aggregate(&v),
        Some(v) if matches!(name, "find" | "count" | "distinct") => parse_max_time_ms(&v).map(drop),
        _ => Ok(()),
    }
}

/// Here a name of another type, a UUID among them, is a bad namespace.
fn check_name_type(inner: &Request<'_>) -> Result<()> {
    inner.coll().map(drop).map_err(|e| Error::new(ErrorCode::InvalidNamespace, e.message.to_string()))
}

/// All are read before they are counted.
fn one_statement<S>(mut all: Vec<S>, arguments_read: impl Fn() -> Result<()>) -> Result<S> {
    check_batch_size(all.len())?;
    arguments_read()?;
    match (all.pop(), all.is_empty()) {
        (Some(one), true) => Ok(one),
        _ => Err(Error::new(ErrorCode::InvalidLength, "explained write batches must be of size 1")),
    }
}
