use crate::ctx::QueryCtx;
use crate::stage::{Input, Pipeline, RunEnv, Step};
use pando_base::Result;
use pando_bson::{Bson, DocBuf, Document, doc};

struct Rows(std::vec::IntoIter<DocBuf>);
impl Input for Rows {
    fn next(&mut self) -> Result<Step> {
        Ok(self.0.next().map_or(Step::Eof, |d| Step::Row(d.into())))
    }
}

/// The field `x` of each document that is given out, and the code of the mistake that ends it.
fn values(stages: Vec<Document>, docs: &[Document]) -> (Vec<Option<Bson>>, Option<i32>) {
    let stages = stages.into_iter().map(Bson::from).collect();
    let holder = doc! { "p": Bson::Array(stages) }.to_raw();
    let p = Pipeline::parse(holder.get("p").unwrap().as_array().unwrap(), &QueryCtx::default()).unwrap();
    let mut runner = p.start(&RunEnv::default()).unwrap();
    let mut input = Rows(docs.iter().map(Document::to_raw).collect::<Vec<_>>().into_iter());
    let mut out = Vec::new();
    loop {
        match runner.next(&mut input) {
            Ok(Step::Row(row)) => out.push(row.doc().get("x").map(Bson::from)),
            Ok(Step::NeedYield) => {}
            Ok(Step::Eof) => return (out, None),
            Err(e) => return (out, Some(e.code.0)),
        }
    }
}

#[test]
fn documents_are_given_out_before_one_fails_that_they_do_not_look_at() {
    let mut docs: Vec<Document> = [1, 2, 3, 4].iter().map(|n| doc! { "n": *n }).collect();
    docs.extend([doc! { "n": 5, "p": [9] }, doc! { "n": 6, "p": 10 }]);
    let with = |output: Document| {
        let window = doc! { "partitionBy": "$p", "sortBy": { "n": 1 }, "output": output };
        let (given, failed) = values(vec![doc! { "$setWindowFields": window }], &docs);
        assert_eq!(failed, Some(14));
        given.len()
    };
    let sum = |low: Bson, high: Bson| {
        with(doc! { "x": { "$sum": "$n", "window": { "documents": Bson::Array(vec![low, high]) } } })
    };
    assert_eq!(with(doc! {}), 3);
    assert_eq!(with(doc! { "x": { "$rank": {} } }), 3);
    assert_eq!(sum("unbounded".into(), "current".into()), 3);
    assert_eq!(sum((-1).into(), 1.into()), 3);
    assert_eq!(sum(0.into(), 2.into()), 2);
    assert_eq!(with(doc! { "x": { "$sum": "$n" } }), 0);
}

#[test]
fn an_array_that_would_be_a_partition_fails_in_its_turn() {
    let by = |partition: Bson, array: Bson| {
        let window = doc! { "partitionBy": partition, "output": {} };
        let docs = [doc! { "p": 1, "x": 1 }, doc! { "p": 1 }, doc! { "p": array }, doc! { "p": 9 }];
        values(vec![doc! { "$setWindowFields": window }], &docs)
    };
    let computed = || Bson::from(doc! { "$ifNull": ["$p", 0] });
    let seven = || Bson::Array(vec![8.into(), 7.into()]);
    for partition in ["$p".into(), computed()] {
        assert_eq!(by(partition, seven()), (vec![Some(1.into())], Some(14)));
    }
    // Nothing is less than an array without elements.
    assert_eq!(by(computed(), Bson::Array(Vec::new())), (vec![], Some(14)));
}

#[test]
fn moving_averages_are_computed_in_decimals() {
    let average = |alpha: Document, n: &[Bson]| {
        let mut average = doc! { "input": "$n" };
        alpha.iter().for_each(|(name, v)| average.push(name, v.clone()));
        let window = doc! { "sortBy": { "_id": 1 }, "output": { "x": { "$expMovingAvg": average } } };
        let docs: Vec<Document> = n.iter().map(|n| doc! { "n": n.clone() }).collect();
        values(vec![doc! { "$setWindowFields": window }], &docs).0
    };
    let numbers = |list: &[f64]| list.iter().map(|n| Some(Bson::Double(*n))).collect::<Vec<_>>();
    let ints: Vec<Bson> = [1, 2, 3].iter().map(|n| Bson::Int32(*n)).collect();
    assert_eq!(
        average(doc! { "N": 2 }, &ints),
        numbers(&[1.0, 1.666_666_666_666_666_7, 2.555_555_555_555_555_4])
    );
    let doubles = [Bson::Double(-0.85), Bson::Double(0.91), Bson::Double(-9.419_895_434_327_705)];
    assert_eq!(average(doc! { "alpha": 0.5 }, &doubles), numbers(&[-0.85, 0.03, -4.694_947_717_163_85]));
}
