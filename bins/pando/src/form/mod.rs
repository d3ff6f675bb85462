//! The forms of a dump, those of mongodump: a folder of BSON files, or one archive. Each may be gzipped.
//!
//! ```text
//!   folder   <db>/<collection>.bson, <db>/<collection>.metadata.json, oplog.bson
//!   archive  magic, header, one document per collection, ffffffff,
//!            then pieces: {db, collection, EOF: false}, documents, ffffffff; in the end {…, EOF: true, CRC}, ffffffff
//! ```

pub(crate) mod archive;
pub(crate) mod crc64;
pub(crate) mod folder;
pub(crate) mod stream;

use pando_bson::{Bson, DocBuf, Document, extjson};

/// A collection, or the oplog, which belongs to no database.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) db: String,
    pub(crate) coll: String,
}

impl Place {
    pub(crate) fn new(db: &str, coll: &str) -> Place {
        Place { db: db.to_owned(), coll: coll.to_owned() }
    }
    pub(crate) fn oplog() -> Place {
        Place::new("", "oplog")
    }
    pub(crate) fn is_oplog(&self) -> bool {
        self.db.is_empty()
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.is_oplog() { f.write_str(&self.coll) } else { write!(f, "{}.{}", self.db, self.coll) }
    }
}

/// What the names of collections of buckets begin with.
pub(crate) const BUCKETS: &str = "system.buckets.";

/// What is known of a collection besides its documents.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Meta {
    pub(crate) place: Place,
    pub(crate) options: Document,
    pub(crate) indexes: Vec<Document>,
    /// 32 hexadecimal digits.
    pub(crate) uuid: String,
    /// `collection`, `view` or `timeseries`.
    pub(crate) kind: String,
    pub(crate) bytes: u64,
}

impl Meta {
    pub(crate) fn bare(place: Place) -> Meta {
        let (options, indexes, uuid) = (Document::new(), Vec::new(), String::new());
        Meta { place, options, indexes, uuid, kind: String::new(), bytes: 0 }
    }
    pub(crate) fn is_view(&self) -> bool {
        self.kind == "view" || self.options.contains("viewOn")
    }
    pub(crate) fn is_series(&self) -> bool {
        self.kind == "timeseries"
    }
    /// Where its documents are: a time series' lie in its collection of buckets.
    pub(crate) fn data(&self) -> Place {
        match self.is_series() {
            true => Place::new(&self.place.db, &format!("{BUCKETS}{}", self.place.coll)),
            false => self.place.clone(),
        }
    }
    /// The text of a `metadata.json`; empty for the oplog.
    pub(crate) fn to_json(&self) -> String {
        if self.place.is_oplog() {
            return String::new();
        }
        let mut d = Document::new();
        d.push("options", self.options.clone());
        d.push("indexes", self.indexes.iter().cloned().map(Bson::Document).collect::<Vec<_>>());
        if !self.uuid.is_empty() {
            d.push("uuid", self.uuid.as_str());
        }
        d.push("collectionName", self.place.coll.as_str());
        d.push("type", self.kind.as_str());
        extjson::to_canonical(&d.to_raw())
    }
    pub(crate) fn from_json(place: Place, json: &str) -> Result<Meta, String> {
        let mut meta = Meta::bare(place);
        if json.trim().is_empty() {
            return Ok(meta);
        }
        let mut d =
            extjson::parse(json).map_err(|e| format!("the metadata of {} are damaged: {e}", meta.place))?;
        if let Some(Bson::Document(options)) = d.remove("options") {
            meta.options = options;
        }
        if let Some(Bson::Array(indexes)) = d.remove("indexes") {
            meta.indexes = indexes.into_iter().filter_map(|i| i.as_doc().cloned()).collect();
        }
        let text = |name| d.get(name).and_then(Bson::as_str).map(str::to_owned);
        meta.uuid = text("uuid").unwrap_or_default();
        meta.kind = text("type").unwrap_or_default();
        // The file's name may be shortened.
        if let Some(name) = text("collectionName") {
            meta.place.coll = name;
        }
        Ok(meta)
    }
}

/// Where a dump goes.
pub(crate) enum Writer {
    Folder(folder::Writer),
    Archive(archive::Writer),
}

impl Writer {
    pub(crate) fn begin(&mut self, place: &Place) -> Result<(), String> {
        match self {
            Writer::Folder(w) => w.begin(place),
            Writer::Archive(w) => w.begin(place),
        }
    }
    pub(crate) fn documents(&mut self, docs: &[DocBuf]) -> Result<(), String> {
        match self {
            Writer::Folder(w) => w.documents(docs),
            Writer::Archive(w) => w.documents(docs),
        }
    }
    pub(crate) fn end(&mut self) -> Result<(), String> {
        match self {
            Writer::Folder(w) => w.end(),
            Writer::Archive(w) => w.end(),
        }
    }
    pub(crate) fn finish(self) -> Result<(), String> {
        match self {
            Writer::Folder(_) => Ok(()),
            Writer::Archive(w) => w.finish(),
        }
    }
}

/// What comes out of a dump, in its order.
#[derive(Debug, PartialEq)]
pub(crate) enum Part {
    Documents(Place, Vec<DocBuf>),
    /// All documents of a collection have come, and are what was written.
    End(Place),
}

/// Where a dump comes from.
pub(crate) enum Reader {
    Folder(folder::Reader),
    Archive(Box<archive::Reader>),
}

impl Reader {
    pub(crate) fn metas(&self) -> &[Meta] {
        match self {
            Reader::Folder(r) => r.metas(),
            Reader::Archive(r) => r.metas(),
        }
    }
    pub(crate) fn next(&mut self) -> Result<Option<Part>, String> {
        match self {
            Reader::Folder(r) => r.next(),
            Reader::Archive(r) => r.next(),
        }
    }
}
