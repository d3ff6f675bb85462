use super::*;
use crate::matcher::Matcher;
use pando_bson::{Bson, Document, doc};

fn apply_to(
    doc: Document,
    update: Document,
    query: Document,
    filters: Option<Vec<Bson>>,
) -> Result<UpdateOutcome> {
    let ctx = QueryCtx::default();
    let (doc, query) = (doc.to_raw(), query.to_raw());
    let update = Bson::Document(update);
    let mut holder = Document::new();
    holder.push("u", update);
    if let Some(filters) = filters {
        holder.push("f", Bson::Array(filters));
    }
    let holder = holder.to_raw();
    let filters = holder.get("f").and_then(|v| v.as_array());
    let plan = UpdatePlan::parse(holder.get("u").unwrap_or(Value::Null), filters, &ctx)?;
    let details = Matcher::parse(&query, &ctx)?.matches_position(&doc)?;
    let outcome = plan.apply(&doc, details)?;
    if let LogForm::Delta(diff) = &outcome.log {
        let replayed = pando_oplog::diff::apply(&doc, diff)?;
        assert_eq!(replayed, outcome.new_doc, "the logged diff makes the same document");
    }
    Ok(outcome)
}

/// The new document; `None` when nothing changed.
fn updated(doc: Document, update: Document) -> Option<Document> {
    let outcome = apply_to(doc, update, doc! {}, None).expect("update applies");
    (!outcome.noop).then(|| Document::from(&*outcome.new_doc))
}

fn logged(doc: Document, update: Document) -> Document {
    match apply_to(doc, update, doc! {}, None).expect("update applies").log {
        LogForm::Delta(diff) => Document::from(&*diff),
        LogForm::Replacement => panic!("logged as replacement"),
    }
}

/// A replayed diff would change all fields of a name, the update changes the first.
#[test]
fn a_change_of_a_repeated_field_logs_the_whole_document() {
    let twice = |b: i32| {
        let mut d = doc! { "a": 1, "b": b };
        d.push("a", doc! { "x": 2 });
        d
    };
    let whole = |update: Document| {
        let doc = doc! { "_id": 1, "s": twice(3) };
        let outcome = apply_to(doc, update, doc! {}, None).expect("update applies");
        assert!(matches!(outcome.log, LogForm::Replacement), "{:?}", outcome.log);
        Document::from(&*outcome.new_doc)
    };
    let sub = |s: Document| doc! { "_id": 1, "s": s };
    let unset = whole(doc! { "$unset": { "s.a": 1 } });
    assert_eq!(unset, sub(doc! { "b": 3, "a": { "x": 2 } }));
    let mut set = doc! { "a": 9, "b": 4 };
    set.push("a", doc! { "x": 2 });
    assert_eq!(whole(doc! { "$set": { "s.a": 9, "s.b": 4 } }), sub(set));
    // The name that is repeated is not touched.
    assert_eq!(logged(sub(twice(3)), doc! { "$set": { "s.b": 4 } }), doc! { "ss": { "u": { "b": 4 } } });
}

fn refused(doc: Document, update: Document) -> (i32, String) {
    let e = apply_to(doc, update, doc! {}, None).expect_err("update is refused");
    (e.code.0, e.message.to_string())
}

#[test]
fn existing_fields_keep_their_place_and_new_ones_are_added_in_order() {
    let got = updated(
        doc! { "b": 1, "a": 1, "z": 1 },
        doc! { "$set": { "z": 2, "10": 1, "2": 1, "aa": 1, "a": 2 } },
    );
    assert_eq!(got, Some(doc! { "b": 1, "a": 2, "z": 2, "2": 1, "10": 1, "aa": 1 }));
    let got = updated(doc! {}, doc! { "$set": { "zz.b": 1, "b": 1, "zz.a": 1 } });
    assert_eq!(got, Some(doc! { "b": 1, "zz": { "a": 1, "b": 1 } }));
}

#[test]
fn an_update_that_changes_no_byte_is_a_noop() {
    for update in [
        doc! { "$set": { "a": 1 } },
        doc! { "$set": {} },
        doc! { "$inc": { "a": 0 } },
        doc! { "$unset": { "x": 1, "a.b.c": 1 } },
        doc! { "$max": { "a": 1.0 } },
        doc! { "$addToSet": { "l": 2.0 } },
        doc! { "$pull": { "l": 7 } },
        doc! { "$push": { "l": { "$each": [], "$slice": 5 } } },
        doc! { "$setOnInsert": { "n": 1, "a.b": 1 } },
        doc! { "$rename": { "x": "a.b" } },
    ] {
        assert_eq!(updated(doc! { "_id": 1, "a": 1, "l": [1, 2] }, update.clone()), None, "{update:?}");
    }
    assert!(updated(doc! { "a": 1 }, doc! { "$set": { "a": 1.0 } }).is_some());
}

