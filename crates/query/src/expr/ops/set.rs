//! Arrays as sets: `$setUnion`, `$setIntersection`, `$setDifference`, `$setEquals`, `$setIsSubset`,
//! `$allElementsTrue`, `$anyElementTrue`. Results are sorted, as MongoDB's sets are.

use crate::ctx::QueryCtx;
use crate::expr::{Call, Expr, Held, Nary, NaryFn, Op, ParseCtx, Scope, Steps, Val};
use crate::value_set::ValueSet;
use pando_base::{Error, Result, patience};
use pando_bson::{ArrayBuilder, Elem, RawDoc, Value};

/// Values seen so far, and where they are.
#[derive(Default)]
struct Distinct<'a> {
    set: ValueSet,
    list: Vec<Elem<'a>>,
    held: Held,
}

/// Steps that finding a value in a set takes.
const SEARCH_STEPS: usize = 8;
impl<'a> Distinct<'a> {
    fn of(a: &'a RawDoc, call: &Call<'_>) -> Result<Distinct<'a>> {
        let mut out = Distinct::default();
        out.add(a, call)?;
        Ok(out)
    }
    /// Puts what is new into the list.
    fn add(&mut self, a: &'a RawDoc, call: &Call<'_>) -> Result<()> {
        for e in a {
            patience::spend(SEARCH_STEPS)?;
            if self.set.insert(e.value(), call.ctx) {
                self.list.push(e);
                self.held.set(self.set.heap_bytes() + size_of::<Elem<'_>>() * self.list.len())?;
            }
        }
        Ok(())
    }
    fn contains(&mut self, e: &Elem<'_>, call: &Call<'_>) -> bool {
        // Over: then what is found does not matter.
        patience::is_over(SEARCH_STEPS) || self.set.contains(e.value(), call.ctx)
    }
}

fn array_of<'e>(elements: impl IntoIterator<Item = Elem<'e>>) -> Val<'static> {
    let mut out = ArrayBuilder::new();
    for e in elements {
        out.raw(e.ty, e.data());
    }
    Val::Array(out.finish())
}

pub(in crate::expr) fn union<'v>(args: &[Val<'v>], call: &Call<'_>) -> Result<Val<'v>> {
    let mut all = Distinct::default();
    for arg in args {
        if arg.is_nullish() {
            return Ok(Val::NULL);
        }
        let Some(a) = arg.as_array() else {
            return Err(Error::location(
                17043,
                format!(
                    "All operands of $setUnion must be arrays. One argument is of type: {}",
                    arg.type_name()
                ),
            ));
        };
        all.add(a, call)?;
    }
    sorted(all.list, call)
}

fn sorted(mut elements: Vec<Elem<'_>>, call: &Call<'_>) -> Result<Val<'static>> {
    patience::sort_by(&mut elements, patience::COMPARE_STEPS, |a, b| call.ctx.compare(a.value(), b.value()))?;
    Ok(array_of(elements))
}

pub(in crate::expr) fn intersection<'v>(args: &[Val<'v>], call: &Call<'_>) -> Result<Val<'v>> {
    let mut kept: Option<Vec<Elem<'_>>> = None;
    for arg in args {
        if arg.is_nullish() {
            return Ok(Val::NULL);
        }
        let Some(a) = arg.as_array() else {
            return Err(Error::location(
                17047,
                format!(
                    "All operands of $setIntersection must be arrays. One argument is of type: {}",
                    arg.type_name()
                ),
            ));
        };
        let mut these = Distinct::of(a, call)?;
        kept = Some(match kept {
            None => these.list,
            Some(kept) => kept.into_iter().filter(|e| these.contains(e, call)).collect(),
        });
    }
    patience::check()?;
    sorted(kept.unwrap_or_default(), call)
}

pub(in crate::expr) fn difference<'v>(args: &[Val<'v>], call: &Call<'_>) -> Result<Val<'v>> {
    if args.iter().any(Val::is_nullish) {
        return Ok(Val::NULL);
    }
    let operand = |i: usize, code, which: &str| {
        args[i].as_array().ok_or_else(|| {
            Error::location(
                code,
                format!(
                    "both operands of $setDifference must be arrays. {which} argument is of type: {}",
                    args[i].type_name()
                ),
            )
        })
    };
    let (a, b) = (operand(0, 17048, "First")?, operand(1, 17049, "Second")?);
    // In the order of the first array, without repeats.
    let mut seen = Distinct::of(b, call)?;
    seen.list.clear();
    seen.add(a, call)?;
    Ok(array_of(seen.list))
}

