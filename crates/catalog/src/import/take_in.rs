//! From another set's staged checkpoint to tables of this node that are named and not seen yet.

use super::registry::Registered;
use super::told::{ImportOrder, Imported};
use crate::Catalog;
use crate::schema::collection::Index;
use crate::schema::durable::{self, Parts, Row};
use crate::schema::sizes::Totals;
use pando_base::{Error, ErrorCode, Namespace, Result, Uuid};
use pando_bson::RawDoc;
use pando_storage::{ForeignCheckpoint, Ident, LoadedTable};
use std::collections::BTreeMap;
use std::sync::Arc;

impl Catalog {
    /// Reads the collections that are `wanted` out of the staged files of another set, with their indexes, and names them as
    /// `order` says: from then on an entry may make them seen. Nobody sees anything of them before. May be asked again: what is
    /// named already is told. Takes as long as it takes to read the files; `go_on` is asked now and then.
    ///
    /// # Errors
    /// 48 where a collection of that name or UUID is here; 276 where an index is being built there; 126 for files that cannot be
    /// read.
    pub fn take_in(
        &self,
        order: &ImportOrder,
        wanted: &dyn Fn(&Namespace) -> bool,
        go_on: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Imported> {
        if let Some(done) = self.imported(order.import)? {
            return Ok(done);
        }
        let generation = self.imports_generation();
        let from = self.storage().open_foreign()?;
        let theirs = self.foreign_collections(&from, wanted)?;
        theirs.iter().try_for_each(|parts| self.check_not_here(parts))?;
        let idents: Vec<Ident> = theirs.iter().flat_map(idents_of).collect();
        let loaded = self.storage().load_tables(&from, &idents, go_on)?;
        let ours: BTreeMap<Ident, LoadedTable> = loaded.tables().iter().map(|t| (t.theirs, *t)).collect();
        let registered = theirs.into_iter().map(|parts| registered(parts, &ours));
        let registered = registered.collect::<Result<Vec<_>>>()?;
        self.register_import(order, from.at, &registered, loaded, generation)?;
        drop(from);
        pando_storage::discard_foreign(&*self.env().disk)?;
        let done = self.imported(order.import)?;
        done.ok_or_else(|| Error::internal("what was taken in is not named"))
    }

    /// The rows of their catalog, with their tables. Of a member without indexes (`buildIndexes: false`), the one on `_id` alone.
    fn foreign_collections(
        &self,
        from: &ForeignCheckpoint,
        wanted: &dyn Fn(&Namespace) -> bool,
    ) -> Result<Vec<Parts>> {
        let mut found = Vec::new();
        let mut rows = from.rows(Ident::CATALOG);
        while let Some((_, row)) = rows.next()? {
            let Row { mut parts, unfinished, outdated } =
                durable::decode(RawDoc::trusted(&row), self.now_ms())?;
            if !parts.replicated || !wanted(&parts.ns) {
                continue;
            }
            let building = unfinished.first().map(|u| &u.spec.name);
            if let Some(name) = building.or_else(|| outdated.first().map(|o| &o.spec.name)) {
                let text = format!("the index {name} of {} was not ready in the other set", parts.ns);
                return Err(Error::new(ErrorCode::IndexBuildAborted, text));
            }
            if !self.makes_indexes() {
                parts.indexes.retain(|i| i.spec.is_id_index());
            }
            found.push(parts);
        }
        Ok(found)
    }
    fn check_not_here(&self, parts: &Parts) -> Result<()> {
        match self.lookup_uuid(parts.uuid).is_some() || self.snapshot().get(&parts.ns).is_some() {
            false => Ok(()),
            true => {
                let text = format!("Collection {} of the other set, or its UUID, is here already.", parts.ns);
                Err(Error::new(ErrorCode::NamespaceExists, text))
            }
        }
    }
}

fn idents_of(parts: &Parts) -> Vec<Ident> {
    std::iter::once(parts.records).chain(parts.indexes.iter().map(|i| i.ident)).collect()
}

/// Their collection with our tables.
fn registered(mut parts: Parts, ours: &BTreeMap<Ident, LoadedTable>) -> Result<(Uuid, Registered)> {
    let table = |theirs: Ident| {
        let table = ours.get(&theirs).copied();
        table.ok_or_else(|| Error::internal(format!("{theirs:?} was not taken in")))
    };
    let records = table(parts.records)?;
    parts.records = records.ours;
    for index in &mut parts.indexes {
        let ident = table(index.ident)?.ours;
        *index = Arc::new(Index { ident, ..Index::clone(index) });
    }
    let uuid = parts.uuid;
    let row = durable::encode(&*parts.assemble()?, [].iter());
    let totals = Totals { count: records.rows as i64, bytes: records.bytes as i64 };
    Ok((uuid, Registered { row, totals }))
}
