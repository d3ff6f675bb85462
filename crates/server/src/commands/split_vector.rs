//! `splitVector`: the keys at which a range of a collection would be split into pieces of a size.
//!
//! The range is walked once along an index. How many documents a piece has follows from their mean size, and each
//! piece is half of what is asked for, so that it has room to grow. A key that is there so often that it fills more
//! than a piece is never split.

use super::key_range::{self, full_namespace, has_all};
use super::prelude::*;
use pando_access::{Acquisition, Index, Reading};
use pando_base::limits::BSON_USER_BYTES_MAX;
use pando_bson::cmp_docs;
use pando_bson::hashed::hashed_key;
use pando_query::plan::Hint;
use pando_query::source::IndexKind;
use pando_request::stats::split_vector::Split;
use pando_request::{FindArgs, SplitVectorArgs};
use pando_storage::ReadAt;
use std::cmp::Ordering;

/// What an array takes for an element beside the element.
const KEY_OVERHEAD: usize = 16;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = full_namespace(&req)?;
    ctx.arguments_read()?;
    let args = SplitVectorArgs::parse(&req)?;
    let args = args.split()?;
    let coll = match server.access.read(ctx, &ns, ReadAt::Latest)? {
        Reading::Missing => return Err(Error::new(ErrorCode::NamespaceNotFound, "ns not found")),
        Reading::View(_) => {
            let text = format!("Namespace {ns} is a view, not a collection");
            return Err(Error::new(ErrorCode::CommandNotSupportedOnView, text));
        }
        Reading::Collection(coll) => coll,
    };
    let Some(index) = coll.ready_indexes().iter().find(|i| is_over(i, args.pattern)) else {
        let text = format!("couldn't find index over splitting key {}", Value::Document(args.pattern));
        return Err(Error::new(ErrorCode::IndexNotFound, text));
    };
    let range = bounds(index, &args)?;
    let (bytes, count) = (coll.data_bytes() as i64, coll.count() as i64);
    let size = match args.size.filter(|_| !args.force) {
        Some(size) => size,
        None if args.force && bytes > 0 => bytes,
        None => {
            let text = "need to specify the desired max chunk size";
            return Err(Error::new(ErrorCode::InvalidOptions, text));
        }
    };
    let mut pieces = Pieces { per_piece: 0, at_most: args.max_points, ..Pieces::default() };
    if count > 0 && args.max_points >= 0 && (args.force || bytes >= size) {
        refuse_empty(range.as_ref())?;
        pieces.per_piece = if args.force {
            let mut n = 0;
            walk(server, ctx, &coll, index, range.as_ref(), |_| {
                n += 1;
                true
            })
            .await?;
            n / 2
        } else {
            (size / (2 * (bytes / count).max(1))).min(args.max_objects)
        };
        walk(server, ctx, &coll, index, range.as_ref(), |doc| pieces.take(key_of(args.pattern, doc))).await?;
    }
    let mut r = Reply::new();
    r.body.array("splitKeys", |a| {
        for key in &pieces.keys {
            a.raw_doc(key);
        }
    });
    Ok(r)
}

/// An index with every document under keys that begin with the pattern, hashed where that is.
fn is_over(index: &Index, pattern: &RawDoc) -> bool {
    let own = &index.spec.key;
    let same = |a: Value<'_>, b: Value<'_>| match (a, b) {
        (Value::String(a), Value::String(b)) => a == b,
        (a, b) => a.as_f64().is_some() && a.as_f64() == b.as_f64(),
    };
    (has_all(index) || has_all_hashed(index))
        && pattern.iter().count() <= own.iter().count()
        && pattern.iter().zip(own.iter()).all(|(a, b)| a.name() == b.name() && same(a.value(), b.value()))
}

fn has_all_hashed(index: &Index) -> bool {
    let spec = &index.spec;
    spec.kind == IndexKind::Hashed && !spec.sparse && spec.partial.is_none() && !spec.hidden
}

/// A bound of the range, if its fields are the index's.
fn bound(index: &Index, pattern: &RawDoc, key: &RawDoc) -> Result<DocBuf> {
    let names = |d: &RawDoc| d.iter().map(|e| e.name().to_owned()).collect::<Vec<_>>();
    let (own, given) = (names(pattern), names(key));
    let fields = names(&index.spec.key);
    if !(given.starts_with(&own) || own.starts_with(&given)) || !fields.starts_with(&given) {
        return Err(Error::location(
            16634,
            format!(
                "field names of bound {} do not match those of keyPattern {}",
                Value::Document(key),
                Value::Document(&index.spec.key)
            ),
        ));
    }
    Ok(key_range::bound(index, key))
}

