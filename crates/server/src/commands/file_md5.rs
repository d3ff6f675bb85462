//! `filemd5`: the MD5 digest of a GridFS file, read from its chunks in their order.

use super::prelude::*;
use md5::digest::common::hazmat::SerializableState;
use md5::{Digest, Md5};
use pando_access::Acquisition;
use pando_query::QueryCtx;
use pando_query::matcher::Matcher;
use pando_query::plan::Hint;
use pando_request::{FileMd5Args, FindArgs};

const CONTEXT: &str = "Executor error during filemd5 command";

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let args = FileMd5Args::parse(&req)?;
    let ns = args.chunks(&req)?;
    ctx.arguments_read()?;
    let partial = args.is_partial();
    let first = args.start_at.filter(|_| partial).unwrap_or(0);
    let filter = of_file(req.first().value(), first)?;
    let hasher = match args.state.filter(|_| partial) {
        None => Md5::new(),
        Some(v) => {
            let state = bytes(Some(v), 50846)?.try_into();
            let state = state.map_err(|_| Error::location(16247, "md5 state not correct size"))?;
            Md5::deserialize(&state).map_err(|_| Error::location(16247, "md5 state not correct size"))?
        }
    };
    let coll = server.access.collection(ctx, &ns)?;
    // Whoever goes on says with which chunk.
    let mut file = File { hasher, chunks: first, partial };
    if let Some(coll) = coll {
        read(server, ctx, &coll, &filter, &mut file).await?;
    }
    let mut r = Reply::new();
    if partial {
        r.body.value("md5state", Value::Binary { subtype: 0, bytes: &file.hasher.serialize() });
    }
    r.body.i32("numChunks", file.chunks);
    let digest = file.hasher.finalize();
    r.body.str("md5", &digest.iter().map(|b| format!("{b:02x}")).collect::<String>());
    Ok(r)
}

/// The chunks of a file from one on. An id may be a condition on ids.
fn of_file(id: Value<'_>, first: i32) -> Result<DocBuf> {
    let mut b = DocBuilder::new();
    b.value("files_id", id);
    b.doc("n", |d| {
        d.i32("$gte", first);
    });
    let filter = b.finish();
    match Matcher::parse(&filter, &QueryCtx::default()) {
        Ok(_) => Ok(filter),
        Err(_) => Err(Error::location(17240, format!("Can't canonicalize query {filter}"))),
    }
}

/// What has been read of a file.
struct File {
    hasher: Md5,
    /// The number of the next chunk.
    chunks: i32,
    /// A part of the file is enough: it ends where a chunk is missing.
    partial: bool,
}

async fn read(
    server: &Server,
    ctx: &OpCtx,
    coll: &Acquisition,
    filter: &RawDoc,
    file: &mut File,
) -> Result<()> {
    let Some(index) = coll.ready_indexes().iter().find(|i| is_by_file(&i.spec.key)) else {
        return Err(Error::new(
            ErrorCode::NoQueryExecutionPlans,
            format!("filemd5 needs an index on {{ files_id: 1, n: 1 }} of {}", coll.ns),
        ));
    };
    let hint = Some(Hint::Name(index.name().to_owned()));
    let sort = pando_bson::doc! { "files_id": 1, "n": 1 }.to_raw();
    let find = FindArgs { filter: Some(filter), sort: Some(&sort), hint, ..FindArgs::default() };
    server
        .crud
        .reads
        .each_found(ctx, coll, &find, |chunk| file.take(chunk).map_err(|e| e.context(CONTEXT)))
        .await
}

fn is_by_file(key: &RawDoc) -> bool {
    let mut fields = key.iter().map(|e| (e.name(), e.value().as_f64().is_some_and(|n| n > 0.0)));
    fields.next() == Some(("files_id", true)) && fields.next() == Some(("n", true))
}

impl File {
    /// Takes the next chunk; false where the file is to end before it.
    fn take(&mut self, chunk: &RawDoc) -> Result<bool> {
        let n = chunk.get("n").and_then(|v| pando_command::args::safe_i64(&v)).unwrap_or(0);
        if n != i64::from(self.chunks) {
            return match self.partial {
                true => Ok(false),
                false => Err(Error::location(10040, "chunks out of order")),
            };
        }
        self.hasher.update(bytes(chunk.get("data"), 50848)?);
        self.chunks = self.chunks.saturating_add(1);
        Ok(true)
    }
}

/// The bytes of a binary value; those of the old kind have their length in front, which does not count.
fn bytes(v: Option<Value<'_>>, missing: i32) -> Result<&[u8]> {
    match v {
        Some(Value::Binary { subtype: 2, bytes }) => Ok(bytes.get(4..).unwrap_or_default()),
        Some(Value::Binary { bytes, .. }) => Ok(bytes),
        other => {
            let what = other.map_or("misisng", |v| v.type_name());
            let hint = if other.is_none() { " Field name is required" } else { "" };
            Err(Error::location(
                missing + i32::from(other.is_some()),
                format!(
                    "The element that calls binDataClean() must be type of BinData, but type of {what} found.{hint}"
                ),
            ))
        }
    }
}
