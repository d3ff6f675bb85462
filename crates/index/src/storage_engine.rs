//! `storageEngine` options. There is one engine here, under the name that MongoDB's has; what it is told is kept and shown
//! but changes nothing. It must be what MongoDB takes all the same.

use pando_base::{Error, ErrorCode, Result};
use pando_bson::shape::wrong_type_at;
use pando_bson::{RawDoc, Value};

const ENGINE: &str = "wiredTiger";

/// The keys of the engine's configuration strings.
const KEYS: &[&str] = &[
    "access_pattern_hint",
    "allocation_size",
    "app_metadata",
    "assert",
    "block_allocation",
    "block_compressor",
    "cache_resident",
    "checksum",
    "colgroups",
    "collator",
    "columns",
    "dictionary",
    "encryption",
    "exclusive",
    "extractor",
    "format",
    "huffman_key",
    "huffman_value",
    "ignore_in_memory_cache_size",
    "immutable",
    "import",
    "internal_item_max",
    "internal_key_max",
    "internal_key_truncate",
    "internal_page_max",
    "key_format",
    "key_gap",
    "leaf_item_max",
    "leaf_key_max",
    "leaf_page_max",
    "leaf_value_max",
    "log",
    "lsm",
    "memory_page_image_max",
    "memory_page_max",
    "os_cache_dirty_max",
    "os_cache_max",
    "prefix_compression",
    "prefix_compression_min",
    "readonly",
    "source",
    "split_deepen_min_child",
    "split_deepen_per_child",
    "split_pct",
    "tiered_storage",
    "type",
    "value_format",
    "verbose",
    "write_timestamp_usage",
];

/// The form of `indexOptionDefaults.storageEngine`.
pub fn check_form(path: &str, v: &Value<'_>) -> Result<()> {
    let Value::Document(engines) = v else { return Err(wrong_type_at(path, v, &["object"])) };
    match first_bare(engines) {
        None => Ok(()),
        Some(name) => Err(Error::bad_value(format!("'storageEngine.{name}' must be an embedded document"))),
    }
}

/// What the engines would say of the options of a new collection.
pub fn check(options: Option<&RawDoc>, index_defaults: Option<&RawDoc>) -> Result<()> {
    options.map_or(Ok(()), check_documents)?;
    let defaults = index_defaults.and_then(|d| d.get("storageEngine")?.as_doc());
    [defaults, options].into_iter().flatten().try_for_each(check_engines)
}

/// The first engine whose options are no document.
fn first_bare(engines: &RawDoc) -> Option<&str> {
    engines.iter().find(|e| e.value().as_doc().is_none()).map(|e| e.name())
}

/// The same of a new index.
pub(crate) fn check_of_index(options: &RawDoc) -> Result<()> {
    check_documents(options)?;
    check_engines(options)
}

fn check_documents(engines: &RawDoc) -> Result<()> {
    match first_bare(engines) {
        None => Ok(()),
        Some(name) => {
            Err(Error::bad_value(format!("'storageEngine.{name}' has to be an embedded document.")))
        }
    }
}

/// What the engines would say of `{<engine>: {..}, ..}`.
fn check_engines(engines: &RawDoc) -> Result<()> {
    for e in engines {
        match e.value() {
            Value::Document(options) if e.name() == ENGINE => check_options(options)?,
            _ => {
                let text = format!("{} is not a registered storage engine for this server", e.name());
                return Err(Error::new(ErrorCode::InvalidOptions, text));
            }
        }
    }
    Ok(())
}

fn check_options(options: &RawDoc) -> Result<()> {
    for e in options {
        match (e.name(), e.value()) {
            ("configString", Value::String(config)) => check_config(config)?,
            ("configString", _) => return Err(Error::type_mismatch("'configString' must be a string.")),
            (name, _) => {
                let text = format!("'{name}' is not a supported option.");
                return Err(Error::new(ErrorCode::InvalidOptions, text));
            }
        }
    }
    Ok(())
}

/// `key=value,key=(..),key`: the keys must be known and brackets closed.
fn check_config(config: &str) -> Result<()> {
    let bad = |why: String| Err(Error::bad_value(format!("22: Invalid argument. {why}: Invalid argument")));
    let (mut depth, mut start) = (0usize, 0);
    let ends = config.char_indices().chain([(config.len(), ',')]);
    for (at, c) in ends {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => match depth.checked_sub(1) {
                Some(less) => depth = less,
                None => return bad(format!("unbalanced brackets in '{config}'")),
            },
            ',' if depth == 0 => {
                let item = config.get(start..at).unwrap_or_default().trim();
                let key = item.split(['=', ':']).next().unwrap_or_default().trim();
                if !key.is_empty() && !KEYS.contains(&key) {
                    return bad(format!("unknown configuration key: '{key}'"));
                }
                start = at + 1;
            }
            _ => {}
        }
    }
    match depth {
        0 => Ok(()),
        _ => bad(format!("unbalanced brackets in '{config}'")),
    }
}
