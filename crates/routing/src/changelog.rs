//! An entry of `config.changelog` and `config.actionlog`, as config servers and shards write it (SH-CAT-8).

use pando_base::{Millis, calendar};
use pando_bson::{DocBuf, DocBuilder, ObjectId, RawDoc};

/// What happened to the cluster.
#[derive(Clone, Copy, Debug)]
pub struct Happened<'a> {
    pub what: &'a str,
    pub ns: &'a str,
    pub details: &'a RawDoc,
}

/// Who tells it, and of whose doing.
#[derive(Clone, Copy, Debug)]
pub struct Teller<'a> {
    pub host: &'a str,
    pub shard: &'a str,
    pub client: &'a str,
}

/// `{_id, server, shard, clientAddr, time, what, ns, details}`; `ms` is the time of day, and `id` is nobody else's.
pub fn entry(happened: &Happened<'_>, teller: &Teller<'_>, ms: Millis, id: ObjectId) -> DocBuf {
    let mut d = DocBuilder::new();
    d.str("_id", &format!("{}-{}+00:00-{}", teller.host, calendar::iso(ms), id.to_hex()));
    d.str("server", teller.host).str("shard", teller.shard).str("clientAddr", teller.client).date("time", ms);
    d.str("what", happened.what).str("ns", happened.ns).raw_doc("details", happened.details);
    d.finish()
}
