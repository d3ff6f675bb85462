//! Text indexes: the keys of a document.
//!
//! A key has the values of the fields before the text, a term, its score, and the values of the fields behind.

use crate::key_set::KeySet;
use crate::keys::{KeyGen, Walk, plain_walk};
use pando_base::{Error, Result, patience};
use pando_bson::keystring::KeyBuilder;
use pando_bson::{RawDoc, Value};
use pando_query::text::TextSpec;

impl KeyGen {
    /// Of a text index.
    pub(crate) fn text_keys(
        &self,
        spec: &TextSpec,
        doc: &RawDoc,
        b: &mut KeyBuilder,
        out: &mut KeySet,
    ) -> Result<()> {
        let before = plain_values(&spec.prefix, doc)?;
        let behind = plain_values(&spec.suffix, doc)?;
        let scores = spec.scores(doc)?;
        patience::check()?;
        for (term, score) in scores {
            b.restart(self.directions());
            for v in &before {
                b.append(*v);
            }
            b.append(Value::String(&term)).append(Value::Double(score));
            for v in &behind {
                b.append(*v);
            }
            out.push(b);
        }
        out.sort();
        out.multikey = out.len() > 1;
        Ok(())
    }
}

/// The values of fields that may not hold arrays.
fn plain_values<'d>(paths: &[String], doc: &'d RawDoc) -> Result<Vec<Value<'d>>> {
    let value = |path: &String| {
        let parts: Vec<Box<str>> = path.split('.').map(Box::from).collect();
        match plain_walk(doc, &parts) {
            Walk::Value(e) => Ok(e.value()),
            Walk::Missing => Ok(Value::Null),
            Walk::Array => Err(Error::location(
                201,
                format!("Field '{path}' of text index contains an array in document: {doc}"),
            )),
        }
    };
    paths.iter().map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{IndexSpec, Requested};
    use pando_bson::{Document, doc};

    fn keys(index: Document, document: Document) -> Result<Vec<Vec<u8>>> {
        let Requested::Index(spec) = IndexSpec::parse(&index.to_raw(), None)? else { panic!("clustered") };
        let (mut b, mut out) = (KeyBuilder::default(), KeySet::default());
        KeyGen::new(&spec)?.keys(&document.to_raw(), &mut b, &mut out)?;
        Ok(out.iter().map(|k| k.bytes.to_vec()).collect())
    }

    #[test]
    fn a_key_is_prefix_term_score_suffix() {
        let found = keys(
            doc! { "key": { "p": 1, "a": "text", "s": 1 }, "name": "x", "weights": { "a": 2 } },
            doc! { "p": 7, "a": "the foxes", "s": "z" },
        );
        let mut b = KeyBuilder::default();
        b.append(Value::Int32(7)).append(Value::String("fox")).append(Value::Double(2.0));
        b.append(Value::String("z"));
        assert_eq!(found.unwrap(), [b.finish()]);
    }

    #[test]
    fn arrays_beside_the_text_are_refused() {
        let index = doc! { "key": { "a": "text", "s": 1 }, "name": "x" };
        assert_eq!(keys(index, doc! { "a": "fox", "s": [1] }).unwrap_err().code.0, 201);
    }

    #[test]
    fn text_fields_stand_together_and_weigh_something() {
        let code = |d: Document| keys(d, doc! {}).map_or_else(|e| e.code.0, |_| 0);
        assert_eq!(code(doc! { "key": { "a": "text", "b": 1, "c": "text" }, "name": "x" }), 67);
        assert_eq!(code(doc! { "key": { "a": "text" }, "name": "x", "weights": { "a": 0 } }), 67);
        assert_eq!(code(doc! { "key": { "a": "text" }, "name": "x", "default_language": "klingon" }), 67);
        assert_eq!(code(doc! { "key": { "a": "text" }, "name": "x", "weights": 5 }), 14);
    }
}
