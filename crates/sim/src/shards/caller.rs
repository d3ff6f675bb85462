//! The client asks, one command after the other, and looks at what it is told.

use super::machines::Run;
use crate::client::Client;
use pando_bson::{Bson, Document, doc};
use std::time::Duration;

/// Simulated time that one command may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(900);

impl Run {
    /// What a router says to a command, on the connection that the client has to it.
    pub(super) fn ask_router(&mut self, router: usize, body: &Document) -> Result<Document, String> {
        let (env, addr, raw) = (self.env.clone(), self.routers[router].addr(), body.to_raw());
        let client = self.clients.remove(&router);
        let asking = async move {
            let mut client = match client {
                Some(client) => client,
                None => Client::connect(&env, &addr).await?,
            };
            client.set_patience(PATIENCE);
            let reply = client.command(&raw).await?;
            Ok::<_, std::io::Error>((client, Document::from(&*reply)))
        };
        let done = self.world.sim.block_on(self.outside, PATIENCE, asking);
        match done {
            Ok(Ok((client, reply))) => {
                self.clients.insert(router, client);
                Ok(reply)
            }
            Ok(Err(e)) => Err(format!("{}: {e}", short(body))),
            Err(stuck) => Err(format!("{}: {stuck:?}", short(body))),
        }
    }
    pub(super) fn ask(&mut self, body: &Document) -> Result<Document, String> {
        self.ask_router(0, body)
    }
    /// A command that succeeds, its writes included.
    pub(super) fn ok_at(&mut self, router: usize, body: &Document) -> Result<Document, String> {
        let reply = self.ask_router(router, body)?;
        let good = reply.get("ok").is_some_and(Bson::is_truthy)
            && !reply.contains("writeErrors")
            && !reply.contains("writeConcernError");
        if good { Ok(reply) } else { Err(format!("{} was answered {}", short(body), short(&reply))) }
    }
    pub(super) fn ok(&mut self, body: &Document) -> Result<Document, String> {
        self.ok_at(0, body)
    }
    /// On `admin`.
    pub(super) fn admin(&mut self, mut body: Document) -> Result<Document, String> {
        body.push("$db", "admin");
        self.ok(&body)
    }
    /// All documents of a query or pipeline, batch by batch.
    pub(super) fn all(&mut self, body: &Document) -> Result<Vec<Document>, String> {
        self.all_at(0, body)
    }
    pub(super) fn all_at(&mut self, router: usize, body: &Document) -> Result<Vec<Document>, String> {
        let mut reply = self.ok_at(router, body)?;
        let mut out = batch(&reply, "firstBatch");
        loop {
            let id = number(&reply, "cursor.id");
            if id == 0 {
                return Ok(out);
            }
            let ns = at(&reply, "cursor.ns").and_then(Bson::as_str).unwrap_or_default().to_owned();
            let (db, coll) = ns.split_once('.').unwrap_or((&ns, ""));
            reply = self.ok_at(router, &doc! { "getMore": id, "collection": coll, "$db": db })?;
            out.extend(batch(&reply, "nextBatch"));
        }
    }
    pub(super) fn wait(&self, time: Duration) {
        self.world.sim.run_for(time);
    }
}

/// Of what is long, the beginning.
pub(super) fn short(doc: &Document) -> String {
    format!("{doc:?}").chars().take(600).collect()
}

/// A value inside documents.
pub(super) fn at<'a>(doc: &'a Document, path: &str) -> Option<&'a Bson> {
    let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    let value = doc.get(first)?;
    rest.map_or(Some(value), |rest| at(value.as_doc()?, rest))
}
/// A number, or -1 where there is none: no answer has that.
pub(super) fn number(doc: &Document, path: &str) -> i64 {
    at(doc, path).and_then(Bson::as_i64).unwrap_or(-1)
}
pub(super) fn batch(reply: &Document, name: &str) -> Vec<Document> {
    let docs = at(reply, "cursor").and_then(|c| c.as_doc()?.get(name)?.as_array());
    docs.unwrap_or_default().iter().filter_map(|d| d.as_doc().cloned()).collect()
}

/// An answer as it has to be.
pub(super) fn expect<T: PartialEq + std::fmt::Debug>(what: &str, found: T, wanted: T) -> Result<(), String> {
    if found == wanted { Ok(()) } else { Err(format!("{what}: found {found:?}, not {wanted:?}")) }
}
