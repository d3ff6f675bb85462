//! `--repair`: all data is read and compared, and what can be made again from it is: counts and indexes of a single
//! server. Lost rows cannot be made again: whatever cannot be read is named.

use crate::replication::Replication;
use pando_access::Maintenance;
use pando_base::redaction::ClientText;
use pando_base::{Error, Namespace, Result};
use pando_env::{Component, Env};
use pando_storage::Storage;
use std::ops::Bound;

/// What it works on.
pub(crate) struct Repair<'a> {
    pub(crate) env: &'a Env,
    pub(crate) storage: &'a Storage,
    pub(crate) maintenance: &'a Maintenance,
    pub(crate) replication: &'a Replication,
}

impl Repair<'_> {
    /// Returns what is wrong and could not be mended.
    pub(crate) async fn check_all(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if let Err(e) = self.read_log() {
            problems.push(format!("the oplog: {}", e.message));
        }
        for ns in self.maintenance.stored_collections() {
            if let Err(e) = self.check_collection(&ns).await {
                self.env.log.error(Component::Storage, 9100030, "A collection cannot be repaired", |a| {
                    a.str("namespace", ns.as_str()).data("error", &e);
                });
                problems.push(format!("{ns}: {}", e.message));
            }
        }
        problems
    }

    fn read_log(&self) -> Result<()> {
        let mut log = self.storage.log().read(Bound::Unbounded, false);
        while log.next()?.is_some() {}
        Ok(())
    }

    async fn check_collection(&self, ns: &Namespace) -> Result<()> {
        let first = self.maintenance.errors_of(ns).await?;
        if first.is_empty() {
            return Ok(());
        }
        self.env.log.warn(Component::Storage, 9100031, "Repairing a collection", |a| {
            a.str("namespace", ns.as_str()).data("errors", &ClientText(&first.join("; ")));
        });
        self.maintenance.recount_all_of(ns)?;
        // What a set's member did alone, its set would not have.
        if !self.replication.member.is_replicated()
            && !self.replication.is_member_alone()
            && !self.maintenance.gate().is_read_only()
        {
            self.maintenance.build_indexes_again(ns).await?;
        }
        let left = self.maintenance.errors_of(ns).await?;
        if left.is_empty() { Ok(()) } else { Err(Error::internal(left.join("; "))) }
    }
}
