//! The table of `$group`'s accumulators, and how a field's specification becomes an [`AccSpec`].

use super::keys_of::KeysOf;
use super::n_family::check_n;
use super::percentile::{Percentile, parse_percentile};
use super::script::ScriptSpec;
use super::{
    Accumulator, AddToSet, Avg, First, Last, MergeObjects, MinMax, NFamily, NKind, Push, Stays, StdDev, Sum,
};
use crate::ctx::QueryCtx;
use crate::expr::{Expr, ParseCtx, Scope, Val};
use crate::plan::Pick;
use crate::sort::SortPattern;
use pando_base::{Error, Result};
use pando_bson::{DocBuf, Elem, RawDoc, Value};
use std::collections::BTreeSet;

/// One output field of a `$group`: what is evaluated per document, and what collects it per group.
#[derive(Clone)]
pub(crate) struct AccSpec {
    pub(crate) field: Box<str>,
    name: &'static str,
    arg: Arg,
    make: Make,
}

impl AccSpec {
    /// How many values it takes, or with what a script begins, is not known ahead.
    pub(crate) fn counts_by_group(&mut self, ctx: &QueryCtx) -> Result<bool> {
        let by_group = match &mut self.make {
            Make::N { n, .. } => Some(n),
            Make::Script(spec) => spec.init_args(),
            _ => None,
        };
        let Some(e) = by_group else { return Ok(false) };
        e.optimize(ctx)?;
        Ok(e.as_const().is_none())
    }
}

#[derive(Clone)]
enum Arg {
    Unary(Expr),
    /// `{sortBy, output}`.
    Keyed {
        output: Expr,
        keys: KeysOf,
    },
}

