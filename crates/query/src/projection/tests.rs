//! Table of specifications and results; the expected values were asked of a real server.

use super::*;
use pando_bson::doc;

fn subject() -> DocBuf {
    doc! {
        "_id": 1,
        "a": [1, 2, 3, { "x": 1 }, [{ "x": 2, "y": 3 }]],
        "b": { "c": 1, "d": [{ "e": 1, "f": 2 }, 5] },
        "s": 7,
        "n": pando_bson::Bson::Null
    }
    .to_raw()
}

fn project(spec: pando_bson::Document) -> Result<pando_bson::Document> {
    let row = RowMeta { array_index: Some(1), ..RowMeta::default() };
    let p = Projection::parse(&spec.to_raw(), &QueryCtx::default())?;
    p.apply(&subject(), &row).map(|d| pando_bson::Document::from(&*d))
}

#[test]
fn inclusion_keeps_document_order_and_id() {
    assert_eq!(project(doc! { "s": 1, "b.c": 1 }).unwrap(), doc! { "_id": 1, "b": { "c": 1 }, "s": 7 });
    assert_eq!(project(doc! { "s": 1, "_id": 0 }).unwrap(), doc! { "s": 7 });
    assert_eq!(
        project(doc! { "b": { "d": { "e": 1 } } }).unwrap(),
        doc! { "_id": 1, "b": { "d": [{ "e": 1 }] } }
    );
    assert_eq!(project(doc! { "a.x": 1 }).unwrap(), doc! { "_id": 1, "a": [{ "x": 1 }, [{ "x": 2 }]] });
    assert_eq!(project(doc! { "n.x": 1 }).unwrap(), doc! { "_id": 1 });
}

#[test]
fn exclusion_drops_only_what_is_named() {
    let out = project(doc! { "a": 0, "b.d.e": 0, "n": 0 }).unwrap();
    assert_eq!(out, doc! { "_id": 1, "b": { "c": 1, "d": [{ "f": 2 }, 5] }, "s": 7 });
    assert_eq!(project(doc! { "_id": 0, "a": 0, "b": 0, "n": 0 }).unwrap(), doc! { "s": 7 });
}

#[test]
fn slice_goes_with_either_mode() {
    assert_eq!(project(doc! { "a": { "$slice": 1 }, "s": 1 }).unwrap(), doc! { "_id": 1, "a": [1], "s": 7 });
    let out = project(doc! { "a": { "$slice": [-3, 1] }, "b": 0, "n": 0 }).unwrap();
    assert_eq!(out, doc! { "_id": 1, "a": [3], "s": 7 });
}

#[test]
fn elem_match_results_come_last_in_an_inclusion() {
    let out = project(doc! { "a": { "$elemMatch": { "x": 1 } }, "s": 1 }).unwrap();
    assert_eq!(out, doc! { "_id": 1, "s": 7, "a": [{ "x": 1 }] });
    let none = project(doc! { "a": { "$elemMatch": { "x": 77 } }, "s": 1 }).unwrap();
    assert_eq!(none, doc! { "_id": 1, "s": 7 });
}

#[test]
fn positional_keeps_the_matched_element() {
    assert_eq!(project(doc! { "a.$": 1 }).unwrap(), doc! { "_id": 1, "a": [2] });
    assert_eq!(project(doc! { "b.d.$": 1 }).unwrap(), doc! { "_id": 1, "b": { "d": [5] } });
    assert_eq!(project(doc! { "s.$": 1 }).unwrap(), doc! { "_id": 1, "s": 7 });
}

#[test]
fn expressions_and_literals_are_computed_fields() {
    assert_eq!(project(doc! { "zz": "lit" }).unwrap(), doc! { "_id": 1, "zz": "lit" });
    assert_eq!(project(doc! { "zz": { "$add": [1, "$s"] } }).unwrap(), doc! { "_id": 1, "zz": 8 });
    assert_eq!(project(doc! { "s": "$b.c" }).unwrap(), doc! { "_id": 1, "s": 1 });
    assert_eq!(project(doc! { "b": { "c": "$s" } }).unwrap(), doc! { "_id": 1, "b": { "c": 7 } });
    assert_eq!(project(doc! { "zz": "$missing" }).unwrap(), doc! { "_id": 1 });
    assert_eq!(project(doc! { "s.q": { "$literal": 1 } }).unwrap(), doc! { "_id": 1, "s": { "q": 1 } });
}

