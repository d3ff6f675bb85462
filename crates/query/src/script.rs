//! JavaScript as queries see it: functions are compiled once and called per document, by an engine that
//! [`QueryCtx`] brings along, or by none.

use crate::ctx::QueryCtx;
pub use pando_base::patience::Operation;
use pando_base::{Error, Result};
use pando_bson::{DocBuf, RawDoc, Value};
use std::sync::Arc;

/// The scripts of one operation. A call may be stopped by the operation's end at any point.
pub trait Scripts: Send + Sync {
    /// Takes a function, an expression or the body of a function.
    fn compile(&self, code: &str) -> Result<FunctionId>;
    /// Whether the function's value for this document, which is its `this`, counts as true.
    fn test(&self, f: FunctionId, doc: &RawDoc) -> Result<bool>;
    /// The value for an array of arguments, as the only element of a document.
    fn call(&self, f: FunctionId, args: &RawDoc) -> Result<DocBuf>;
    /// Calls with the state and each array of arguments in turn; the value is the next state. `state` is the only
    /// element of a document, and so is the last one.
    fn fold(&self, f: FunctionId, state: &RawDoc, calls: &RawDoc) -> Result<DocBuf>;
    /// From now on another operation's (the next batch of a cursor).
    fn follow(&self, operation: Arc<dyn Operation>);
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FunctionId(pub u32);

/// A function's text, compiled when it is called.
#[derive(Clone)]
pub(crate) struct Script {
    pub(crate) code: String,
}

impl Script {
    /// Of a string or code without a scope.
    pub(crate) fn of(v: Option<Value<'_>>) -> Option<Script> {
        match v? {
            Value::String(code) | Value::JavaScript(code) => Some(Script { code: code.to_owned() }),
            _ => None,
        }
    }
    pub(crate) fn call(&self, args: &RawDoc, ctx: &QueryCtx) -> Result<DocBuf> {
        let engine = engine(ctx)?;
        engine.call(engine.compile(&self.code)?, args)
    }
    pub(crate) fn fold(&self, state: &RawDoc, calls: &RawDoc, ctx: &QueryCtx) -> Result<DocBuf> {
        let engine = engine(ctx)?;
        engine.fold(engine.compile(&self.code)?, state, calls)
    }
}

fn engine(ctx: &QueryCtx) -> Result<&Arc<dyn Scripts>> {
    ctx.scripts.as_ref().ok_or_else(|| {
        Error::location(31264, "Cannot run server-side javascript without the javascript engine enabled")
    })
}
