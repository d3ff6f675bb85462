//! `pando load`: what `pando dump` or mongodump wrote, into a server.
//!
//! ```text
//!   collections and views made ─► documents, as they come ─► oplog replayed ─► indexes
//! ```
//! Indexes come last: between the beginning and the end of a dump two documents may have had one unique key in turn.

mod oplog;
mod principals;

use crate::Command;
use crate::args::Args;
use crate::client::Client;
use crate::form::{Meta, Part, Place, Reader, archive, folder};
use crate::progress::Progress;
use crate::{login, tls};
use oplog::Replay;
use pando_base::limits;
use pando_bson::{Bson, DocBuf, DocBuilder, Document, Value, doc};
use pando_env::{Env, Log};
use pando_env_tokio::RealNet;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

pub(crate) const COMMAND: Command =
    Command { name: "load", help: "read what 'pando dump' or mongodump wrote", run };

const HELP: &str = "\
Usage: pando load (DIR | --archive FILE) [--host HOST:PORT] [--db DB [--collection COLL]] [--drop] [--oplog-replay]

Reads a dump in mongodump's formats (a folder or an archive, gzipped or not) into a server: collections with their options,
documents, indexes, views.

  --archive FILE     an archive; - is the standard input
  --host HOST:PORT   the server (127.0.0.1:27017), a primary
  --tls, --tlsCAFile ... the server speaks TLS; the options of mongosh and of MongoDB's tools
  -u, -p, --authenticationDatabase ...  as whom to log in; the options of MongoDB's tools, and without -p it is asked for
  --db, --collection only these
  --drop             drop a collection before it is loaded; otherwise documents whose _id is there already stay as they are
  --oplog-replay     apply the writes that a dump with --oplog has recorded
  --no-indexes       no indexes but those on _id
";

fn run(args: &[String]) -> u8 {
    let wanted = || {
        let known = ["archive", "host|h", "db|d", "collection|c"];
        Args::parse(args, &known, &["drop", "oplog-replay", "no-indexes", "gzip"]).and_then(checked)
    };
    crate::carry_out("load", HELP, args, wanted, load)
}

fn checked(args: Args) -> Result<Args, String> {
    // Exactly one of a folder and an archive.
    if args.rest.len() + usize::from(args.has("archive")) == 1 {
        return Ok(args);
    }
    Err("name one dump: a folder, or --archive FILE".to_owned())
}

async fn load(args: Args) -> Result<(), String> {
    let reader = match args.get("archive") {
        Some(file) => Reader::Archive(Box::new(archive::Reader::open(Path::new(file))?)),
        None => Reader::Folder(folder::Reader::open(Path::new(&args.rest[0]))?),
    };
    let env =
        pando_env_tokio::env(Path::new("."), Log::none(), RealNet::default()).map_err(|e| e.to_string())?;
    let env = tls::dialing(env, &args)?;
    let client =
        Client::connect(&env, args.get("host").unwrap_or("127.0.0.1:27017"), login::given(&args)?).await?;
    let metas = reader.metas().iter().filter(|m| is_wanted(&args, &m.place)).cloned().collect();
    let mut loading = Loading {
        client,
        drop: args.has("drop"),
        metas,
        indexes: BTreeMap::new(),
        replay: args.has("oplog-replay").then(Replay::default),
        loaded: 0,
        failed: BTreeMap::new(),
    };
    if loading.replay.is_some() && !loading.metas.iter().any(|m| m.place.is_oplog()) {
        return Err("the dump has no oplog: it was not made with --oplog".to_owned());
    }
    loading.all(&env, reader, !args.has("no-indexes")).await
}

/// Server state is a server's own; the rest as the options say.
fn is_wanted(args: &Args, place: &Place) -> bool {
    if place.is_oplog() {
        return args.has("oplog-replay");
    }
    let named = |name: &str, is: &str| args.get(name).is_none_or(|wanted| wanted == is);
    let own = (place.db == "admin" && matches!(&*place.coll, "system.version" | "system.keys"))
        || (place.db == "config" && place.coll != "settings")
        || place.db == "local"
        || matches!(&*place.coll, "system.views" | "system.profile");
    !own && named("db", &place.db) && named("collection", &place.coll)
}

struct Loading {
    client: Client,
    drop: bool,
    metas: Vec<Meta>,
    /// Still to be made.
    indexes: BTreeMap<Place, Vec<Document>>,
    replay: Option<Replay>,
    loaded: u64,
    /// Documents that could not be inserted, and why the first could not.
    failed: BTreeMap<Place, (u64, String)>,
}

