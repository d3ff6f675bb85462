//! Writes of users: `insert`, `update`, `delete` and `findAndModify` come together here, above the catalog's one write path.
//!
//! [`writes`] is what they have in common (retried statements, the shape of a reply), [`inserting`] puts documents in,
//! [`find_one`] finds what a statement is about and [`statements`] carries it out.

pub(crate) mod find_one;
pub(crate) mod inserting;
pub(crate) mod statements;
pub(crate) mod writes;
