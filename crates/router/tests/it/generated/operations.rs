//! One operation: a command or several, and what of their answers has to be the same.

use crate::generated::chance::Chance;
use crate::generated::places::Place;
use crate::generated::{reads, stages, writes};
use pando_bson::{Bson, Document, doc};

/// How rows are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Told {
    InOrder,
    InAnyOrder,
    /// The fields of a row may come in any order: those of a shard key are in the condition of an upsert, others are not.
    FieldsInAnyOrder,
    HowMany,
}

pub(crate) struct Operation {
    pub(crate) kind: &'static str,
    pub(crate) commands: Vec<Document>,
    pub(crate) told: Told,
}

impl Operation {
    pub(crate) fn one(kind: &'static str, command: Document, told: Told) -> Operation {
        Operation { kind, commands: vec![command], told }
    }
}

pub(crate) fn with(mut command: Document, name: &str, list: Vec<Bson>) -> Document {
    command.push(name, list);
    command
}

pub(crate) fn operation(c: &mut Chance, place: &Place) -> Operation {
    match c.below(24) {
        0..=3 => reads::find(c, place),
        4 => reads::count(c, place),
        5 => reads::distinct(c, place),
        6 => reads::text(c, place),
        7 => reads::near(c, place),
        8 => reads::of_view(c, place),
        9 => reads::of_index(c, place),
        10..=15 => stages::aggregate(c, place),
        16 => stages::write_results(c, place),
        17 | 18 => writes::insert(c, place),
        19 | 20 => writes::update(c, place),
        21 => writes::delete(c, place),
        22 => writes::find_and_modify(c, place),
        _ => writes::bulk(c, place),
    }
}

/// A read of everything, in order.
pub(crate) fn everything(coll: &str) -> Document {
    doc! { "find": coll, "sort": { "_id": 1, "k": 1 } }
}
