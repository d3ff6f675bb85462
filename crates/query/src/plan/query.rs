//! A query as the planner takes it.

use super::firsts::Firsts;
use super::near_output::NearOutput;
use crate::ctx::QueryCtx;
use crate::matcher::Matcher;
use crate::projection::Projection;
use crate::sort::SortPattern;
use crate::source::{Direction, Owned, RecordId};
use pando_base::{Error, ErrorCode, Result};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};
use std::sync::Arc;

/// A query as the planner takes it.
#[derive(Clone)]
pub struct Query {
    /// `db.collection`, for messages.
    pub ns: String,
    pub matcher: Arc<Matcher>,
    pub projection: Option<Arc<Projection>>,
    pub sort: Option<Arc<SortPattern>>,
    /// `sort: {$natural: ±1}` or the same as a hint.
    pub natural: Option<Direction>,
    pub skip: u64,
    pub limit: Option<u64>,
    pub hint: Option<Hint>,
    pub min: Option<DocBuf>,
    pub max: Option<DocBuf>,
    /// Collation, variables.
    pub ctx: QueryCtx,
    pub return_key: bool,
    pub show_record_id: bool,
    pub tailable: bool,
    /// A collection scan goes on behind this record, which must still be there.
    pub resume_after: Option<RecordId>,
    pub kind: QueryKind,
    /// Rows have to carry their text score, whatever sort and projection say.
    pub text_score: bool,
    /// Rows have to tell how near they are, whatever the projection says.
    pub nearness: bool,
    /// The query is of a `$geoNear`.
    pub near_output: Option<Arc<NearOutput>>,
    /// Only asked how it would run: all candidates race, and nothing is remembered.
    pub explained: bool,
    /// What of the rows is read by those who get them; `None` = everything, or the projection says it.
    pub reads: Option<Arc<Projection>>,
    /// On a shard: which documents it may show.
    pub owned: Option<Arc<dyn Owned>>,
    /// One document of each group is enough.
    pub firsts: Option<Firsts>,
    /// Of a write, whose limit is not told in errors.
    pub of_write: bool,
    /// Errors tell the collation, also the simple one.
    pub says_collation: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum QueryKind {
    /// Rows are documents.
    #[default]
    Find,
    /// Only the number of rows matters; rows may come without documents.
    Count,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Hint {
    Name(String),
    Pattern(DocBuf),
    Natural(Direction),
}

impl Hint {
    /// `hint` of a command: an index name, a key pattern or `{$natural: ±1}`.
    pub fn parse(v: Value<'_>) -> Result<Option<Hint>> {
        match v {
            Value::String(name) => Ok(Some(Hint::Name(name.to_owned()))),
            Value::Document(d) if d.is_empty() => Ok(None),
            Value::Document(d) => Ok(Some(match natural(d, "hint")? {
                Some(dir) => Hint::Natural(dir),
                None => Hint::Pattern(d.to_buf()),
            })),
            _ => Err(Error::new(ErrorCode::FailedToParse, "Hint must be a string or an object")),
        }
    }
}

/// The direction of `{$natural: ±1}`; `None` when the document is something else.
pub fn natural_of(d: &RawDoc) -> Result<Option<Direction>> {
    natural(d, "sort")
}

fn natural(d: &RawDoc, what: &str) -> Result<Option<Direction>> {
    let Some(e) = d.elem("$natural") else { return Ok(None) };
    if d.count() > 1 {
        return Err(Error::bad_value(format!("Cannot include '$natural' in compound {what}: {d}")));
    }
    let backward = pando_bson::fields::safe_i64(&e.value()).is_some_and(|n| n < 0);
    Ok(Some(if backward { Direction::Backward } else { Direction::Forward }))
}

impl Query {
    /// A query for all documents that match.
    pub fn new(ns: &str, matcher: Arc<Matcher>, ctx: QueryCtx) -> Query {
        Query {
            ns: ns.to_owned(),
            matcher,
            projection: None,
            sort: None,
            natural: None,
            skip: 0,
            limit: None,
            hint: None,
            min: None,
            max: None,
            ctx,
            return_key: false,
            show_record_id: false,
            tailable: false,
            resume_after: None,
            kind: QueryKind::Find,
            text_score: false,
            nearness: false,
            near_output: None,
            explained: false,
            reads: None,
            owned: None,
            firsts: None,
            of_write: false,
            says_collation: false,
        }
    }

    /// Only what is capped can be waited at the end of.
    #[cold]
    pub fn not_capped(&self) -> Error {
        self.refused(ErrorCode::BadValue.0, "tailable cursor requested on non capped collection")
    }
    /// An error of the planner, with the query in front as MongoDB shows it.
    #[cold]
    pub(crate) fn error(&self, code: i32, message: &str) -> Error {
        self.refused(code, &format!("planner returned error :: caused by :: {message}"))
    }
    fn refused(&self, code: i32, message: &str) -> Error {
        let sort = self.sort.as_ref().map_or_else(DocBuf::new, |s| s.spec.clone());
        let shown = |name: &str, n: u64| if n > 0 { format!(" {name}={n}") } else { String::new() };
        let is_shown = self.near_output.is_none() && !self.of_write;
        let limit = shown("limit", self.limit.filter(|_| is_shown).unwrap_or(0));
        let skip = shown("skip", self.skip);
        let collation = match &self.ctx.collation {
            _ if !self.says_collation => String::new(),
            Some(collation) => format!("Collation: {}\n", collation.spec()),
            None => "Collation: { locale: \"simple\" }\n".to_owned(),
        };
        let mut proj = DocBuilder::new();
        // What a router asks for beside what its client wants is no matter of the client's.
        for e in self.projection.iter().flat_map(|p| p.spec().iter()).filter(|e| e.name() != "$sortKey") {
            proj.elem(e);
        }
        let proj = proj.finish();
        Error::location(
            code,
            format!(
                "error processing query: ns={}{limit}{skip}Tree: {}Sort: {}\nProj: {}\n{collation} {message}",
                self.ns,
                self.matcher.root().debug_tree(),
                &*sort,
                &*proj,
            ),
        )
    }
}
