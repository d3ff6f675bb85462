//! The arguments of `createIndexes`.

use crate::spell;
use pando_base::Result;
use pando_bson::shape::Shape;
use pando_bson::{DocBuilder, RawDoc, Value};
use pando_command::Request;
use pando_command::request::{missing, wrong_type};

#[derive(Clone)]
pub struct CreateIndexesArgs<'a> {
    /// Specifications as written; what they mean is not known here.
    pub indexes: Vec<&'a RawDoc>,
    pub commit_quorum: Option<Value<'a>>,
    /// Options that no index has are dropped instead of being refused.
    pub ignore_unknown: bool,
    /// A time series, named by its collection of buckets.
    pub by_buckets: bool,
    pub collection_uuid: Option<[u8; 16]>,
}

impl<'a> CreateIndexesArgs<'a> {
    /// Reads everything behind the collection's name; `check_quorum` looks at a commit quorum at its place.
    pub fn parse(
        req: &Request<'a>,
        mut check_quorum: impl FnMut(&Value<'a>) -> Result<()>,
    ) -> Result<CreateIndexesArgs<'a>> {
        let mut indexes: Option<Vec<&RawDoc>> = None;
        let (mut commit_quorum, mut ignore_unknown, mut by_buckets) = (None, false, false);
        let mut collection_uuid = None;
        for arg in req.args("createIndexes") {
            match arg.name() {
                "indexes" => {
                    let mut list = Vec::new();
                    arg.check(&Shape::List(&Shape::Any))?;
                    for e in arg.array()? {
                        match e.value() {
                            Value::Document(d) => list.push(d),
                            Value::Null | Value::Undefined => {}
                            v => {
                                let path = format!("indexes.{}", e.name());
                                return Err(wrong_type("createIndexes", &path, &v, &["object"]));
                            }
                        }
                    }
                    indexes = Some(list);
                }
                "commitQuorum" if !arg.is_absent() => {
                    check_quorum(&arg.value())?;
                    commit_quorum = Some(arg.value());
                }
                "commitQuorum" => {}
                "ignoreUnknownIndexOptions" if arg.is_absent() => {}
                "ignoreUnknownIndexOptions" => ignore_unknown = arg.boolish()?,
                "isTimeseriesNamespace" => by_buckets = arg.boolish()?,
                "collectionUUID" => collection_uuid = arg.uuid_or_none()?,
                _ => return Err(arg.unknown()),
            }
        }
        let indexes = indexes.ok_or_else(|| missing("createIndexes", "indexes"))?;
        Ok(CreateIndexesArgs { indexes, commit_quorum, ignore_unknown, by_buckets, collection_uuid })
    }

    /// Writes the arguments that [`CreateIndexesArgs::parse`] reads.
    pub fn spell(&self, b: &mut DocBuilder) {
        b.array("indexes", |list| {
            for spec in &self.indexes {
                list.raw_doc(spec);
            }
        });
        if let Some(quorum) = self.commit_quorum {
            b.value("commitQuorum", quorum);
        }
        spell::flag(b, "ignoreUnknownIndexOptions", self.ignore_unknown);
        spell::flag(b, "isTimeseriesNamespace", self.by_buckets);
        if let Some(uuid) = &self.collection_uuid {
            b.uuid("collectionUUID", uuid);
        }
    }
}
