//! What documents hold, and conditions on it.

use crate::generated::chance::Chance;
use pando_bson::{Bson, Document, doc};

/// Numbers that documents may have.
pub(crate) const IDS: u64 = 400;

/// Everything that a key is made of follows from the `_id`: the same document goes to the same shard.
pub(crate) fn key_of(id: i32) -> Document {
    doc! { "_id": id, "k": (id * 37) % 40 * 25, "g": id % 7 }
}

fn words(c: &mut Chance) -> String {
    let all = ["red", "green", "blue", "apple", "pear", "running"];
    (0..c.below(4) + 1).map(|_| c.one(&all)).collect::<Vec<_>>().join(" ")
}

/// A fraction that binary numbers hold exactly, so that sums are the same in any order.
pub(crate) fn fraction(c: &mut Chance) -> f64 {
    f64::from(c.below(800)) / 8.0
}

pub(crate) fn with_id(c: &mut Chance, id: i32) -> Document {
    let mut d = key_of(id);
    d.push("n", c.below(50));
    d.push("f", fraction(c));
    d.push("s", c.one(&["a", "B", "b", "ab", "", "\u{e9}"]));
    if c.below(3) > 0 {
        let list: Vec<Bson> = (0..c.below(4)).map(|_| Bson::Int32(c.below(6))).collect();
        d.push("a", list);
    }
    if c.once_in(3) {
        d.push("x", c.one(&[Bson::Null, Bson::Int64(7), Bson::Double(2.5), Bson::from("t")]));
    }
    if c.once_in(2) {
        d.push("d", doc! { "p": c.below(5), "q": c.one(&["x", "y"]) });
    }
    let items: Vec<Bson> = (0..c.below(3)).map(|i| doc! { "w": c.below(9), "q": i }.into()).collect();
    d.push("items", items);
    d.push("t", words(c));
    let at = vec![
        Bson::Double(f64::from(c.below(3600)) / 10.0 - 180.0),
        Bson::Double(f64::from(c.below(1600)) / 10.0 - 80.0),
    ];
    let mut point = doc! { "type": "Point" };
    point.push("coordinates", at);
    d.push("p", point);
    d.push("at", Bson::DateTime(1_600_000_000_000 + i64::from(c.below(2000)) * 3_600_000));
    d
}

pub(crate) fn document(c: &mut Chance) -> Document {
    let id = c.below(IDS);
    with_id(c, id)
}

/// Conditions that any read and any write of several may have.
pub(crate) fn filter(c: &mut Chance) -> Document {
    let (a, b) = (c.below(1000), c.below(300));
    match c.below(25) {
        0 => doc! { "_id": c.below(IDS) },
        1 => doc! { "k": { "$gte": a, "$lt": a + b } },
        2 => doc! { "g": c.below(8) },
        3 => doc! { "g": c.below(7), "k": { "$gt": a } },
        4 => doc! { "a": c.below(6) },
        5 => doc! { "n": { "$in": [c.below(50), c.below(50), c.below(50)] } },
        6 => doc! { "$or": [{ "k": { "$lt": b } }, { "g": 3, "s": "b" }] },
        7 => doc! { "_id": { "$in": [c.below(IDS), c.below(IDS)] } },
        8 => doc! { "x": { "$exists": c.once_in(2) } },
        9 => doc! { "k": { "$in": [a / 25 * 25, (c.below(IDS) * 37) % 40 * 25] }, "g": { "$gte": 2 } },
        10 => doc! { "$expr": { "$gt": ["$n", "$g"] } },
        11 => doc! { "items": { "$elemMatch": { "w": { "$gt": c.below(9) }, "q": 0 } } },
        12 => doc! { "a": { "$all": [c.below(6), c.below(6)] } },
        13 => doc! { "a": { "$size": c.below(4) } },
        14 => doc! { "s": { "$regex": c.one(&["^a", "b$", "B"]), "$options": c.one(&["", "i"]) } },
        15 => doc! { "$nor": [{ "g": c.below(7) }, { "n": { "$lt": c.below(30) } }] },
        16 => doc! { "n": { "$mod": [c.below(5) + 2, 1] } },
        17 => doc! { "d.p": { "$lte": c.below(5) }, "k": { "$not": { "$lt": a / 2 } } },
        18 => doc! { "f": { "$gte": fraction(c) }, "g": { "$ne": c.below(7) } },
        19 => doc! { "x": { "$type": c.one(&["null", "long", "double", "string"]) } },
        20 => doc! { "k": a / 25 * 25, "g": { "$in": [c.below(7), c.below(7), c.below(7)] } },
        21 => key_of(c.below(IDS)),
        // Bounds of everything, on each field of a key.
        22 => {
            let everything = match c.below(5) {
                0 => doc! { "$lt": Bson::MaxKey },
                1 => doc! { "$ne": Bson::MaxKey },
                2 => doc! { "$gte": Bson::MinKey, "$lt": Bson::MaxKey },
                3 => doc! { "$gt": Bson::MinKey },
                _ => doc! { "$not": doc! { "$gte": Bson::MaxKey } },
            };
            let mut d = Document::new();
            d.push(c.one(&["k", "g", "d.p", "_id", "n"]), everything);
            d
        }
        _ => doc! {},
    }
}
