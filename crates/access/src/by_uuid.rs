//! Collections that a request names, or checks, by their UUIDs.

use crate::{Access, Series};
use pando_base::{Error, ErrorCode, Namespace, Result, Uuid};
use pando_bson::{DocBuilder, Value};
use pando_command::Request;

impl Access {
    /// The name of the collection that has that UUID now.
    pub fn name_of(&self, uuid: Uuid) -> Option<Namespace> {
        self.catalog.lookup_uuid(uuid).map(|c| c.ns.clone())
    }
    /// `db.coll` of the first element, which may be the collection's UUID instead of its name.
    pub fn ns_or_uuid(&self, req: &Request<'_>) -> Result<Namespace> {
        let Value::Binary { subtype: 4, bytes } = req.first().value() else { return req.ns() };
        let uuid = Uuid::from_slice(bytes)
            .ok_or_else(|| Error::new(ErrorCode::InvalidUUID, "uuid must be a 16-byte binary field"))?;
        match self.name_of(uuid) {
            Some(ns) if ns.db() == req.db => Ok(ns),
            _ => Err(Error::new(ErrorCode::NamespaceNotFound, format!("Unable to resolve {uuid}"))),
        }
    }
    /// The same for commands that refuse a `$` in the name.
    pub fn readable_ns_or_uuid(&self, req: &Request<'_>) -> Result<Namespace> {
        let ns = self.ns_or_uuid(req)?;
        ns.check_readable()?;
        Ok(ns)
    }
    /// 361 when the command names a UUID and no collection of that name has it. Called by commands that have met
    /// the argument.
    pub fn check_collection_uuid(
        &self,
        owner: &'static str,
        req: &Request<'_>,
        ns: &Namespace,
    ) -> Result<()> {
        let Some(arg) = req.args(owner).find(|a| a.name() == "collectionUUID") else { return Ok(()) };
        match arg.value() {
            Value::Null | Value::Undefined => Ok(()),
            _ => self.check_uuid(ns, Uuid(arg.uuid()?)),
        }
    }
    /// The same for writes and definitions: a time series goes by the UUID of its buckets.
    pub fn uuid_of_write(
        &self,
        given: bool,
        owner: &'static str,
        req: &Request<'_>,
        ns: &Namespace,
        series: Option<&Series>,
    ) -> Result<()> {
        match given {
            true => self.check_collection_uuid(owner, req, series.map_or(ns, |s| &s.buckets)),
            false => Ok(()),
        }
    }
    /// 361 when the collection `ns` is not the one with that UUID.
    pub fn check_uuid(&self, ns: &Namespace, wanted: Uuid) -> Result<()> {
        if self.catalog.lookup(ns).is_some_and(|c| c.uuid == wanted) {
            return Ok(());
        }
        let actual = self.name_of(wanted).filter(|actual| actual.db() == ns.db());
        let mut b = DocBuilder::new();
        b.str("db", ns.db());
        b.uuid("collectionUUID", &wanted.0);
        b.str("expectedCollection", ns.coll());
        match actual {
            Some(actual) => b.str("actualCollection", actual.coll()),
            None => b.null("actualCollection"),
        };
        Err(Error::new(ErrorCode::CollectionUUIDMismatch, "Collection UUID does not match that specified")
            .with_extra(b.finish().into_bytes()))
    }
}
