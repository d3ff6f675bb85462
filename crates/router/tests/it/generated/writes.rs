//! Writes. One of one document says which: by its `_id`, or by all that keys are made of.

use crate::generated::chance::Chance;
use crate::generated::documents::{IDS, document, filter, fraction, key_of, with_id};
use crate::generated::operations::{Operation, Told, with};
use crate::generated::places::Place;
use pando_bson::{Bson, Document, doc};

pub(crate) fn insert(c: &mut Chance, place: &Place) -> Operation {
    let docs = (0..c.below(8) + 1).map(|_| document(c).into()).collect();
    let command = with(doc! { "insert": place.name, "ordered": c.once_in(2) }, "documents", docs);
    Operation::one("insert", command, Told::InOrder)
}

/// Changes that any document takes. `counts`: `n` may be among what changes.
fn operators(c: &mut Chance, counts: bool) -> Document {
    match c.below(15) {
        0 if counts => doc! { "$inc": { "n": c.below(9) } },
        1 if counts => doc! { "$mul": { "n": c.below(3) } },
        2 if counts => doc! { "$max": { "n": c.below(50) }, "$min": { "f": fraction(c) } },
        3 => doc! { "$push": { "a": c.below(6) } },
        4 => doc! { "$push": { "a": { "$each": [c.below(6), c.below(6)], "$sort": 1, "$slice": -4 } } },
        5 => doc! { "$addToSet": { "a": c.below(6) } },
        6 => doc! { "$pull": { "a": { "$gt": c.below(6) }, "items": { "w": c.below(9) } } },
        7 => doc! { "$pop": { "a": c.one(&[1, -1]) } },
        8 => doc! { "$set": { "s": c.one(&["c", "a"]) }, "$unset": { "x": 1 } },
        9 => doc! { "$set": { "d.p": c.below(5), "d.r": [1, { "z": c.below(3) }] } },
        10 => doc! { "$rename": { "x": "y" } },
        11 => doc! { "$bit": { "bits": { "xor": c.below(64) } } },
        12 => doc! { "$unset": { "d": 1, "y": 1 }, "$inc": { "f": fraction(c) } },
        13 => doc! { "$setOnInsert": { "made": true }, "$set": { "z": c.below(3) } },
        _ => doc! { "$pullAll": { "a": [c.below(6), c.below(6)] } },
    }
}

fn stages(c: &mut Chance, counts: bool) -> Vec<Bson> {
    let field = if counts { "n" } else { "z" };
    let mut set = doc! {};
    set.push(field, doc! { "$mod": [{ "$add": ["$k", c.below(20)] }, 50] });
    let mut all = vec![Bson::from(doc! { "$set": set })];
    if c.once_in(2) {
        all.push(doc! { "$set": { "a": { "$cond": [{ "$isArray": "$a" }, { "$slice": ["$a", 2] }, "$$REMOVE"] } } }.into());
    }
    if c.once_in(3) {
        all.push(doc! { "$unset": "x" }.into());
    }
    all
}

/// One statement of an update; of one document only where that is given.
fn statement(c: &mut Chance, place: &Place, of: Option<i32>) -> Document {
    let id = of.unwrap_or_else(|| c.below(IDS));
    let by = if of.is_some() { 1 } else { c.below(4) };
    let (q, multi) = match by {
        0 => (doc! { "_id": id }, false),
        1 => (key_of(id), false),
        _ => (filter(c), true),
    };
    // One that fails half way has changed some of several documents, and nobody says which.
    let counts = !(multi && place.has_unique());
    let mut d = doc! { "q": q, "multi": multi };
    match c.below(6) {
        0 => d.push("u", stages(c, counts)),
        1 if by == 1 => d.push("u", with_id(c, id)),
        2 => {
            // Where there is no array it fails, half way through several documents.
            let q = d.get("q").cloned().unwrap();
            d.set("q", doc! { "$and": [q, { "items": { "$type": "array" } }] });
            d.push("u", doc! { "$set": { "items.$[i].q": c.below(9) } });
            d.push("arrayFilters", vec![Bson::from(doc! { "i.w": { "$gt": c.below(9) } })]);
        }
        3 if by == 1 => {
            let mut q = key_of(id);
            q.push("items.w", c.below(9));
            d.set("q", q);
            d.push("u", doc! { "$set": { "items.$.q": 77 } });
            return d;
        }
        _ => d.push("u", operators(c, counts)),
    }
    if by == 1 && d.get("arrayFilters").is_none() {
        d.push("upsert", c.once_in(2));
    }
    if c.once_in(5) {
        d.push("hint", c.one(&["n", "_id_"]));
    }
    d
}

