//! A tenant that comes from another set, as this set's primary takes it over (SV-MIG): everything as of one time of the other set, then what
//! that set's log says behind it.
//!
//! ```text
//!   clear ─► copy ─► S ─► follow ─► follow ─► …
//!            ├ collections, with their UUIDs      ├ what sessions have done, noted
//!            ├ documents as of S                  ├ documents, with the note of progress in one transaction
//!            └ what sessions have done up to S    └ definitions, and the note of progress behind each
//! ```
//! A primary that ends anywhere in `copy` leaves what the next one has to clear. One that ends in `follow` leaves a place to go on from:
//! `config.tenantMigrationProgress`. Notes of sessions come first, so a statement may be known before its effect is there; nobody asks
//! for it until all is.
//!
//! * [`peer_set`] — who is asked;
//! * [`progress`] — how far the other set's log is carried out;
//! * [`follow`] — the log.

pub(crate) mod follow;
pub(crate) mod peer_set;
pub(crate) mod progress;

pub(crate) use peer_set::PeerSet;

use crate::replication::role_changes::RoleChanges;
use pando_access::Uninterrupted;
use pando_base::{Error, Namespace, Result, TenantScope, Timestamp, Uuid, limits};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};
use std::time::Duration;

/// The way of a tenant, or of all that a set has, from that set to this one.
pub(crate) struct Copier<'a> {
    pub(crate) roles: &'a RoleChanges,
    /// Of the migration.
    pub(crate) id: Uuid,
    pub(crate) tenants: &'a [&'a str],
    pub(crate) whose: TenantScope<'a>,
    pub(crate) donor: &'a PeerSet,
}

impl Copier<'_> {
    /// Removes whatever there is of the tenant here, and what is known of progress. May be done again.
    pub(crate) async fn clear(&self) -> Result<()> {
        for tenant in self.tenants {
            self.roles.maintenance.drop_tenant(tenant).await?;
        }
        self.forget_progress().await
    }
    /// Everything of the tenant as of one time of the donor, with what sessions have done by then. Returns that time. What is there of the
    /// tenant already has to be cleared before.
    ///
    /// # Errors
    /// 94 where the donor does not hold that time still any more: it has another primary. Whoever copies begins anew then, as behind
    /// every other error.
    pub(crate) async fn copy(&self) -> Result<Timestamp> {
        self.forget_progress().await?;
        let first = self.ask("_tenantSnapshot", |b| self.append_whose(b)).await?;
        let at = timestamp_at(&first, "at")?;
        let mut page = first;
        loop {
            let collections = documents_at(&page, "collections");
            for coll in &collections {
                self.copy_collection(&Told::parse(coll)?).await?;
            }
            let last = collections.last().filter(|_| is_set(&page, "more"));
            let Some(last) = last.and_then(|coll| coll.get("ns")?.as_str()) else { break };
            page = self.ask("_tenantCollections", |b| _ = b.str("after", last)).await?;
        }
        self.copy_sessions().await?;
        // It is let go by itself otherwise.
        let _ = self.ask("_tenantSnapshotEnd", |_| ()).await;
        Ok(at)
    }
    async fn copy_collection(&self, told: &Told<'_>) -> Result<()> {
        let maintenance = &self.roles.maintenance;
        self.before_write().await;
        maintenance.create_told(&told.ns, told.uuid, told.options, &told.indexes).await?;
        let mut after: Option<DocBuf> = None;
        loop {
            let reply = self
                .ask("_tenantDocuments", |b| {
                    b.uuid("uuid", &told.uuid.0);
                    if let Some(place) = &after {
                        b.raw_doc("after", place);
                    }
                })
                .await?;
            let docs = documents_at(&reply, "docs");
            self.before_write().await;
            maintenance.insert_told(&Uninterrupted, &told.ns, told.uuid, &docs).await?;
            after = reply.get("after").and_then(|v| v.as_doc().map(RawDoc::to_buf));
            if after.is_none() {
                return Ok(());
            }
        }
    }
    /// What sessions have done by now, where the documents come another way.
    pub(crate) async fn tell_sessions(&self) -> Result<()> {
        self.ask("_tenantSnapshot", |b| self.append_whose(b)).await?;
        self.copy_sessions().await?;
        let _ = self.ask("_tenantSnapshotEnd", |_| ()).await;
        Ok(())
    }
    async fn copy_sessions(&self) -> Result<()> {
        for number in 1.. {
            let reply = self.ask("_tenantSessions", |b| _ = b.i64("number", number)).await?;
            self.before_write().await;
            self.roles.sessions.take_moved(&Uninterrupted, &documents_at(&reply, "entries")).await?;
            if !is_set(&reply, "more") {
                break;
            }
        }
        Ok(())
    }

    /// For tests: stands still before whatever it writes next.
    async fn before_write(&self) {
        self.roles.lifecycle.hold("hangInTenantCopy").await;
    }
    fn append_whose(&self, b: &mut DocBuilder) {
        match &self.whose {
            TenantScope::One(tenant) => b.str("tenantId", tenant),
            TenantScope::Several(tenants) => b.array("tenantIds", |a| {
                tenants.iter().for_each(|tenant| _ = a.str(tenant));
            }),
        };
    }
    async fn ask(&self, command: &str, args: impl FnOnce(&mut DocBuilder)) -> Result<DocBuf> {
        self.donor.call(self.roles, &self.question(command, args)).await
    }
    /// The same where tenants wait: a member that hangs is not waited for while another one may be primary.
    async fn ask_soon(&self, command: &str, args: impl FnOnce(&mut DocBuilder)) -> Result<DocBuf> {
        let of_host = Duration::from_millis(limits::PEER_SET_SOON_MS_MAX);
        let of_all = Duration::from_millis(limits::WORKFLOW_CALL_MS_MAX);
        self.donor.call_within(self.roles, &self.question(command, args), of_host, of_all).await
    }
    fn question(&self, command: &str, args: impl FnOnce(&mut DocBuilder)) -> DocBuf {
        let mut b = DocBuilder::new();
        b.i32(command, 1).uuid("migrationId", &self.id.0);
        args(&mut b);
        b.str("$db", "admin");
        b.finish()
    }
}

