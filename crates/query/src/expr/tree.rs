//! The tree of a compiled expression, and its evaluation. What an operator does it knows from a function or behind [`Op`].

use super::path::FieldPath;
use super::room::{self, Held};
use super::scope::{Scope, VarId};
use super::value::Val;
use crate::ctx::QueryCtx;
use pando_base::{Error, Result, patience};
use pando_bson::{ArrayBuilder, DocBuilder, RawDoc, Value};
use std::fmt;

/// A compiled expression.
#[derive(Clone)]
pub enum Expr {
    Const(Val<'static>),
    /// A path of `$$ROOT`.
    Field(FieldPath),
    /// A path of a variable.
    Var(VarId, FieldPath),
    Object(Vec<(Box<str>, Expr)>),
    Array(Vec<Expr>),
    /// An operator that only looks at the values of its arguments.
    Nary(Nary),
    /// An operator with its own ways (variables, short circuits, compiled arguments).
    Op(Box<dyn Op>),
}

/// Arguments' values to the result's.
pub type NaryFn = for<'v> fn(&[Val<'v>], &Call<'_>) -> Result<Val<'v>>;

#[derive(Clone)]
pub struct Nary {
    pub(crate) name: &'static str,
    pub(super) f: NaryFn,
    pub(super) joins: Joins,
    pub(super) steps: Steps,
    pub(crate) args: Vec<Expr>,
}

/// Whether an operator looks at an argument before it evaluates the next one. All are evaluated first here too; only where
/// one fails does it matter what those before it had already settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Steps {
    /// It looks at nothing before everything is evaluated.
    No,
    /// It takes any number of arguments one after the other.
    Any,
    /// The same, and a false settles it as well.
    UntilFalse,
    /// Its arguments have places; numbers do for those that are not known yet.
    Numbers,
    /// The same, but it looks at nothing before it has two.
    ThirdAlone,
    /// As `Numbers`, with a text in the second place.
    TextThenNumbers,
}

/// Which arguments of an operator may be replaced by their common result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Joins {
    No,
    /// Those that stand side by side.
    InOrder,
    /// All constants; their result becomes the last argument.
    AnyOrder,
    /// As `AnyOrder`, but a single argument means something else.
    SeveralInAnyOrder,
}

/// What an operator function may use besides its arguments.
pub struct Call<'a> {
    /// The operator as written, for messages.
    pub name: &'static str,
    pub ctx: &'a QueryCtx,
}

/// Every operator that can be cloned is able to clone its box.
pub trait CloneOp {
    fn boxed_clone(&self) -> Box<dyn Op>;
}

impl<T: Op + Clone + 'static> CloneOp for T {
    fn boxed_clone(&self) -> Box<dyn Op> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Op> {
    fn clone(&self) -> Box<dyn Op> {
        (**self).boxed_clone()
    }
}

/// An operator that evaluates its own arguments.
pub trait Op: CloneOp + Send + Sync {
    fn name(&self) -> &'static str;
    fn eval<'s>(&'s self, scope: &Scope<'s>) -> Result<Val<'s>>;
    /// The argument expressions. [`parts!`] writes this and `parts_mut`.
    fn parts(&self) -> Vec<&Expr>;
    fn parts_mut(&mut self) -> Vec<&mut Expr>;
    /// With only constant arguments it is evaluated ahead (its errors then come before any document is read).
    fn folds(&self) -> bool {
        false
    }
    /// Neither it nor what is in it is evaluated ahead, or made simpler.
    fn stays(&self) -> bool {
        false
    }
    /// Calls JavaScript.
    fn runs_scripts(&self) -> bool {
        false
    }
    /// What this becomes once its arguments are optimized, when that is something else.
    fn simplify(&mut self, _ctx: &QueryCtx) -> Result<Option<Expr>> {
        Ok(None)
    }
}

/// Something that holds argument expressions.
pub(crate) trait Part {
    fn collect<'e>(&'e self, out: &mut Vec<&'e Expr>);
    fn collect_mut<'e>(&'e mut self, out: &mut Vec<&'e mut Expr>);
}

impl Part for Expr {
    fn collect<'e>(&'e self, out: &mut Vec<&'e Expr>) {
        out.push(self);
    }
    fn collect_mut<'e>(&'e mut self, out: &mut Vec<&'e mut Expr>) {
        out.push(self);
    }
}
impl<P: Part> Part for Option<P> {
    fn collect<'e>(&'e self, out: &mut Vec<&'e Expr>) {
        self.iter().for_each(|p| p.collect(out));
    }
    fn collect_mut<'e>(&'e mut self, out: &mut Vec<&'e mut Expr>) {
        self.iter_mut().for_each(|p| p.collect_mut(out));
    }
}
impl<P: Part> Part for Vec<P> {
    fn collect<'e>(&'e self, out: &mut Vec<&'e Expr>) {
        self.iter().for_each(|p| p.collect(out));
    }
    fn collect_mut<'e>(&'e mut self, out: &mut Vec<&'e mut Expr>) {
        self.iter_mut().for_each(|p| p.collect_mut(out));
    }
}
impl<A, P: Part> Part for (A, P) {
    fn collect<'e>(&'e self, out: &mut Vec<&'e Expr>) {
        self.1.collect(out);
    }
    fn collect_mut<'e>(&'e mut self, out: &mut Vec<&'e mut Expr>) {
        self.1.collect_mut(out);
    }
}

