use super::*;
use pando_bson::{Bson, Document, doc};

fn parse(filter: Document) -> Matcher {
    Matcher::parse(&filter.to_raw(), &QueryCtx::default()).unwrap()
}
/// Positions of the documents that match.
fn hits(filter: Document, docs: &[Document]) -> Vec<usize> {
    let m = parse(filter);
    docs.iter().enumerate().filter(|(_, d)| m.matches(&d.to_raw()).unwrap()).map(|(i, _)| i).collect()
}
fn error(filter: Document) -> (i32, String) {
    let e = Matcher::parse(&filter.to_raw(), &QueryCtx::default()).unwrap_err();
    (e.code.0, e.message.to_string())
}

#[test]
fn paths_enter_arrays_one_level_and_by_position() {
    let docs = [
        doc! { "a": [[1, 2]] },
        doc! { "a": [1, 2] },
        doc! { "a": [[{ "b": 1 }]] },
        doc! { "a": [{ "b": [1, 2] }] },
        doc! { "a": [[{ "b": [1, 2] }]] },
        doc! { "a": { "0": 5 } },
        doc! { "a": [{ "0": 5 }] },
        doc! { "a": [[[7]]] },
        doc! { "a": [{ "0": { "b": 3 } }] },
        doc! { "a": [[5, 6], { "0": 5 }] },
        doc! { "a": [{ "b": 1 }, { "b": [5, 6] }] },
    ];
    let null = Bson::Null;
    for (filter, expected) in [
        (doc! { "a.0": 1 }, vec![1]),
        (doc! { "a.0": { "$size": 2 } }, vec![0, 9]),
        (doc! { "a.0": [1, 2] }, vec![0]),
        (doc! { "a.0.0": 1 }, vec![0]),
        (doc! { "a.0.0": 7 }, vec![]),
        (doc! { "a.0.0.0": 7 }, vec![7]),
        (doc! { "a.0.b": 1 }, vec![2, 3, 4, 10]),
        (doc! { "a.0.b": { "$size": 2 } }, vec![3, 4]),
        (doc! { "a.0": 5 }, vec![5, 6, 9]),
        (doc! { "a.b": 1 }, vec![3, 10]),
        (doc! { "a.0.b": 3 }, vec![8]),
        (doc! { "a.0": { "$type": "array" } }, vec![0, 2, 4, 7, 9]),
        (doc! { "a.0": { "$elemMatch": { "$eq": 1 } } }, vec![0]),
        (doc! { "a.1": { "$exists": true } }, vec![1, 9, 10]),
        (doc! { "a.b.0": 1 }, vec![3]),
        (doc! { "a.b": null.clone() }, vec![5, 6, 8, 9]),
        (doc! { "a.0": null.clone() }, vec![3, 10]),
        (doc! { "a.0.b": null.clone() }, vec![3, 5, 6, 8, 9, 10]),
        (doc! { "a.b.c": null.clone() }, vec![5, 6, 8, 9, 10]),
        (doc! { "a.0.c": null }, vec![2, 3, 4, 5, 6, 8, 9, 10]),
    ] {
        assert_eq!(hits(filter.clone(), &docs), expected, "{filter:?}");
    }
}

#[test]
fn comparisons_stay_within_their_type() {
    let re = || Bson::Regex(pando_bson::Regex { pattern: "x".into(), options: String::new() });
    let nan = f64::NAN;
    let docs = [
        doc! { "a": Bson::Null },
        doc! {},
        doc! { "a": {} },
        doc! { "a": re() },
        doc! { "a": [re()] },
        doc! { "a": nan },
        doc! { "a": "x" },
        doc! { "a": Bson::MinKey },
        doc! { "a": [] },
        doc! { "a": [Bson::Null] },
        doc! { "a": Bson::MaxKey },
        doc! { "a": 3 },
        doc! { "a": 3.5 },
        doc! { "a": 4i64 },
    ];
    for (filter, expected) in [
        (doc! { "a": Bson::Null }, vec![0, 1, 9]),
        (doc! { "a": { "$lte": Bson::Null } }, vec![0, 1, 9]),
        (doc! { "a": { "$in": [Bson::Null, 3] } }, vec![0, 1, 9, 11]),
        (doc! { "a": re() }, vec![3, 4, 6]),
        (doc! { "a": { "$eq": re() } }, vec![3, 4]),
        (doc! { "a": { "$in": [re()] } }, vec![3, 4, 6]),
        (doc! { "a": { "$gt": nan } }, vec![]),
        (doc! { "a": { "$gte": nan } }, vec![5]),
        (doc! { "a": { "$gt": Bson::MinKey } }, vec![0, 1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13]),
        (doc! { "a": { "$lt": Bson::MaxKey } }, vec![0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13]),
        (doc! { "a": { "$eq": Bson::MinKey } }, vec![7]),
        (doc! { "a": { "$ne": Bson::Null } }, vec![2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13]),
        (doc! { "a": { "$gte": [] } }, vec![4, 8, 9]),
        (doc! { "a": { "$gte": {} } }, vec![2]),
        (doc! { "a": { "$gt": 3 } }, vec![12, 13]),
        (doc! { "a": { "$lt": 4 } }, vec![11, 12]),
        (doc! { "a": { "$gte": 2.5 } }, vec![11, 12, 13]),
        (doc! { "a": { "$in": [3.0, 4] } }, vec![11, 13]),
        (doc! { "a": { "$type": "number" } }, vec![5, 11, 12, 13]),
    ] {
        assert_eq!(hits(filter.clone(), &docs), expected, "{filter:?}");
    }
}

