//! Changes of definitions, and direct writes of users and roles, as the catalog tells of them.
//!
//! ```text
//!   a unit: Created, Renamed, BuildStarted ...  ─► its event is made now, with who asks ─► recorded when it is certain that the unit commits
//! ```
//! A unit that is undone has no event. Who began an index build is kept until the build ends, which nobody's request does.
//! What is applied from another member is that member's to record.

use crate::principals::{roles_ns, users_ns};
use pando_access::observer::{Defined, Deleted, Inserted, OpObserver, Updated};
use pando_access::{Collection, IndexSpec, WriteOp, WriteUnit};
use pando_audit::{AuditLog, Event, IndexBuild, Mutation, Pending, Who, originator};
use pando_base::panics::poisoned;
use pando_base::{ErrorCode, Namespace, Result, Uuid};
use pando_bson::RawDoc;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

const DONE: ErrorCode = ErrorCode(0);
/// The collection that definitions of views are kept in.
const VIEWS: &str = "system.views";

/// Tells the audit log.
pub(crate) struct Audited {
    log: Arc<AuditLog>,
    /// Of index builds that have not ended. As many as there are builds.
    builders: Mutex<BTreeMap<Uuid, Who>>,
}

impl Audited {
    pub(crate) fn new(log: Arc<AuditLog>) -> Audited {
        Audited { log, builders: Mutex::default() }
    }
    fn after(&self, unit: &mut WriteUnit, events: Vec<Event>) {
        self.after_by(unit, self.log.originator(), events);
    }
    fn after_by(&self, unit: &mut WriteUnit, who: Who, events: Vec<Event>) {
        let log = self.log.clone();
        unit.when_certain(move || events.iter().for_each(|e| log.record(&who, e)));
    }
    /// A command for users and roles has said what its writes are about.
    fn by_command(&self, unit: &mut WriteUnit, pending: Pending) {
        let (log, who) = (self.log.clone(), self.log.originator());
        unit.when_certain(move || {
            if let Some(event) = pending.take() {
                log.record(&who, &event);
            }
        });
    }
    /// A document was written by an operation of the path of users.
    fn written(&self, unit: &mut WriteUnit, op: &WriteOp<'_>, coll: &Collection, doc: &RawDoc, by: Mutation) {
        if is_of_another(unit) {
            return;
        }
        let ns = &coll.ns;
        if ns.coll() == VIEWS {
            match by {
                Mutation::Insert => self.after(unit, vec![Event::create_view(doc)]),
                Mutation::Remove => self.after(unit, vec![Event::drop_view(doc)]),
                Mutation::Update => {}
            }
        } else if ns.db() == "admin" && (*ns == users_ns() || *ns == roles_ns()) {
            match Pending::current().filter(|_| op.of_server && !unit.is_applying()) {
                Some(pending) => self.by_command(unit, pending),
                // Writes of users, and entries that they apply (`applyOps`).
                None => self.after(unit, vec![Event::direct_auth_mutation(ns, doc, by)]),
            }
        }
    }
}

/// Applied because another member did it. What a client applies (`applyOps`) is its own.
fn is_of_another(unit: &WriteUnit) -> bool {
    unit.is_applying() && !originator::is_known()
}

impl OpObserver for Audited {
    fn inserted(&self, unit: &mut WriteUnit, op: &WriteOp<'_>, e: &Inserted<'_>) -> Result<()> {
        self.written(unit, op, e.coll, e.doc, Mutation::Insert);
        Ok(())
    }
    fn updated(&self, unit: &mut WriteUnit, op: &WriteOp<'_>, e: &Updated<'_>) -> Result<()> {
        self.written(unit, op, e.coll, e.new, Mutation::Update);
        Ok(())
    }
    fn deleted(&self, unit: &mut WriteUnit, op: &WriteOp<'_>, e: &Deleted<'_>) -> Result<()> {
        self.written(unit, op, e.coll, e.old, Mutation::Remove);
        Ok(())
    }
    fn defined(&self, unit: &mut WriteUnit, event: &Defined<'_>) -> Result<()> {
        let build = match event {
            // Begun here, it may end with another primary's entry.
            Defined::BuildCommitted { build, .. } | Defined::BuildAborted { build, .. } => {
                self.builders.lock().unwrap_or_else(poisoned).remove(build)
            }
            _ => None,
        };
        if is_of_another(unit) {
            return Ok(());
        }
        if let Defined::BuildStarted { build, .. } = event {
            let who = self.log.originator();
            self.builders.lock().unwrap_or_else(poisoned).insert(*build, who);
        }
        let events = events_of(unit, event);
        self.after_by(unit, build.unwrap_or_else(|| self.log.originator()), events);
        Ok(())
    }
}

fn events_of(unit: &WriteUnit, event: &Defined<'_>) -> Vec<Event> {
    let of_builds = |coll: &Collection, specs: &[IndexSpec], state| {
        specs.iter().map(|spec| index(&coll.ns, spec, state)).collect()
    };
    match event {
        Defined::Created { coll } => {
            let mut events = Vec::new();
            if !unit.knows_database(coll.ns.db()) {
                events.push(Event::create_database(coll.ns.db()));
            }
            events.push(Event::create_collection(coll.ns.as_str()));
            let state = IndexBuild::Succeeded;
            events.extend(coll.indexes.iter().map(|i| index(&coll.ns, &i.spec, state)));
            events
        }
        Defined::Dropped { coll } => vec![Event::drop_collection(coll.ns.as_str(), DONE)],
        Defined::Renamed { from, to, target, .. } => {
            let mut events: Vec<Event> =
                target.iter().map(|t| Event::drop_collection(t.ns.as_str(), DONE)).collect();
            events.push(Event::rename_collection(&from.ns, to));
            events
        }
        Defined::DatabaseDropped { db } => vec![Event::drop_database(db)],
        // The other set's clients have created it.
        Defined::Modified { .. } | Defined::Imported { .. } => Vec::new(),
        Defined::IndexCreated { coll, spec } => vec![index(&coll.ns, spec, IndexBuild::Succeeded)],
        Defined::BuildStarted { coll, specs, .. } => of_builds(coll, specs, IndexBuild::Started),
        Defined::BuildCommitted { coll, specs, .. } => of_builds(coll, specs, IndexBuild::Succeeded),
        Defined::BuildAborted { coll, specs, .. } => of_builds(coll, specs, IndexBuild::Aborted),
        Defined::IndexDropped { coll, spec } => vec![Event::drop_index(&coll.ns, &spec.name)],
    }
}

fn index(ns: &Namespace, spec: &IndexSpec, state: IndexBuild) -> Event {
    Event::create_index(ns, &spec.name, &spec.listed(), state)
}
