//! Deletes and updates of a time series may speak of the source only; they go to the buckets with its name changed.

use super::TimeSeries;
use pando_base::{Error, ErrorCode, Result};
use pando_bson::{ArrayBuilder, DocBuf, DocBuilder, RawDoc, Value};

fn refuse(text: String) -> Error {
    Error::new(ErrorCode::InvalidOptions, text)
}

/// `m` or `m.x` as the buckets call it.
pub(super) fn renamed(series: &TimeSeries, path: &str) -> Option<String> {
    let rest = path.strip_prefix(series.meta_field.as_deref()?)?;
    (rest.is_empty() || rest.starts_with('.')).then(|| format!("meta{rest}"))
}

/// The filter over buckets; 72 when it looks at anything but the source.
pub fn filter_on_meta(series: &TimeSeries, filter: &RawDoc) -> Result<DocBuf> {
    let mut b = DocBuilder::with_capacity(filter.byte_len() + 16);
    for e in filter {
        match (e.name(), e.value()) {
            ("$and" | "$or" | "$nor", Value::Array(list)) => {
                let mut all = ArrayBuilder::new();
                for item in list {
                    match item.value() {
                        Value::Document(d) => all.raw_doc(&filter_on_meta(series, d)?),
                        v => all.value(v),
                    };
                }
                b.raw_array(e.name_bytes(), &all.finish());
            }
            ("$comment", v) => {
                b.value("$comment", v);
            }
            ("$expr", _) => {
                return Err(refuse(
                    "Cannot use $expr when performing an update or delete on a time-series collection"
                        .to_owned(),
                ));
            }
            (path, _) => match renamed(series, path) {
                Some(path) => {
                    b.raw(e.ty, &path, e.data());
                }
                None => return Err(not_meta(series)),
            },
        }
    }
    Ok(b.finish())
}

fn not_meta(series: &TimeSeries) -> Error {
    let field = series.meta_field.as_deref().unwrap_or_default();
    refuse(format!(
        "Cannot perform an update or delete on a time-series collection when querying on a field that is not the \
         metaField '{field}'"
    ))
}

/// The update over buckets; 72 when it changes anything but the source.
pub fn update_on_meta(series: &TimeSeries, update: Value<'_>) -> Result<DocBuf> {
    let Value::Document(update) = update else {
        return Err(refuse(
            "Cannot perform an update on a time-series collection using a pipeline update".to_owned(),
        ));
    };
    let mut b = DocBuilder::with_capacity(update.byte_len() + 16);
    for op in update {
        let Value::Document(fields) = op.value() else { return Err(replacement()) };
        if !op.name_bytes().starts_with(b"$") {
            return Err(replacement());
        }
        let mut inner = DocBuilder::new();
        for f in fields {
            let of_source = |path: &str| renamed(series, path).ok_or_else(|| changes_others(series));
            let path = of_source(f.name())?;
            match (op.name(), f.value()) {
                ("$rename", Value::String(to)) => inner.str(&path, &of_source(to)?),
                _ => inner.raw(f.ty, &path, f.data()),
            };
        }
        b.raw_doc(op.name_bytes(), &inner.finish());
    }
    Ok(b.finish())
}

/// 72 where measurements have no source that could be changed: that comes before all else that is wrong with an update.
pub fn has_source(series: &TimeSeries) -> Result<()> {
    match &series.meta_field {
        Some(_) => Ok(()),
        None => Err(refuse(
            "Cannot perform an update on a time-series collection that does not have a metaField".to_owned(),
        )),
    }
}

fn changes_others(series: &TimeSeries) -> Error {
    let field = series.meta_field.as_deref().unwrap_or_default();
    refuse(format!(
        "Cannot perform an update on a time-series collection which updates a field that is not the metaField '{field}'"
    ))
}

fn replacement() -> Error {
    refuse("Cannot perform an update on a time-series collection using a replacement document".to_owned())
}
