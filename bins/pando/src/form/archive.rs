//! A dump as one file.

use super::crc64::Crc64;
use super::stream::{self, Next, Sink, TERMINATOR};
use super::{Meta, Part, Place};
use crate::backup::words;
use pando_base::limits;
use pando_bson::{Bson, DocBuf, Document, doc};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

const MAGIC: [u8; 4] = [0x6d, 0xe2, 0x99, 0x81];
/// The only version there is.
const VERSION: &str = "0.1";

pub(crate) struct Writer {
    path: PathBuf,
    sink: Sink,
    at: Option<(Place, Crc64)>,
}

impl Writer {
    /// Writes the part that comes before all documents.
    pub(crate) fn create(path: &Path, gzip: bool, metas: &[Meta], server: &str) -> Result<Writer, String> {
        let mut w = Writer { path: path.to_owned(), sink: Sink::create(path, gzip)?, at: None };
        w.put(&MAGIC)?;
        let header = doc! {
            "concurrent_collections": 1, "version": VERSION, "server_version": server,
            "tool_version": env!("CARGO_PKG_VERSION")
        };
        w.put(header.to_raw().as_bytes())?;
        for m in metas {
            let size = i32::try_from(m.bytes).unwrap_or(i32::MAX);
            let about = doc! {
                "db": m.place.db.as_str(), "collection": m.place.coll.as_str(), "metadata": m.to_json().as_str(),
                "size": size, "type": m.kind.as_str()
            };
            w.put(about.to_raw().as_bytes())?;
        }
        w.put(&TERMINATOR)?;
        Ok(w)
    }
    fn put(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.sink.put(bytes).map_err(|e| words(&self.path, &e))
    }
    pub(crate) fn begin(&mut self, place: &Place) -> Result<(), String> {
        self.at = Some((place.clone(), Crc64::default()));
        Ok(())
    }
    /// One piece.
    pub(crate) fn documents(&mut self, docs: &[DocBuf]) -> Result<(), String> {
        let Some((place, mut crc)) = self.at.take().filter(|_| !docs.is_empty()) else { return Ok(()) };
        self.put(head(&place, false, 0).as_bytes())?;
        for d in docs {
            crc.add(d.as_bytes());
            self.put(d.as_bytes())?;
        }
        self.put(&TERMINATOR)?;
        self.at = Some((place, crc));
        Ok(())
    }
    pub(crate) fn end(&mut self) -> Result<(), String> {
        let Some((place, crc)) = self.at.take() else { return Ok(()) };
        self.put(head(&place, true, crc.value()).as_bytes())?;
        self.put(&TERMINATOR)
    }
    pub(crate) fn finish(self) -> Result<(), String> {
        self.sink.finish().map_err(|e| words(&self.path, &e))
    }
}

fn head(place: &Place, eof: bool, crc: i64) -> DocBuf {
    doc! { "db": place.db.as_str(), "collection": place.coll.as_str(), "EOF": eof, "CRC": crc }.to_raw()
}

pub(crate) struct Reader {
    path: PathBuf,
    source: Box<dyn Read>,
    metas: Vec<Meta>,
    crcs: BTreeMap<Place, Crc64>,
    /// In the middle of a piece of this collection.
    at: Option<Place>,
    ended: usize,
}

impl Reader {
    pub(crate) fn open(path: &Path) -> Result<Reader, String> {
        let mut source = stream::open(path)?;
        let mut magic = [0; 4];
        if source.read_exact(&mut magic).is_err() || magic != MAGIC {
            return Err(format!("{} is not an archive of a dump", path.display()));
        }
        let mut r = Reader {
            path: path.to_owned(),
            source,
            metas: Vec::new(),
            crcs: BTreeMap::new(),
            at: None,
            ended: 0,
        };
        match r.step()? {
            Next::Document(header) => {
                let version = header.get("version").and_then(|v| v.as_str()).unwrap_or_default();
                if version != VERSION {
                    return Err(r.damaged(&format!("version {version} of the format is unknown")));
                }
            }
            _ => return Err(r.damaged("it has no header")),
        }
        loop {
            match r.step()? {
                Next::Document(d) => {
                    let d = Document::from(&*d);
                    let meta = r.meta(&d)?;
                    r.metas.push(meta);
                }
                Next::Terminator => return Ok(r),
                Next::End => return Err(r.damaged("it ends before its first document")),
            }
        }
    }
    fn meta(&self, d: &Document) -> Result<Meta, String> {
        let place = self.place(d)?;
        let text = |name| d.get(name).and_then(Bson::as_str).unwrap_or_default();
        let mut meta = Meta::from_json(place, text("metadata"))?;
        if meta.kind.is_empty() {
            meta.kind = text("type").to_owned();
        }
        meta.bytes = d.get("size").and_then(Bson::as_i64).unwrap_or(0).max(0) as u64;
        Ok(meta)
    }
    fn place(&self, d: &Document) -> Result<Place, String> {
        let text = |name| d.get(name).and_then(Bson::as_str);
        match (text("db"), text("collection")) {
            (Some(db), Some(coll)) => Ok(Place::new(db, coll)),
            _ => Err(self.damaged("a head names no collection")),
        }
    }
    fn step(&mut self) -> Result<Next, String> {
        stream::next(&mut *self.source).map_err(|e| self.damaged(&e))
    }
    fn damaged(&self, how: &str) -> String {
        format!("{} is damaged: {how}", self.path.display())
    }
    pub(crate) fn metas(&self) -> &[Meta] {
        &self.metas
    }

    pub(crate) fn next(&mut self) -> Result<Option<Part>, String> {
        let place = match self.at.take() {
            Some(place) => place,
            None => match self.head()? {
                None => return Ok(None),
                Some(Head::Ended(place)) => return Ok(Some(Part::End(place))),
                Some(Head::Piece(place)) => place,
            },
        };
        let (mut docs, mut bytes) = (Vec::new(), 0);
        while bytes < limits::DUMP_PART_BYTES {
            match self.step()? {
                Next::Document(d) => {
                    bytes += d.as_bytes().len();
                    self.crcs.entry(place.clone()).or_default().add(d.as_bytes());
                    docs.push(d);
                }
                Next::Terminator => return Ok(Some(Part::Documents(place, docs))),
                Next::End => return Err(self.damaged("it ends in the middle of a collection")),
            }
        }
        self.at = Some(place.clone());
        Ok(Some(Part::Documents(place, docs)))
    }
    fn head(&mut self) -> Result<Option<Head>, String> {
        let d = match self.step()? {
            Next::Document(d) => Document::from(&*d),
            // A view has no documents and no end.
            Next::End if self.ended >= self.metas.iter().filter(|m| !m.is_view()).count() => return Ok(None),
            Next::End => return Err(self.damaged("it ends before its last collection does")),
            Next::Terminator => return Err(self.damaged("an end without a beginning")),
        };
        let place = self.place(&d)?;
        if !d.get("EOF").is_some_and(Bson::is_truthy) {
            return Ok(Some(Head::Piece(place)));
        }
        let crc = self.crcs.remove(&place).unwrap_or_default().value();
        if d.get("CRC").and_then(Bson::as_i64) != Some(crc) {
            return Err(self.damaged(&format!("the documents of {place} are not those that were written")));
        }
        match self.step()? {
            Next::Terminator => {
                self.ended += 1;
                Ok(Some(Head::Ended(place)))
            }
            _ => Err(self.damaged("an end goes on")),
        }
    }
}

enum Head {
    Piece(Place),
    Ended(Place),
}