/// The bounds of the range, where there are some.
fn bounds(index: &Index, args: &Split<'_>) -> Result<Option<(DocBuf, DocBuf)>> {
    let Some((from, to)) = args.range else { return Ok(None) };
    Ok(Some((bound(index, args.pattern, from)?, bound(index, args.pattern, to)?)))
}

/// A range that ends before it begins is told when it is to be walked.
fn refuse_empty(range: Option<&(DocBuf, DocBuf)>) -> Result<()> {
    match range {
        Some((min, max)) if cmp_docs(min, max) != Ordering::Less => {
            let text = "can't open a cursor to scan the range (desired range is possibly empty)";
            Err(Error::new(ErrorCode::OperationFailed, text))
        }
        _ => Ok(()),
    }
}

/// Hands out the documents of the range in the index's order, until `each` has enough.
async fn walk(
    server: &Server,
    ctx: &OpCtx,
    coll: &Acquisition,
    index: &Index,
    range: Option<&(DocBuf, DocBuf)>,
    mut each: impl FnMut(&RawDoc) -> bool + Send,
) -> Result<()> {
    let find = FindArgs {
        hint: Some(Hint::Name(index.name().to_owned())),
        min: range.map(|(min, _)| &**min),
        max: range.map(|(_, max)| &**max),
        ..FindArgs::default()
    };
    server.crud.reads.each_found(ctx, coll, &find, |doc| Ok(each(doc))).await
}

/// The values of the pattern's paths, or their hashes.
fn key_of(pattern: &RawDoc, doc: &RawDoc) -> DocBuf {
    let mut b = DocBuilder::new();
    for field in pattern {
        let at = |path: &str| {
            let mut names = path.split('.');
            let first = doc.get(names.next()?)?;
            names.try_fold(first, |v, name| v.as_doc()?.get(name))
        };
        let v = at(field.name()).unwrap_or(Value::Null);
        match field.value() {
            Value::String("hashed") => b.i64(field.name(), hashed_key(v)),
            _ => b.value(field.name(), v),
        };
    }
    b.finish()
}

/// Each key before which a piece is full, but for those that are the same as the piece's own first.
#[derive(Default)]
struct Pieces {
    per_piece: i64,
    /// So many keys at most; 0 = as many as there are, and as a reply holds.
    at_most: i64,
    /// Documents of the piece so far.
    count: i64,
    /// The key with which the piece begins.
    began: Option<DocBuf>,
    keys: Vec<DocBuf>,
    bytes: usize,
}

impl Pieces {
    /// The next document's key; false when there are enough.
    fn take(&mut self, key: DocBuf) -> bool {
        self.count += 1;
        let began = self.began.get_or_insert_with(|| key.clone());
        if self.count <= self.per_piece || began.as_bytes() == key.as_bytes() {
            return true;
        }
        self.bytes += key.byte_len() + KEY_OVERHEAD;
        if self.bytes > BSON_USER_BYTES_MAX {
            return false;
        }
        self.began = Some(key.clone());
        self.count = 0;
        self.keys.push(key);
        self.at_most == 0 || (self.keys.len() as i64) < self.at_most
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_bson::doc;

    fn split(keys: &[i32], per_piece: i64, at_most: i64) -> Vec<i32> {
        let mut pieces = Pieces { per_piece, at_most, ..Pieces::default() };
        for k in keys {
            if !pieces.take(doc! { "a": *k }.to_raw()) {
                break;
            }
        }
        pieces.keys.iter().map(|d| d.get("a").and_then(|v| v.as_f64()).unwrap() as i32).collect()
    }

    #[test]
    fn keys_of_a_hashed_pattern_are_hashes() {
        let key = key_of(&doc! { "a": "hashed", "b": 1 }.to_raw(), &doc! { "b": 2, "a": 7 }.to_raw());
        assert_eq!(key, doc! { "a": hashed_key(Value::Int32(7)), "b": 2 }.to_raw());
    }

    #[test]
    fn pieces_end_where_they_are_full_but_never_within_a_key() {
        let all: Vec<i32> = (0..10).collect();
        assert_eq!(split(&all, 3, 0), [3, 7]);
        assert_eq!(split(&all, 3, 1), [3]);
        assert_eq!(split(&[1, 1, 1, 1, 2, 2, 2, 2, 2, 3], 1, 0), [2, 3]);
        assert_eq!(split(&[7; 20], 3, 0), [0; 0]);
    }
}
