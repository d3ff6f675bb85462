//! Index specifications: what `createIndexes` may ask for, in the form that is stored and listed.
//!
//! Checks run in MongoDB's order, so that the same mistake gives the same code and text:
//! 1. fields and key pattern of the specification as sent ([`IndexSpec::parse`]), then when documents expire,
//! 2. defaults (`v: 2`, the collection's collation), then the options against each other,
//! 3. against the indexes that exist (by who knows the collection),
//! 4. what only the index kind itself knows (one hashed field, 32 fields): [`IndexSpec::check_kind`].

use crate::spec_check::{
    Fields, cannot_create, check_fields, check_id_collation, check_id_index, check_id_options, check_options,
    check_ttl, is_odd_id_key, resolve_collation, with_version,
};
use crate::stored_spec::normalized;
use pando_base::{Error, ErrorCode, Result, limits};
use pando_bson::{DocBuf, DocBuilder, Elem, RawDoc, Value};
use pando_query::geo::parse::number;
use pando_query::source::{FieldKind, IndexField, IndexKind};
use pando_query::timeseries::BUCKET_2DSPHERE;

/// One index as specified.
#[derive(Clone, Debug)]
pub struct IndexSpec {
    /// As stored and shown by `listIndexes`.
    pub doc: DocBuf,
    /// As given, or `_id_`.
    pub name: String,
    /// The key pattern as stored.
    pub key: DocBuf,
    /// The fields of the key pattern, in its order.
    pub fields: Vec<IndexField>,
    /// What the key pattern makes of it.
    pub kind: IndexKind,
    /// `v`: 1 or 2.
    pub version: i32,
    /// As specified; see [`IndexSpec::rejects_duplicates`].
    pub unique: bool,
    /// New keys are checked as if it were unique, old ones are not.
    pub prepare_unique: bool,
    /// No key for a document without any of the fields.
    pub sparse: bool,
    /// Kept, and not used by plans.
    pub hidden: bool,
    /// Seconds.
    pub expire_after_seconds: Option<i64>,
    /// `partialFilterExpression`: only documents that match have keys.
    pub partial: Option<DocBuf>,
    /// With all fields filled in; `None` is the simple collation.
    pub collation: Option<DocBuf>,
    /// Which paths a wildcard index covers, as given.
    pub wildcard_projection: Option<DocBuf>,
}

/// The order of fields in `listIndexes`.
const LISTED: &[&str] = &[
    "v",
    "key",
    "name",
    "background",
    "unique",
    "hidden",
    "partialFilterExpression",
    "originalSpec",
    "sparse",
    "expireAfterSeconds",
    "storageEngine",
    "weights",
    "default_language",
    "language_override",
    "textIndexVersion",
    "2dsphereIndexVersion",
    "bits",
    "min",
    "max",
    "bucketSize",
    "collation",
    "wildcardProjection",
    "prepareUnique",
];

/// What the command says about an index that is really the collection's clustered one.
#[derive(Clone, Debug)]
pub enum Requested {
    /// An index to make.
    Index(Box<IndexSpec>),
    /// `clustered: true`: fine if it names the existing clustered index, else an error.
    Clustered {
        /// As sent, with its `v`.
        spec: DocBuf,
    },
}

/// A specification between the rounds of checks.
struct Draft<'a> {
    raw: &'a RawDoc,
    fields: Fields<'a>,
    with_v: DocBuf,
    collation: Option<DocBuf>,
}

impl<'a> Draft<'a> {
    /// What can be told of it without any other.
    fn new(raw: &'a RawDoc) -> Result<Draft<'a>> {
        let in_spec = |e: Error| e.context(format_args!("Error in specification {raw}"));
        let fields = check_fields(raw).map_err(in_spec)?;
        if fields.clustered && !fields.unique {
            return Err(in_spec(cannot_create(
                "The 'unique' field is required when 'clustered' is specified",
            )));
        }
        let with_v = with_version(raw, fields.version);
        let is_odd = is_odd_id_key(fields.key);
        if is_odd && !fields.clustered {
            check_id_options(&with_v)?;
        }
        if is_odd {
            return Err(Error::bad_value(format!(
                "The field 'key' for an _id index must be {{_id: 1}}, but got {}",
                fields.key
            )));
        }
        if fields.name == "*" && !is_id_key(fields.key) {
            return Err(Error::bad_value("The index name '*' is not valid."));
        }
        if is_of_ids(&fields) {
            check_id_index(&fields, &with_v)?;
        }
        Ok(Draft { raw, fields, with_v, collation: None })
    }

    fn collate(&mut self, default: Option<&RawDoc>) -> Result<()> {
        self.collation = resolve_collation(self.raw, &self.with_v, default)?;
        match is_of_ids(&self.fields) {
            true => check_id_collation(&self.fields, self.collation.as_deref(), default),
            false => Ok(()),
        }
    }

    /// What the options mean together.
    fn finish(self) -> Result<Requested> {
        let Draft { raw, fields, with_v, collation } = self;
        let in_full = |e: Error| e.context(format_args!("Error in specification {with_v}"));
        check_options(&fields).map_err(in_full)?;
        crate::geo_spec::check(raw, fields.kind, collation.as_deref()).map_err(in_full)?;
        if fields.clustered {
            return Ok(Requested::Clustered { spec: with_v });
        }
        let mut doc = normalized(raw, &fields, collation.as_deref());
        if fields.kind == IndexKind::Text {
            doc = crate::text_spec::stored(&doc).map_err(in_full)?;
        }
        Ok(Requested::Index(Box::new(IndexSpec::from_stored(&doc)?)))
    }
}

fn is_of_ids(f: &Fields<'_>) -> bool {
    is_id_key(f.key) || f.name == "_id_"
}

impl IndexSpec {
    /// Parses one element of `createIndexes`' `indexes`, as [`IndexSpec::parse_all`] does.
    pub fn parse(raw: &RawDoc, default_collation: Option<&RawDoc>) -> Result<Requested> {
        let mut one = Self::parse_all(&[raw], default_collation)?;
        one.pop().ok_or_else(|| Error::internal("a specification was lost"))
    }

