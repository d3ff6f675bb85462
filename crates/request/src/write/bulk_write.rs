//! `bulkWrite`: operations of all kinds, and the collections they are about.

use super::args::{WriteArgs, check_batch_size};
use super::delete::DeleteStatement;
use super::update::UpdateStatement;
use crate::fields::cursor_option;
use crate::spell;
use pando_base::{Error, Namespace, Result, Uuid};
use pando_bson::{DocBuilder, Elem, RawDoc, Value};
use pando_command::request::missing;
use pando_command::{Args, Names, Request};

const OWNER: &str = "bulkWrite";

/// The whole command.
#[derive(Clone)]
pub struct BulkWriteArgs<'a> {
    pub write: WriteArgs<'a>,
    /// Only failures are told one by one.
    pub errors_only: bool,
    pub batch_size: Option<u64>,
    pub namespaces: Vec<NsInfo<'a>>,
    /// Which of `namespaces`, and what is to be done there.
    pub ops: Vec<(usize, BulkOp<'a>)>,
}

/// One element of `nsInfo`.
#[derive(Clone)]
pub struct NsInfo<'a> {
    pub ns: Namespace,
    pub uuid: Option<Uuid>,
    /// A time series, named by its collection of buckets.
    pub by_buckets: bool,
    /// Arguments that are checked here and acted on nowhere.
    pub passthrough: Vec<Elem<'a>>,
}

/// One element of `ops`.
#[derive(Clone)]
pub enum BulkOp<'a> {
    Insert(&'a RawDoc),
    Update(Box<UpdateStatement<'a>>),
    Delete(DeleteStatement<'a>),
}

impl<'a> BulkWriteArgs<'a> {
    /// Reads the whole command; `may_write` says of each name what the role says.
    pub fn parse(
        req: &Request<'a>,
        may_write: impl Fn(&Namespace) -> Result<()>,
    ) -> Result<BulkWriteArgs<'a>> {
        let mut a = BulkWriteArgs::parse_options(req)?;
        for doc in req.required_docs(OWNER, "nsInfo")? {
            a.namespaces.push(NsInfo::parse(doc, &may_write)?);
        }
        for doc in req.required_docs(OWNER, "ops")? {
            a.ops.push(parse_op(doc)?);
        }
        check_batch_size(a.ops.len())?;
        check_batch_size(a.namespaces.len())?;
        if let Some(i) = a.ops.iter().position(|(at, _)| *at >= a.namespaces.len()) {
            return Err(Error::bad_value(format!("BulkWrite ops entry {i} has an invalid nsInfo index.")));
        }
        for (i, (_, op)) in a.ops.iter_mut().enumerate() {
            match op {
                BulkOp::Insert(_) => {}
                BulkOp::Update(s) => {
                    s.index = i;
                    s.let_vars = a.write.let_vars;
                    s.bypass_validation = a.write.bypass_validation;
                }
                BulkOp::Delete(s) => {
                    s.index = i;
                    s.let_vars = a.write.let_vars;
                }
            }
        }
        Ok(a)
    }

    fn parse_options(req: &Request<'a>) -> Result<BulkWriteArgs<'a>> {
        let mut a = BulkWriteArgs {
            write: WriteArgs::default(),
            errors_only: false,
            batch_size: None,
            namespaces: Vec::new(),
            ops: Vec::new(),
        };
        for arg in req.args(OWNER) {
            if matches!(arg.value(), Value::Null) {
                continue;
            }
            match arg.name() {
                "ops" | "nsInfo" => {}
                "errorsOnly" => a.errors_only = arg.bool()?,
                "cursor" => a.batch_size = cursor_option(OWNER, arg.elem())?,
                _ if a.write.take(OWNER, &arg)? => {}
                _ => return Err(arg.unknown()),
            }
        }
        req.only_sequences(OWNER, &["ops", "nsInfo"])?;
        Ok(a)
    }

    /// Writes everything behind the command's name.
    pub fn spell(&self, b: &mut DocBuilder) {
        self.write.spell(b);
        spell::flag(b, "errorsOnly", self.errors_only);
        if self.batch_size.is_some() {
            b.doc("cursor", |c| spell::count(c, "batchSize", self.batch_size));
        }
        b.array("nsInfo", |list| {
            for info in &self.namespaces {
                list.doc(|d| info.spell(d));
            }
        });
        b.array("ops", |list| {
            for (at, op) in &self.ops {
                list.doc(|d| op.spell(*at, d));
            }
        });
    }
}

impl<'a> NsInfo<'a> {
    fn parse(doc: &'a RawDoc, may_write: &impl Fn(&Namespace) -> Result<()>) -> Result<NsInfo<'a>> {
        const OWNER: &str = "bulkWrite.nsInfo";
        let (mut ns, mut uuid, mut by_buckets, mut passthrough) = (None, None, false, Vec::new());
        let mut before = Names::default();
        for arg in Args::of_doc(OWNER, doc) {
            match arg.name() {
                "ns" => ns = Some(arg.str()?),
                _ if matches!(arg.value(), Value::Null) => continue,
                "collectionUUID" => uuid = Some(Uuid(arg.uuid()?)),
                "isTimeseriesNamespace" => by_buckets = arg.boolish()?,
                "encryptionInformation" => {
                    arg.no_encryption()?;
                    passthrough.push(arg.elem());
                }
                _ => return Err(arg.unknown()),
            }
            arg.once(&mut before)?;
        }
        let ns = ns.ok_or_else(|| missing(OWNER, "ns"))?;
        let (db, coll) = ns.split_once('.').unwrap_or((ns, ""));
        let ns = Namespace::new(db, coll)?;
        may_write(&ns)?;
        Ok(NsInfo { ns, uuid, by_buckets, passthrough })
    }

    fn spell(&self, b: &mut DocBuilder) {
        b.str("ns", self.ns.as_str());
        if let Some(uuid) = &self.uuid {
            b.uuid("collectionUUID", &uuid.0);
        }
        spell::flag(b, "isTimeseriesNamespace", self.by_buckets);
        spell::passthrough(b, &self.passthrough);
    }
}

impl BulkOp<'_> {
    /// `at`: its place in `nsInfo`.
    fn spell(&self, at: usize, b: &mut DocBuilder) {
        let at = i32::try_from(at).unwrap_or(i32::MAX);
        match self {
            BulkOp::Insert(doc) => drop(b.i32("insert", at).raw_doc("document", doc)),
            BulkOp::Update(s) => {
                b.i32("update", at).raw_doc("filter", s.filter).value("updateMods", s.update);
                spell::doc(b, "constants", s.constants);
                s.spell_options(b);
            }
            BulkOp::Delete(s) => {
                b.i32("delete", at).raw_doc("filter", s.filter);
                spell::flag(b, "multi", s.multi);
                s.spell_options(b);
            }
        }
    }
}

/// The position of the operation's collection, and the operation.
fn parse_op<'a>(doc: &'a RawDoc) -> Result<(usize, BulkOp<'a>)> {
    let kind = doc.first().map_or("", |e| e.name());
    let (at, op) = match kind {
        "insert" => parse_insert(doc)?,
        "update" => parse_update(doc)?,
        "delete" => parse_delete(doc)?,
        other => {
            return Err(Error::failed_to_parse(format!(
                "Unrecognized bulkWrite operation type: '{other}' in operation {doc}"
            )));
        }
    };
    let at =
        usize::try_from(at).map_err(|_| Error::bad_value("BulkWrite nsInfo index must not be negative"))?;
    Ok((at, op))
}

fn parse_insert<'a>(doc: &'a RawDoc) -> Result<(i64, BulkOp<'a>)> {
    const OWNER: &str = "bulkWrite.insert";
    let (mut at, mut document) = (0, None);
    let mut before = Names::default();
    for arg in Args::of_doc(OWNER, doc) {
        match arg.name() {
            "insert" => at = arg.i64_at_least(0)?,
            "document" => document = Some(arg.doc()?),
            _ => return Err(arg.unknown()),
        }
        arg.once(&mut before)?;
    }
    Ok((at, BulkOp::Insert(document.ok_or_else(|| missing(OWNER, "document"))?)))
}

