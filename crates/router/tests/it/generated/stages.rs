//! Pipelines.

use crate::generated::chance::Chance;
use crate::generated::documents::{IDS, filter};
use crate::generated::operations::{Operation, Told, everything, with};
use crate::generated::places::Place;
use crate::generated::windows::{accumulator, gaps, window};
use pando_bson::{Bson, Document, doc};

fn by_id() -> Document {
    doc! { "$sort": { "_id": 1 } }
}

fn by_ids_of(field: &str) -> Document {
    let mut set = doc! {};
    set.push(field, doc! { "$sortArray": { "input": format!("${field}"), "sortBy": { "_id": 1 } } });
    doc! { "$set": set }
}

pub(crate) fn aggregate(c: &mut Chance, place: &Place) -> Operation {
    let mut told = Told::InOrder;
    let mut all = vec![doc! { "$match": filter(c) }];
    all.extend(match c.below(12) {
        0..=2 => groups(c),
        3 => windows(c),
        4 => joins(c, place),
        5 => walks(c, place),
        6 => unions(c, place),
        7 => facets(c, place),
        8 => gaps(c),
        9 => cuts(c),
        10 => buckets(c),
        _ => {
            told = Told::InAnyOrder;
            shapes(c)
        }
    });
    let mut d = doc! { "aggregate": place.name, "cursor": { "batchSize": c.below(9) + 1 } };
    if c.once_in(8) {
        d.push("allowDiskUse", true);
    }
    if c.once_in(8) {
        d.push("hint", "n");
    }
    if c.once_in(8) {
        d.push("let", doc! { "limit": c.below(40) });
        all.insert(0, doc! { "$match": { "$expr": { "$gt": ["$n", "$$limit"] } } });
    }
    let d = with(d, "pipeline", all.into_iter().map(Bson::from).collect());
    Operation::one("aggregate", d, told)
}

fn groups(c: &mut Chance) -> Vec<Document> {
    let sorted = c.once_in(2);
    let (spec, then) = accumulator(c, sorted);
    let id = c.one(&[
        Bson::from("$g"),
        Bson::from("$s"),
        Bson::from("$x"),
        Bson::Null,
        doc! { "g": "$g", "even": { "$mod": ["$n", 2] } }.into(),
    ]);
    let mut group = doc! {};
    group.push("_id", id);
    group.push("v", spec);
    group.push("n", doc! { "$sum": 1 });
    let mut all = Vec::new();
    if c.once_in(4) {
        all.push(doc! { "$unwind": { "path": "$a", "preserveNullAndEmptyArrays": c.once_in(2), "includeArrayIndex": "at" } });
    }
    if sorted {
        all.push(doc! { "$sort": c.one(&[doc! { "n": 1, "_id": 1, "at": 1 }, doc! { "f": -1, "_id": 1, "at": 1 }]) });
    }
    all.push(doc! { "$group": group });
    all.extend(then.stage());
    if c.once_in(3) {
        all.push(doc! { "$match": { "n": { "$gt": c.below(6) } } });
    }
    all.push(by_id());
    all
}

fn windows(c: &mut Chance) -> Vec<Document> {
    let (by, output, then) = window(c);
    let mut spec = doc! {};
    if c.below(3) > 0 {
        spec.push("partitionBy", c.one(&["$g", "$s", "$k"]));
    }
    spec.push("sortBy", by);
    let mut outputs = doc! {};
    outputs.push("v", output);
    spec.push("output", outputs);
    let mut all = vec![doc! { "$setWindowFields": spec }];
    all.extend(then.stage());
    all.extend([doc! { "$project": { "v": 1, "n": 1 } }, by_id()]);
    all
}

