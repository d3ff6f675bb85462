//! Commands of a tenant that moves from one set to another.

pub(in crate::commands) mod copy_test;
pub(in crate::commands) mod donor;

use super::prelude;
