//! What the client of a connection may do, kept until users or roles change.
//!
//! ```text
//!   a document of admin.system.users or admin.system.roles changes, here or by replication, or is rolled back
//!        └─ an observer, or whoever restores settings ─► PrincipalsVersion goes up
//!   a request ─► its connection's Authority, if it is of this version ─► else that of its user here ─► else read and resolved
//! ```
//! Whoever was dropped meanwhile, or may not log in from there any more, is logged out when it asks for something.

use super::{Principals, roles_ns, users_ns};
use pando_access::observer::{Defined, Deleted, Inserted, OpObserver, RolledBack, Updated};
use pando_access::{Collection, WriteOp, WriteUnit};
use pando_audit::Event;
use pando_auth::login::LoggedIn;
use pando_auth::{Authority, Restrictions, UserName};
use pando_base::limits::AUTHORITIES_KEPT_MAX;
use pando_base::{HashMap, Namespace, Result, Uuid};
use pando_bson::ObjectId;
use pando_command::{Client, OpCtx, Param};
use pando_logins::{is_local, peers_of};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const GONE: &str = "Implicit logout: the user was dropped, or may not log in from there any more";

/// Goes up whenever users or roles change, on whatever way.
#[derive(Clone, Default)]
pub(crate) struct PrincipalsVersion(Arc<AtomicU64>);

impl PrincipalsVersion {
    pub(crate) fn bump(&self) {
        self.0.fetch_add(1, SeqCst);
    }
    fn now(&self) -> u64 {
        self.0.load(SeqCst)
    }
    fn written(&self, unit: &mut WriteUnit, ns: &Namespace) {
        if ns.db() == "admin" && (*ns == users_ns() || *ns == roles_ns()) {
            let version = self.clone();
            unit.after_commit(move |_| version.bump());
        }
    }
    fn written_in(&self, unit: &mut WriteUnit, coll: &Collection) -> Result<()> {
        self.written(unit, &coll.ns);
        Ok(())
    }
}

impl Principals {
    /// What the state of users and roles is called outside of this process, whose id is `process`.
    pub(crate) fn generation(&self, ObjectId(mut process): ObjectId) -> ObjectId {
        for (byte, of_version) in process.iter_mut().rev().zip(self.version.now().to_le_bytes()) {
            *byte ^= of_version;
        }
        ObjectId(process)
    }
}

impl OpObserver for PrincipalsVersion {
    fn inserted(&self, unit: &mut WriteUnit, _: &WriteOp<'_>, e: &Inserted<'_>) -> Result<()> {
        self.written_in(unit, e.coll)
    }
    fn updated(&self, unit: &mut WriteUnit, _: &WriteOp<'_>, e: &Updated<'_>) -> Result<()> {
        self.written_in(unit, e.coll)
    }
    fn deleted(&self, unit: &mut WriteUnit, _: &WriteOp<'_>, e: &Deleted<'_>) -> Result<()> {
        self.written_in(unit, e.coll)
    }
    fn defined(&self, unit: &mut WriteUnit, event: &Defined<'_>) -> Result<()> {
        match event {
            Defined::Created { coll } | Defined::Dropped { coll } => self.written(unit, &coll.ns),
            Defined::Renamed { from, to, .. } => {
                self.written(unit, &from.ns);
                self.written(unit, to);
            }
            Defined::DatabaseDropped { db } if *db == "admin" => self.written(unit, &users_ns()),
            _ => {}
        }
        Ok(())
    }
    fn rolled_back(&self, _: &RolledBack<'_>) {
        self.bump();
    }
}

/// What was read at one version.
#[derive(Default)]
pub(super) struct Kept {
    version: u64,
    /// Whether there is a user or a role at all.
    any: Option<bool>,
    users: HashMap<(UserName, Option<Uuid>), Option<KeptUser>>,
}

