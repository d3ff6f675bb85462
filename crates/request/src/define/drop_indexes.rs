//! The arguments of `dropIndexes`.

use crate::declare::kinds::{Bool, Uuid};
use crate::declare::{Kind, arguments};
use pando_base::{Error, Result};
use pando_bson::shape::{Means, Null, Shape};
use pando_bson::{DocBuilder, RawDoc, Value};

arguments! {
    /// What `dropIndexes` asks for.
    pub struct DropIndexesArgs of "dropIndexes" as "dropIndexes", refusing {
        "index" index: required Which,
        /// A time series, named by its collection of buckets.
        "isTimeseriesNamespace" by_buckets: optional Bool,
        "collectionUUID" collection_uuid: optional Uuid,
    }
}

/// Which indexes.
#[derive(Clone, PartialEq, Debug)]
pub enum IndexSelector<'a> {
    /// All but `_id_`.
    All,
    Name(&'a str),
    Names(Vec<&'a str>),
    Key(&'a RawDoc),
}

#[derive(Debug)]
pub struct Which;
impl Kind for Which {
    type Of<'a> = IndexSelector<'a>;
    const SHAPE: Shape = Shape::Checked {
        like: &[Shape::String, Shape::Word(&["*"]), Shape::Object, Shape::List(&Shape::String)],
        check: check_index,
    };
    const NULL: Null = Null::Value;
    const MEANS: Means = Means::IndexName;
    fn read(v: Value<'_>) -> Option<IndexSelector<'_>> {
        Some(match v {
            Value::String("*") => IndexSelector::All,
            Value::String(name) => IndexSelector::Name(name),
            Value::Document(key) => IndexSelector::Key(key),
            Value::Array(list) => {
                // A null behind the first name is passed over.
                match list.iter().filter_map(|e| e.value().as_str()).collect::<Vec<_>>() {
                    all if all == ["*"] => IndexSelector::All,
                    names => IndexSelector::Names(names),
                }
            }
            _ => return None,
        })
    }
    fn spell(v: &IndexSelector<'_>, field: &str, b: &mut DocBuilder) {
        match v {
            IndexSelector::All => b.str(field, "*"),
            IndexSelector::Name(name) => b.str(field, name),
            IndexSelector::Key(key) => b.raw_doc(field, key),
            IndexSelector::Names(names) => b.array(field, |a| {
                for name in names {
                    a.str(name);
                }
            }),
        };
    }
}

/// The misplaced quote is MongoDB's.
fn check_index(path: &str, v: &Value<'_>) -> Result<()> {
    let told = |found: &str, expected: &str| {
        let text = format!("BSON field '{path}' is the wrong type '{found}', expected types '[{expected}']");
        Err(Error::type_mismatch(text))
    };
    match v {
        Value::String(_) | Value::Document(_) => Ok(()),
        // What kind of list it is, its first element tells.
        Value::Array(list) if list.first().is_some_and(|e| !matches!(e.value(), Value::String(_))) => {
            told("array", "string")
        }
        Value::Array(_) => Shape::List(&Shape::String).check(path, v),
        v => told(v.type_name(), "string, object"),
    }
}
