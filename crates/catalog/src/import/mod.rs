//! Collections of another set that are taken in by their files, and come into being by one entry of the log.
//!
//! ```text
//!   every member:  files staged ─► tables loaded, named here (`take_in`) ─► it may tell its primary so
//!   the primary:                                                  importCollection ─► row of the catalog, from the entry's time on
//!   a secondary:                                                  the same by the entry: what is named here has to be there
//!   every member:  tables stand behind the entry ─► names forgotten (`forget_import`)
//! ```
//! Nothing of the documents is in the log. So the names, which are local rows, must be there whenever the entry may be applied: by a
//! secondary, by a replay, and once more behind a rollback. A member that has them not (it came later, or copied the set's data anew)
//! gives up its data and copies the set's ([`told::IMPORT_MISSING`]); it never has an empty collection instead.

mod publish;
mod registry;
mod take_in;
pub(crate) mod told;
