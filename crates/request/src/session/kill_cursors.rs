//! The arguments of `killCursors`.

use crate::declare::kinds::Array;
use crate::declare::{arguments, kind};
use pando_bson::shape::Shape;

arguments! {
    /// What `killCursors` asks for.
    pub struct KillCursorsArgs of "killCursors" as "killCursors", refusing {
        "cursors" cursors: required CursorIds,
    }
}

impl KillCursorsArgs<'_> {
    /// A null among the ids is passed over.
    pub fn ids(&self) -> Vec<i64> {
        self.cursors.iter().filter_map(|e| e.value().as_i64()).collect()
    }
}

kind! { pub CursorIds like Array { SHAPE: Shape::List(&Shape::Long) } }