    /// Parses `createIndexes`' `indexes`. `default_collation` is the collection's (full form). Each round looks at all of them
    /// before the next one begins.
    ///
    /// Errors carry MongoDB's code and text; most are CannotCreateIndex (67), TypeMismatch (14) or BadValue (2).
    pub fn parse_all(raw: &[&RawDoc], default_collation: Option<&RawDoc>) -> Result<Vec<Requested>> {
        let mut drafts = raw.iter().map(|raw| Draft::new(raw)).collect::<Result<Vec<_>>>()?;
        drafts.iter().try_for_each(|d| check_ttl(d.raw, &d.fields))?;
        drafts.iter_mut().try_for_each(|d| d.collate(default_collation))?;
        drafts.into_iter().map(Draft::finish).collect()
    }

    /// What can be told of each specification without knowing the collection.
    pub fn check_forms(raw: &[&RawDoc]) -> Result<()> {
        raw.iter().try_for_each(|raw| Draft::new(raw).map(drop))
    }

    /// Reads a specification that was stored by [`IndexSpec::parse`] or came in an oplog entry. Fails only where there is no name,
    /// no key, or one that is no path.
    pub fn from_stored(doc: &RawDoc) -> Result<IndexSpec> {
        let key = doc.get("key").and_then(|v| v.as_doc()).unwrap_or(RawDoc::empty());
        let fields: Vec<IndexField> = key.iter().map(index_field).collect();
        let truthy = |name| doc.get(name).is_some_and(|v: Value<'_>| v.is_truthy());
        let sub = |name| doc.get(name).and_then(|v: Value<'_>| v.as_doc()).map(|d| d.to_buf());
        let name = doc.get("name").and_then(|v| v.as_str()).unwrap_or_default().to_owned();
        let are_paths = key.iter().all(|e| e.utf8_name().is_some());
        if name.is_empty() || fields.is_empty() || !are_paths {
            return Err(Error::internal(format!("stored index specification without name or key: {doc}")));
        }
        Ok(IndexSpec {
            name,
            key: key.to_buf(),
            kind: kind_of(key),
            fields,
            version: doc.get("v").and_then(|v| v.as_i64()).unwrap_or(2) as i32,
            unique: truthy("unique"),
            prepare_unique: truthy("prepareUnique"),
            sparse: truthy("sparse"),
            hidden: truthy("hidden"),
            expire_after_seconds: doc.get("expireAfterSeconds").and_then(|v| seconds(v).ok()),
            partial: sub("partialFilterExpression"),
            collation: sub("collation")
                .filter(|c| c.get("locale").and_then(|l| l.as_str()) != Some("simple")),
            wildcard_projection: sub("wildcardProjection"),
            doc: doc.to_buf(),
        })
    }

    /// The `_id_` index of a collection with this default collation.
    pub fn id_index(collation: Option<&RawDoc>) -> IndexSpec {
        let mut b = DocBuilder::new();
        b.i32("v", 2);
        b.doc("key", |k| {
            k.i32("_id", 1);
        });
        b.str("name", "_id_");
        if let Some(c) = collation {
            b.raw_doc("collation", c);
        }
        IndexSpec::from_stored(&b.finish()).expect("the _id index specification is well formed")
    }

    /// As `listIndexes` shows it: the same fields in its own order.
    pub fn listed(&self) -> DocBuf {
        let mut b = DocBuilder::with_capacity(self.doc.byte_len());
        for name in LISTED {
            if let Some(e) = self.doc.elem(name) {
                b.elem(e);
            }
        }
        for e in self.doc.iter().filter(|e| !LISTED.contains(&e.name())) {
            b.elem(e);
        }
        b.finish()
    }
    /// Whether this is the index that every collection has on `_id`.
    pub fn is_id_index(&self) -> bool {
        self.name == "_id_"
    }

    /// Uniqueness is enforced on new keys (even where old duplicates may still be there).
    pub fn rejects_duplicates(&self) -> bool {
        self.unique || self.prepare_unique || self.is_id_index()
    }

    /// The same with one option replaced (`Value::Undefined` removes it).
    pub fn with_option(&self, name: &str, value: Value<'_>) -> IndexSpec {
        let mut b = DocBuilder::new();
        let mut done = false;
        let removes = matches!(value, Value::Undefined);
        for e in self.doc.iter() {
            if e.name() != name {
                b.elem(e);
            } else if !removes {
                b.value(name, value);
                done = true;
            }
        }
        if !done && !removes {
            b.value(name, value);
        }
        IndexSpec::from_stored(&b.finish()).expect("only an option changed")
    }

    /// What the index kind itself refuses (16764, 16800, 31303 …), and more than 32 fields (13103).
    pub fn check_kind(&self) -> Result<()> {
        match self.kind {
            IndexKind::Hashed => {
                let hashed = self.fields.iter().filter(|f| f.kind == FieldKind::Hashed).count();
                if hashed > 1 {
                    return Err(Error::location(
                        31303,
                        format!(
                            "A maximum of one index field is allowed to be hashed but found {hashed} for 'key' {}",
                            self.key
                        ),
                    ));
                }
                if self.unique || self.prepare_unique {
                    return Err(Error::location(
                        16764,
                        "Currently hashed indexes cannot guarantee uniqueness. Use a regular index.",
                    ));
                }
            }
            IndexKind::Geo2d | IndexKind::Geo2dSphere => crate::geo_spec::check_kind(self)?,
            IndexKind::Text => {}
            IndexKind::Btree | IndexKind::Wildcard => {}
        }
        if self.fields.len() > limits::INDEX_FIELDS_MAX {
            return Err(Error::location(13103, "too many compound keys"));
        }
        Ok(())
    }

    /// Same key pattern, collation and partial filter, and same uniqueness and sparseness: one index, whatever
    /// else differs.
    pub fn same_signature(&self, other: &IndexSpec) -> bool {
        same_key(&self.key, &other.key)
            && self.collation == other.collation
            && self.partial == other.partial
            && self.unique == other.unique
            && self.sparse == other.sparse
            && self.wildcard_projection == other.wildcard_projection
    }
}

/// Key patterns are equal when names, order and numeric values agree, whatever the numeric type.
pub fn same_key(a: &RawDoc, b: &RawDoc) -> bool {
    let (mut x, mut y) = (a.iter(), b.iter());
    loop {
        match (x.next(), y.next()) {
            (None, None) => return true,
            (Some(p), Some(q)) => {
                let same = p.name_bytes() == q.name_bytes()
                    && match (number(p.value()), number(q.value())) {
                        (Some(m), Some(n)) => m == n,
                        (None, None) => p.ty == q.ty && p.data() == q.data(),
                        _ => false,
                    };
                if !same {
                    return false;
                }
            }
            _ => return false,
        }
    }
}

/// Exactly `{_id: 1}` (any numeric type).
pub fn is_id_key(key: &RawDoc) -> bool {
    key.count() == 1 && key.first().is_some_and(|e| e.name() == "_id" && number(e.value()) == Some(1.0))
}

fn index_field(e: Elem<'_>) -> IndexField {
    let kind = match e.value() {
        Value::String("hashed") => FieldKind::Hashed,
        Value::String("text") => FieldKind::Text,
        Value::String("2d" | "2dsphere" | BUCKET_2DSPHERE) => FieldKind::Geo,
        v if number(v).is_some_and(|n| n < 0.0) => FieldKind::Descending,
        _ => FieldKind::Ascending,
    };
    IndexField { path: e.name().to_owned(), kind }
}

pub(crate) fn is_wildcard_name(name: &str) -> bool {
    name == "$**" || name.ends_with(".$**")
}

/// The first string value of a key pattern.
pub(crate) fn plugin_name(key: &RawDoc) -> Option<&str> {
    key.iter().find_map(|e| e.value().as_str())
}

pub(crate) fn kind_of(key: &RawDoc) -> IndexKind {
    match plugin_name(key) {
        Some("hashed") => IndexKind::Hashed,
        Some("text") => IndexKind::Text,
        Some("2d") => IndexKind::Geo2d,
        Some("2dsphere" | BUCKET_2DSPHERE) => IndexKind::Geo2dSphere,
        _ if key.iter().any(|e| is_wildcard_name(e.name())) => IndexKind::Wildcard,
        _ => IndexKind::Btree,
    }
}

/// `expireAfterSeconds` cut to an integer; NaN means "never" and becomes the largest value.
pub(crate) fn seconds(v: Value<'_>) -> Result<i64> {
    match v {
        Value::Double(d) if d.is_nan() => Ok(i64::from(i32::MAX)),
        v => pando_bson::fields::safe_i64(&v).ok_or_else(|| {
            Error::new(ErrorCode::InvalidOptions, "TTL index 'expireAfterSeconds' option must be numeric")
        }),
    }
}