fn joins(c: &mut Chance, place: &Place) -> Vec<Document> {
    let from = c.one(&[place.name, place.side]);
    let lookup = match c.below(4) {
        0 => {
            doc! { "from": from, "localField": "g", "foreignField": c.one(&["a", "r", "_id", "g"]), "as": "j" }
        }
        1 => doc! { "from": place.side, "let": { "n": "$n" }, "as": "j",
        "pipeline": [{ "$match": { "$expr": { "$lt": ["$w", "$$n"] } } }, { "$sort": { "w": 1, "_id": 1 } }, { "$limit": 4 }] },
        2 => doc! { "from": from, "localField": "a", "foreignField": "_id", "as": "j",
        "pipeline": [{ "$project": { "w": 1, "n": 1 } }] },
        _ => doc! { "from": place.side, "localField": "g", "foreignField": "r", "as": "j", "pipeline": [
        { "$lookup": { "from": place.name, "localField": "w", "foreignField": "n", "as": "again" } },
        { "$project": { "again": { "$size": "$again" } } }] },
    };
    let mut all = vec![by_id(), doc! { "$limit": c.below(12) + 1 }, doc! { "$lookup": lookup }];
    match c.below(3) {
        0 => all.extend([
            doc! { "$unwind": "$j" },
            doc! { "$sort": { "_id": 1, "j._id": 1 } },
            doc! { "$project": { "j": 1 } },
        ]),
        _ => all.push(by_ids_of("j")),
    }
    all
}

fn walks(c: &mut Chance, place: &Place) -> Vec<Document> {
    let mut spec = match c.below(2) {
        0 => {
            doc! { "from": place.name, "startWith": "$n", "connectFromField": "n", "connectToField": "_id", "as": "way" }
        }
        _ => {
            doc! { "from": place.side, "startWith": "$g", "connectFromField": "next", "connectToField": "_id", "as": "way" }
        }
    };
    spec.push("maxDepth", c.below(4));
    if c.once_in(2) {
        spec.push("restrictSearchWithMatch", doc! { "_id": { "$lt": c.below(IDS) } });
    }
    if c.once_in(2) {
        spec.push("depthField", "depth");
    }
    vec![by_id(), doc! { "$limit": 9 }, doc! { "$graphLookup": spec }, by_ids_of("way")]
}

fn unions(c: &mut Chance, place: &Place) -> Vec<Document> {
    let union = match c.below(3) {
        0 => doc! { "coll": place.name, "pipeline": [{ "$match": filter(c) }] },
        1 => doc! { "coll": place.side, "pipeline": [{ "$set": { "k": -1 } }] },
        _ => doc! { "coll": format!("v_{}", place.name) },
    };
    let mut all = vec![doc! { "$unionWith": union }];
    match c.below(2) {
        0 => all.push(doc! { "$sort": { "_id": 1, "k": 1, "m": 1 } }),
        _ => all
            .extend([doc! { "$group": { "_id": "$g", "n": { "$sum": 1 }, "f": { "$sum": "$f" } } }, by_id()]),
    }
    all
}

fn facets(c: &mut Chance, place: &Place) -> Vec<Document> {
    let (spec, then) = accumulator(c, false);
    let mut group = doc! { "_id": "$g" };
    group.push("v", spec);
    let mut groups = vec![Bson::from(doc! { "$group": group })];
    groups.extend(then.stage().map(Bson::from));
    groups.push(by_id().into());
    let mut d = doc! { "n": [{ "$count": "n" }], "top": [{ "$sort": { "k": -1, "_id": 1 } }, { "$limit": 3 }],
    "joined": [{ "$sort": { "_id": 1 } }, { "$limit": 2 },
        { "$lookup": { "from": place.side, "localField": "g", "foreignField": "_id", "as": "j" } }] };
    d.push("groups", groups);
    vec![doc! { "$facet": d }]
}