#[test]
fn numbers_are_promoted_and_long_overflow_is_refused() {
    let inc = |a: Bson, by: Bson| {
        let (mut d, mut n) = (Document::new(), Document::new());
        d.push("a", a);
        n.push("a", by);
        let mut u = Document::new();
        u.push("$inc", n);
        updated(d, u).and_then(|d| d.get("a").cloned())
    };
    assert_eq!(inc(i32::MAX.into(), 1.into()), Some(Bson::Int64(1 << 31)));
    assert_eq!(inc(1.into(), 1i64.into()), Some(Bson::Int64(2)));
    assert_eq!(inc(1.into(), 1.5.into()), Some(Bson::Double(2.5)));
    let (code, text) = refused(doc! { "_id": 1, "a": i64::MAX }, doc! { "$inc": { "a": 1 } });
    assert_eq!(code, 2);
    assert_eq!(
        text,
        "Failed to apply $inc operations to current value ((NumberLong)9223372036854775807) for document {_id: 1}"
    );
    assert_eq!(
        updated(doc! {}, doc! { "$mul": { "a": 2.5, "b": 3i64 } }),
        Some(doc! { "a": 0.0, "b": 0i64 })
    );
}

#[test]
fn logs_tell_results_at_the_paths_of_the_update() {
    let cases = [
        (doc! { "$inc": { "a": 2 } }, doc! { "u": { "a": 3 } }),
        (doc! { "$rename": { "a": "d" } }, doc! { "d": { "a": false }, "i": { "d": 1 } }),
        (doc! { "$set": { "s.x": 1, "s.y": 2 } }, doc! { "ss": { "u": { "x": 1 }, "i": { "y": 2 } } }),
        (doc! { "$push": { "l": 9 } }, doc! { "sl": { "a": true, "u2": 9 } }),
        (doc! { "$push": { "l": { "$each": [9], "$position": 0 } } }, doc! { "u": { "l": [9, 1, 2] } }),
        (doc! { "$push": { "e": 9 } }, doc! { "u": { "e": [9] } }),
        (doc! { "$set": { "l.3": 9 } }, doc! { "sl": { "a": true, "u3": 9 } }),
        (doc! { "$unset": { "l.0": 1 } }, doc! { "sl": { "a": true, "u0": Bson::Null } }),
        (doc! { "$set": { "l.$[]": 0 } }, doc! { "u": { "l": [0, 0] } }),
        (doc! { "$pop": { "l": 1 } }, doc! { "u": { "l": [1] } }),
        (doc! { "$set": { "n.m": 1 } }, doc! { "i": { "n": { "m": 1 } } }),
    ];
    for (update, want) in cases {
        let doc = doc! { "_id": 1, "a": 1, "s": { "x": 0 }, "l": [1, 2], "e": [] };
        assert_eq!(logged(doc, update.clone()), want, "{update:?}");
    }
}

#[test]
fn array_filters_choose_elements() {
    let run = |update: Document, filters: Vec<Bson>| {
        let doc = doc! { "a": [{ "x": 1 }, { "x": 2 }] };
        apply_to(doc, update, doc! {}, Some(filters)).map(|o| Document::from(&*o.new_doc))
    };
    let got = run(
        doc! { "$inc": { "a.$[e].x": 9, "a.$[f].y": 1 } },
        pando_bson::bson_array!({ "e.x": 2 }, { "f.x": { "$gt": 0 } }),
    );
    assert_eq!(got.expect("applies"), doc! { "a": [{ "x": 1, "y": 1 }, { "x": 11, "y": 1 }] });
    let both = run(
        doc! { "$inc": { "a.$[e].x": 9, "a.$[f].x": 1 } },
        pando_bson::bson_array!({ "e.x": 2 }, { "f.x": 2 }),
    );
    let e = both.expect_err("two writers of one element");
    assert_eq!((e.code.0, &*e.message), (40, "Update created a conflict at 'a.1.x'"));
    let unused = run(doc! { "$set": { "b": 1 } }, pando_bson::bson_array!({ "e": 2 })).expect_err("unused");
    assert_eq!(unused.code.0, 9);
    let missing = run(doc! { "$set": { "a.$[q]": 1 } }, vec![]).expect_err("missing");
    assert_eq!(
        (missing.code.0, &*missing.message),
        (2, "No array filter found for identifier 'q' in path 'a.$[q]'")
    );
}

