//! Reads that are no pipelines.

use crate::generated::chance::Chance;
use crate::generated::documents::{IDS, filter, key_of};
use crate::generated::operations::{Operation, Told};
use crate::generated::places::Place;
use pando_bson::{Bson, Document, doc};

const ENGLISH: fn() -> Document = || doc! { "locale": "en", "strength": 2 };

/// Orders that leave nothing open.
fn order(c: &mut Chance) -> Document {
    c.one(&[
        doc! { "n": 1, "_id": -1 },
        doc! { "_id": 1 },
        doc! { "k": -1, "_id": 1 },
        doc! { "a": 1, "_id": 1 },
        doc! { "x": -1, "f": 1, "_id": 1 },
        doc! { "d.q": 1, "g": -1, "_id": 1 },
        doc! { "g": 1, "k": 1, "_id": 1 },
    ])
}

fn with_options(c: &mut Chance, d: &mut Document) {
    if c.once_in(2) {
        d.push("limit", c.below(30) + 1);
    }
    if c.once_in(2) {
        d.push("skip", c.below(10));
    }
    if c.once_in(3) {
        let projections = [
            doc! { "n": 1 },
            doc! { "a": 0, "k": 0 },
            doc! { "_id": 0, "s": 1, "a": { "$slice": 1 } },
            doc! { "items": { "$elemMatch": { "w": { "$gt": 3 } } } },
            doc! { "double": { "$multiply": ["$n", 2] }, "g": 1 },
        ];
        d.push("projection", c.one(&projections));
    }
    if c.once_in(4) {
        d.push("allowDiskUse", c.once_in(2));
    }
    if c.once_in(6) {
        d.push("noCursorTimeout", true);
    }
    if c.once_in(8) {
        d.push("singleBatch", true);
    }
    d.push("batchSize", c.below(20) + 2);
}

pub(crate) fn find(c: &mut Chance, place: &Place) -> Operation {
    let mut d = doc! { "find": place.name, "filter": filter(c) };
    let told = match c.below(5) {
        0 => {
            d.push("batchSize", c.below(20) + 1);
            return Operation::one("find", d, Told::InAnyOrder);
        }
        1 => {
            d.push("collation", ENGLISH());
            d.push("sort", doc! { "s": c.one(&[1, -1]), "_id": 1 });
            Told::InOrder
        }
        2 => {
            d.push("hint", c.one(&["n", "_id_"]));
            d.push("sort", order(c));
            Told::InOrder
        }
        _ => {
            d.push("sort", order(c));
            Told::InOrder
        }
    };
    with_options(c, &mut d);
    Operation::one("find", d, told)
}

/// What an index is asked for by its keys.
pub(crate) fn of_index(c: &mut Chance, place: &Place) -> Operation {
    let (a, b) = (c.below(40), c.below(12) + 1);
    let d = match c.below(4) {
        0 => {
            doc! { "find": place.name, "min": { "n": a }, "max": { "n": a + b }, "hint": { "n": 1 }, "sort": { "n": 1, "_id": 1 } }
        }
        1 => {
            doc! { "find": place.name, "filter": { "n": { "$gte": a } }, "returnKey": true, "hint": "n", "sort": { "n": c.one(&[1, -1]) } }
        }
        2 => {
            let d = doc! { "find": place.name, "filter": filter(c), "showRecordId": true };
            return Operation::one("of index", d, Told::HowMany);
        }
        _ => {
            let d =
                doc! { "find": place.name, "filter": { "n": { "$lt": a } }, "returnKey": true, "hint": "n" };
            return Operation::one("of index", d, Told::InAnyOrder);
        }
    };
    Operation::one("of index", d, Told::InOrder)
}

pub(crate) fn count(c: &mut Chance, place: &Place) -> Operation {
    let mut d = doc! { "count": place.name, "query": filter(c) };
    if c.once_in(2) {
        d.push("limit", c.below(60));
        d.push("skip", c.below(20));
    }
    if c.once_in(3) {
        d.push("hint", "n");
    }
    Operation::one("count", d, Told::InOrder)
}

pub(crate) fn distinct(c: &mut Chance, place: &Place) -> Operation {
    let key = c.one(&["g", "a", "s", "x", "d.p", "items.w", "n", "k"]);
    Operation::one("distinct", doc! { "distinct": place.name, "key": key, "query": filter(c) }, Told::InOrder)
}

pub(crate) fn text(c: &mut Chance, place: &Place) -> Operation {
    let search = c.one(&["red", "apple blue", "\"green\"", "pear -red", "run"]);
    let mut d = doc! { "find": place.name, "filter": { "$text": { "$search": search } } };
    match c.below(3) {
        0 => return Operation::one("text", d, Told::InAnyOrder),
        1 => {
            d.push("projection", doc! { "score": { "$meta": "textScore" } });
            d.push("sort", doc! { "score": { "$meta": "textScore" }, "_id": 1 });
        }
        _ => d.push("sort", doc! { "_id": -1 }),
    }
    if c.once_in(2) {
        d.push("limit", c.below(20) + 1);
        d.push("skip", c.below(5));
    }
    Operation::one("text", d, Told::InOrder)
}

fn point(c: &mut Chance) -> Document {
    let at = vec![Bson::Int32(c.below(340) - 170), Bson::Int32(c.below(150) - 75)];
    let mut d = doc! { "type": "Point" };
    d.push("coordinates", at);
    d
}

pub(crate) fn near(c: &mut Chance, place: &Place) -> Operation {
    let far = (c.below(4000) + 100) * 1000;
    let mut d = doc! { "find": place.name };
    match c.below(3) {
        0 => {
            let sphere = vec![
                Bson::Array(vec![Bson::Int32(c.below(340) - 170), Bson::Int32(c.below(150) - 75)]),
                Bson::Double(f64::from(c.below(10)) / 10.0 + 0.1),
            ];
            let mut within = doc! {};
            within.push("$centerSphere", sphere);
            d.push("filter", doc! { "p": { "$geoWithin": within } });
            return Operation::one("near", d, Told::InAnyOrder);
        }
        1 => {
            d.push("filter", doc! { "p": { "$nearSphere": { "$geometry": point(c), "$maxDistance": far } }, "g": { "$gt": 1 } });
        }
        _ => {
            d.push("filter", doc! { "p": { "$near": { "$geometry": point(c) } } });
            d.push("limit", c.below(20) + 1);
            d.push("skip", c.below(4));
        }
    }
    // Of two at one place either may come first.
    d.push("projection", doc! { "_id": 0, "p": 1 });
    Operation::one("near", d, Told::InOrder)
}

pub(crate) fn of_view(c: &mut Chance, place: &Place) -> Operation {
    let view = format!("v_{}", place.name);
    let d = match c.below(4) {
        0 => {
            doc! { "find": view, "filter": filter(c), "sort": { "m": -1, "_id": 1 }, "limit": c.below(20) + 1 }
        }
        1 => doc! { "count": view, "query": key_of(c.below(IDS)) },
        2 => doc! { "distinct": view, "key": c.one(&["m", "a", "d.q"]), "query": filter(c) },
        _ => crate::generated::operations::with(
            doc! { "aggregate": view, "cursor": {} },
            "pipeline",
            vec![
                Bson::from(doc! { "$group": { "_id": "$g", "m": { "$max": "$m" }, "n": { "$sum": 1 } } }),
                doc! { "$sort": { "_id": 1 } }.into(),
            ],
        ),
    };
    Operation::one("of view", d, Told::InOrder)
}