#[test]
fn array_predicates_may_hold_for_different_elements() {
    let docs = [
        doc! { "a": [1, 2, 3] },
        doc! { "a": [2] },
        doc! { "a": [[1, 2]] },
        doc! { "a": [{ "b": 1, "c": 2 }] },
    ];
    assert_eq!(hits(doc! { "a": { "$gt": 2.5, "$lt": 1.5 } }, &docs), [0]);
    assert_eq!(hits(doc! { "a": { "$elemMatch": { "$gt": 2.5, "$lt": 1.5 } } }, &docs), [] as [usize; 0]);
    assert_eq!(hits(doc! { "a": { "$elemMatch": { "$gt": 1.5, "$lt": 2.5 } } }, &docs), [0, 1]);
    assert_eq!(hits(doc! { "a": { "$all": [[1, 2]] } }, &docs), [2]);
    assert_eq!(hits(doc! { "a": { "$all": [] } }, &docs), [] as [usize; 0]);
    assert_eq!(hits(doc! { "a": { "$all": [3, 1] } }, &docs), [0]);
    assert_eq!(hits(doc! { "a": { "$elemMatch": { "b": 1, "c": 2 } } }, &docs), [3]);
    assert_eq!(hits(doc! { "a": { "$ne": 2 } }, &docs), [2, 3]);
    assert_eq!(hits(doc! { "a": { "$not": { "$gt": 2 } } }, &docs), [1, 2, 3]);
    assert_eq!(hits(doc! { "a": { "$size": 1 } }, &docs), [1, 2, 3]);
}

#[test]
fn mod_and_bits_work_on_truncated_and_exact_integers() {
    let docs =
        [doc! { "a": 5 }, doc! { "a": 5.9 }, doc! { "a": -1i64 }, doc! { "a": f64::NAN }, doc! { "a": "5" }];
    assert_eq!(hits(doc! { "a": { "$mod": [4.9, 1.2] } }, &docs), [0, 1]);
    assert_eq!(hits(doc! { "a": { "$bitsAllSet": 5 } }, &docs), [0, 2]);
    assert_eq!(hits(doc! { "a": { "$bitsAnyClear": [1, 70] } }, &docs), [0]);
    assert_eq!(hits(doc! { "a": { "$bitsAllSet": [200] } }, &docs), [2]);
}

#[test]
fn mistakes_are_named_as_mongodb_names_them() {
    for (filter, code, message) in [
        (doc! { "a": { "$foo": 1 } }, 2, "unknown operator: $foo"),
        (doc! { "a": { "$gt": 1, "b": 2 } }, 2, "unknown operator: b"),
        (doc! { "$and": [] }, 2, "$and/$or/$nor must be a nonempty array"),
        (doc! { "$or": 1 }, 2, "$or must be an array"),
        (doc! { "$or": [1] }, 2, "$or/$and/$nor entries need to be full objects"),
        (doc! { "a": { "$not": {} } }, 2, "$not cannot be empty"),
        (doc! { "a": { "$in": [{ "$gt": 1 }] } }, 2, "cannot nest $ under $in"),
        (doc! { "a": { "$type": "foo" } }, 2, "Unknown type name alias: foo"),
        (doc! { "a": { "$type": 1.5 } }, 2, "Invalid numerical type code: 1.5"),
        (doc! { "a": { "$type": [] } }, 9, "a must match at least one type"),
        (doc! { "a": { "$mod": [0, 1] } }, 2, "divisor cannot be 0"),
        (doc! { "a": { "$size": "a" } }, 2, "Failed to parse $size. Expected a number in: $size: \"a\""),
        (
            doc! { "a": { "$size": 1e30 } },
            2,
            "Failed to parse $size. Cannot represent as a 64-bit integer: $size: 1e+30.0",
        ),
        (doc! { "a": { "$all": [{ "$gt": 1 }] } }, 2, "no $ expressions in $all"),
        (doc! { "a": { "$options": "i" } }, 2, "$options needs a $regex"),
        (doc! { "a": { "$bitsAllSet": -1 } }, 9, "Expected a non-negative number in: $bitsAllSet: -1"),
        (
            doc! { "a": { "$bitsAllSet": [-1] } },
            2,
            "Failed to parse bit position. Expected a non-negative number in: 0: -1",
        ),
        (
            doc! { "a": { "$gt": Bson::Regex(pando_bson::Regex { pattern: "x".into(), options: String::new() }) } },
            2,
            "Can't have RegEx as arg to predicate over field 'a'.",
        ),
    ] {
        assert_eq!(error(filter.clone()), (code, message.to_owned()), "{filter:?}");
    }
}