#[derive(Clone)]
enum Make {
    Plain(fn() -> Box<dyn Accumulator>),
    N { name: &'static str, kind: NKind, n: Expr },
    Single { name: &'static str, kind: NKind },
    Percentile { ps: Vec<f64>, single: bool },
    Script(ScriptSpec),
}

type Parse = fn(&'static str, Elem<'_>, &mut ParseCtx<'_>) -> Result<(Arg, Make)>;

#[rustfmt::skip]
static TABLE: &[(&str, Parse)] = &[
    ("$accumulator", |_, e, p| script(e, p)),
    ("$addToSet", |n, e, p| unary(n, e, p, || Box::<AddToSet>::default())),
    ("$avg", |n, e, p| unary(n, e, p, || Box::<Avg>::default())),
    ("$bottom", |n, e, p| keyed(n, e, p, NKind::Bottom, true)),
    ("$bottomN", |n, e, p| keyed(n, e, p, NKind::Bottom, false)),
    ("$count", |_, e, _| count(e)),
    ("$first", |n, e, p| unary(n, e, p, || Box::<First>::default())),
    ("$firstN", |n, e, p| input_n(n, e, p, NKind::First)),
    ("$last", |n, e, p| unary(n, e, p, || Box::<Last>::default())),
    ("$lastN", |n, e, p| input_n(n, e, p, NKind::Last)),
    ("$max", |n, e, p| unary(n, e, p, || Box::new(MinMax::new(true, Stays::Latest)))),
    ("$maxN", |n, e, p| input_n(n, e, p, NKind::Max)),
    ("$median", |n, e, p| percentile(n, e, p)),
    ("$mergeObjects", |n, e, p| unary(n, e, p, || Box::<MergeObjects>::default())),
    ("$min", |n, e, p| unary(n, e, p, || Box::new(MinMax::new(false, Stays::Latest)))),
    ("$minN", |n, e, p| input_n(n, e, p, NKind::Min)),
    ("$percentile", |n, e, p| percentile(n, e, p)),
    ("$push", |n, e, p| unary(n, e, p, || Box::<Push>::default())),
    ("$stdDevPop", |n, e, p| unary(n, e, p, || Box::new(StdDev::new(false)))),
    ("$stdDevSamp", |n, e, p| unary(n, e, p, || Box::new(StdDev::new(true)))),
    ("$sum", |n, e, p| unary(n, e, p, || Box::<Sum>::default())),
    ("$top", |n, e, p| keyed(n, e, p, NKind::Top, true)),
    ("$topN", |n, e, p| keyed(n, e, p, NKind::Top, false)),
];

/// Parses `{$op: argument}` for an output field.
pub(crate) fn parse(field: &str, spec: &RawDoc, p: &mut ParseCtx<'_>) -> Result<AccSpec> {
    let Some(e) = spec.first() else {
        return Err(Error::location(40234, format!("The field '{field}' must be an accumulator object")));
    };
    if spec.count() > 1 {
        return Err(Error::location(40238, format!("The field '{field}' must specify one accumulator")));
    }
    if !e.name_bytes().starts_with(b"$") {
        return Err(Error::location(40234, format!("The field '{field}' must be an accumulator object")));
    }
    let wanted = e.name();
    let Some((name, parse)) = TABLE.iter().find(|(n, _)| *n == wanted) else {
        return Err(Error::location(15952, format!("unknown group operator '{}'", e.name())));
    };
    if matches!(e.value(), Value::Array(_)) {
        return Err(Error::location(40237, format!("The {name} accumulator is a unary operator")));
    }
    if let Some(named) = p.ctx.counts() {
        named.accumulator(name);
    }
    let (arg, make) = parse(name, e, p)?;
    Ok(AccSpec { field: field.into(), name, arg, make })
}

/// The same over a window; `None` for what is no accumulator there. Arrays are arguments like any other.
pub(crate) fn parse_window(e: Elem<'_>, p: &mut ParseCtx<'_>) -> Result<Option<AccSpec>> {
    let wanted = e.name();
    match TABLE.iter().find(|(n, _)| *n == wanted && !NOT_IN_WINDOWS.contains(n)) {
        None => Ok(None),
        Some((name, parse)) => {
            let (arg, make) = parse(name, e, p)?;
            Ok(Some(AccSpec { field: "".into(), name, arg, make }))
        }
    }
}

/// Every accumulator of `$group`; the flag tells whether a window takes it, too.
pub(crate) fn names() -> impl Iterator<Item = (&'static str, bool)> {
    TABLE.iter().map(|(name, _)| (*name, !NOT_IN_WINDOWS.contains(name)))
}

const NOT_IN_WINDOWS: &[&str] = &["$accumulator", "$mergeObjects"];

fn unary(
    _: &'static str,
    e: Elem<'_>,
    p: &mut ParseCtx<'_>,
    make: fn() -> Box<dyn Accumulator>,
) -> Result<(Arg, Make)> {
    Ok((Arg::Unary(p.parse(e.value())?), Make::Plain(make)))
}

fn count(e: Elem<'_>) -> Result<(Arg, Make)> {
    match e.value() {
        Value::Document(d) if d.is_empty() => {
            Ok((Arg::Unary(Expr::Const(Val::int(1))), Make::Plain(|| Box::<Sum>::default())))
        }
        _ => Err(Error::type_mismatch("$count takes no arguments, i.e. $count:{}")),
    }
}

fn script(e: Elem<'_>, p: &mut ParseCtx<'_>) -> Result<(Arg, Make)> {
    let (args, spec) = super::script::parse(e.value(), p)?;
    Ok((Arg::Unary(args), Make::Script(spec)))
}

fn not_an_object(code: i32, e: Elem<'_>) -> Error {
    Error::location(code, format!("specification must be an object; found {e:#}"))
}

/// `{input, n}`.
fn input_n(name: &'static str, e: Elem<'_>, p: &mut ParseCtx<'_>, kind: NKind) -> Result<(Arg, Make)> {
    let Value::Document(d) = e.value() else {
        let code = if matches!(name, "$minN" | "$maxN") { 5787900 } else { 5787801 };
        return Err(not_an_object(code, e));
    };
    let (mut input, mut n) = (None, None);
    for f in d {
        match f.name() {
            "input" => input = Some(p.parse(f.value())?),
            "n" => n = Some(how_many(f.value(), p)?),
            other => {
                return Err(Error::location(5787901, format!("Unknown argument for 'n' operator: {other}")));
            }
        }
    }
    let n = n.ok_or_else(|| Error::location(5787906, "Missing value for 'n'"))?;
    let input = input.ok_or_else(|| Error::location(5787907, "Missing value for 'input'"))?;
    Ok((Arg::Unary(input), Make::N { name, kind, n }))
}

/// `n` is evaluated for a group, of which nothing is known beside its id.
fn how_many(v: Value<'_>, p: &mut ParseCtx<'_>) -> Result<Expr> {
    let before = p.metas.len();
    let n = p.parse(v);
    p.metas.truncate(before);
    n
}

/// `{sortBy, output}` and `n` unless only one is kept.
fn keyed(
    name: &'static str,
    e: Elem<'_>,
    p: &mut ParseCtx<'_>,
    kind: NKind,
    single: bool,
) -> Result<(Arg, Make)> {
    let Value::Document(d) = e.value() else { return Err(not_an_object(5788001, e)) };
    let (mut output, mut sort, mut n) = (None, None, None);
    for f in d {
        match f.name() {
            "output" => output = Some(f.value()),
            "sortBy" => match f.value() {
                // A list is taken for an object with numbers for names.
                Value::Document(spec) | Value::Array(spec) => sort = Some(spec),
                _ => return Err(Error::location(10065, "invalid parameter: expected an object (sortBy)")),
            },
            "n" if !single => n = Some(how_many(f.value(), p)?),
            other => return Err(Error::location(5788002, format!("Unknown argument to {name} '{other}'"))),
        }
    }
    if n.is_none() && !single {
        return Err(Error::location(5788003, "Missing value for 'n'"));
    }
    let output = output.ok_or_else(|| Error::location(5788004, "Missing value for 'output'"))?;
    let sort = sort.ok_or_else(|| Error::location(5788005, "Missing value for 'sortBy'"))?;
    let sort = SortPattern::parse(sort)?;
    p.metas.extend(sort.metas());
    let output = p.parse(output)?;
    let keys = KeysOf::new(sort, p.ctx.collation.clone())?;
    let make = match n {
        Some(n) => Make::N { name, kind, n },
        None => Make::Single { name, kind },
    };
    Ok((Arg::Keyed { output, keys }, make))
}

/// `{input, p, method}`; `$median` has no `p`.
fn percentile(name: &'static str, e: Elem<'_>, p: &mut ParseCtx<'_>) -> Result<(Arg, Make)> {
    let single = name == "$median";
    let spec = parse_percentile(name, e.value(), single, p)?;
    Ok((Arg::Unary(spec.0), Make::Percentile { ps: spec.1, single }))
}

impl AccSpec {
    /// The one document of a group that it looks at.
    pub(crate) fn pick(&self) -> Option<Pick> {
        match self.name {
            "$first" => Some(Pick::First),
            "$last" => Some(Pick::Last),
            _ => None,
        }
    }
    /// The path whose least or greatest value it is.
    pub(crate) fn extreme_of(&self) -> Option<String> {
        match (self.name, &self.arg) {
            ("$min" | "$max", Arg::Unary(e)) => e.as_field().filter(|p| !p.is_whole()).map(|p| p.dotted()),
            _ => None,
        }
    }
    /// The same over a window that documents leave as well as enter.
    pub(crate) fn of_window(mut self) -> AccSpec {
        if let Make::N { kind, .. } | Make::Single { kind, .. } = &mut self.make
            && *kind == NKind::Bottom
        {
            *kind = NKind::BottomOfWindow;
        }
        self
    }
    /// A fresh accumulator for the group with this id.
    pub(crate) fn start(&self, id: &Val<'_>, ctx: &QueryCtx) -> Result<Box<dyn Accumulator>> {
        Ok(match &self.make {
            Make::Plain(make) => make(),
            Make::N { name, kind, n } => {
                // `n` may depend on the group's id.
                let root = id.as_doc().unwrap_or(RawDoc::empty());
                let n = check_n(&n.eval_doc(root, ctx)?)?;
                Box::new(NFamily::new(name, *kind, n, false))
            }
            Make::Single { name, kind } => Box::new(NFamily::new(name, *kind, 1, true)),
            Make::Script(spec) => Box::new(spec.start(id.as_doc().unwrap_or(RawDoc::empty()), ctx)?),
            Make::Percentile { ps, single } => Box::new(Percentile::new(ps.clone(), *single)),
        })
    }

    /// Gives one document to the accumulator.
    #[inline]
    pub(crate) fn feed(&mut self, acc: &mut dyn Accumulator, scope: &Scope<'_>) -> Result<()> {
        if acc.is_settled() {
            return Ok(());
        }
        match &mut self.arg {
            Arg::Unary(e) => acc.add(e.eval(scope)?, scope.ctx),
            Arg::Keyed { output, keys } => {
                let v = output.eval(scope)?;
                let key = keys.of(scope.root, scope.facts)?;
                acc.add_keyed(key, v, scope.ctx)
            }
        }
    }

    /// What a MongoDB server has sent of a state, as ours is; `None` when it can be taken as it is.
    pub(crate) fn state_of(&self, sent: Value<'_>) -> Option<DocBuf> {
        match &self.arg {
            Arg::Keyed { keys, .. } => keys.state_of(sent),
            Arg::Unary(_) => None,
        }
    }

    pub(crate) fn optimize(&mut self, ctx: &QueryCtx) -> Result<()> {
        match &mut self.arg {
            Arg::Unary(e) | Arg::Keyed { output: e, .. } => e.optimize(ctx)?,
        }
        match &mut self.make {
            Make::N { n, .. } => n.optimize(ctx),
            Make::Script(spec) => spec.init_args().map_or(Ok(()), |e| e.optimize(ctx)),
            _ => Ok(()),
        }
    }

    /// Adds the paths it reads; false when it reads whole documents.
    pub(crate) fn needs(&self, paths: &mut BTreeSet<String>) -> bool {
        match &self.arg {
            Arg::Unary(e) => e.dependencies(paths),
            Arg::Keyed { output, keys } => {
                paths.extend(keys.paths().map(str::to_owned));
                output.dependencies(paths)
            }
        }
    }
}
