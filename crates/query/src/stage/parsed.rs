//! What every parsed stage can be asked, whichever it is. It is data: it can be cloned and compared, and is not changed by running.

use super::needs::Needs;
use super::running::{Running, Start};
use crate::ctx::QueryCtx;
use pando_base::Result;
use std::ops::{Deref, DerefMut};

/// The data of one stage.
pub(crate) trait Parsed: Clone + PartialEq {
    /// The stage as it runs.
    fn start(self, run: &mut Start<'_>) -> Result<Box<dyn Running>>;
    /// Adds what it reads, and says whether later stages still see the input's other fields.
    fn needs(&self, needs: &mut Needs);
    /// Folds what is constant in its expressions.
    fn optimize(&mut self, _ctx: &QueryCtx) -> Result<()> {
        Ok(())
    }
    /// Where the value that a condition on `path` looks at lies before this stage; `None` when that is nowhere.
    fn origin(&self, _path: &str) -> Option<Origin> {
        None
    }
}

/// A value before some stage.
pub(crate) struct Origin {
    pub(crate) path: String,
    /// The very value. Otherwise what is missing may have become null, and equal values one of them.
    pub(crate) same: bool,
}

impl Origin {
    /// It lies where it lay.
    pub(super) fn same(path: &str) -> Origin {
        Origin { path: path.to_owned(), same: true }
    }
}

/// What was compiled from the text of a stage. It is not compared: the texts are.
#[derive(Clone)]
pub(crate) struct Compiled<T>(pub(super) T);

impl<T> PartialEq for Compiled<T> {
    fn eq(&self, _: &Compiled<T>) -> bool {
        true
    }
}
impl<T> Deref for Compiled<T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}
impl<T> DerefMut for Compiled<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}
