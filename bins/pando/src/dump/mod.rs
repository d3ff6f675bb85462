//! `pando dump`: documents and definitions in mongodump's forms, for MongoDB's tools and for `pando load`.

use crate::Command;
use crate::args::Args;
use crate::backup::empty_folder;
use crate::client::{Client, text};
use crate::form::{Meta, Place, Writer, archive, folder};
use crate::progress::{Progress, size};
use crate::{login, tls};
use pando_base::Timestamp;
use pando_bson::{Bson, Document, Value, doc};
use pando_env::{Env, Log};
use pando_env_tokio::RealNet;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

pub(crate) const COMMAND: Command =
    Command { name: "dump", help: "write documents in mongodump's formats", run };

const HELP: &str = "\
Usage: pando dump (--out DIR | --archive FILE) [--host HOST:PORT] [--db DB [--collection COLL]] [--gzip] [--oplog]

Writes documents, options and indexes as mongodump does; mongorestore and 'pando load' read them. To copy a whole
server quickly, or to come back to any moment, 'pando backup' is the better tool.

  --out DIR          a new folder: DIR/<db>/<collection>.bson and .metadata.json
  --archive FILE     one file instead; - is the standard output
  --host HOST:PORT   the server (127.0.0.1:27017)
  --tls, --tlsCAFile ... the server speaks TLS; the options of mongosh and of MongoDB's tools
  -u, -p, --authenticationDatabase ...  as whom to log in; the options of MongoDB's tools, and without -p it is asked for
  --db, --collection only these
  --gzip             compress
  --oplog            also what is written meanwhile, so that 'pando load --oplog-replay' makes the state of the end of the
                     dump; for a member of a set, and all databases only
";

fn run(args: &[String]) -> u8 {
    let wanted = || {
        let known = ["out|o", "archive", "host|h", "db|d", "collection|c"];
        Args::parse(args, &known, &["gzip", "oplog"]).and_then(checked)
    };
    crate::carry_out("dump", HELP, args, wanted, dump)
}

fn checked(args: Args) -> Result<Args, String> {
    match () {
        () if args.has("out") == args.has("archive") => {
            Err("either --out (a folder) or --archive (a file)".to_owned())
        }
        () if args.has("collection") && !args.has("db") => Err("--collection needs --db".to_owned()),
        () if args.has("oplog") && args.has("db") => Err("--oplog goes with all databases only".to_owned()),
        () if !args.rest.is_empty() => Err(format!("'{}' is not an option", args.rest[0])),
        () => Ok(args),
    }
}

async fn dump(args: Args) -> Result<(), String> {
    let env =
        pando_env_tokio::env(Path::new("."), Log::none(), RealNet::default()).map_err(|e| e.to_string())?;
    let env = tls::dialing(env, &args)?;
    let mut client =
        Client::connect(&env, args.get("host").unwrap_or("127.0.0.1:27017"), login::given(&args)?).await?;
    let start = if args.has("oplog") { Some(top_of_oplog(&mut client).await?) } else { None };
    let mut metas = definitions(&mut client, &args).await?;
    if start.is_some() {
        metas.push(Meta::bare(Place::oplog()));
    }
    let mut writer = writer(&mut client, &args, &metas).await?;
    let done = documents(&env, &mut client, &metas, &mut writer).await?;
    if let Some(start) = start {
        let end = top_of_oplog(&mut client).await?;
        let find = doc! { "find": "oplog.rs", "filter": { "ts": { "$gte": start, "$lte": end } } };
        let n = copy(&mut client, "local", find, &Place::oplog(), &mut writer, |_| {}).await?;
        eprintln!("{n} entries of the oplog");
    }
    writer.finish()?;
    eprintln!("Dumped {} documents ({}) of {} collections.", done.0, size(done.1), metas.len());
    Ok(())
}

async fn writer(client: &mut Client, args: &Args, metas: &[Meta]) -> Result<Writer, String> {
    let gzip = args.has("gzip");
    if let Some(file) = args.get("archive") {
        let build = client.run("admin", doc! { "buildInfo": 1 }).await?;
        let version = build.get("version").and_then(|v| v.as_str()).unwrap_or("0.0.0").to_owned();
        return archive::Writer::create(Path::new(file), gzip, metas, &version).map(Writer::Archive);
    }
    let out = PathBuf::from(args.get("out").unwrap_or_default());
    empty_folder(&out)?;
    folder::Writer::create(&out, gzip, metas).map(Writer::Folder)
}

/// What is not dumped unless it is asked for by name: state of servers and sessions.
fn is_left_out(db: &str, coll: &str) -> bool {
    let state = ["transactions", "image_collection", "transaction_coordinators", "mongos"];
    matches!(coll, "system.profile" | "system.views")
        || (db == "config"
            && (state.contains(&coll) || coll.starts_with("system.") || coll.starts_with("cache.")))
        || (db == "admin" && coll == "system.keys")
}

