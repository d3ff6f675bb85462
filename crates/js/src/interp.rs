//! One interpreter: made with the prelude, calls compiled functions, dies with its operation.

// Texts come from clients, who must not be able to choose keys that collide.
#![allow(clippy::disallowed_types)]

use crate::alloc::Guarded;
use crate::guard::Guard;
use crate::held::Held;
use crate::natives;
use crate::source::forms;
use crate::thrown::pending;
use crate::to_bson::{Fail, ToBson};
use crate::to_js::ToJs;
use crate::wanted;
use pando_base::limits::JS_STACK_BYTES_MAX;
use pando_base::{Error, Result};
use pando_bson::{DocBuf, DocBuilder, ElementType, RawDoc};
use pando_query::ctx::Random;
use pando_query::script::FunctionId;
use rquickjs::context::EvalOptions;
use rquickjs::function::{Args, This};
use rquickjs::{Array, Class, Context, Ctx, FromJs, Function, Object, Runtime, Value as Js};
use std::collections::HashMap;
use std::sync::Arc;

const PRELUDE: &str = include_str!("prelude.js");
/// In stack traces.
pub(crate) const PRELUDE_NAME: &str = "prelude";

pub(crate) struct Interp {
    /// Of each function, the fields of a document that it can see; all without a list. The functions themselves are
    /// kept inside.
    functions: Vec<Option<Vec<String>>>,
    by_text: HashMap<String, FunctionId>,
    context: Context,
    guard: Arc<Guard>,
}

/// The prelude's types, as conversions need them.
pub(crate) struct Prelude<'js> {
    pub(crate) ctx: Ctx<'js>,
    object: Object<'js>,
}

/// Where the prelude's types hang, under a name no script writes by accident.
const TYPES_NAME: &str = "__prelude";

impl<'js> Prelude<'js> {
    pub(crate) fn of(ctx: &Ctx<'js>) -> rquickjs::Result<Prelude<'js>> {
        Ok(Prelude { ctx: ctx.clone(), object: ctx.globals().get(TYPES_NAME)? })
    }
    pub(crate) fn get<T: FromJs<'js>>(&self, name: &str) -> rquickjs::Result<T> {
        self.object.get(name)
    }
    pub(crate) fn hold(&self, kind: &str, ty: ElementType, data: &[u8]) -> rquickjs::Result<Js<'js>> {
        Ok(Class::instance_proto(Held { ty, data: data.into() }, self.get(kind)?)?.into_value())
    }
    fn function(&self, id: FunctionId) -> rquickjs::Result<Function<'js>> {
        self.get::<Array>("functions")?.get(id.0 as usize)
    }
    pub(crate) fn date_ms(&self, date: &Object<'js>) -> rquickjs::Result<f64> {
        self.get::<Function>("dateMs")?.call((date.clone(),))
    }
    fn eval(&self, code: String) -> rquickjs::Result<Function<'js>> {
        let mut options = EvalOptions::default();
        options.strict = false;
        self.ctx.eval_with_options(code, options)
    }
    pub(crate) fn compile(&self, code: &str) -> rquickjs::Result<Function<'js>> {
        // The complaint about the last form is the one about the text as it is.
        let mut complaint = Js::new_null(self.ctx.clone());
        for form in forms(code) {
            match self.eval(form.function) {
                Ok(function) => return form.instead.map_or(Ok(function), |text| self.eval(text)),
                Err(rquickjs::Error::Exception) => complaint = self.ctx.catch(),
                Err(e) => return Err(e),
            }
        }
        Err(self.ctx.throw(complaint))
    }
}

