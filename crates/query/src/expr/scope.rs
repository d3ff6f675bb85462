//! What an expression sees while it runs: the document, the operation's context, and bound variables.

use super::value::Val;
use crate::ctx::QueryCtx;
use crate::facts::Facts;
use pando_bson::{RawDoc, Value};

/// A variable bound by `$let`, `$map`, `$filter`, `$reduce` or an outer pipeline. Unique within one parse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VarId(pub(super) u32);

impl VarId {
    /// A variable whose value is not known yet: missing, but never folded.
    pub(super) const UNBOUND: VarId = VarId(u32::MAX);
    /// Of a frame without a variable of its own.
    const NOBODY: VarId = VarId(u32::MAX - 1);
}

/// One bound variable; frames form a list from the innermost outwards.
#[derive(Clone, Copy)]
pub struct Frame<'s> {
    id: VarId,
    value: Option<Value<'s>>,
    /// Variables that were bound together, by ascending id.
    more: &'s [(VarId, Val<'s>)],
    parent: Option<&'s Frame<'s>>,
}

/// Everything an evaluation may look at. Copied freely.
#[derive(Clone, Copy)]
pub struct Scope<'s> {
    /// `$$ROOT`
    pub root: &'s RawDoc,
    pub ctx: &'s QueryCtx,
    /// What `$meta` can tell.
    pub facts: Option<&'s Facts>,
    frame: Option<&'s Frame<'s>>,
}

impl<'s> Scope<'s> {
    pub fn new(root: &'s RawDoc, ctx: &'s QueryCtx) -> Scope<'s> {
        Scope { root, ctx, facts: None, frame: None }
    }
    pub fn with_facts(self, facts: Option<&'s Facts>) -> Scope<'s> {
        Scope { facts, ..self }
    }
    /// The value of a variable; missing when it was bound to nothing.
    pub(super) fn var(&self, id: VarId) -> Option<Value<'s>> {
        let mut at = self.frame;
        while let Some(frame) = at {
            if frame.id == id {
                return frame.value;
            }
            if let Ok(at) = frame.more.binary_search_by_key(&id.0, |(id, _)| id.0) {
                return frame.more[at].1.value();
            }
            at = frame.parent;
        }
        None
    }
    /// A frame on top of this scope; keep it alive and call [`Scope::within`].
    pub fn frame<'i>(&self, id: VarId, value: &'i Val<'_>) -> Frame<'i>
    where
        's: 'i,
    {
        Frame { id, value: value.value(), more: &[], parent: self.frame }
    }
    pub(super) fn frame_value<'i>(&self, id: VarId, value: Option<Value<'i>>) -> Frame<'i>
    where
        's: 'i,
    {
        Frame { id, value, more: &[], parent: self.frame }
    }
    /// A frame with all variables of a `$let`.
    pub(super) fn frame_of<'i>(&self, more: &'i [(VarId, Val<'i>)]) -> Frame<'i>
    where
        's: 'i,
    {
        Frame { id: VarId::NOBODY, value: None, more, parent: self.frame }
    }
    /// This scope seen from inside a frame made on it.
    pub fn within<'i>(&self, frame: &'i Frame<'i>) -> Scope<'i>
    where
        's: 'i,
    {
        Scope { root: self.root, ctx: self.ctx, facts: self.facts, frame: Some(frame) }
    }
}
