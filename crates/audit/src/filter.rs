//! Which events are wanted: a query over whole records.

use pando_base::{Error, Result};
use pando_bson::{RawDoc, extjson};
use pando_query::ctx::QueryCtx;
use pando_query::matcher::{Matcher, Place};

/// `--auditFilter`.
#[derive(Debug)]
pub struct Filter(Matcher);

impl Filter {
    /// 2 for what is no document in JSON, or no query.
    pub fn parse(text: &str) -> Result<Filter> {
        let wrong = |why: &str| Error::bad_value(format!("Failed to parse the audit filter: {why}"));
        let doc = extjson::parse_shell(text).map_err(|e| wrong(&e.message))?;
        // No scripts, no collection, no index: what needs one is refused.
        let parsed = Matcher::parse_in(Place::Document, &doc.to_raw(), &QueryCtx::default());
        parsed.map(Filter).map_err(|e| wrong(&e.message))
    }
    /// Whether a record is wanted. One that the filter fails on is: nothing is lost by a mistake in an expression.
    pub(crate) fn wants(&self, record: &RawDoc) -> bool {
        self.0.matches(record).unwrap_or(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_bson::doc;

    #[test]
    fn filters_are_written_as_in_the_documentation() {
        let record = doc! {
            "atype": "authCheck", "users": [{ "user": "ann", "db": "test" }],
            "param": { "command": "find", "ns": "test.orders" }, "result": 0,
        };
        for (text, wants) in [
            ("{ atype: { $in: [ 'createCollection', \"authCheck\" ] } }", true),
            ("{ atype: 'authCheck', 'param.ns': /^TEST\\.o/i }", true),
            ("{ 'param.ns': /a\\/b/ }", false),
            ("{ $or: [ { users: [] }, { users: { $elemMatch: { user: 'ann' } } } ] }", true),
            ("{ result: { $ne: 0 } }", false),
            ("{}", true),
            // A mistake when it is asked loses nothing.
            ("{ $expr: { $divide: [1, '$result'] } }", true),
        ] {
            assert_eq!(Filter::parse(text).unwrap().wants(&record.to_raw()), wants, "{text}");
        }
        for text in [
            "",
            "[]",
            "{ a: 1 } x",
            "{ 1a: 1 }",
            "{ a: 'b }",
            "{ a: /b }",
            "{ a: { $in: 1 } }",
            "{ $where: 'true' }",
        ] {
            assert_eq!(Filter::parse(text).unwrap_err().code.0, 2, "{text}");
        }
    }
}
