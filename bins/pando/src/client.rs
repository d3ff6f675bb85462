//! A server as the tool talks to it.

use pando_base::limits;
use pando_bson::{Bson, DocBuf, Document, RawDoc};
use pando_env::Env;
use pando_rpc::{Connection, Failure, LoginAs, Options};
use std::time::Duration;

const CALL: Duration = Duration::from_millis(limits::BACKUP_CALL_MS);

pub(crate) struct Client {
    connection: Connection,
}

/// Documents of a cursor, batch by batch.
pub(crate) struct Cursor {
    db: String,
    coll: String,
    id: i64,
}

impl Client {
    pub(crate) async fn connect(env: &Env, host: &str, login: LoginAs) -> Result<Client, String> {
        let options = Options { name: "pando", internal: false, login, ..Options::default() };
        let connecting = Connection::connect(env, host, &options).await;
        Ok(Client { connection: connecting.map_err(|f| format!("{host} cannot be reached: {f}"))? })
    }
    pub(crate) async fn try_run(&mut self, db: &str, mut command: Document) -> Result<DocBuf, Failure> {
        command.push("$db", db);
        self.connection.call(&command.to_raw(), CALL).await.map(RawDoc::to_buf)
    }
    /// A command that is whole, its database included.
    pub(crate) async fn call(&mut self, command: &RawDoc) -> Result<DocBuf, Failure> {
        self.connection.call(command, CALL).await.map(RawDoc::to_buf)
    }
    /// Any reply that is not `ok` is an error that says what was asked.
    pub(crate) async fn run(&mut self, db: &str, command: Document) -> Result<DocBuf, String> {
        let name = command.fields().first().map(|(name, _)| name.clone()).unwrap_or_default();
        self.try_run(db, command).await.map_err(|f| format!("{name} on {db}: {f}"))
    }
    /// A write command: errors of its statements count as well.
    pub(crate) async fn write(&mut self, db: &str, command: Document) -> Result<DocBuf, String> {
        let reply = self.run(db, command).await?;
        let errors = reply.get("writeErrors").and_then(|v| v.as_array());
        let first = errors
            .and_then(|e| e.iter().next()?.value().as_doc()?.get("errmsg")?.as_str().map(str::to_owned));
        match first {
            Some(text) => Err(format!("{db}: {text}")),
            None => Ok(reply),
        }
    }
    /// Opens a cursor: its first documents, and how to get more.
    pub(crate) async fn open(
        &mut self,
        db: &str,
        mut command: Document,
    ) -> Result<(Vec<DocBuf>, Cursor), String> {
        command.push("$readPreference", pando_bson::doc! { "mode": "secondaryPreferred" });
        let reply = self.run(db, command).await?;
        let (docs, id, ns) = batch(&reply).ok_or_else(|| format!("{db}: no cursor in the reply"))?;
        let coll = ns.split_once('.').map(|(_, coll)| coll.to_owned()).unwrap_or_default();
        Ok((docs, Cursor { db: db.to_owned(), coll, id }))
    }
    /// The next documents; none at the end.
    pub(crate) async fn more(&mut self, cursor: &mut Cursor) -> Result<Vec<DocBuf>, String> {
        while cursor.id != 0 {
            let command = pando_bson::doc! { "getMore": cursor.id, "collection": cursor.coll.as_str() };
            let reply = self.run(&cursor.db.clone(), command).await?;
            let (docs, id, _) =
                batch(&reply).ok_or_else(|| format!("{}: no cursor in the reply", cursor.db))?;
            cursor.id = id;
            if !docs.is_empty() {
                return Ok(docs);
            }
        }
        Ok(Vec::new())
    }
    pub(crate) async fn all(&mut self, db: &str, command: Document) -> Result<Vec<Document>, String> {
        let (mut docs, mut cursor) = self.open(db, command).await?;
        loop {
            let more = self.more(&mut cursor).await?;
            if more.is_empty() {
                return Ok(docs.iter().map(|d| Document::from(&**d)).collect());
            }
            docs.extend(more);
        }
    }
}

fn batch(reply: &RawDoc) -> Option<(Vec<DocBuf>, i64, String)> {
    let cursor = reply.get("cursor")?.as_doc()?;
    let list = cursor.get("firstBatch").or_else(|| cursor.get("nextBatch"))?.as_array()?;
    let docs = list.iter().map(|e| e.value().as_doc().map(RawDoc::to_buf)).collect::<Option<_>>()?;
    Some((docs, cursor.get("id")?.as_i64()?, cursor.get("ns")?.as_str()?.to_owned()))
}

/// A text field of a document.
pub(crate) fn text<'a>(d: &'a Document, name: &str) -> Option<&'a str> {
    d.get(name).and_then(Bson::as_str)
}
