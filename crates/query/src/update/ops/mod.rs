//! The update operators: one file each (or close family), one row each in [`OPERATORS`].

mod add_to_set;
mod arith;
mod bit;
mod current_date;
mod min_max;
mod pop;
mod pull;
mod push;
mod rename;
mod set;

use super::modifier::{Arg, Modifier};
use pando_base::Result;

pub(super) use rename::{RenameFrom, RenameTo};

type Parse = fn(&Arg<'_>) -> Result<Box<dyn Modifier>>;

/// Every operator but `$rename`, which puts two modifiers.
pub(super) const OPERATORS: &[(&str, Parse)] = &[
    ("$addToSet", add_to_set::parse),
    ("$bit", bit::parse),
    ("$currentDate", current_date::parse),
    ("$inc", arith::parse_inc),
    ("$max", min_max::parse_max),
    ("$min", min_max::parse_min),
    ("$mul", arith::parse_mul),
    ("$pop", pop::parse),
    ("$pull", pull::parse),
    ("$pullAll", pull::parse_all),
    ("$push", push::parse),
    ("$set", set::parse),
    ("$setOnInsert", set::parse_on_insert),
    ("$unset", set::parse_unset),
];
