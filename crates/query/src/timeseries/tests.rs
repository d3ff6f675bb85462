use super::{Bucket, NoRoom, TimeSeries, filter_on_meta, index_of_users, index_on_buckets, update_on_meta};
use pando_bson::{Bson, Document, ObjectId, Value, doc};

fn series() -> TimeSeries {
    TimeSeries::parse(&doc! { "timeField": "t", "metaField": "m" }.to_raw()).unwrap()
}

fn at(ms: i64, m: Document, x: i32) -> Document {
    doc! { "_id": x, "t": Bson::DateTime(ms), "m": m, "x": x, "o": { "p": x } }
}

#[test]
fn a_bucket_has_columns_and_extremes_and_reads_back() {
    let s = series();
    let first = at(90_500, doc! { "z": 1, "a": 2 }, 5).to_raw();
    let mut b = Bucket::new(&s, &first, ObjectId([7; 12])).unwrap();
    b.add(&s, &first);
    b.add(&s, &at(70_000, doc! { "a": 2, "z": 1 }, 3).to_raw());
    let doc = b.to_doc();
    let d = Document::from(&*doc);
    let control = d.get("control").and_then(Bson::as_doc).unwrap();
    let of = |name: &str| control.get(name).and_then(Bson::as_doc).unwrap().clone();
    let id = |n: i32| doc! { "t": 0, "_id": n };
    assert_eq!(
        (of("min").get("t"), of("max").get("t")),
        (Some(&Bson::DateTime(60_000)), Some(&Bson::DateTime(90_500)))
    );
    assert_eq!((of("min").get("_id"), of("max").get("_id")), (id(3).get("_id"), id(5).get("_id")));
    assert_eq!(of("min").get("o"), Some(&Bson::Document(doc! { "p": 3 })));
    assert_eq!(d.get("meta"), Some(&Bson::Document(doc! { "a": 2, "z": 1 })));
    assert_eq!(Bucket::from_doc(&s, &doc).unwrap().to_doc(), doc);
}

#[test]
fn a_bucket_takes_its_span_and_no_more() {
    let s = series();
    let mut b = Bucket::new(&s, &at(90_500, doc! {}, 5).to_raw(), ObjectId([7; 12])).unwrap();
    assert_eq!(b.room_for(&s, 60_000, 10), Ok(()));
    assert_eq!(b.room_for(&s, 60_000 + 3_599_999, 10), Ok(()));
    assert_eq!(b.room_for(&s, 59_999, 10), Err(NoRoom::TimeBackward));
    assert_eq!(b.room_for(&s, 60_000 + 3_600_000, 10), Err(NoRoom::TimeForward));
    for x in 0..1000 {
        assert_eq!(b.room_for(&s, 60_000, 10), Ok(()), "{x}");
        b.add(&s, &at(90_500, doc! {}, x).to_raw());
    }
    assert_eq!(b.room_for(&s, 60_000, 10), Err(NoRoom::Count));
    assert_eq!(Bucket::from_doc(&s, &b.to_doc()).unwrap().room_for(&s, 60_000, 10), Err(NoRoom::Count));
}

#[test]
fn one_large_measurement_fills_a_bucket() {
    let s = series();
    let large = doc! { "t": Bson::DateTime(0), "x": "y".repeat(1 << 17) }.to_raw();
    let mut b = Bucket::new(&s, &large, ObjectId([7; 12])).unwrap();
    assert_eq!(b.room_for(&s, 0, large.byte_len()), Ok(()));
    b.add(&s, &large);
    assert_eq!(b.room_for(&s, 0, 10), Err(NoRoom::Size));
}

#[test]
fn the_difference_that_a_bucket_tells_makes_the_old_one_into_the_new() {
    let s = series();
    let mut b = Bucket::new(&s, &at(90_500, doc! {}, 5).to_raw(), ObjectId([7; 12])).unwrap();
    b.add(&s, &at(90_500, doc! {}, 5).to_raw());
    for (t, extra) in [(91_000, 1), (80_000, 20), (95_000, -3)] {
        let old = b.to_doc();
        let mut grown = Bucket::from_doc(&s, &old).unwrap();
        let mut more = at(t, doc! {}, extra);
        more.push(format!("new{extra}"), Bson::Array(vec![Bson::Int32(extra)]));
        grown.add(&s, &more.to_raw());
        assert_eq!(pando_oplog::diff::apply(&old, &grown.diff()).unwrap(), grown.to_doc());
        b = grown;
    }
}

