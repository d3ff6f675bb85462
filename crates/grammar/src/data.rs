//! The collections that programs ask and change: the same few documents under every kind of index.

use pando_bson::{Bson, Document, doc, extjson};

/// Where queries and writes happen.
pub const DB: &str = "df";
/// Where collections are created and dropped.
pub const DDL_DB: &str = "dd";
/// Has nothing at first; programs may leave something there.
pub const EMPTY_DB: &str = "no-such";

/// Collections that are only read.
pub const READ: &[&str] = &[
    "plain",
    "plain",
    "plain",
    "compound",
    "multikey",
    "hashed",
    "texts",
    "geo",
    "wild",
    "partial",
    "sparse",
    "ttl",
    "collated",
    "clustered",
    "capped",
    "series",
    "view",
    "view2",
    "nope",
];
/// Collections that writes change; each write begins with the same documents.
pub const SCRATCH: &[&str] = &[
    "w_plain",
    "w_plain",
    "w_plain",
    "w_compound",
    "w_multikey",
    "w_hashed",
    "w_texts",
    "w_geo",
    "w_wild",
    "w_partial",
    "w_sparse",
    "w_collated",
    "w_clustered",
    "w_capped",
    "w_series",
];

const DOCS: &str = r#"[
{"_id":1,"n":1,"i":1,"l":{"$numberLong":"5"},"d":1.5,"c":{"$numberDecimal":"1.10"},"s":"abc","u":"é dog","t":{"$date":"2020-01-01T00:00:00Z"},"b":true,"a":[1,2,3],"as":["a","b"],"ao":[{"k":"a","v":1},{"k":"b","v":2}],"aa":[[1,2],[3]],"o":{"x":1,"y":"q"},"m":1,"z":{},"g":{"type":"Point","coordinates":[1,1]},"p":[1,1],"e":[],"nul":null},
{"_id":2,"n":2.5,"i":2,"l":{"$numberLong":"4294967296"},"d":-2.5,"c":{"$numberDecimal":"-2.51"},"s":"ABC","u":"ß cat","t":{"$date":"2020-02-29T12:30:15.123Z"},"b":false,"a":[3,4.5],"as":["b","c","c"],"ao":[{"k":"c","v":[1]}],"o":{"x":2.5,"y":"r","z":{"w":1}},"m":"x","g":{"type":"Point","coordinates":[2.5,-10]},"p":[2.5,-10],"nul":null},
{"_id":3,"n":{"$numberLong":"3"},"i":3,"l":{"$numberLong":"-7"},"d":0.1,"c":{"$numberDecimal":"1E+3"},"s":"dog cat","u":"日本語","t":{"$date":"2019-12-31T23:59:59.999Z"},"b":true,"a":[],"as":[],"ao":[],"o":{"x":-1},"m":[1,"a",null],"g":{"type":"Polygon","coordinates":[[[0,0],[5,0],[5,5],[0,5],[0,0]]]},"p":[0,0],"oid":{"$oid":"5f0000000000000000000001"}},
{"_id":4,"n":{"$numberDecimal":"4.0"},"i":-4,"l":{"$numberLong":"9223372036854775807"},"d":1e300,"c":{"$numberDecimal":"9.999999999999999999999999999999999E+6144"},"s":"","u":"","t":{"$date":{"$numberLong":"0"}},"a":[-1,null,"x"],"as":["x"],"ao":[{"k":"z","v":null}],"o":{"x":4},"m":{"a":1,"b":{"c":[1]}},"g":{"type":"LineString","coordinates":[[0,0],[10,10]]},"p":[10,10]},
{"_id":5,"i":5,"l":{"$numberLong":"-9223372036854775808"},"d":{"$numberDouble":"NaN"},"c":{"$numberDecimal":"NaN"},"s":"2020-01-01","u":"İ","t":{"$date":{"$numberLong":"-62135596800000"}},"b":false,"a":[[1,2],3],"o":{"y":"q"},"m":{"$date":{"$numberLong":"1000"}},"g":{"type":"Point","coordinates":[-180,0]},"p":[-179,3]},
{"_id":6,"n":-1,"i":0,"d":{"$numberDouble":"Infinity"},"c":{"$numberDecimal":"Infinity"},"s":"12","t":{"$date":{"$numberLong":"253402300799999"}},"b":true,"a":[7,7,1],"as":["abc","ABC"],"ao":[{"k":"a","v":3}],"o":{"x":{"$numberLong":"12"}},"m":null,"ts":{"$timestamp":{"t":1600000000,"i":1}},"bin":{"$binary":{"base64":"AQID","subType":"00"}},"r":{"$regularExpression":{"pattern":"a","options":"i"}}},
{"_id":7,"n":0,"i":7,"l":{"$numberLong":"0"},"d":{"$numberDouble":"-0.0"},"c":{"$numberDecimal":"-0"},"s":"a.b","m":true,"a":[5],"o":{},"ts":{"$timestamp":{"t":0,"i":1}}},
{"_id":8,"n":1,"i":1,"l":{"$numberLong":"5"},"d":2.0,"c":{"$numberDecimal":"1.1"},"s":"abc","t":{"$date":"2020-01-01T00:00:00Z"},"a":[2,1],"m":{"$undefined":true},"o":{"x":1,"y":"r"},"z":{"a":{"b":[{"c":1},{"c":2}]}}},
{"_id":9,"n":100,"i":9,"d":9007199254740993,"s":"Abc dEF","a":[1,1,2],"m":{"$minKey":1},"ao":[{"k":"a","v":1},{"k":"a","v":9},{"v":5}],"as":["é"]},
{"_id":10,"i":2147483647,"l":{"$numberLong":"2147483648"},"m":{"$numberDouble":"-Infinity"},"s":"zebra","a":["x","y"],"t":{"$date":"2021-06-15T08:00:00Z"},"n":7},
{"_id":11,"i":-2147483648,"n":-0.0,"m":{"$oid":"5f0000000000000000000002"},"s":"$a","a":{"0":"not an array"},"o":[{"x":1},{"x":2}],"t":{"$date":"2020-03-29T01:30:00Z"}},
{"_id":12,"n":null,"m":{"$binary":{"base64":"AAAAAAAAAAAAAAAAAAAAAA==","subType":"04"}},"b":true,"t":null,"s":null}
]"#;