#[test]
fn refusals_carry_the_numbers_drivers_know() {
    let code = |spec| project(spec).unwrap_err().code.0;
    assert_eq!(code(doc! { "s": 1, "b": 0 }), 31254);
    assert_eq!(code(doc! { "s": 0, "b": 1 }), 31253);
    assert_eq!(code(doc! { "b": 1, "b.c": 1 }), 31249);
    assert_eq!(code(doc! { "b.c": 1, "b": 1 }), 31250);
    assert_eq!(code(doc! { "": 1 }), 40352);
    assert_eq!(code(doc! { "a.": 1 }), 40353);
    assert_eq!(code(doc! { "a..b": 1 }), 15998);
    assert_eq!(code(doc! { "$a": 1 }), 16410);
    assert_eq!(code(doc! { "a.$": 1, "b.$": 1 }), 31276);
    assert_eq!(code(doc! { "a.$": 0 }), 31395);
    assert_eq!(code(doc! { "a.$.x": 1 }), 31394);
    assert_eq!(code(doc! { "a.$": "x" }), 31308);
    assert_eq!(code(doc! { "b": {} }), 51270);
    assert_eq!(code(doc! { "b.d": { "$elemMatch": { "e": 1 } } }), 31275);
    assert_eq!(code(doc! { "a": { "$elemMatch": 5 } }), 31274);
    assert_eq!(code(doc! { "z": { "$meta": "foo" } }), 17308);
}

#[test]
fn a_place_that_is_taken_is_told_before_what_would_stand_there() {
    let told = |spec| project(spec).map_err(|e| format!("{} {}", e.code.0, e.message));
    let taken = |text: &str| Err(format!("31249 Path collision at {text}"));
    assert_eq!(told(doc! { "a": 0, "a.0": "x" }), taken("a.0 remaining portion 0"));
    assert_eq!(told(doc! { "a": 0, "a.0": { "b": { "$nope": 1 } } }), taken("a.0 remaining portion 0"));
    assert_eq!(told(doc! { "a.b": 1, "a.b.c.d": 1 }), taken("a.b.c.d remaining portion b.c.d"));
    let same = |text: &str| Err(format!("31250 Path collision at {text}"));
    assert_eq!(told(doc! { "a.b": 0, "a": { "b": { "c": {} } } }), same("b"));
    assert_eq!(told(doc! { "a": 0, "a.$": 1 }), same("a"));
    assert_eq!(project(doc! { "s": 0, "b": "x" }).unwrap_err().code.0, 31310);
}

#[test]
fn parts_of_references_are_fields_and_no_operators() {
    let got = project(doc! { "s": { "$ref": 1 }, "r": { "$id": "$s" } }).unwrap();
    assert_eq!(got, doc! { "_id": 1, "r": { "$id": 7 } });
    assert_eq!(project(doc! { "s": { "$ref": { "$nope": 1 } } }).unwrap_err().code.0, 31325);
}

#[test]
fn an_empty_object_is_told_before_its_place() {
    let code = |spec| project(spec).unwrap_err().code.0;
    assert_eq!(code(doc! { "$a": {} }), 51270);
    assert_eq!(code(doc! { "a": { "$elemMatch": {}, "b": 1 } }), 51270);
    assert_eq!(code(doc! { "a": { "$elemMatch": { "x": 1 }, "b": 1 } }), 16410);
}

#[test]
fn plain_inclusions_tell_their_paths() {
    let p = |spec: pando_bson::Document| Projection::parse(&spec.to_raw(), &QueryCtx::default()).unwrap();
    assert_eq!(p(doc! { "a": 1, "b.c": 1, "_id": 0 }).only_fields(), Some(vec!["a".into(), "b.c".into()]));
    assert_eq!(p(doc! { "a": 1 }).only_fields(), Some(vec!["_id".into(), "a".into()]));
    assert_eq!(p(doc! { "a": 0 }).only_fields(), None);
    assert!(p(doc! {}).is_identity());
}