/// Writes `Op::parts` and `Op::parts_mut` for the named fields.
macro_rules! parts {
    ($($field:ident),*) => {
        fn parts(&self) -> Vec<&$crate::expr::Expr> {
            #[allow(unused_mut)]
            let mut out = Vec::new();
            $($crate::expr::Part::collect(&self.$field, &mut out);)*
            out
        }
        fn parts_mut(&mut self) -> Vec<&mut $crate::expr::Expr> {
            #[allow(unused_mut)]
            let mut out = Vec::new();
            $($crate::expr::Part::collect_mut(&mut self.$field, &mut out);)*
            out
        }
    };
}
pub(crate) use parts;

impl fmt::Debug for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expr::Const(v) => write!(f, "{}", v.shown()),
            Expr::Field(path) => write!(f, "$$ROOT.{}", path.dotted()),
            Expr::Var(id, path) => write!(f, "$${}.{}", id.0, path.dotted()),
            Expr::Object(fields) => f.debug_map().entries(fields.iter().map(|(k, v)| (k, v))).finish(),
            Expr::Array(items) => f.debug_list().entries(items).finish(),
            Expr::Nary(n) => f.debug_tuple(n.name).field(&n.args).finish(),
            Expr::Op(op) => {
                let mut t = f.debug_tuple(op.name());
                for part in op.parts() {
                    t.field(part);
                }
                t.finish()
            }
        }
    }
}

impl Expr {
    pub fn constant(v: Value<'_>) -> Expr {
        Expr::Const(Val::Ref(v).into_owned())
    }
    pub fn null() -> Expr {
        Expr::Const(Val::NULL)
    }

    /// The value in a scope. What it borrows lives as long as the document, this expression and the variables.
    #[inline]
    pub fn eval<'s>(&'s self, scope: &Scope<'s>) -> Result<Val<'s>> {
        match self {
            Expr::Field(path) => Ok(path.of_doc(scope.root)),
            Expr::Const(v) => Ok(v.borrowed()),
            Expr::Var(id, path) => Ok(path.of_value(scope.var(*id))),
            Expr::Nary(n) => n.eval(scope),
            Expr::Op(op) => op.eval(scope),
            Expr::Object(fields) => eval_object(fields, scope),
            Expr::Array(items) => eval_array(items, scope),
        }
    }
    /// The value for one document without variables.
    pub fn eval_doc<'s>(&'s self, doc: &'s RawDoc, ctx: &'s QueryCtx) -> Result<Val<'s>> {
        self.eval(&Scope::new(doc, ctx))
    }

    pub fn as_const(&self) -> Option<&Val<'static>> {
        match self {
            Expr::Const(v) => Some(v),
            _ => None,
        }
    }
    /// The top-level path this is nothing but a reference to.
    pub fn as_field(&self) -> Option<&FieldPath> {
        match self {
            Expr::Field(path) => Some(path),
            _ => None,
        }
    }

    /// Folds constant parts. Errors of operators over constants come out here, as in MongoDB.
    pub fn optimize(&mut self, ctx: &QueryCtx) -> Result<()> {
        match self {
            Expr::Const(_) | Expr::Field(_) | Expr::Var(..) => return Ok(()),
            Expr::Object(fields) => {
                for (_, e) in fields.iter_mut() {
                    e.optimize(ctx)?;
                }
                if !fields.iter().all(|(_, e)| e.as_const().is_some()) {
                    return Ok(());
                }
            }
            Expr::Array(items) => {
                for e in items.iter_mut() {
                    e.optimize(ctx)?;
                }
                if !items.iter().all(|e| e.as_const().is_some()) {
                    return Ok(());
                }
            }
            Expr::Nary(n) => {
                for e in &mut n.args {
                    e.optimize(ctx)?;
                }
                if !n.args.iter().all(|e| e.as_const().is_some()) {
                    return n.join_constants(ctx);
                }
            }
            Expr::Op(op) if op.stays() => return Ok(()),
            Expr::Op(op) => {
                for part in op.parts_mut() {
                    part.optimize(ctx)?;
                }
                if let Some(simpler) = op.simplify(ctx)? {
                    *self = simpler;
                    return Ok(());
                }
                if !op.folds() || !op.parts().iter().all(|e| e.as_const().is_some()) {
                    return Ok(());
                }
            }
        }
        let value = self.eval(&Scope::new(RawDoc::empty(), ctx))?.into_owned();
        if ctx.may_keep(value.heap_bytes()) {
            *self = Expr::Const(value);
        }
        Ok(())
    }

    /// Calls `visit` with this expression and all below it.
    pub fn walk<'e>(&'e self, visit: &mut dyn FnMut(&'e Expr)) {
        visit(self);
        match self {
            Expr::Const(_) | Expr::Field(_) | Expr::Var(..) => {}
            Expr::Object(fields) => fields.iter().for_each(|(_, e)| e.walk(visit)),
            Expr::Array(items) => items.iter().for_each(|e| e.walk(visit)),
            Expr::Nary(n) => n.args.iter().for_each(|e| e.walk(visit)),
            Expr::Op(op) => op.parts().into_iter().for_each(|e| e.walk(visit)),
        }
    }
    /// Calls JavaScript.
    pub fn runs_scripts(&self) -> bool {
        let mut any = false;
        self.walk(&mut |e| any |= matches!(e, Expr::Op(op) if op.runs_scripts()));
        any
    }
    /// Adds the document paths that the value depends on; false when it needs the whole document.
    pub fn dependencies(&self, paths: &mut std::collections::BTreeSet<String>) -> bool {
        let mut complete = true;
        self.walk(&mut |e| {
            if let Expr::Field(path) = e {
                if path.is_whole() {
                    complete = false;
                } else {
                    paths.insert(path.dotted());
                }
            }
        });
        complete
    }
}