/// A collection as the donor tells of it.
struct Told<'a> {
    ns: Namespace,
    uuid: Uuid,
    options: &'a RawDoc,
    indexes: Vec<&'a RawDoc>,
}

impl<'a> Told<'a> {
    fn parse(doc: &'a RawDoc) -> Result<Told<'a>> {
        let wrong = || Error::bad_value(format!("not a collection: {doc}"));
        let uuid = match doc.get("uuid") {
            Some(Value::Binary { bytes, .. }) => Uuid::from_slice(bytes),
            _ => None,
        };
        let indexes = doc.get("indexes").and_then(|v| v.as_array()).ok_or_else(wrong)?;
        Ok(Told {
            ns: Namespace::parse(doc.get("ns").and_then(|v| v.as_str()).ok_or_else(wrong)?)?,
            uuid: uuid.ok_or_else(wrong)?,
            options: doc.get("options").and_then(|v| v.as_doc()).ok_or_else(wrong)?,
            indexes: indexes.iter().filter_map(|e| e.value().as_doc()).collect(),
        })
    }
}

fn documents_at(reply: &RawDoc, name: &str) -> Vec<DocBuf> {
    let list = reply.get(name).and_then(|v| v.as_array());
    list.into_iter().flatten().filter_map(|e| e.value().as_doc().map(RawDoc::to_buf)).collect()
}
fn is_set(reply: &RawDoc, name: &str) -> bool {
    reply.get(name).is_some_and(|v| v.is_truthy())
}
fn timestamp_at(reply: &RawDoc, name: &str) -> Result<Timestamp> {
    match reply.get(name) {
        Some(Value::Timestamp(at)) => Ok(at),
        _ => Err(Error::bad_value(format!("the donor's reply has no timestamp '{name}'"))),
    }
}
