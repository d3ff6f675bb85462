//! The arguments of `getMore`.

use crate::spell;
use pando_base::{Error, ErrorCode, OpTime, Result};
use pando_bson::shape::{Field, Shape};
use pando_bson::{DocBuilder, RawDoc, Value};
use pando_command::Request;
use pando_command::request::{missing, wrong_type};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GetMoreArgs<'a> {
    /// The cursor.
    pub id: i64,
    /// The collection that the cursor was opened on.
    pub coll: &'a str,
    pub batch_size: Option<u64>,
    /// The term of another member of the set.
    pub term: Option<i64>,
    /// A member follows the oplog here: it wants to hear when the commit point passes this.
    pub known_committed: Option<OpTime>,
}

const OP_TIME: &[Field] = &[Field::required("ts", Shape::Timestamp), Field::optional("t", Shape::Long)];

/// A position in the log; what else the document has is passed over.
fn parse_op_time(d: &RawDoc) -> Result<OpTime> {
    for field in OP_TIME {
        if let Some(v) = d.get(field.name) {
            field.shape.check(&format!("OpTimeBase.{}", field.name), &v)?;
        } else if field.required {
            return Err(missing("OpTimeBase", field.name));
        }
    }
    let ts = match d.get("ts") {
        Some(Value::Timestamp(ts)) => ts,
        _ => return Ok(OpTime::NULL),
    };
    Ok(OpTime { ts, t: d.get("t").and_then(|v| v.as_i64()).unwrap_or(-1) })
}

/// A collection's name, looked at in its turn.
fn named(coll: &str) -> Result<&str> {
    let text = match coll {
        _ if coll.contains('\0') => "Collection names cannot have embedded null characters".to_owned(),
        "" => "Collection names cannot be empty".to_owned(),
        _ if coll.starts_with('.') => format!("Collection names cannot start with '.': {coll}"),
        _ => return Ok(coll),
    };
    Err(Error::new(ErrorCode::InvalidNamespace, text))
}

impl<'a> GetMoreArgs<'a> {
    /// Reads the whole command.
    pub fn parse(req: &Request<'a>) -> Result<GetMoreArgs<'a>> {
        let (mut coll, mut batch_size, mut term, mut known_committed) = (None, None, None, None);
        for arg in req.args("getMore") {
            match arg.name() {
                "collection" | "batchSize" | "term" | "lastKnownCommittedOpTime" if arg.is_absent() => {}
                "collection" => coll = Some(named(arg.str()?)?),
                "batchSize" => batch_size = Some(arg.i64_at_least(0)? as u64),
                "term" => term = Some(arg.exact_i64()?),
                "lastKnownCommittedOpTime" => known_committed = Some(arg.doc().and_then(parse_op_time)?),
                _ => return Err(arg.unknown()),
            }
        }
        let coll = coll.ok_or_else(|| missing("getMore", "collection"))?;
        let id = match req.first().value() {
            Value::Int64(id) => id,
            Value::Null | Value::Undefined => return Err(missing("getMore", "getMore")),
            v => return Err(wrong_type("getMore", "getMore", &v, &["long"])),
        };
        Ok(GetMoreArgs { id, coll, batch_size, term, known_committed })
    }

    /// Writes the arguments that [`GetMoreArgs::parse`] reads, behind the cursor's id.
    pub fn spell(&self, b: &mut DocBuilder) {
        b.str("collection", self.coll);
        spell::count(b, "batchSize", self.batch_size);
        if let Some(term) = self.term {
            b.i64("term", term);
        }
        if let Some(at) = self.known_committed {
            b.doc("lastKnownCommittedOpTime", |d| {
                d.timestamp("ts", at.ts).i64("t", at.t);
            });
        }
    }
}
