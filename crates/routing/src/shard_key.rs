//! Shard keys: which fields of a document say where it lives (SH-KEY-1, SH-KEY-2).
//!
//! A shard key value has two forms: a document with the key's fields, as the config servers store bounds of chunks, and key
//! bytes that compare as the values do ([`pando_bson::keystring`]), which everything here works on. A hashed field's value
//! is its hash in both.

use pando_base::{Error, ErrorCode, Result, limits};
use pando_bson::keystring::{Directions, KeyBuilder};
use pando_bson::{DocBuf, DocBuilder, Elem, ElementType, RawDoc, Value, hashed, values_equal};
use std::sync::Arc;

/// One field of a shard key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyField {
    pub path: Box<str>,
    pub hashed: bool,
}

/// A shard key pattern, such as `{region: 1, user: "hashed"}`. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ShardKey {
    fields: Arc<[KeyField]>,
    pattern: Arc<DocBuf>,
}

impl PartialEq for ShardKey {
    fn eq(&self, other: &ShardKey) -> bool {
        self.fields == other.fields
    }
}
impl Eq for ShardKey {}

impl ShardKey {
    /// From what a client or the config servers say, with MongoDB's errors (asked of 6.0.5).
    pub fn parse(pattern: &RawDoc) -> Result<ShardKey> {
        let mut fields = Vec::new();
        let mut has_hashed = false;
        for e in pattern.iter() {
            if fields.len() == limits::SHARD_KEY_FIELDS_MAX {
                let text = format!("Shard key has more than {} fields", limits::SHARD_KEY_FIELDS_MAX);
                return Err(Error::bad_value(text));
            }
            let path = checked_path(&e)?;
            let hashed = match e.value() {
                Value::String("hashed") => true,
                v if values_equal(v, Value::Int32(1)) => false,
                _ => return Err(unusable(pattern, path)),
            };
            if hashed && has_hashed {
                return Err(unusable(pattern, path));
            }
            has_hashed |= hashed;
            fields.push(KeyField { path: path.into(), hashed });
        }
        if fields.is_empty() {
            return Err(Error::bad_value("Shard key is empty"));
        }
        Ok(ShardKey { fields: fields.into(), pattern: Arc::new(pattern.to_buf()) })
    }
    pub fn pattern(&self) -> &RawDoc {
        &self.pattern
    }
    pub fn fields(&self) -> &[KeyField] {
        &self.fields
    }
    pub fn is_hashed(&self) -> bool {
        self.fields.iter().any(|f| f.hashed)
    }
    /// Whether chunks of an empty collection can be spread by the hash alone.
    pub fn begins_hashed(&self) -> bool {
        self.fields.first().is_some_and(|f| f.hashed)
    }
    /// Whether an index or another key with these fields has this one's as its first.
    pub fn is_prefix_of(&self, longer: &ShardKey) -> bool {
        longer.fields.starts_with(&self.fields)
    }