#[test]
fn the_positional_operator_takes_the_matched_element() {
    let doc = doc! { "a": [{ "x": 1 }, { "x": 2 }] };
    let run = |update: Document, query: Document| apply_to(doc.clone(), update, query, None);
    let got = run(doc! { "$set": { "a.$.x": 9, "a.1.y": 3 } }, doc! { "a.x": 2 }).expect("applies");
    assert_eq!(Document::from(&*got.new_doc), doc! { "a": [{ "x": 1 }, { "x": 9, "y": 3 }] });
    let e = run(doc! { "$set": { "a.$.x": 9 } }, doc! {}).expect_err("no array in the query");
    assert_eq!(&*e.message, "The positional operator did not find the match needed from the query.");
}

#[test]
fn refusals_have_mongodbs_codes_and_texts() {
    let cases: Vec<(Document, i32, &str)> = vec![
        (doc! { "$set": { "a.b": 1 } }, 28, "Cannot create field 'b' in element {a: 1}"),
        (doc! { "$set": { "l.x.y": 1 } }, 28, "Cannot create field 'x' in element {l: [ 1, 2 ]}"),
        (
            doc! { "$pop": { "a.b": 1 } },
            28,
            "Cannot use the part (b) of (a.b) to traverse the element ({a: 1})",
        ),
        (
            doc! { "$set": { "a": 1 }, "$inc": { "a": 1 } },
            40,
            "Updating the path 'a' would create a conflict at 'a'",
        ),
        (
            doc! { "$set": { "a.b": 1, "a.b.c": 1 } },
            40,
            "Updating the path 'a.b.c' would create a conflict at 'a.b'",
        ),
        (
            doc! { "$set": { "l.$[]": 1, "l.0": 1 } },
            40,
            "Updating the path 'l.0' would create a conflict at 'l'",
        ),
        (
            doc! { "$set": { "_id": 2 } },
            66,
            "Performing an update on the path '_id' would modify the immutable field '_id'",
        ),
        (
            doc! { "$foo": { "a": 1 } },
            9,
            "Unknown modifier: $foo. Expected a valid update modifier or pipeline-style update specified as an array",
        ),
        (doc! { "$inc": { "a": "x" } }, 14, "Cannot increment with non-numeric argument: {a: \"x\"}"),
        (
            doc! { "$push": { "a": 1 } },
            2,
            "The field 'a' must be an array but is of type int in document {_id: 1}",
        ),
        (doc! { "$pop": { "a": 1 } }, 14, "Path 'a' contains an element of non-array type 'int'"),
        (
            doc! { "$rename": { "a": "a" } },
            2,
            "The source and target field for $rename must differ: a: \"a\"",
        ),
        (
            doc! { "$rename": { "l.0": "b" } },
            2,
            "The source field cannot be an array element, 'l.0' in doc with _id: 1 has an array field called 'l'",
        ),
        (doc! { "$set": { "l.1500003": 1 } }, 34, "can't backfill more than 1500000 elements"),
        (
            doc! { "$bit": { "l": { "or": 1 } } },
            2,
            "Cannot apply $bit to a value of non-integral type._id: 1 has the field l of non-integer type array",
        ),
        (
            doc! { "x": 1, "_id": 2 },
            66,
            "After applying the update, the (immutable) field '_id' was found to have been altered to _id: 2",
        ),
        // A name that may not be is told before an `_id` that may not change.
        (
            doc! { "_id": 2, "$a": 1 },
            52,
            "The dollar ($) prefixed field '$a' in '$a' is not allowed in the context of an update's replacement document. \
             Consider using an aggregation pipeline with $replaceWith.",
        ),
        (doc! { "_id": [2], "$a": 1 }, 53, "The '_id' value cannot be of type array"),
    ];
    for (update, code, text) in cases {
        let got = refused(doc! { "_id": 1, "a": 1, "l": [1, 2] }, update.clone());
        assert_eq!(got, (code, text.to_owned()), "{update:?}");
    }
}