#[test]
fn buckets_only_grow_and_two_options_go_together() {
    let parse = |d: Document| TimeSeries::parse(&d.to_raw());
    for (time, meta) in [("a\0b", None), ("t", Some("a\0b"))] {
        assert_eq!(TimeSeries::check_names("d.c", time, meta).unwrap_err().code.0, 16619);
    }
    let own =
        parse(doc! { "timeField": "t", "bucketMaxSpanSeconds": 300, "bucketRoundingSeconds": 300 }).unwrap();
    assert_eq!((own.bucket_start(301_000), own.span_ms()), (300_000, 300_000));
    let wider = doc! { "bucketMaxSpanSeconds": 600, "bucketRoundingSeconds": 600 }.to_raw();
    assert_eq!(own.modified(&wider).unwrap().span_ms(), 600_000);
    assert_eq!(own.modified(&wider).unwrap().modified(&doc! {}.to_raw()).unwrap().span_ms(), 600_000);
    let narrower = doc! { "bucketMaxSpanSeconds": 60, "bucketRoundingSeconds": 60 }.to_raw();
    assert_eq!(own.modified(&narrower).unwrap_err().code.0, 72);
    for (bad, code) in [
        (doc! { "timeField": "t", "bucketMaxSpanSeconds": 300 }, 72),
        (doc! { "timeField": "t", "bucketRoundingSeconds": 300 }, 72),
        (doc! { "timeField": "t", "bucketMaxSpanSeconds": 300, "bucketRoundingSeconds": 301 }, 72),
        (doc! { "timeField": "t", "bucketMaxSpanSeconds": 0, "bucketRoundingSeconds": 0 }, 51024),
        (doc! { "timeField": "t", "granularity": "hours", "bucketMaxSpanSeconds": 300 }, 5_510_500),
    ] {
        assert_eq!(parse(bad).unwrap_err().code.0, code);
    }
    let hours = series().modified(&doc! { "granularity": "hours" }.to_raw()).unwrap();
    assert_eq!(hours.modified(&doc! { "granularity": "minutes" }.to_raw()).unwrap_err().code.0, 72);
}

#[test]
fn only_the_source_may_be_asked_for_and_changed() {
    let s = series();
    let f = filter_on_meta(&s, &doc! { "m.a": 1, "$or": [{ "m": 2 }] }.to_raw()).unwrap();
    assert_eq!(Document::from(&*f), doc! { "meta.a": 1, "$or": [{ "meta": 2 }] });
    assert_eq!(filter_on_meta(&s, &doc! { "x": 1 }.to_raw()).unwrap_err().code.0, 72);
    let update = doc! { "$set": { "m.a": 1 } }.to_raw();
    let u = update_on_meta(&s, Value::Document(&update)).unwrap();
    assert_eq!(Document::from(&*u), doc! { "$set": { "meta.a": 1 } });
    for other in [doc! { "$set": { "x": 1 } }, doc! { "$rename": { "m": "x" } }] {
        assert_eq!(update_on_meta(&s, Value::Document(&other.to_raw())).unwrap_err().code.0, 72);
    }
    let by_expression = filter_on_meta(&s, &doc! { "$expr": { "$eq": ["$m", 1] } }.to_raw()).unwrap_err();
    assert!(by_expression.message.starts_with("Cannot use $expr"), "{by_expression}");
}

#[test]
fn an_index_is_listed_as_it_was_asked_for() {
    let s = series();
    let spec = doc! { "key": { "m.a": 1, "t": -1, "x": 1 }, "name": "i" }.to_raw();
    let stored = index_on_buckets(&s, &spec, false).unwrap();
    let key = doc! {
        "meta.a": 1, "control.max.t": -1, "control.min.t": -1, "control.min.x": 1, "control.max.x": 1,
    };
    assert_eq!(Document::from(&*stored), doc! { "key": key, "name": "i" });
    assert_eq!(index_of_users(&s, &stored).unwrap(), spec);
    let unique = doc! { "key": { "t": 1 }, "name": "i", "unique": true }.to_raw();
    assert_eq!(index_on_buckets(&s, &unique, false).unwrap_err().code.0, 72);
    assert!(index_of_users(&s, &doc! { "key": { "_id": 1 } }.to_raw()).is_none());
}

#[test]
fn buckets_at_the_ends_of_time_hold_their_first_measurement() {
    let s = series();
    for t in [i64::MIN, i64::MAX] {
        let b = Bucket::new(&s, &at(t, doc! {}, 5).to_raw(), ObjectId([7; 12])).unwrap();
        assert!(b.start_ms() <= t);
        assert!(b.room_for(&s, t, 10).is_ok(), "{t}");
    }
    let first = Bucket::new(&s, &at(i64::MIN, doc! {}, 5).to_raw(), ObjectId([7; 12])).unwrap();
    assert!(first.room_for(&s, i64::MAX, 10).is_err());
}