#[test]
fn equal_filters_have_one_normal_form() {
    for (filter, normal) in [
        (doc! { "b": 2, "a": 1 }, doc! { "$and": [{ "a": { "$eq": 1 } }, { "b": { "$eq": 2 } }] }),
        (
            doc! { "a": { "$gt": 1, "$lt": 5 } },
            doc! { "$and": [{ "a": { "$lt": 5 } }, { "a": { "$gt": 1 } }] },
        ),
        (doc! { "a": { "$in": [3, 1, 2, 1] } }, doc! { "a": { "$in": [1, 2, 3] } }),
        (doc! { "a": { "$in": [3] } }, doc! { "a": { "$eq": 3 } }),
        (doc! { "$or": [{ "a": 1 }, { "a": 2 }] }, doc! { "a": { "$in": [1, 2] } }),
        (doc! { "a": { "$nin": [1, 2] } }, doc! { "a": { "$not": { "$in": [1, 2] } } }),
        (
            doc! { "a": { "$type": ["int", "string", 2, 1, "array"] } },
            doc! { "a": { "$type": [1, 2, 4, 16] } },
        ),
        (
            doc! { "a": { "$not": { "$gt": 1, "$lt": 4 } } },
            doc! { "$nor": [{ "$and": [{ "a": { "$lt": 4 } }, { "a": { "$gt": 1 } }] }] },
        ),
        (doc! { "$alwaysFalse": 1, "a": 1 }, doc! { "$alwaysFalse": 1 }),
        (
            doc! { "a": { "$elemMatch": { "$or": [{ "b": 1 }, { "b": 2 }] } } },
            doc! { "a": { "$elemMatch": { "b": { "$in": [1, 2] } } } },
        ),
        (doc! {}, doc! {}),
    ] {
        assert_eq!(Document::from(&*parse(filter).root().to_doc()), normal);
    }
}

#[test]
fn positions_come_from_the_last_array_predicate() {
    let m = parse(doc! { "a": 5, "b": { "$elemMatch": { "x": 2 } } });
    let d = doc! { "a": [4, 5], "b": [{ "x": 1 }, { "x": 0 }, { "x": 2 }] }.to_raw();
    // `$elemMatch` sorts before the equality, so the equality is last.
    assert_eq!(m.matches_position(&d).unwrap(), Some(MatchDetails { array_index: Some(1) }));
    let m = parse(doc! { "b.x": 2 });
    assert_eq!(m.matches_position(&d).unwrap(), Some(MatchDetails { array_index: Some(2) }));
    let m = parse(doc! { "c": Bson::Null });
    assert_eq!(m.matches_position(&d).unwrap(), Some(MatchDetails { array_index: None }));
}

#[test]
fn more_names_than_slots_still_match() {
    let mut filter = Document::new();
    let mut d = Document::new();
    for i in 0..30 {
        filter.push(format!("f{i}"), i);
        d.push(format!("f{i}"), i);
    }
    assert_eq!(hits(filter, &[d]), [0]);
}

#[test]
fn one_element_can_stand_for_a_document() {
    let m = parse(doc! { "x.b": { "$gt": 1 } });
    let d = doc! { "0": { "b": 2 } }.to_raw();
    let e = d.first().unwrap();
    assert!(m.matches_elem(Elem::new(e.ty, "x", e.data())).unwrap());
    assert!(!m.matches_elem(Elem::new(e.ty, "y", e.data())).unwrap());
}
