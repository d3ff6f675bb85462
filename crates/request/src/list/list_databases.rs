//! The arguments of `listDatabases`.

use crate::declare::arguments;
use crate::declare::kinds::{Bool, Filter, SafeBool};

arguments! {
    /// What `listDatabases` asks for.
    pub struct ListDatabasesArgs of "listDatabases" as "listDatabases", refusing {
        "nameOnly" name_only: optional SafeBool,
        "filter" filter: optional Filter,
        "authorizedDatabases" authorized: optional Bool,
    }
}