/// `$setEquals` counts its arguments itself.
pub(in crate::expr) fn parse_equals(name: &'static str, v: Value<'_>, p: &mut ParseCtx<'_>) -> Result<Expr> {
    let args = p.args(name, v, 0, usize::MAX)?;
    if args.len() < 2 {
        return Err(Error::location(
            17045,
            format!("$setEquals needs at least two arguments had: {}", args.len()),
        ));
    }
    let expr = Expr::Nary(Nary::new(name, equals, args).stepwise(Steps::UntilFalse));
    let wrong = |args: &[Expr]| {
        let mut each = args.iter().enumerate();
        each.find_map(|(i, e)| Some(not_equals_operand(i, e.as_const().filter(|v| v.as_array().is_none())?)))
    };
    Ok(ArraysExpected {
        code: 5_887_502,
        wrong,
        folds_first: false,
        constants_first: true,
        last_known: None,
        expr,
    }
    .into())
}

/// An operator that refuses a constant operand that can never do while it is optimized, under a number of its own. What is not optimized
/// finds out by itself.
#[derive(Clone)]
pub(super) struct ArraysExpected {
    pub(super) code: i32,
    /// What is wrong with the operands, once they are optimized.
    pub(super) wrong: fn(&[Expr]) -> Option<String>,
    /// With constants alone it is evaluated, and its own mistake told.
    pub(super) folds_first: bool,
    /// `$setEquals`: the first constant is what the other operands are compared with.
    pub(super) constants_first: bool,
    /// What takes its place once the last operand is known and others are not.
    pub(super) last_known: Option<NaryFn>,
    /// An operator with a list of operands.
    pub(super) expr: Expr,
}

impl From<ArraysExpected> for Expr {
    fn from(op: ArraysExpected) -> Expr {
        Expr::Op(Box::new(op))
    }
}

impl Op for ArraysExpected {
    fn name(&self) -> &'static str {
        match &self.expr {
            Expr::Nary(n) => n.name,
            _ => "",
        }
    }
    fn eval<'s>(&'s self, scope: &Scope<'s>) -> Result<Val<'s>> {
        match &self.expr {
            Expr::Nary(n) if self.constants_first => equals_to_constant(n, scope),
            expr => expr.eval(scope),
        }
    }
    fn parts(&self) -> Vec<&Expr> {
        match &self.expr {
            Expr::Nary(n) => n.args.iter().collect(),
            _ => Vec::new(),
        }
    }
    fn parts_mut(&mut self) -> Vec<&mut Expr> {
        match &mut self.expr {
            Expr::Nary(n) => n.args.iter_mut().collect(),
            _ => Vec::new(),
        }
    }
    fn simplify(&mut self, ctx: &QueryCtx) -> Result<Option<Expr>> {
        let args = self.parts();
        let known = args.iter().all(|e| e.as_const().is_some());
        if let (false, Expr::Nary(n)) = (known && self.folds_first, &self.expr)
            && let Some(text) = (self.wrong)(&n.args)
        {
            return Err(Error::location(self.code, text));
        }
        if known {
            let value = self.expr.eval(&Scope::new(RawDoc::empty(), ctx))?.into_owned();
            if ctx.may_keep(value.heap_bytes()) {
                return Ok(Some(Expr::Const(value)));
            }
        } else if let (Expr::Nary(n), Some(f)) = (&mut self.expr, self.last_known)
            && n.args.last().is_some_and(|e| e.as_const().is_some())
        {
            n.replace(f);
        }
        Ok(None)
    }
}

fn not_equals_operand(i: usize, v: &Val<'_>) -> String {
    format!("All operands of $setEquals must be arrays. {}-th argument is of type: {}", i + 1, v.type_name())
}