    /// Puts the key of a document that is stored or about to be. Missing fields are null; a document with an array on the
    /// way has no place.
    pub fn key_of(&self, doc: &RawDoc, out: &mut KeyBuilder) -> Result<()> {
        out.restart(Directions::default());
        for f in self.fields.iter() {
            match (value_at(doc, &f.path)?, f.hashed) {
                (None, false) => out.append(Value::Null),
                (None, true) => out.append(Value::Int64(hashed::hashed_key(Value::Null))),
                (Some(e), false) => out.append_elem(&e, None),
                (Some(e), true) => out.append(Value::Int64(hashed::hashed_key_of(&e))),
            };
        }
        Ok(())
    }
    /// The same as a document with the key's fields, hashed fields by their values.
    pub fn values_of(&self, doc: &RawDoc) -> Result<DocBuf> {
        let mut out = DocBuilder::new();
        for f in self.fields.iter() {
            match value_at(doc, &f.path)? {
                None => out.null(&f.path),
                Some(e) => out.raw(e.value().element_type(), &*f.path, e.data()),
            };
        }
        Ok(out.finish())
    }
    /// The same as the bound of a chunk: hashed fields by their hash.
    pub fn bound_of(&self, doc: &RawDoc) -> Result<DocBuf> {
        let mut out = DocBuilder::new();
        for f in self.fields.iter() {
            match (value_at(doc, &f.path)?, f.hashed) {
                (None, false) => out.null(&f.path),
                (None, true) => out.i64(&f.path, hashed::hashed_key(Value::Null)),
                (Some(e), false) => out.raw(e.value().element_type(), &*f.path, e.data()),
                (Some(e), true) => out.i64(&f.path, hashed::hashed_key_of(&e)),
            };
        }
        Ok(out.finish())
    }
    /// Whether documents that an index with this pattern keeps different are kept so wherever they live: the index begins with the
    /// key's fields, or with `_id`.
    pub fn allows_unique(&self, pattern: &RawDoc) -> bool {
        let mut names = pattern.iter();
        pattern.first().is_some_and(|e| e.name() == "_id")
            || self.fields.iter().all(|f| names.next().is_some_and(|e| e.is_named(f.path.as_bytes())))
    }
    /// The first of its fields that is an array in a document, or stands within one.
    pub fn array_in(&self, doc: &RawDoc) -> Option<&str> {
        self.fields.iter().find(|f| value_at(doc, &f.path).is_err()).map(|f| &*f.path)
    }
    /// What tells a stored document from all others of its collection: the key's fields, as far as it has them, and its `_id`.
    pub fn document_key(&self, doc: &RawDoc, id: Elem<'_>) -> DocBuf {
        let mut out = DocBuilder::new();
        for f in self.fields.iter() {
            if let Ok(Some(e)) = value_at(doc, &f.path) {
                out.raw(e.value().element_type(), &*f.path, e.data());
            }
        }
        if !self.fields.iter().any(|f| *f.path == *"_id") {
            out.elem(id);
        }
        out.finish()
    }

    /// Bytes of a chunk's or a zone's bound, which names all fields of the key in their order.
    pub fn key_of_bound(&self, bound: &RawDoc) -> Result<Vec<u8>> {
        let mut out = KeyBuilder::default();
        let mut elems = bound.iter();
        for f in self.fields.iter() {
            let e =
                elems.next().filter(|e| e.is_named(f.path.as_bytes())).ok_or_else(|| self.no_bound(bound))?;
            let infinite = matches!(e.value().element_type(), ElementType::MinKey | ElementType::MaxKey);
            if f.hashed && !infinite && e.value().element_type() != ElementType::Int64 {
                return Err(self.no_bound(bound));
            }
            out.append_elem(&e, None);
        }
        match elems.next() {
            None => Ok(out.finish()),
            Some(_) => Err(self.no_bound(bound)),
        }
    }
    /// Whether a bound that is to be kept is small enough: all who move a range keep and send it several times.
    ///
    /// # Errors
    /// 10334
    pub fn check_size(bound: &RawDoc) -> Result<()> {
        if bound.byte_len() <= limits::CHUNK_BOUND_BYTES_MAX {
            return Ok(());
        }
        let text = format!(
            "a bound of {} bytes is larger than {}: nothing is cut at a shard key of that size",
            bound.byte_len(),
            limits::CHUNK_BOUND_BYTES_MAX
        );
        Err(Error::new(ErrorCode::BSONObjectTooLarge, text))
    }
    fn no_bound(&self, bound: &RawDoc) -> Error {
        let text = format!("the bound {bound} does not fit the shard key pattern {}", self.pattern());
        Error::bad_value(text)
    }
    /// As a bound of a longer key: with the least value of each field that it lacks. The upper end of everything stays that.
    pub fn extend_bound(&self, bound: &RawDoc) -> DocBuf {
        let mut out = DocBuilder::new();
        let is_end = bound.iter().all(|e| e.value().element_type() == ElementType::MaxKey);
        out.elems_of(bound);
        for f in self.fields.iter().skip(bound.count()) {
            out.value(&*f.path, if is_end { Value::MaxKey } else { Value::MinKey });
        }
        out.finish()
    }
    /// `{a: MinKey, b: MinKey}`
    pub fn least(&self) -> DocBuf {
        self.all_of(Value::MinKey)
    }
    /// `{a: MaxKey, b: MaxKey}`
    pub fn greatest(&self) -> DocBuf {
        self.all_of(Value::MaxKey)
    }
    fn all_of(&self, v: Value<'_>) -> DocBuf {
        let mut out = DocBuilder::new();
        for f in self.fields.iter() {
            out.value(&*f.path, v);
        }
        out.finish()
    }
}