/// A user that is there.
#[derive(Clone)]
struct KeptUser {
    may: Arc<Authority>,
    /// The user's own, and those of the roles.
    restrictions: Vec<Restrictions>,
}

/// The [`Kept`] of now.
#[derive(Default)]
pub(super) struct Authorities {
    kept: Mutex<Kept>,
    unchanging: Unchanging,
}

/// Those that no document changes.
struct Unchanging {
    nobody: Arc<Authority>,
    first_user: Arc<Authority>,
    system: Arc<Authority>,
}

impl Default for Unchanging {
    fn default() -> Unchanging {
        Unchanging {
            nobody: Arc::new(Authority::nobody()),
            first_user: Arc::new(Authority::first_user()),
            system: Arc::new(Authority::system()),
        }
    }
}

impl Authorities {
    /// What is kept of this version; what was of another is forgotten.
    fn at(&self, version: u64) -> MutexGuard<'_, Kept> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.version != version || kept.users.len() > AUTHORITIES_KEPT_MAX {
            *kept = Kept { version, ..Kept::default() };
        }
        kept
    }
}

impl Principals {
    /// What this client may do now.
    pub(crate) fn authority(&self, client: &Client) -> Result<Arc<Authority>> {
        let version = self.version.now();
        let user = {
            let login = client.login();
            if let Some(known) = login.authority(version) {
                return Ok(known);
            }
            login.user().cloned()
        };
        let Some(user) = user else { return self.of_nobody(client, version) };
        let authority = self.of_user(client, &user, version)?;
        let mut login = client.login();
        match &authority {
            Some(may) if login.user() == Some(&user) => login.keep_authority(version, may.clone()),
            Some(_) => {}
            None => login.forget(),
        }
        drop(login);
        if authority.is_none() {
            client.audit(|| Event::logout(GONE, &user.name));
        }
        Ok(authority.unwrap_or_else(|| self.authorities.unchanging.nobody.clone()))
    }

    /// What whoever asks may do; `None` where nobody has to log in.
    pub(crate) fn of(&self, ctx: &OpCtx) -> Result<Option<Arc<Authority>>> {
        let asked = ctx.instance().asks_for_logins() && ctx.client.is_connection();
        asked.then(|| self.authority(&ctx.client)).transpose()
    }

    fn of_user(&self, client: &Client, user: &LoggedIn, version: u64) -> Result<Option<Arc<Authority>>> {
        if user.name.is_system() {
            return Ok(Some(self.authorities.unchanging.system.clone()));
        }
        let key = (user.name.clone(), user.id);
        let known = self.authorities.at(version).users.get(&key).cloned();
        let known = match known {
            Some(known) => known,
            None => {
                let read = self.logged_in(user)?.map(|(known, resolved)| {
                    let mut restrictions = resolved.restrictions.clone();
                    restrictions.push(known.restrictions);
                    KeptUser { may: Arc::new(Authority::of_user(user.name.clone(), resolved)), restrictions }
                });
                self.authorities.at(version).users.insert(key, read.clone());
                read
            }
        };
        let peers = peers_of(client);
        let met = |known: &KeptUser| known.restrictions.iter().all(|r| r.are_met(peers));
        Ok(known.filter(met).map(|known| known.may))
    }

    fn of_nobody(&self, client: &Client, version: u64) -> Result<Arc<Authority>> {
        let bypass = client.instance.params.bool(Param::enableLocalhostAuthBypass);
        let first = bypass && is_local(client) && !self.is_there_anybody(version)?;
        let Unchanging { nobody, first_user, .. } = &self.authorities.unchanging;
        Ok(if first { first_user.clone() } else { nobody.clone() })
    }

    fn is_there_anybody(&self, version: u64) -> Result<bool> {
        if let Some(any) = self.authorities.at(version).any {
            return Ok(any);
        }
        let any = self.internal.first(&users_ns())?.is_some() || self.internal.first(&roles_ns())?.is_some();
        self.authorities.at(version).any = Some(any);
        Ok(any)
    }
}
