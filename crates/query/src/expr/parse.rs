//! From BSON to [`Expr`]: paths, literals, objects, and the operators of a table that is given.

use super::path::{FieldPath, check_name};
use super::scope::VarId;
use super::tree::{Expr, Joins, Nary, NaryFn, Steps};
use super::value::Val;
use crate::ctx::QueryCtx;
use crate::facts::MetaField;
use crate::names::Seen;
use pando_base::{Error, ErrorCode, HashMap, Result, patience};
use pando_bson::{Document, RawDoc, Value};
use std::collections::BTreeSet;

/// How an operator is made from its argument.
pub(super) enum Def {
    /// Positional arguments, all evaluated, then given to one function.
    Nary { min: usize, max: usize, f: NaryFn, joins: Joins, steps: Steps },
    /// A parser of its own.
    Parse(fn(&'static str, Value<'_>, &mut ParseCtx<'_>) -> Result<Expr>),
}

/// Finds an operator by its name.
pub(super) type Find = fn(&str) -> Option<(&'static str, &'static Def)>;

/// The names an expression may use, and the operation it belongs to.
pub struct ParseCtx<'a> {
    pub ctx: &'a QueryCtx,
    find: Find,
    /// Bound variables, innermost last.
    vars: Vec<String>,
    /// What each of their names stands for, innermost last.
    bound: HashMap<String, Vec<VarId>>,
    next: u32,
    /// What `$meta` was asked for.
    pub metas: Vec<MetaField>,
    /// The verdicts of `$redact` can be named.
    pub(crate) judges: bool,
    /// Another server wrote this: stages and options that users may not give can be named.
    pub(crate) forwarded: bool,
    /// What is compiled is asked as it was written: operators forget what they found out while they were optimized.
    pub(crate) forgets: bool,
    /// Variables of the command and of the system that were named.
    pub(crate) variables: BTreeSet<String>,
}

impl<'a> ParseCtx<'a> {
    /// Knows the operators that are found so.
    pub(super) fn knowing(find: Find, ctx: &'a QueryCtx) -> ParseCtx<'a> {
        ParseCtx {
            ctx,
            find,
            vars: Vec::new(),
            bound: HashMap::default(),
            next: 0,
            metas: Vec::new(),
            judges: false,
            forwarded: false,
            forgets: false,
            variables: BTreeSet::new(),
        }
    }

    /// Makes a variable known until the mark is given back to [`ParseCtx::forget`].
    pub fn bind(&mut self, name: &str) -> VarId {
        let id = VarId(self.next);
        self.next += 1;
        self.vars.push(name.to_owned());
        self.bound.entry(name.to_owned()).or_default().push(id);
        id
    }
    pub fn mark(&self) -> usize {
        self.vars.len()
    }
    pub fn forget(&mut self, mark: usize) {
        for name in self.vars.drain(mark..).rev() {
            if let Some(ids) = self.bound.get_mut(&name) {
                ids.pop();
            }
        }
    }

    /// Parses any expression.
    pub fn parse(&mut self, v: Value<'_>) -> Result<Expr> {
        // Parsed, optimized, walked for what it needs.
        patience::spend(8)?;
        match v {
            Value::String(s) if s.starts_with('$') => self.path(s),
            Value::NotUtf8(_) if v.string_bytes().is_some_and(|s| s.starts_with(b"$")) => {
                Err(Error::bad_value(format!("a path has to be UTF-8, which {v} is not")))
            }
            Value::Document(d) => self.object(d),
            Value::Array(a) => {
                Ok(Expr::Array(a.iter().map(|e| self.parse(e.value())).collect::<Result<_>>()?))
            }
            v => Ok(Expr::constant(v)),
        }
    }

    /// `$a.b` or `$$var.b`.
    fn path(&mut self, s: &str) -> Result<Expr> {
        let Some(rest) = s.strip_prefix("$$") else {
            let path = s.strip_prefix('$').unwrap_or(s);
            if path.is_empty() {
                return Err(Error::location(16872, "'$' by itself is not a valid FieldPath"));
            }
            let path = FieldPath::parse(path)?;
            return Ok(match self.lookup("CURRENT") {
                Some(id) => Expr::Var(id, path),
                None => Expr::Field(path),
            });
        };
        let (name, path) = match rest.split_once('.') {
            Some((name, path)) => (name, FieldPath::parse(path)?),
            None => (rest, FieldPath::whole()),
        };
        if let Some(id) = self.lookup(name) {
            return Ok(Expr::Var(id, path));
        }
        self.variables.insert(name.to_owned());
        self.builtin(name, path)
    }

    fn lookup(&self, name: &str) -> Option<VarId> {
        self.bound.get(name)?.last().copied()
    }

    fn builtin(&self, name: &str, path: FieldPath) -> Result<Expr> {
        let vars = &self.ctx.vars;
        if vars.unbound.contains(name) {
            return Ok(Expr::Var(VarId::UNBOUND, path));
        }
        if let Some(v) = vars.let_vars.get(name) {
            let mut holder = Document::new();
            if let Some(v) = v {
                holder.push("v", v.clone());
            }
            let holder = holder.to_raw();
            return Ok(Expr::Const(path.of_value(holder.get("v")).into_owned()));
        }
        let constant = |v: Val<'static>| Ok(Expr::Const(path.of_value(v.value()).into_owned()));
        match name {
            "ROOT" | "CURRENT" => Ok(Expr::Field(path)),
            // Known to every server, and filled by searches, which there are none of here.
            SEARCH_META => Ok(Expr::Const(Val::Missing)),
            "REMOVE" => Ok(Expr::Const(Val::Missing)),
            "NOW" => constant(Val::date(vars.now_ms)),
            "CLUSTER_TIME" => match vars.cluster_time {
                Some(t) => constant(Val::Ref(Value::Timestamp(t))),
                None => Err(Error::location(51144, "Builtin variable '$$CLUSTER_TIME' is not available")),
            },
            "USER_ROLES" => constant(Val::array([])),
            "DESCEND" | "PRUNE" | "KEEP" if self.judges => constant(Val::string(name.to_ascii_lowercase())),
            _ => {
                check_var_name(name)?;
                Err(Error::location(17276, format!("Use of undefined variable: {name}")))
            }
        }
    }

    /// `{$op: arg}` or `{field: expr, ...}`.
    pub fn object(&mut self, d: &RawDoc) -> Result<Expr> {
        if d.first().is_some_and(|e| e.name_bytes().starts_with(b"$")) {
            return self.operator(d);
        }
        let mut fields: Vec<(Box<str>, Expr)> = Vec::new();
        let mut seen = Seen::default();
        for e in d {
            let name = e.path()?;
            check_object_name(name)?;
            if !seen.insert(name) {
                return Err(Error::location(
                    16406,
                    format!("duplicate field name specified in object literal: {d:#}"),
                ));
            }
            fields.push((name.into(), self.parse(e.value())?));
        }
        Ok(Expr::Object(fields))
    }

    /// An object whose first field is an operator.
    pub fn operator(&mut self, d: &RawDoc) -> Result<Expr> {
        let Some(e) = d.first() else { return Err(Error::internal("an operator object is empty")) };
        if d.count() > 1 {
            return Err(Error::location(
                15983,
                format!("An object representing an expression must have exactly one field: {d:#}"),
            ));
        }
        let Some((name, def)) = (self.find)(e.name()) else {
            return Err(Error::new(
                ErrorCode::InvalidPipelineOperator,
                format!("Unrecognized expression '{}'", e.name()),
            ));
        };
        if let Some(named) = self.ctx.counts() {
            named.expression(name);
        }
        match def {
            Def::Nary { min, max, f, joins, steps } => {
                let args = self.args(name, e.value(), *min, *max)?;
                Ok(Expr::Nary(Nary { name, f: *f, joins: *joins, steps: *steps, args }))
            }
            Def::Parse(parse) => parse(name, e.value(), self),
        }
    }

    /// Positional arguments: an array, or a single one.
    pub(super) fn args(
        &mut self,
        name: &'static str,
        v: Value<'_>,
        min: usize,
        max: usize,
    ) -> Result<Vec<Expr>> {
        let args: Vec<Expr> = match v {
            Value::Array(a) => a.iter().map(|e| self.parse(e.value())).collect::<Result<_>>()?,
            v => vec![self.parse(v)?],
        };
        if (min..=max).contains(&args.len()) {
            return Ok(args);
        }
        Err(if min == max {
            Error::location(
                16020,
                format!("Expression {name} takes exactly {min} arguments. {} were passed in.", args.len()),
            )
        } else {
            Error::location(
                28667,
                format!(
                    "Expression {name} takes at least {min} arguments, and at most {max}, but {} were passed in.",
                    args.len()
                ),
            )
        })
    }
}

/// Names in an object expression: as in paths, and without dots.
pub(crate) fn check_object_name(name: &str) -> Result<()> {
    check_name(name)?;
    if name.contains('.') {
        return Err(Error::location(
            16412,
            "FieldPath field names may not contain '.'. Consider using $getField or $setField.",
        ));
    }
    Ok(())
}

/// A name in `$$name`: code 9 when it could never be a variable's.
pub(super) fn check_var_name(name: &str) -> Result<()> {
    if name.is_empty() {
        return Err(Error::failed_to_parse("empty variable names are not allowed"));
    }
    let first = name.as_bytes()[0];
    if !(first.is_ascii_alphabetic() || first >= 0x80) {
        return Err(Error::failed_to_parse(format!(
            "'{name}' starts with an invalid character for a variable name"
        )));
    }
    check_var_rest(name)
}

/// A name that `$let` and friends may bind: starts with a lower-case letter (or is `CURRENT`).
pub fn check_user_var_name(name: &str) -> Result<()> {
    if name.is_empty() {
        return Err(Error::failed_to_parse("empty variable names are not allowed"));
    }
    if name == "CURRENT" {
        return Ok(());
    }
    let first = name.as_bytes()[0];
    if !(first.is_ascii_lowercase() || first >= 0x80) {
        return Err(Error::failed_to_parse(format!(
            "'{name}' starts with an invalid character for a user variable name"
        )));
    }
    check_var_rest(name)
}

/// The same for names that clients may only read: these may begin with a capital letter.
pub fn check_readable_var_name(name: &str) -> Result<()> {
    match name.as_bytes().first() {
        Some(b'A'..=b'Z') => check_var_rest(name),
        _ => check_user_var_name(name),
    }
}

fn check_var_rest(name: &str) -> Result<()> {
    match name.chars().skip(1).find(|c| !(c.is_ascii_alphanumeric() || *c == '_' || !c.is_ascii())) {
        None => Ok(()),
        Some(c) => Err(Error::failed_to_parse(format!(
            "'{name}' contains an invalid character for a variable name: '{c}'"
        ))),
    }
}

/// The variable that tells about a search.
pub(crate) const SEARCH_META: &str = "SEARCH_META";

/// Named arguments of an operator, parsed as they stand, in the order of `names`.
///
/// `not_object` makes the error for an argument that is no object, `unknown` that for a name not listed.
pub(crate) fn named<const N: usize>(
    v: Value<'_>,
    names: [&str; N],
    p: &mut ParseCtx<'_>,
    not_object: impl FnOnce(Value<'_>) -> Error,
    unknown: impl Fn(&str) -> Error,
) -> Result<[Option<Expr>; N]> {
    let Value::Document(d) = v else { return Err(not_object(v)) };
    let mut out = [const { None }; N];
    for e in d {
        match names.iter().position(|n| *n == e.name()) {
            Some(i) => out[i] = Some(p.parse(e.value())?),
            None => return Err(unknown(e.name())),
        }
    }
    Ok(out)
}

/// Arguments that need not be there, parsed in this order.
pub(crate) fn optional<const N: usize>(
    given: [Option<Value<'_>>; N],
    p: &mut ParseCtx<'_>,
) -> Result<[Option<Expr>; N]> {
    let mut out = [const { None }; N];
    for (to, v) in out.iter_mut().zip(given) {
        *to = v.map(|v| p.parse(v)).transpose()?;
    }
    Ok(out)
}