fn unusable(pattern: &RawDoc, path: &str) -> Error {
    let text = format!(
        "Shard key {pattern} can contain at most one 'hashed' field, and/or multiple numerical fields set to a value of 1. \
         Failed to parse field {path}"
    );
    Error::bad_value(text)
}

fn checked_path<'a>(e: &Elem<'a>) -> Result<&'a str> {
    let path = e.path()?;
    if path.is_empty() {
        return Err(Error::bad_value("Field  is empty"));
    }
    for part in path.split('.') {
        if part.is_empty() {
            return Err(Error::bad_value(format!("Field {path} contains empty parts")));
        }
        if part.starts_with('$') {
            return Err(Error::bad_value(format!("Field {path} contains parts that start with '$'")));
        }
    }
    Ok(path)
}

/// What a document has at a path; nothing where it has nothing, an error where it has an array.
fn value_at<'a>(doc: &'a RawDoc, path: &str) -> Result<Option<Elem<'a>>> {
    let mut doc = doc;
    let mut rest = path;
    loop {
        let (name, after) = rest.split_once('.').map_or((rest, None), |(name, after)| (name, Some(after)));
        let Some(e) = doc.elem(name) else { return Ok(None) };
        match (e.value(), after) {
            (Value::Array(_), _) => {
                let text = "Shard key cannot contain array values or array descendants.";
                return Err(Error::new(ErrorCode::ShardKeyNotFound, text));
            }
            (_, None) => return Ok(Some(e)),
            (Value::Document(inner), Some(after)) => (doc, rest) = (inner, after),
            (_, Some(_)) => return Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::doc;

    fn key(json: &str) -> ShardKey {
        ShardKey::parse(&doc(json)).unwrap()
    }
    fn bytes(k: &ShardKey, json: &str) -> Vec<u8> {
        let mut b = KeyBuilder::default();
        k.key_of(&doc(json), &mut b).unwrap();
        b.finish()
    }

    #[test]
    fn an_index_that_keeps_documents_different_begins_with_the_key() {
        let k = key(r#"{"a": 1, "b": "hashed"}"#);
        for (pattern, allowed) in [
            (r#"{"a": 1, "b": -1, "c": 1}"#, true),
            (r#"{"a": 1, "b": 1}"#, true),
            (r#"{"a": 1}"#, false),
            (r#"{"b": 1, "a": 1}"#, false),
            (r#"{"_id": 1, "x": 1}"#, true),
        ] {
            assert_eq!(k.allows_unique(&doc(pattern)), allowed, "{pattern}");
        }
    }

    #[test]
    fn a_document_is_told_by_its_shard_key_and_its_id() {
        let told = |k: &str, d: &str| {
            let d = doc(d);
            key(k).document_key(&d, d.elem("_id").unwrap()).to_string()
        };
        assert_eq!(told(r#"{"a.b": 1, "c": 1}"#, r#"{"_id": 7, "a": {"b": 2}}"#), "{ a.b: 2, _id: 7 }");
        assert_eq!(told(r#"{"_id": "hashed"}"#, r#"{"x": 1, "_id": 7}"#), "{ _id: 7 }");
        assert_eq!(told(r#"{"k": 1, "_id": 1}"#, r#"{"_id": 7, "k": null}"#), "{ k: null, _id: 7 }");
    }

    #[test]
    fn patterns_are_refused_in_the_words_of_a_real_server() {
        let refused = |json: &str| {
            let e = ShardKey::parse(&doc(json)).unwrap_err();
            assert_eq!(e.code, ErrorCode::BadValue);
            e.message.to_string()
        };
        assert_eq!(refused("{}"), "Shard key is empty");
        assert_eq!(refused(r#"{"": 1}"#), "Field  is empty");
        assert_eq!(refused(r#"{"a..b": 1}"#), "Field a..b contains empty parts");
        assert_eq!(refused(r#"{"a.": 1}"#), "Field a. contains empty parts");
        assert_eq!(refused(r#"{"$**": 1}"#), "Field $** contains parts that start with '$'");
        let tail =
            "can contain at most one 'hashed' field, and/or multiple numerical fields set to a value of 1.";
        assert_eq!(refused(r#"{"a": -1}"#), format!("Shard key {{ a: -1 }} {tail} Failed to parse field a"));
        for (json, field) in [
            (r#"{"a": "x"}"#, "a"),
            (r#"{"a": true}"#, "a"),
            (r#"{"a": 1, "b": "hashed", "c": "hashed"}"#, "c"),
        ] {
            assert!(refused(json).ends_with(&format!("Failed to parse field {field}")), "{json}");
        }
        for good in [r#"{"a": 1.0}"#, r#"{"a.b": {"$numberLong": "1"}}"#, r#"{"a": {"$numberDecimal": "1"}}"#]
        {
            assert!(!key(good).is_hashed());
        }
        assert!(key(r#"{"a": "hashed", "b": 1}"#).begins_hashed());
    }

    #[test]
    fn missing_is_null_and_arrays_have_no_place() {
        let k = key(r#"{"a.b": 1, "c": 1}"#);
        assert_eq!(bytes(&k, r#"{"a": {"b": 1}, "c": null}"#), bytes(&k, r#"{"c": null, "a": {"b": 1.0}}"#));
        assert_eq!(bytes(&k, r#"{"a": 5}"#), bytes(&k, r#"{"a": {"b": null}}"#));
        assert!(bytes(&k, r#"{"a": {"b": 1}}"#) < bytes(&k, r#"{"a": {"b": "x"}}"#));
        let mut b = KeyBuilder::default();
        for json in [r#"{"a": [{"b": 1}]}"#, r#"{"a": {"b": [1]}}"#, r#"{"c": []}"#] {
            assert_eq!(k.key_of(&doc(json), &mut b).unwrap_err().code, ErrorCode::ShardKeyNotFound);
        }
        assert_eq!(k.values_of(&doc(r#"{"a": {"b": 7}, "x": 1}"#)).unwrap(), doc(r#"{"a.b": 7, "c": null}"#));
    }

    #[test]
    fn hashed_fields_are_placed_by_their_hash() {
        let k = key(r#"{"a": "hashed"}"#);
        let at = |n: i64| k.key_of_bound(&doc(&format!(r#"{{"a": {{"$numberLong": "{n}"}}}}"#))).unwrap();
        // The hash of 5, told by a real server's plan.
        assert_eq!(bytes(&k, r#"{"a": 5}"#), at(4_470_791_281_878_691_347));
        assert_eq!(bytes(&k, r#"{"a": 5.5}"#), at(4_470_791_281_878_691_347));
        assert!(k.key_of_bound(&doc(r#"{"a": "x"}"#)).is_err());
    }

    #[test]
    fn bounds_name_all_fields_in_order() {
        let k = key(r#"{"a": 1, "b": 1}"#);
        for bad in [r#"{"a": 1}"#, r#"{"b": 1, "a": 1}"#, r#"{"a": 1, "b": 1, "c": 1}"#, "{}"] {
            assert!(k.key_of_bound(&doc(bad)).is_err(), "{bad}");
        }
        let (least, greatest) = (k.key_of_bound(&k.least()).unwrap(), k.key_of_bound(&k.greatest()).unwrap());
        let middle = k.key_of_bound(&doc(r#"{"a": {}, "b": null}"#)).unwrap();
        assert!(least < middle && middle < greatest);
        assert_eq!(k.extend_bound(&doc(r#"{"a": 1}"#)), doc(r#"{"a": 1, "b": {"$minKey": 1}}"#));
        let end = doc(r#"{"a": {"$maxKey": 1}}"#);
        assert_eq!(k.extend_bound(&end), k.greatest());
        assert!(key(r#"{"a": 1}"#).is_prefix_of(&k) && !k.is_prefix_of(&key(r#"{"a": 1}"#)));
    }
}