fn eval_object<'s>(fields: &'s [(Box<str>, Expr)], scope: &Scope<'s>) -> Result<Val<'s>> {
    let (mut b, mut held) = (DocBuilder::new(), Held::default());
    for (name, e) in fields {
        e.eval(scope)?.put_to(&mut b, name);
        held.grow_to(b.byte_len(), 0)?;
    }
    Ok(Val::Doc(b.finish()))
}

fn eval_array<'s>(items: &'s [Expr], scope: &Scope<'s>) -> Result<Val<'s>> {
    let (mut b, mut held) = (ArrayBuilder::new(), Held::default());
    for e in items {
        e.eval(scope)?.push_to(&mut b);
        held.grow_to(b.byte_len(), 0)?;
    }
    Ok(Val::Array(b.finish()))
}

impl Nary {
    /// An operator whose arguments were counted elsewhere.
    pub(crate) fn new(name: &'static str, f: NaryFn, args: Vec<Expr>) -> Nary {
        Nary { name, f, joins: Joins::No, steps: Steps::No, args }
    }
    /// Does from now on what this function does.
    pub(super) fn replace(&mut self, f: NaryFn) {
        self.f = f;
    }
    /// It looks at each argument before the next one is evaluated.
    pub(crate) fn stepwise(self, steps: Steps) -> Nary {
        Nary { steps, ..self }
    }
    pub(super) fn eval<'s>(&'s self, scope: &Scope<'s>) -> Result<Val<'s>> {
        let call = Call { name: self.name, ctx: scope.ctx };
        match &*self.args {
            [] => (self.f)(&[], &call),
            [a] => {
                let a = a.eval(scope)?;
                let _held = Held::of(&a)?;
                patience::spend(1 + room::steps(&a))?;
                (self.f)(&[a], &call)
            }
            [a, b] => {
                let a = a.eval(scope)?;
                let _held = Held::of(&a)?;
                let b = match b.eval(scope) {
                    Ok(b) => b,
                    Err(e) => return self.settled(vec![a], e, &call),
                };
                let _held_too = Held::of(&b)?;
                patience::spend(1 + room::steps(&a) + room::steps(&b))?;
                (self.f)(&[a, b], &call)
            }
            args => self.eval_many(args, scope, &call),
        }
    }
    fn eval_many<'s>(&self, args: &'s [Expr], scope: &Scope<'s>, call: &Call<'_>) -> Result<Val<'s>> {
        let (mut values, mut held, mut bytes) = (Vec::with_capacity(args.len()), Held::default(), 0);
        for a in args {
            let v = match a.eval(scope) {
                Ok(v) => v,
                Err(e) => return self.settled(values, e, call),
            };
            patience::spend(1 + room::steps(&v))?;
            bytes += v.heap_bytes();
            held.set(bytes)?;
            values.push(v);
        }
        (self.f)(&values, call)
    }
    /// The argument after these `values` failed: what they amount to without it, a null or another error, comes before.
    #[cold]
    fn settled<'s>(&self, mut values: Vec<Val<'s>>, failed: Error, call: &Call<'_>) -> Result<Val<'s>> {
        let least = match self.steps {
            Steps::No => usize::MAX,
            Steps::ThirdAlone => 2,
            _ => 1,
        };
        if values.len() < least || failed.code.ends_command() {
            return Err(failed);
        }
        if !matches!(self.steps, Steps::Any | Steps::UntilFalse) {
            for place in values.len()..self.args.len() {
                let text = place == 1 && self.steps == Steps::TextThenNumbers;
                values.push(if text { Val::from(Value::String("")) } else { Val::from(Value::Int32(1)) });
            }
        }
        match (self.f)(&values, call) {
            Ok(v) if self.steps == Steps::UntilFalse && matches!(v.value(), Some(Value::Boolean(false))) => {
                Ok(v)
            }
            Ok(v) if !v.is_nullish() => Err(failed),
            settled => settled,
        }
    }
}

/// Puts MongoDB's "Failed to optimize .." in front of an error of [`Expr::optimize`].
pub fn optimize_error(what: &str, e: Error) -> Error {
    e.context(format_args!("Failed to optimize {what}"))
}
