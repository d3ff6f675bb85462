use super::*;
use crate::ctx::QueryCtx;
use crate::matcher::Matcher;
use crate::testing::mem::MemSource;
use pando_bson::{Bson, Document, RawDoc, doc};

fn query(filter: Document) -> Query {
    let ctx = QueryCtx::default();
    Query::new("t.c", Arc::new(Matcher::parse(&filter.to_raw(), &ctx).unwrap()), ctx)
}

#[test]
fn return_key_gives_index_keys() {
    let docs: Vec<Document> = (0..3).map(|i| doc! { "_id": i, "a": i }).collect();
    let mut src = MemSource::new(&docs, &[doc! { "key": { "a": 1 }, "name": "a_1" }]);
    let mut q = query(doc! {});
    q.hint = Some(crate::plan::Hint::Name("a_1".into()));
    q.return_key = true;
    let mut ex = Executor::new(q, &src, Resources::default()).unwrap();
    println!("{:?}", ex.plan());
    let mut quota = Quota::new(1000);
    let Step::Row(row) = ex.next(&mut src, &mut quota).unwrap() else { panic!() };
    assert_eq!(Document::from(RawDoc::trusted(&row.doc)), doc! { "a": 0 });
    let _ = Bson::Null;
}
