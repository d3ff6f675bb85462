//! A dump as a folder: one folder per database, two files per collection.

use super::stream::{self, Next, Sink};
use super::{BUCKETS, Meta, Part, Place};
use crate::backup::words;
use pando_base::limits;
use pando_bson::DocBuf;
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A collection's name as a file's: everything but letters, digits and `-_.~$&+=:@` is written as `%xx`.
fn escaped(name: &str) -> String {
    name.bytes().fold(String::new(), |mut out, b| {
        if b.is_ascii_alphanumeric() || b"-_.~$&+=@".contains(&b) {
            out.push(char::from(b));
        } else {
            let _ = write!(out, "%{b:02X}");
        }
        out
    })
}

fn unescaped(name: &str) -> String {
    let (bytes, mut out, mut at) = (name.as_bytes(), Vec::new(), 0);
    while at < bytes.len() {
        let code = name.get(at + 1..at + 3).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match code.filter(|_| bytes[at] == b'%') {
            Some(b) => {
                out.push(b);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

pub(crate) struct Writer {
    home: PathBuf,
    gzip: bool,
    at: Option<(PathBuf, Sink)>,
}

impl Writer {
    pub(crate) fn create(home: &Path, gzip: bool, metas: &[Meta]) -> Result<Writer, String> {
        let leads_out = |db: &str| db == ".." || db == "." || db.contains(['/', '\\', '\0']);
        if let Some(m) = metas.iter().find(|m| leads_out(&m.place.db)) {
            return Err(format!(
                "{:?} is no name of a database: it cannot be dumped into a folder",
                m.place.db
            ));
        }
        let w = Writer { home: home.to_owned(), gzip, at: None };
        for m in metas.iter().filter(|m| !m.place.is_oplog()) {
            let path = w.path(&m.place, "metadata.json");
            let mut sink = Sink::create(&path, gzip)?;
            sink.put(m.to_json().as_bytes()).and_then(|()| sink.finish()).map_err(|e| words(&path, &e))?;
        }
        Ok(w)
    }
    fn path(&self, place: &Place, ending: &str) -> PathBuf {
        let gz = if self.gzip { ".gz" } else { "" };
        // The oplog's database has no name: its file lies at the top.
        self.home.join(&place.db).join(format!("{}.{ending}{gz}", escaped(&place.coll)))
    }
    pub(crate) fn begin(&mut self, place: &Place) -> Result<(), String> {
        let path = self.path(place, "bson");
        let sink = Sink::create(&path, self.gzip)?;
        self.at = Some((path, sink));
        Ok(())
    }
    pub(crate) fn documents(&mut self, docs: &[DocBuf]) -> Result<(), String> {
        let Some((path, sink)) = &mut self.at else { return Ok(()) };
        docs.iter().try_for_each(|d| sink.put(d.as_bytes())).map_err(|e| words(path, &e))
    }
    pub(crate) fn end(&mut self) -> Result<(), String> {
        match self.at.take() {
            Some((path, sink)) => sink.finish().map_err(|e| words(&path, &e)),
            None => Ok(()),
        }
    }
}

pub(crate) struct Reader {
    metas: Vec<Meta>,
    files: VecDeque<(Place, PathBuf)>,
    at: Option<(Place, PathBuf, Box<dyn Read>)>,
}

impl Reader {
    pub(crate) fn open(home: &Path) -> Result<Reader, String> {
        let mut r = Reader { metas: Vec::new(), files: VecDeque::new(), at: None };
        let mut oplog = None;
        for (name, path) in entries(home)? {
            if path.is_dir() {
                r.database(&name, &path)?;
            } else if name == "oplog.bson" || name == "oplog.bson.gz" {
                oplog = Some(path);
            }
        }
        if let Some(path) = oplog {
            r.metas.push(Meta::bare(Place::oplog()));
            r.files.push_back((Place::oplog(), path));
        }
        if r.metas.is_empty() {
            return Err(format!("{} holds no dump", home.display()));
        }
        Ok(r)
    }
    fn database(&mut self, db: &str, folder: &Path) -> Result<(), String> {
        let files = entries(folder)?;
        let mut without: Vec<(String, PathBuf)> = Vec::new();
        for (name, path) in &files {
            let plain = name.strip_suffix(".gz").unwrap_or(name);
            let Some(stem) = plain.strip_suffix(".bson") else { continue };
            without.push((stem.to_owned(), path.clone()));
        }
        for (name, path) in &files {
            let plain = name.strip_suffix(".gz").unwrap_or(name);
            let Some(stem) = plain.strip_suffix(".metadata.json") else { continue };
            let mut json = String::new();
            stream::open(path)?.read_to_string(&mut json).map_err(|e| words(path, &e))?;
            let meta = Meta::from_json(Place::new(db, &unescaped(stem)), &json)?;
            let data = if meta.is_series() { format!("{BUCKETS}{stem}") } else { stem.to_owned() };
            match without.iter().position(|(s, _)| *s == data) {
                Some(i) => self.files.push_back((meta.data(), without.remove(i).1)),
                None if !meta.is_view() && !meta.kind.is_empty() => {
                    return Err(format!(
                        "{} has no documents beside it: the dump was cut off",
                        path.display()
                    ));
                }
                None => {}
            }
            self.metas.push(meta);
        }
        // Documents alone make a collection, too.
        for (stem, path) in without {
            let place = Place::new(db, &unescaped(&stem));
            self.metas.push(Meta::bare(place.clone()));
            self.files.push_back((place, path));
        }
        Ok(())
    }
    pub(crate) fn metas(&self) -> &[Meta] {
        &self.metas
    }
    pub(crate) fn next(&mut self) -> Result<Option<Part>, String> {
        if self.at.is_none() {
            let Some((place, path)) = self.files.pop_front() else { return Ok(None) };
            let source = stream::open(&path)?;
            self.at = Some((place, path, source));
        }
        let Some((place, path, source)) = &mut self.at else { return Ok(None) };
        let (mut docs, mut bytes) = (Vec::new(), 0);
        while bytes < limits::DUMP_PART_BYTES {
            let step = stream::next(&mut **source);
            match step.map_err(|e| format!("{} is damaged: {e}", path.display()))? {
                Next::Document(d) => {
                    bytes += d.as_bytes().len();
                    docs.push(d);
                }
                Next::Terminator => {
                    return Err(format!("{} is damaged: a document of -1 bytes", path.display()));
                }
                Next::End => break,
            }
        }
        let place = place.clone();
        if docs.is_empty() {
            self.at = None;
            return Ok(Some(Part::End(place)));
        }
        Ok(Some(Part::Documents(place, docs)))
    }
}

/// Names and paths of a folder, in the order of names.
fn entries(folder: &Path) -> Result<Vec<(String, PathBuf)>, String> {
    let mut out = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|e| words(folder, &e))? {
        let entry = entry.map_err(|e| words(folder, &e))?;
        out.push((entry.file_name().to_string_lossy().into_owned(), entry.path()));
    }
    out.sort();
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_collections_become_names_of_files_and_back() {
        for (name, file) in [("a.b", "a.b"), ("x/y", "x%2Fy"), ("ü %", "%C3%BC%20%25"), ("a:b", "a%3Ab")] {
            assert_eq!((escaped(name).as_str(), unescaped(file).as_str()), (file, name));
        }
        assert_eq!(unescaped("100%"), "100%");
    }

    #[test]
    fn a_server_cannot_make_a_dump_write_beside_its_folder() {
        for db in ["..", "../x", "/etc", "a\\b"] {
            let metas = [Meta::bare(Place::new(db, "c"))];
            assert!(
                Writer::create(Path::new("/nowhere"), false, &metas).is_err_and(|e| e.contains("no name"))
            );
        }
    }
}
