//! `$accumulator`: four functions of JavaScript make and change a state per group.
//!
//! Calls are gathered and made in one go, so that the state does not go in and out for each document.

use super::Accumulator;
use crate::ctx::QueryCtx;
use crate::expr::{Expr, ParseCtx, Val};
use crate::script::Script;
use pando_base::limits::JS_GATHERED_CALLS_BYTES_MAX;
use pando_base::{Error, Result};
use pando_bson::{ArrayBuilder, DocBuf, DocBuilder, RawDoc, Value};
use std::sync::Arc;

/// A parsed `$accumulator`.
#[derive(Clone)]
pub(super) struct ScriptSpec {
    functions: Arc<Functions>,
    init_args: Option<Expr>,
}

struct Functions {
    init: Script,
    accumulate: Script,
    merge: Script,
    finalize: Option<Script>,
}

/// The accumulator, and what is evaluated per document.
pub(super) fn parse(v: Value<'_>, p: &mut ParseCtx<'_>) -> Result<(Expr, ScriptSpec)> {
    let Value::Document(d) = v else {
        let text = format!("$accumulator expects an object as an argument; found: {}", v.type_name());
        return Err(Error::location(4_544_703, text));
    };
    let (mut init, mut accumulate, mut merge, mut finalize) = (None, None, None, None);
    let (mut init_args, mut args) = (None, None);
    for e in d {
        match e.name() {
            "init" => init = Some(function("init", e.value(), p)?),
            "accumulate" => accumulate = Some(function("accumulate", e.value(), p)?),
            "merge" => merge = Some(function("merge", e.value(), p)?),
            "finalize" => finalize = Some(function("finalize", e.value(), p)?),
            "initArgs" => init_args = Some(p.parse(e.value())?),
            "accumulateArgs" => args = Some(p.parse(e.value())?),
            "lang" => check_lang(e.value())?,
            other => {
                let text = format!("$accumulator got an unexpected field: {other}");
                return Err(Error::location(4_544_706, text));
            }
        }
    }
    let missing = |code: i32, name: &str| {
        Error::location(code, format!("$accumulator missing required argument '{name}'"))
    };
    let functions = Functions {
        init: init.ok_or_else(|| missing(4_544_707, "init"))?,
        accumulate: accumulate.ok_or_else(|| missing(4_544_708, "accumulate"))?,
        merge: merge.ok_or_else(|| missing(4_544_709, "merge"))?,
        finalize,
    };
    let args = args.ok_or_else(|| missing(4_544_710, "accumulateArgs"))?;
    Ok((args, ScriptSpec { functions: Arc::new(functions), init_args }))
}

fn check_lang(v: Value<'_>) -> Result<()> {
    match v {
        Value::String("js") => Ok(()),
        Value::String(_) => Err(Error::location(4_544_705, "$accumulator only supports lang: 'js'")),
        v => {
            let text = format!("$accumulator lang must be a string; found: {}", v.type_name());
            Err(Error::location(4_544_704, text))
        }
    }
}

fn function(name: &str, v: Value<'_>, p: &mut ParseCtx<'_>) -> Result<Script> {
    let mut e = p.parse(v)?;
    e.optimize(p.ctx)?;
    let v = e.as_const().ok_or_else(|| {
        Error::location(4_544_701, format!("$accumulator '{name}' must be a constant expression"))
    })?;
    Script::of(v.value())
        .ok_or_else(|| Error::location(4_544_702, format!("$accumulator '{name}' must be a String or Code")))
}

impl ScriptSpec {
    pub(super) fn init_args(&mut self) -> Option<&mut Expr> {
        self.init_args.as_mut()
    }
    /// The state of a new group.
    pub(super) fn start(&self, id: &RawDoc, ctx: &QueryCtx) -> Result<ScriptState> {
        let args = self.init_args.as_ref().map_or(Ok(Val::array([])), |e| e.eval_doc(id, ctx))?;
        let args = args.as_array().ok_or_else(|| not_array(4_544_711, "initArgs", &args))?;
        let state = self.functions.init.call(args, ctx)?;
        Ok(ScriptState {
            functions: self.functions.clone(),
            state,
            fresh: true,
            calls: ArrayBuilder::new(),
            ctx: ctx.clone(),
        })
    }
}

fn not_array(code: i32, what: &str, v: &Val<'_>) -> Error {
    let shown = v.value().map_or_else(|| "MISSING".to_owned(), |v| v.to_string());
    Error::location(code, format!("$accumulator {what} must evaluate to an array: {shown}"))
}

pub(super) struct ScriptState {
    functions: Arc<Functions>,
    /// As the only element.
    state: DocBuf,
    /// Nothing was added to what `init` gave.
    fresh: bool,
    /// Arguments of calls to make.
    calls: ArrayBuilder,
    ctx: QueryCtx,
}

impl ScriptState {
    fn make_calls(&mut self) -> Result<()> {
        if self.calls.is_empty() {
            return Ok(());
        }
        let calls = std::mem::take(&mut self.calls).finish();
        self.state = self.functions.accumulate.fold(&self.state, &calls, &self.ctx)?;
        Ok(())
    }
    fn value(&self) -> Val<'static> {
        Val::option(self.state.get("")).into_owned()
    }
}

impl Accumulator for ScriptState {
    fn add(&mut self, v: Val<'_>, _: &QueryCtx) -> Result<()> {
        let args = v.as_array().ok_or_else(|| not_array(4_544_712, "accumulateArgs", &v))?;
        self.calls.value(Value::Array(args));
        self.fresh = false;
        if self.calls.byte_len() > JS_GATHERED_CALLS_BYTES_MAX {
            self.make_calls()?;
        }
        Ok(())
    }
    fn result(&mut self) -> Result<Val<'static>> {
        self.make_calls()?;
        let Some(finalize) = &self.functions.finalize else { return Ok(self.value()) };
        let args = Val::array([self.value()]);
        let answer = finalize.call(args.as_array().unwrap_or(RawDoc::empty()), &self.ctx)?;
        Ok(Val::option(answer.get("")).into_owned())
    }
    fn goes_on(&self) -> bool {
        false
    }
    fn heap_bytes(&self) -> usize {
        self.state.byte_len() + self.calls.byte_len()
    }
    fn partial(&mut self) -> Result<Val<'static>> {
        self.make_calls()?;
        Ok(self.value())
    }
    fn merge(&mut self, partial: Val<'_>, ctx: &QueryCtx) -> Result<()> {
        self.make_calls()?;
        if std::mem::take(&mut self.fresh) {
            let mut b = DocBuilder::new();
            partial.put_to(&mut b, "");
            self.state = b.finish();
            return Ok(());
        }
        let args = Val::array([self.value(), partial]);
        self.state = self.functions.merge.call(args.as_array().unwrap_or(RawDoc::empty()), ctx)?;
        Ok(())
    }
}