/// One request could otherwise ask for 2 GB or more.
#[test]
fn an_update_that_repeats_a_large_value_is_refused() {
    let many = Bson::Array((0..10_000).map(Bson::Int32).collect());
    let (mut empty, mut far) = (Document::new(), Document::new());
    for i in 0..20 {
        empty.push(format!("x{i}"), Bson::Array(Vec::new()));
        far.push(format!("x{i}.1400000"), 1);
    }
    for (doc, set) in [(doc! { "a": many }, doc! { "a.$[]": "x".repeat(200_000) }), (empty, far)] {
        let (code, text) = refused(doc, doc! { "$set": set });
        assert_eq!(code, 13548, "{text}");
        assert!(text.ends_with("past the 64MB limit."), "{text}");
    }
}

#[test]
fn the_first_field_in_tree_order_gives_the_error() {
    let (_, text) = refused(doc! { "b": "x", "a": "y" }, doc! { "$inc": { "b": 1, "a": 1 } });
    assert!(text.contains("field 'a'"), "{text}");
}

#[test]
fn a_replacement_keeps_the_id_in_front() {
    let got = updated(doc! { "_id": 1, "a": 1 }, doc! { "b": 2 });
    assert_eq!(got, Some(doc! { "_id": 1, "b": 2 }));
    let got = updated(doc! { "_id": 1, "a": 1 }, doc! { "b": 2, "_id": 1 });
    assert_eq!(got, Some(doc! { "_id": 1, "b": 2 }));
    assert_eq!(updated(doc! { "_id": 1, "a": 1 }, doc! { "_id": 1, "a": 1 }), None);
}

#[test]
fn nesting_deeper_than_180_levels_is_refused() {
    let path = |n: usize| vec!["a"; n].join(".");
    let set = |n: usize| {
        let (mut f, mut u) = (Document::new(), Document::new());
        f.push(path(n), 1);
        u.push("$set", f);
        u
    };
    assert!(updated(doc! {}, set(180)).is_some());
    assert_eq!(refused(doc! {}, set(181)), (15, "Document exceeds maximum nesting depth of 180".to_owned()));
    assert_eq!(refused(doc! {}, set(5000)).0, 15);
}

#[test]
fn a_document_that_grows_too_large_is_refused() {
    let big = "x".repeat(9 << 20);
    let (code, text) = refused(doc! { "_id": 1, "a": big.as_str() }, doc! { "$set": { "b": big.as_str() } });
    assert_eq!(code, 10334);
    assert!(text.starts_with("BSONObj size: 18874"), "{text}");
}

fn upserted(query: Document, update: Document) -> Result<Document> {
    let ctx = QueryCtx::default();
    let update = update.to_raw();
    let plan = UpdatePlan::parse(Value::Document(&update), None, &ctx)?;
    plan.upsert(&query.to_raw(), || ObjectId([7; 12])).map(|d| Document::from(&*d))
}

#[test]
fn upserts_start_from_the_equalities_of_the_query() {
    let set = doc! { "$set": { "m": 1 } };
    let got = upserted(
        doc! { "z": 1, "b.c": 2, "$and": [{ "d": { "$eq": 3 } }, { "e": { "$in": [5] } }], "g": { "$gt": 3 }, "$or": [{ "h": 1 }] },
        set.clone(),
    );
    let id = ObjectId([7; 12]);
    let want = doc! { "_id": id, "b": { "c": 2 }, "d": 3, "e": 5, "h": 1, "z": 1, "m": 1 };
    assert_eq!(got.expect("upserts"), want);
    let cases: Vec<(Document, i32, &str)> = vec![
        (
            doc! { "a": 1, "a.b": 2 },
            54,
            "cannot infer query fields to set, both paths 'a.b' and 'a' are matched",
        ),
        (doc! { "a": { "$all": [1, 2] } }, 54, "cannot infer query fields to set, path 'a' is matched twice"),
        (doc! { "_id": [1] }, 53, "The '_id' value cannot be of type array"),
        (doc! { "$expr": 1 }, 224, "$expr is not allowed in the query predicate for an upsert"),
    ];
    for (query, code, text) in cases {
        let e = upserted(query, set.clone()).expect_err("refused");
        assert_eq!((e.code.0, &*e.message), (code, text));
    }
}

#[test]
fn a_replacement_upsert_takes_only_the_id_of_the_query() {
    let got = upserted(doc! { "_id": 2, "q": 1 }, doc! { "x": 1 });
    assert_eq!(got.expect("upserts"), doc! { "_id": 2, "x": 1 });
    let e = upserted(doc! { "_id.x": 1 }, doc! { "x": 1 }).expect_err("refused");
    assert_eq!(e.code.0, 111);
}