pub fn documents() -> Vec<Document> {
    let list = extjson::parse_value(DOCS).expect("the documents are Extended JSON");
    let docs = list.as_array().unwrap_or_default();
    docs.iter().filter_map(|d| d.as_doc().cloned()).collect()
}

/// The same as a collection of a kind takes them.
pub fn documents_for(collection: &str) -> Vec<Document> {
    let mut docs = documents();
    let kind = collection.trim_start_matches("w_");
    for (i, d) in docs.iter_mut().enumerate() {
        if kind == "series" {
            // Every measurement has its time, within a few hours of another.
            d.set("t", Bson::DateTime(1_577_836_800_000 + (i as i64 * 1_234_567)));
            d.set("meta", doc! { "k": (i % 3) as i32 });
        }
    }
    docs
}

fn index(collection: &str, key: Document, options: Document) -> Document {
    let name: Vec<String> = key.iter().map(|(k, _)| k.replace(['.', '*', '$'], "_")).collect();
    let mut spec = doc! { "key": key };
    spec.push("name", name.join("_"));
    for (k, v) in options {
        spec.push(k, v);
    }
    doc! { "createIndexes": collection, "indexes": [spec] }
}

/// Commands that make a collection of a kind, without its documents.
pub fn creation(name: &str) -> Vec<Document> {
    let on = |key: Document| index(name, key, Document::new());
    let plain = || doc! { "create": name };
    match name.trim_start_matches("w_") {
        "compound" => vec![
            plain(),
            on(doc! { "i": 1, "s": -1 }),
            on(doc! { "n": 1, "l": 1, "d": -1 }),
            on(doc! { "t": 1 }),
            on(doc! { "o.x": 1, "_id": 1 }),
        ],
        "multikey" => {
            vec![
                plain(),
                on(doc! { "a": 1 }),
                on(doc! { "ao.k": 1, "ao.v": -1 }),
                on(doc! { "as": 1, "i": 1 }),
            ]
        }
        "hashed" => vec![
            plain(),
            on(doc! { "n": "hashed" }),
            on(doc! { "s": "hashed", "i": 1 }),
            on(doc! { "d": "hashed" }),
        ],
        "texts" => vec![plain(), on(doc! { "s": "text", "u": "text" }), on(doc! { "i": 1 })],
        "geo" => vec![plain(), on(doc! { "p": "2d" }), on(doc! { "g": "2dsphere", "i": 1 })],
        "wild" => vec![plain(), on(doc! { "$**": 1 })],
        "partial" => {
            let filter = doc! { "partialFilterExpression": doc! { "i": doc! { "$gt": 0 } } };
            vec![plain(), index(name, doc! { "n": 1 }, filter)]
        }
        "sparse" => vec![
            plain(),
            index(name, doc! { "l": 1 }, doc! { "sparse": true }),
            index(name, doc! { "oid": 1 }, doc! { "sparse": true, "unique": true }),
        ],
        "ttl" => vec![plain(), index(name, doc! { "oid": 1 }, doc! { "expireAfterSeconds": i32::MAX })],
        "collated" => vec![
            doc! { "create": name, "collation": doc! { "locale": "en", "strength": 2 } },
            on(doc! { "s": 1 }),
            index(name, doc! { "as": 1 }, doc! { "collation": doc! { "locale": "simple" } }),
        ],
        "clustered" => {
            let clustered = doc! { "key": doc! { "_id": 1 }, "unique": true };
            vec![doc! { "create": name, "clusteredIndex": clustered }, on(doc! { "i": 1 })]
        }
        "capped" => vec![doc! { "create": name, "capped": true, "size": 100_000 }],
        "series" => {
            let series = doc! { "timeField": "t", "metaField": "meta" };
            vec![doc! { "create": name, "timeseries": series }]
        }
        "view" => {
            let stages = vec![Bson::Document(doc! { "$match": doc! { "_id": doc! { "$lte": 8 } } })];
            let mut d = doc! { "create": name, "viewOn": "compound" };
            d.push("pipeline", stages);
            vec![d]
        }
        "view2" => {
            let set = doc! { "$set": doc! { "nn": doc! { "$add": ["$i", 1] } } };
            let mut d = doc! { "create": name, "viewOn": "view" };
            d.push("pipeline", vec![Bson::Document(set)]);
            vec![d]
        }
        _ => vec![plain()],
    }
}

pub fn is_view(name: &str) -> bool {
    name.starts_with("view")
}

pub fn insertion(name: &str, docs: Vec<Document>) -> Document {
    let mut d = doc! { "insert": name };
    d.push("documents", docs.into_iter().map(Bson::Document).collect::<Vec<_>>());
    d
}

/// Everything that programs find, in the order of its making.
pub fn setup() -> Vec<(&'static str, Document)> {
    let mut all: Vec<_> = [DB, DDL_DB, EMPTY_DB].map(|db| (db, doc! { "dropDatabase": 1 })).into();
    let mut made: Vec<&str> = Vec::new();
    for name in READ.iter().chain(SCRATCH) {
        if *name == "nope" || made.contains(name) {
            continue;
        }
        made.push(name);
        all.extend(creation(name).into_iter().map(|c| (DB, c)));
        if !is_view(name) {
            all.push((DB, insertion(name, documents_for(name))));
        }
    }
    all
}