/// Some of the rows.
fn cuts(c: &mut Chance) -> Vec<Document> {
    match c.below(4) {
        0 => vec![
            doc! { "$sort": { "n": -1, "_id": 1 } },
            doc! { "$skip": c.below(5) },
            doc! { "$limit": c.below(20) + 1 },
            doc! { "$project": { "n": 1, "double": { "$multiply": ["$n", 2] } } },
        ],
        1 => vec![
            doc! { "$sample": { "size": c.below(60) + 1 } },
            doc! { "$group": { "_id": "$_id" } },
            doc! { "$count": "n" },
        ],
        2 => vec![doc! { "$limit": c.below(60) + 1 }, doc! { "$skip": c.below(9) }, doc! { "$count": "n" }],
        _ => vec![
            doc! { "$sort": { "x": 1, "f": -1, "_id": 1 } },
            doc! { "$limit": c.below(40) + 1 },
            doc! { "$match": { "g": { "$lt": c.below(7) } } },
            doc! { "$sort": { "g": 1, "_id": -1 } },
            doc! { "$skip": c.below(3) },
        ],
    }
}

fn buckets(c: &mut Chance) -> Vec<Document> {
    match c.below(3) {
        0 => vec![
            doc! { "$bucket": { "groupBy": "$k", "boundaries": [0, 250, 500, 1000], "output": { "n": { "$sum": 1 }, "f": { "$max": "$f" } } } },
        ],
        1 => vec![
            doc! { "$bucketAuto": { "groupBy": c.one(&["$n", "$_id", "$k"]), "buckets": c.below(6) + 1, "output": { "n": { "$sum": 1 } } } },
        ],
        _ => vec![
            doc! { "$sortByCount": c.one(&["$g", "$s", "$x"]) },
            doc! { "$sort": { "count": 1, "_id": 1 } },
        ],
    }
}

fn shapes(c: &mut Chance) -> Vec<Document> {
    match c.below(6) {
        0 => vec![
            doc! { "$redact": { "$cond": [{ "$lt": ["$g", c.below(7)] }, "$$KEEP", "$$PRUNE"] } },
            doc! { "$unset": ["a", "p"] },
        ],
        1 => vec![doc! { "$replaceRoot": { "newRoot": { "$mergeObjects": ["$d", { "id": "$_id" }] } } }],
        2 => vec![
            doc! { "$geoNear": { "near": [c.below(300) - 150, c.below(100) - 50], "key": "p", "distanceField": "far", "spherical": true } },
        ],
        3 => vec![doc! { "$unwind": "$items" }, doc! { "$match": { "items.w": { "$gt": c.below(9) } } }],
        4 => vec![
            doc! { "$project": { "sum": { "$sum": "$a" }, "big": { "$gt": ["$f", 50] }, "s": { "$toUpper": "$s" } } },
        ],
        _ => vec![
            doc! { "$set": { "d.sum": { "$add": ["$g", "$n"] } } },
            doc! { "$match": { "d.sum": { "$gte": c.below(40) } } },
        ],
    }
}

/// `$merge` and `$out`, and what is there then.
pub(crate) fn write_results(c: &mut Chance, place: &Place) -> Operation {
    let into = format!("m_{}", place.name);
    let mut all =
        vec![doc! { "$match": filter(c) }, doc! { "$set": { "m": { "$add": ["$n", c.below(5)] } } }];
    let out = c.once_in(4);
    let into = if out { format!("o_{}", place.name) } else { into };
    match out {
        true => all.push(doc! { "$out": into.as_str() }),
        false => {
            let mut spec = doc! { "into": into.as_str() };
            match c.below(5) {
                0 => {
                    let stages = vec![Bson::from(
                        doc! { "$set": { "met": { "$add": [{ "$ifNull": ["$met", 0] }, "$$new.m"] } } },
                    )];
                    spec.push("whenMatched", stages);
                }
                n => spec.push("whenMatched", ["merge", "replace", "keepExisting", "merge"][n as usize - 1]),
            }
            spec.push("whenNotMatched", c.one(&["insert", "discard", "insert"]));
            all.push(doc! { "$merge": spec });
        }
    }
    let write = doc! { "aggregate": place.name, "cursor": {} };
    let write = with(write, "pipeline", all.into_iter().map(Bson::from).collect());
    Operation { kind: "results", commands: vec![write, everything(&into)], told: Told::FieldsInAnyOrder }
}
