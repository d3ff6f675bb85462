//! The arguments of `listCollections`.

use crate::declare::arguments;
use crate::declare::kinds::{Bool, Cursor, Filter, SafeBool};

arguments! {
    /// What `listCollections` asks for.
    pub struct ListCollectionsArgs of "listCollections" as "listCollections", refusing {
        "cursor" cursor: optional Cursor,
        "filter" filter: optional Filter,
        "nameOnly" name_only: optional Bool,
        "authorizedCollections" authorized: optional Bool,
        "includePendingDrops" pending_drops: optional SafeBool,
    }
}