pub(in crate::expr) fn parse_is_subset(
    name: &'static str,
    v: Value<'_>,
    p: &mut ParseCtx<'_>,
) -> Result<Expr> {
    let args = p.args(name, v, 2, 2)?;
    let wrong = |args: &[Expr]| {
        let v = args.get(1)?.as_const().filter(|v| v.as_array().is_none())?;
        let kind = v.type_name();
        Some(format!("both operands of $setIsSubset must be arrays. Second argument is of type: {kind}"))
    };
    let expr = Expr::Nary(Nary::new(name, is_subset, args));
    let last_known = (!p.forgets).then_some(is_subset_of_known as NaryFn);
    Ok(ArraysExpected { code: 17311, wrong, folds_first: true, constants_first: false, last_known, expr }
        .into())
}

/// Compares with the first constant set, in the order of the others; the first that is unequal settles it.
fn equals_to_constant<'s>(n: &'s Nary, scope: &Scope<'s>) -> Result<Val<'s>> {
    let is_set = |e: &Expr| e.as_const().is_some_and(|v| v.as_array().is_some());
    let Some(at) = n.args.iter().position(is_set).filter(|at| *at > 0 || n.args.len() > 2) else {
        return n.eval(scope);
    };
    let call = Call { name: n.name, ctx: scope.ctx };
    let constant = n.args[at].eval(scope)?;
    for (i, operand) in n.args.iter().enumerate().filter(|(i, _)| *i != at) {
        let operand = operand.eval(scope)?;
        if operand.as_array().is_none() {
            return Err(Error::location(17044, not_equals_operand(i, &operand)));
        }
        let both = equals(&[constant.clone(), operand], &call)?;
        if matches!(both.value(), Some(Value::Boolean(false))) {
            return Ok(Val::bool(false));
        }
    }
    Ok(Val::bool(true))
}

fn equals<'v>(args: &[Val<'v>], call: &Call<'_>) -> Result<Val<'v>> {
    let mut first: Option<Distinct<'_>> = None;
    for (i, arg) in args.iter().enumerate() {
        let Some(a) = arg.as_array() else {
            return Err(Error::location(17044, not_equals_operand(i, arg)));
        };
        let these = Distinct::of(a, call)?;
        match &mut first {
            None => first = Some(these),
            Some(reference) => {
                let is_equal = reference.list.len() == these.list.len()
                    && these.list.iter().all(|e| reference.contains(e, call));
                if !is_equal {
                    // Nobody looks at those behind.
                    patience::check()?;
                    return Ok(Val::bool(false));
                }
            }
        }
    }
    patience::check()?;
    Ok(Val::bool(true))
}

fn is_subset<'v>(args: &[Val<'v>], call: &Call<'_>) -> Result<Val<'v>> {
    is_contained(args, call, 17046)
}
/// The second operand is a constant set, and the mistake has another number.
fn is_subset_of_known<'v>(args: &[Val<'v>], call: &Call<'_>) -> Result<Val<'v>> {
    is_contained(args, call, 17310)
}

fn is_contained<'v>(args: &[Val<'v>], call: &Call<'_>, code: i32) -> Result<Val<'v>> {
    let operand = |i: usize, code, which: &str| {
        args[i].as_array().ok_or_else(|| {
            Error::location(
                code,
                format!(
                    "both operands of $setIsSubset must be arrays. {which} argument is of type: {}",
                    args[i].type_name()
                ),
            )
        })
    };
    let (a, b) = (operand(0, code, "First")?, operand(1, 17042, "Second")?);
    let mut set = Distinct::of(b, call)?;
    let all = a.iter().all(|e| set.contains(&e, call));
    patience::check()?;
    Ok(Val::bool(all))
}

fn elements<'v>(args: &'v [Val<'_>], call: &Call<'_>, code: i32) -> Result<&'v RawDoc> {
    args[0].as_array().ok_or_else(|| {
        Error::location(
            code,
            format!("{}'s argument must be an array, but is {}", call.name, args[0].type_name()),
        )
    })
}

pub(in crate::expr) fn all_elements_true<'v>(args: &[Val<'v>], call: &Call<'_>) -> Result<Val<'v>> {
    Ok(Val::bool(elements(args, call, 17040)?.iter().all(|e| e.value().is_truthy())))
}
pub(in crate::expr) fn any_element_true<'v>(args: &[Val<'v>], call: &Call<'_>) -> Result<Val<'v>> {
    Ok(Val::bool(elements(args, call, 17041)?.iter().any(|e| e.value().is_truthy())))
}
