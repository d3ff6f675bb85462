//! Files, perhaps gzipped, and BSON documents one after another in them.

use crate::backup::words;
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use pando_base::limits;
use pando_bson::{DocBuf, RawDoc};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

/// A file to write; `-` is the standard output.
pub(crate) enum Sink {
    Plain(BufWriter<Box<dyn Write>>),
    Gzip(GzEncoder<BufWriter<Box<dyn Write>>>),
}

impl Sink {
    pub(crate) fn create(path: &Path, gzip: bool) -> Result<Sink, String> {
        let out: Box<dyn Write> = match path.to_str() {
            Some("-") => Box::new(io::stdout()),
            _ => Box::new(crate::backup::create(path)?),
        };
        let out = BufWriter::with_capacity(1 << 20, out);
        Ok(if gzip { Sink::Gzip(GzEncoder::new(out, Compression::default())) } else { Sink::Plain(out) })
    }
    pub(crate) fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Sink::Plain(out) => out.write_all(bytes),
            Sink::Gzip(out) => out.write_all(bytes),
        }
    }
    pub(crate) fn finish(self) -> io::Result<()> {
        match self {
            Sink::Plain(mut out) => out.flush(),
            Sink::Gzip(out) => out.finish()?.flush(),
        }
    }
}

/// A file to read; `-` is the standard input. Whether it is gzipped shows at its beginning.
pub(crate) fn open(path: &Path) -> Result<Box<dyn Read>, String> {
    let source: Box<dyn Read> = match path.to_str() {
        Some("-") => Box::new(io::stdin()),
        _ => Box::new(File::open(path).map_err(|e| words(path, &e))?),
    };
    let mut source = BufReader::with_capacity(1 << 20, source);
    let mut head = Vec::with_capacity(2);
    source.by_ref().take(2).read_to_end(&mut head).map_err(|e| words(path, &e))?;
    let gzip = head == [0x1f, 0x8b];
    let whole = io::Cursor::new(head).chain(source);
    Ok(if gzip {
        Box::new(BufReader::with_capacity(1 << 20, MultiGzDecoder::new(whole)))
    } else {
        Box::new(whole)
    })
}

pub(crate) const TERMINATOR: [u8; 4] = [0xff; 4];

/// What lies at this place of a stream.
pub(crate) enum Next {
    Document(DocBuf),
    Terminator,
    End,
}

/// The next document, or what stands in its place.
pub(crate) fn next(from: &mut dyn Read) -> Result<Next, String> {
    let mut head = [0; 4];
    let mut got = 0;
    while got < 4 {
        match from.read(&mut head[got..]).map_err(|e| e.to_string())? {
            0 if got == 0 => return Ok(Next::End),
            0 => return Err("it ends in the middle of a document".to_owned()),
            n => got += n,
        }
    }
    if head == TERMINATOR {
        return Ok(Next::Terminator);
    }
    let len = u32::from_le_bytes(head) as usize;
    if !(5..=limits::DUMP_DOCUMENT_BYTES_MAX).contains(&len) {
        return Err(format!("a document of {len} bytes cannot be"));
    }
    let mut bytes = vec![0; len];
    bytes[..4].copy_from_slice(&head);
    from.read_exact(&mut bytes[4..]).map_err(|_| "it ends in the middle of a document".to_owned())?;
    let doc = RawDoc::validate(&bytes).map_err(|e| format!("a document is damaged: {}", e.message))?;
    Ok(Next::Document(doc.to_buf()))
}