fn parse_update<'a>(doc: &'a RawDoc) -> Result<(i64, BulkOp<'a>)> {
    const OWNER: &str = "bulkWrite.update";
    let (mut at, mut filter, mut mods) = (0, None, None);
    let mut s = UpdateStatement::default();
    let mut before = Names::default();
    for arg in Args::of_doc(OWNER, doc) {
        if matches!(arg.value(), Value::Null) && arg.name() != "updateMods" {
            continue;
        }
        match arg.name() {
            "update" => at = arg.i64_at_least(0)?,
            "filter" => filter = Some(arg.doc()?),
            "updateMods" => mods = Some(UpdateStatement::change(&arg)?),
            "constants" => s.constants = Some(arg.doc()?),
            _ if s.take(&arg)? => {}
            _ => return Err(arg.unknown()),
        }
        arg.once(&mut before)?;
    }
    s.filter = filter.ok_or_else(|| missing(OWNER, "filter"))?;
    s.update = mods.ok_or_else(|| missing(OWNER, "updateMods"))?;
    Ok((at, BulkOp::Update(Box::new(s))))
}

fn parse_delete<'a>(doc: &'a RawDoc) -> Result<(i64, BulkOp<'a>)> {
    const OWNER: &str = "bulkWrite.delete";
    let (mut at, mut filter) = (0, None);
    let mut s = DeleteStatement::default();
    let mut before = Names::default();
    for arg in Args::of_doc(OWNER, doc) {
        match arg.name() {
            "delete" => at = arg.i64_at_least(0)?,
            "filter" => filter = Some(arg.doc()?),
            "multi" => s.multi = arg.bool()?,
            _ if s.take(&arg)? => {}
            _ => return Err(arg.unknown()),
        }
        arg.once(&mut before)?;
    }
    s.filter = filter.ok_or_else(|| missing(OWNER, "filter"))?;
    Ok((at, BulkOp::Delete(s)))
}