impl Interp {
    pub(crate) fn new(guard: Arc<Guard>, heap_bytes: usize, random: &Arc<dyn Random>) -> Result<Interp> {
        guard.begin();
        // An operation whose time is up while the interpreter is being made ends as it would later.
        let failed = |e: rquickjs::Error| {
            let why = guard.stopped().then(|| guard.why()).flatten();
            why.unwrap_or_else(|| Error::internal(format!("no JavaScript interpreter: {e}")))
        };
        let runtime = Runtime::new_with_alloc(Guarded::new(guard.clone(), heap_bytes)).map_err(failed)?;
        runtime.set_max_stack_size(JS_STACK_BYTES_MAX);
        let context = Context::full(&runtime).map_err(failed)?;
        context
            .with(|ctx| {
                let native = natives::object(&ctx, &guard, random)?;
                let mut options = EvalOptions::default();
                options.filename = Some(PRELUDE_NAME.to_owned());
                let prelude: Function = ctx.eval_with_options(PRELUDE, options)?;
                let kept: Object = prelude.call((native,))?;
                let hidden = rquickjs::object::Property::from(kept);
                ctx.globals().prop(TYPES_NAME, hidden)
            })
            .map_err(failed)?;
        let g = guard.clone();
        runtime.set_interrupt_handler(Some(Box::new(move || g.check())));
        Ok(Interp { functions: Vec::new(), by_text: HashMap::new(), context, guard })
    }

    pub(crate) fn compile(&mut self, code: &str) -> Result<FunctionId> {
        if let Some(id) = self.by_text.get(code) {
            return Ok(*id);
        }
        let at = self.functions.len();
        self.run(|ctx| {
            let prelude = Prelude::of(ctx)?;
            Ok(prelude.get::<Array>("functions")?.set(at, prelude.compile(code)?)?)
        })?;
        let id = FunctionId(at as u32);
        self.functions.push(wanted::fields(code));
        self.by_text.insert(code.to_owned(), id);
        Ok(id)
    }

    /// Whether a `$where` holds for the document, which is `this` and `obj`.
    pub(crate) fn test(&mut self, id: FunctionId, doc: &RawDoc) -> Result<bool> {
        let fields = self.functions.get(id.0 as usize).and_then(Option::as_ref);
        self.run(|ctx| {
            let prelude = Prelude::of(ctx)?;
            let to_js = ToJs { prelude: &prelude };
            let this = match fields {
                Some(names) => to_js.fields(doc, names)?,
                None => to_js.document(doc)?,
            };
            ctx.globals().set("obj", this.clone())?;
            let answer: Js = prelude.function(id)?.call((This(this),))?;
            Ok(prelude.get::<Function>("isTruthy")?.call((answer,))?)
        })
    }

    /// The value for these arguments, as `{"": value}`.
    pub(crate) fn call(&mut self, id: FunctionId, args: &RawDoc) -> Result<DocBuf> {
        self.run(|ctx| {
            let prelude = Prelude::of(ctx)?;
            let to_js = ToJs { prelude: &prelude };
            let mut given = Args::new(ctx.clone(), args.count());
            given.this(Object::new(ctx.clone())?)?;
            for e in args {
                given.push_arg(to_js.value(e)?)?;
            }
            let answer: Js = prelude.function(id)?.call_arg(given)?;
            let mut b = DocBuilder::new();
            ToBson { prelude: &prelude }.put(&mut b, "", &answer, None, 0)?;
            Ok(b.finish())
        })
    }

    /// The last state after a call for each array of arguments.
    pub(crate) fn fold(&mut self, id: FunctionId, state: &RawDoc, calls: &RawDoc) -> Result<DocBuf> {
        self.run(|ctx| {
            let prelude = Prelude::of(ctx)?;
            let to_js = ToJs { prelude: &prelude };
            let state = state.first().map_or(Ok(Js::new_undefined(ctx.clone())), |e| to_js.value(e))?;
            let (function, calls) = (prelude.function(id)?, to_js.array(calls)?);
            let last: Js = prelude.get::<Function>("fold")?.call((function, state, calls))?;
            let mut b = DocBuilder::new();
            ToBson { prelude: &prelude }.put(&mut b, "", &last, None, 0)?;
            Ok(b.finish())
        })
    }

    /// Runs one call under the guard.
    fn run<T>(&self, f: impl FnOnce(&Ctx<'_>) -> std::result::Result<T, Fail>) -> Result<T> {
        self.guard.begin();
        let answer = self.context.with(|ctx| {
            f(&ctx).map_err(|e| match e {
                Fail::Db(e) => e,
                Fail::Js(rquickjs::Error::Exception) => pending(&ctx, &self.guard),
                Fail::Js(e) => {
                    ctx.catch();
                    Error::new(pando_base::ErrorCode::JSInterpreterFailure, e.to_string())
                }
            })
        });
        if let (true, Some(why)) = (self.guard.stopped(), self.guard.why()) {
            return Err(why);
        }
        answer
    }
}