impl Loading {
    async fn all(&mut self, env: &Env, mut reader: Reader, indexes: bool) -> Result<(), String> {
        let metas = self.metas.clone();
        let (views, collections): (Vec<&Meta>, Vec<&Meta>) = metas
            .iter()
            .filter(|m| !m.place.is_oplog() && !principals::is_left_out(&m.place))
            .partition(|m| m.is_view());
        for m in &collections {
            self.create(m).await?;
        }
        let wanted: BTreeSet<Place> =
            metas.iter().filter(|m| !principals::is_left_out(&m.place)).map(Meta::data).collect();
        let mut progress = Progress::new(env, "load", metas.iter().map(|m| m.bytes).sum());
        while let Some(part) = reader.next()? {
            let Part::Documents(place, docs) = part else { continue };
            if !wanted.contains(&place) {
                continue;
            }
            match &mut self.replay {
                Some(replay) if place.is_oplog() => replay.keep(docs),
                _ => {
                    progress.add(docs.iter().map(|d| d.as_bytes().len() as u64).sum());
                    self.insert(&principals::beside(&place).unwrap_or(place), &docs).await?;
                }
            }
        }
        progress.finish();
        // With some of them missing, users that the dump has would be taken for others, and go.
        let is_whole =
            metas.iter().filter_map(|m| principals::beside(&m.place)).all(|p| !self.failed.contains_key(&p));
        if is_whole {
            principals::merge(&mut self.client, &metas, self.drop).await?;
        }
        if let Some(replay) = self.replay.take() {
            let n = replay.run(&mut self.client, &mut self.indexes).await?;
            eprintln!("{n} entries of the oplog replayed");
        }
        if indexes {
            for (place, specs) in std::mem::take(&mut self.indexes) {
                self.build(&place, specs).await?;
            }
        }
        for m in &views {
            self.create(m).await?;
        }
        eprintln!("Loaded {} documents into {} collections.", self.loaded, collections.len());
        match self.failed.iter().next() {
            None => Ok(()),
            Some((place, (n, why))) => {
                Err(format!("{n} documents of {place} were not inserted, the first because of: {why}"))
            }
        }
    }

    async fn create(&mut self, m: &Meta) -> Result<(), String> {
        let beside = principals::beside(&m.place);
        let place = beside.as_ref().unwrap_or(&m.place);
        let (db, coll) = (place.db.as_str(), place.coll.as_str());
        if self.drop || beside.is_some() {
            match self.client.try_run(db, doc! { "drop": coll }).await {
                Err(f) if f.code() != pando_base::ErrorCode::NamespaceNotFound => {
                    return Err(format!("{} cannot be dropped: {f}", m.place));
                }
                _ => {}
            }
        }
        let mut create = doc! { "create": coll };
        let options = m.options.iter().filter(|(name, _)| !matches!(*name, "uuid" | "autoIndexId"));
        options.for_each(|(name, value)| create.push(name, value.clone()));
        match self.client.try_run(db, create).await {
            Err(f) if f.code() != pando_base::ErrorCode::NamespaceExists => {
                return Err(format!("{} cannot be created: {f}", m.place));
            }
            _ => {}
        }
        if beside.is_some() {
            return Ok(());
        }
        let is_id = |i: &Document| i.get("name").and_then(Bson::as_str) == Some("_id_");
        let specs = m.indexes.iter().filter(|i| !is_id(i) && !i.contains("clustered")).map(without_ns);
        self.indexes.insert(m.place.clone(), specs.collect());
        Ok(())
    }

    async fn insert(&mut self, place: &Place, docs: &[DocBuf]) -> Result<(), String> {
        for part in docs.chunks(limits::LOAD_INSERT_DOCS) {
            let mut b = DocBuilder::with_capacity(part.iter().map(|d| d.as_bytes().len() + 8).sum());
            b.str("insert", &place.coll);
            b.array("documents", |a| {
                for d in part {
                    a.value(Value::Document(d));
                }
            });
            b.bool("ordered", false);
            b.bool("bypassDocumentValidation", true);
            b.str("$db", &place.db);
            let reply = self.client.call(&b.finish()).await.map_err(|f| format!("{place}: {f}"))?;
            self.loaded += reply.get("n").and_then(|v| v.as_i64()).unwrap_or(0).max(0) as u64;
            let Some(errors) = reply.get("writeErrors").and_then(|v| v.as_array()) else { continue };
            for e in errors {
                let text = e.value().as_doc().and_then(|d| d.get("errmsg")?.as_str()).unwrap_or_default();
                let failed = self.failed.entry(place.clone()).or_insert_with(|| (0, text.to_owned()));
                failed.0 += 1;
            }
        }
        Ok(())
    }

    async fn build(&mut self, place: &Place, specs: Vec<Document>) -> Result<(), String> {
        if specs.is_empty() {
            return Ok(());
        }
        let mut create = doc! { "createIndexes": place.coll.as_str() };
        create.push("indexes", specs.into_iter().map(Bson::Document).collect::<Vec<_>>());
        self.client.run(&place.db, create).await.map(drop).map_err(|e| format!("indexes of {place}: {e}"))
    }
}

/// Old dumps say in every index which collection it is of.
fn without_ns(spec: &Document) -> Document {
    let mut spec = spec.clone();
    spec.remove("ns");
    spec
}