pub(crate) fn update(c: &mut Chance, place: &Place) -> Operation {
    // Without an order none of them may be of what another one is of.
    let (ordered, first) = (c.once_in(2), c.below(IDS - 4));
    let all =
        (0..c.below(4) + 1).map(|i| statement(c, place, (!ordered).then_some(first + i)).into()).collect();
    let command = with(doc! { "update": place.name, "ordered": ordered }, "updates", all);
    Operation::one("update", command, Told::InOrder)
}

fn gone(c: &mut Chance) -> Document {
    if c.once_in(2) {
        let q = if c.once_in(2) {
            doc! { "_id": c.below(IDS) }
        } else {
            key_of(c.below(IDS))
        };
        return doc! { "q": q, "limit": 1 };
    }
    let (q, n) = (filter(c), c.below(50));
    doc! { "q": { "$and": [{ "n": n }, { "$and": [Bson::from(q)] }] }, "limit": 0 }
}

pub(crate) fn delete(c: &mut Chance, place: &Place) -> Operation {
    let all = (0..c.below(3) + 1).map(|_| gone(c).into()).collect();
    let command = with(doc! { "delete": place.name, "ordered": c.once_in(2) }, "deletes", all);
    Operation::one("delete", command, Told::InOrder)
}

pub(crate) fn find_and_modify(c: &mut Chance, place: &Place) -> Operation {
    let id = c.below(IDS);
    let mut d = doc! { "findAndModify": place.name, "query": key_of(id) };
    if c.once_in(3) {
        d.push("sort", doc! { "n": 1 });
    }
    if c.once_in(3) {
        d.push("fields", doc! { "n": 1, "a": 1 });
    }
    match c.below(5) {
        0 => d.push("remove", true),
        1 => {
            d.push("update", stages(c, true));
            d.push("new", c.once_in(2));
        }
        2 => {
            d.push("update", with_id(c, id));
            d.push("upsert", c.once_in(2));
        }
        _ => {
            d.push("update", operators(c, true));
            d.push("new", c.once_in(2));
            d.push("upsert", c.once_in(3));
        }
    }
    Operation::one("findAndModify", d, Told::InOrder)
}

/// Several kinds of writes in one command.
pub(crate) fn bulk(c: &mut Chance, place: &Place) -> Operation {
    let mut ops: Vec<Bson> = Vec::new();
    for _ in 0..c.below(5) + 1 {
        let d = match c.below(3) {
            0 => doc! { "insert": 0, "document": document(c) },
            1 => {
                let mut d = doc! { "update": 0 };
                for (name, v) in statement(c, place, None).iter() {
                    let name = match name {
                        "q" => "filter",
                        "u" => "updateMods",
                        name => name,
                    };
                    d.push(name, v.clone());
                }
                d
            }
            _ => {
                let gone = gone(c);
                let several = gone.get("limit").and_then(Bson::as_i64) == Some(0);
                let mut d = doc! { "delete": 0, "multi": several };
                d.push("filter", gone.get("q").cloned().unwrap());
                d
            }
        };
        ops.push(d.into());
    }
    let ns = doc! { "ns": format!("test.{}", place.name) };
    let mut d = doc! { "bulkWrite": 1, "ordered": c.once_in(2), "$db": "admin" };
    d.push("ops", ops);
    d.push("nsInfo", vec![Bson::from(ns)]);
    Operation::one("bulkWrite", d, Told::InOrder)
}