async fn definitions(client: &mut Client, args: &Args) -> Result<Vec<Meta>, String> {
    let mut databases = Vec::new();
    match args.get("db") {
        Some(db) => databases.push(db.to_owned()),
        None => {
            let reply = client.run("admin", doc! { "listDatabases": 1, "nameOnly": true }).await?;
            let list =
                reply.get("databases").and_then(|v| v.as_array()).ok_or("no databases in the reply")?;
            let names =
                list.iter().filter_map(|e| e.value().as_doc()?.get("name")?.as_str().map(str::to_owned));
            databases.extend(names.filter(|n| n != "local"));
        }
    }
    let mut metas = Vec::new();
    for db in databases {
        let mut list = doc! { "listCollections": 1 };
        if let Some(coll) = args.get("collection") {
            list.push("filter", doc! { "name": coll });
        }
        for about in client.all(&db, list).await? {
            let name = text(&about, "name").unwrap_or_default().to_owned();
            if args.has("collection") || !is_left_out(&db, &name) {
                metas.push(definition(client, Place::new(&db, &name), about).await?);
            }
        }
    }
    // Buckets come with their series.
    let series: BTreeSet<Place> = metas.iter().filter(|m| m.is_series()).map(Meta::data).collect();
    metas.retain(|m| !series.contains(&m.place));
    metas.sort_by(|a, b| a.place.cmp(&b.place));
    match (metas.is_empty(), args.get("collection")) {
        (true, Some(coll)) => Err(format!("there is no collection {coll}")),
        _ => Ok(metas),
    }
}

async fn definition(client: &mut Client, place: Place, mut about: Document) -> Result<Meta, String> {
    let mut meta = Meta::bare(place);
    meta.kind = text(&about, "type").unwrap_or("collection").to_owned();
    if let Some(Bson::Document(options)) = about.remove("options") {
        meta.options = options;
    }
    if let Some(Bson::Binary(uuid)) = about.get("info").and_then(|i| i.as_doc()?.get("uuid")) {
        meta.uuid = uuid.bytes.iter().map(|b| format!("{b:02x}")).collect();
    }
    if !meta.is_view() {
        meta.indexes = client.all(&meta.place.db, doc! { "listIndexes": meta.place.coll.as_str() }).await?;
        let stats = client.run(&meta.place.db, doc! { "collStats": meta.place.coll.as_str() }).await?;
        meta.bytes = stats.get("size").and_then(|v| v.as_i64()).unwrap_or(0).max(0) as u64;
    }
    Ok(meta)
}

/// Documents and bytes written.
async fn documents(
    env: &Env,
    client: &mut Client,
    metas: &[Meta],
    writer: &mut Writer,
) -> Result<(u64, u64), String> {
    let mut progress = Progress::new(env, "dump", metas.iter().map(|m| m.bytes).sum());
    let (mut n, mut bytes) = (0, 0);
    for m in metas.iter().filter(|m| !m.is_view() && !m.place.is_oplog()) {
        let data = m.data();
        let mut find = doc! { "find": data.coll.as_str(), "noCursorTimeout": true };
        if m.options.get("capped").is_none() {
            // The order in which they will be inserted again.
            find.push("hint", doc! { "$natural": 1 });
        }
        n += copy(client, &m.place.db, find, &data, writer, |more| {
            bytes += more;
            progress.add(more);
        })
        .await?;
    }
    progress.finish();
    Ok((n, bytes))
}

async fn copy(
    client: &mut Client,
    db: &str,
    find: Document,
    place: &Place,
    writer: &mut Writer,
    mut wrote: impl FnMut(u64),
) -> Result<u64, String> {
    writer.begin(place)?;
    let (mut docs, mut cursor) = client.open(db, find).await?;
    let mut n = 0;
    while !docs.is_empty() {
        writer.documents(&docs)?;
        n += docs.len() as u64;
        wrote(docs.iter().map(|d| d.as_bytes().len() as u64).sum());
        docs = client.more(&mut cursor).await?;
    }
    writer.end()?;
    Ok(n)
}

async fn top_of_oplog(client: &mut Client) -> Result<Timestamp, String> {
    let newest = doc! { "find": "oplog.rs", "sort": { "$natural": -1 }, "limit": 1 };
    let (docs, _) = client.open("local", newest).await?;
    match docs.first().and_then(|d| d.get("ts")) {
        Some(Value::Timestamp(ts)) => Ok(ts),
        _ => Err("--oplog needs a member of a replica set: there is no oplog".to_owned()),
    }
}
