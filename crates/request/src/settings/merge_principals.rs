//! The arguments of `_mergeAuthzCollections`, with which tools bring users and roles back.

use crate::declare::arguments;
use crate::declare::kinds::{Bool, Text};

arguments! {
    /// Where the copies lie, as `db.collection`, and of which database they are to be taken: of all where that is empty. With `drop` whoever is
    /// not among them goes.
    pub struct MergePrincipalsArgs of "_mergeAuthzCollections" as "_mergeAuthzCollections", refusing {
        "db" db: required Text,
        "drop" drop: optional Bool,
        "tempRolesCollection" roles: optional Text,
        "tempUsersCollection" users: optional Text,
    }
}
