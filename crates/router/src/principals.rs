//! Users and roles, which the config servers keep: what this router knows of those who are logged in here.
//!
//! ```text
//!   a login, or the first request since something changed ─► usersInfo ─► Known ─► the connection's Authority
//!   every half minute: _getUserCacheGeneration, another one than before ─┐
//!   a command about users or roles through this router, invalidateUserCache ─┴─► all of it is read again when it is asked for
//! ```
//! Whoever was dropped meanwhile, or may not log in from there any more, is logged out when it asks for something. While the config
//! servers do not answer, everybody may do what it could before.

use crate::lock;
use pando_audit::Event;
use pando_auth::login::LoggedIn;
use pando_auth::roles::Resolved;
use pando_auth::{Authority, Restrictions, User, UserName, user_info};
use pando_base::limits::AUTHORITIES_KEPT_MAX;
use pando_base::redaction::WithCode;
use pando_base::{Error, HashMap, Result};
use pando_bson::{DocBuf, DocBuilder, Document, ObjectId, Value};
use pando_command::{Client, Param};
use pando_env::Component;
use pando_logins::{is_local, peers_of};
use pando_metadata_cache::ConfigServers;
use pando_rpc::Retry;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard};

const GONE: &str = "Implicit logout: the user was dropped, or may not log in from there any more";

pub(crate) struct Principals {
    config: Arc<ConfigServers>,
    /// Goes up when what is known may have changed.
    version: AtomicU64,
    /// What the config servers called the state of their users and roles.
    generation: Mutex<Option<ObjectId>>,
    kept: Mutex<Kept>,
    /// The config servers did not answer when something had to be read again: it is, once they do.
    in_doubt: AtomicBool,
    /// There is a user or a role: from then on there is no localhost exception.
    anybody: AtomicBool,
    unchanging: Unchanging,
}

/// What was read at one version.
#[derive(Default)]
struct Kept {
    version: u64,
    users: HashMap<UserName, Arc<Known>>,
}

/// A user that is there.
struct Known {
    user: User,
    resolved: Resolved,
    may: Arc<Authority>,
}

/// Those that no document changes.
struct Unchanging {
    nobody: Arc<Authority>,
    first_user: Arc<Authority>,
    system: Arc<Authority>,
}

impl Known {
    fn is_met_by(&self, client: &Client) -> bool {
        let peers = peers_of(client);
        let met = |r: &Restrictions| r.are_met(peers);
        met(&self.user.restrictions) && self.resolved.restrictions.iter().all(met)
    }
}

impl Principals {
    pub(crate) fn new(config: Arc<ConfigServers>) -> Principals {
        Principals {
            config,
            version: AtomicU64::new(0),
            generation: Mutex::default(),
            kept: Mutex::default(),
            in_doubt: AtomicBool::new(false),
            anybody: AtomicBool::new(false),
            unchanging: Unchanging {
                nobody: Arc::new(Authority::nobody()),
                first_user: Arc::new(Authority::first_user()),
                system: Arc::new(Authority::system()),
            },
        }
    }

    /// Everything is read again when it is asked for, whether or not the config servers were silent before.
    pub(crate) fn invalidate(&self) {
        self.in_doubt.store(false, SeqCst);
        self.version.fetch_add(1, SeqCst);
    }
    /// Asks whether users or roles have changed. While nobody answers nobody changes them: what is known stays.
    pub(crate) async fn look_for_changes(&self) -> Result<()> {
        let mut b = DocBuilder::new();
        b.i32("_getUserCacheGeneration", 1).str("$db", "admin");
        let reply = self.config.command(&b.finish(), Retry::Idempotent).await.map_err(Error::from)?;
        let now = match reply.get("cacheGeneration") {
            Some(Value::ObjectId(id)) => Some(id),
            _ => None,
        };
        let was = std::mem::replace(&mut *lock(&self.generation), now);
        let in_doubt = self.in_doubt.swap(false, SeqCst);
        if now.is_none() || was != now || in_doubt {
            self.invalidate();
        }
        Ok(())
    }

    /// What is kept of this version; what was of another is forgotten.
    fn at(&self, version: u64) -> MutexGuard<'_, Kept> {
        let mut kept = lock(&self.kept);
        if kept.version != version || kept.users.len() > AUTHORITIES_KEPT_MAX {
            *kept = Kept { version, ..Kept::default() };
        }
        kept
    }

    async fn known(&self, name: &UserName) -> Result<Option<Arc<Known>>> {
        let version = self.version.load(SeqCst);
        if let Some(known) = self.at(version).users.get(name) {
            return Ok(Some(known.clone()));
        }
        let reply = self.config.command(&users_info(name), Retry::Idempotent).await?;
        let users = reply.get("users").and_then(|v| v.as_array());
        let first = users.and_then(|list| list.first()).and_then(|e| e.value().as_doc());
        // Somebody who is not there may be there in a moment.
        let Some((user, resolved)) = first.and_then(|d| user_info::read(&Document::from(d))) else {
            return Ok(None);
        };
        let may = Arc::new(Authority::of_user(user.name.clone(), resolved.clone()));
        let known = Arc::new(Known { user, resolved, may });
        self.at(version).users.insert(name.clone(), known.clone());
        Ok(Some(known))
    }
    pub(crate) async fn user(&self, name: &UserName) -> Result<Option<User>> {
        Ok(self.known(name).await?.map(|known| known.user.clone()))
    }
    pub(crate) async fn logged_in(&self, user: &LoggedIn) -> Result<Option<(User, Resolved)>> {
        let known = self.known(&user.name).await?.filter(|known| known.user.id == user.id);
        Ok(known.map(|known| (known.user.clone(), known.resolved.clone())))
    }

    /// Whether nothing has to be asked to say what this client may do.
    pub(crate) fn is_settled(&self, client: &Client) -> bool {
        let login = client.login();
        match login.user() {
            Some(_) => login.authority(self.version.load(SeqCst)).is_some(),
            None => !self.could_be_first(client),
        }
    }
    /// What it may do, as it was found out when its request began.
    pub(crate) fn settled(&self, client: &Client) -> Arc<Authority> {
        let login = client.login();
        let is_known = login.user().is_some() || self.could_be_first(client);
        let last = login.last_authority().filter(|_| is_known);
        last.cloned().unwrap_or_else(|| self.unchanging.nobody.clone())
    }
    fn could_be_first(&self, client: &Client) -> bool {
        !self.anybody.load(SeqCst)
            && is_local(client)
            && client.instance.params.bool(Param::enableLocalhostAuthBypass)
    }

    /// What a client may do now.
    pub(crate) async fn authority(&self, client: &Client) -> Result<Arc<Authority>> {
        let version = self.version.load(SeqCst);
        let user = {
            let login = client.login();
            if let Some(known) = login.authority(version).filter(|_| login.user().is_some()) {
                return Ok(known);
            }
            login.user().cloned()
        };
        let Some(user) = user else { return self.of_nobody(client, version).await };
        if self.in_doubt.load(SeqCst)
            && let Some(known) = self.known_before(client, version)
        {
            return Ok(known);
        }
        let found = match self.of_user(client, &user).await {
            Ok(found) => found,
            Err(e) => {
                self.in_doubt.store(true, SeqCst);
                let text =
                    "Could not fetch updated user privilege information; continuing to use old information";
                client.env.log.warn(Component::Access, 20248, text, |a| {
                    a.str("user", &user.name.user).str("db", &user.name.db).data("error", &WithCode(&e));
                });
                return self.known_before(client, version).ok_or(e);
            }
        };
        let mut login = client.login();
        match &found {
            Some(may) if login.user() == Some(&user) => login.keep_authority(version, may.clone()),
            Some(_) => {}
            None => login.forget(),
        }
        drop(login);
        if found.is_none() {
            client.audit(|| Event::logout(GONE, &user.name));
        }
        Ok(found.unwrap_or_else(|| self.unchanging.nobody.clone()))
    }

    /// What it could do before, which counts for now.
    fn known_before(&self, client: &Client, version: u64) -> Option<Arc<Authority>> {
        let mut login = client.login();
        let known = login.last_authority()?.clone();
        login.keep_authority(version, known.clone());
        Some(known)
    }

    async fn of_user(&self, client: &Client, user: &LoggedIn) -> Result<Option<Arc<Authority>>> {
        if user.name.is_system() {
            return Ok(Some(self.unchanging.system.clone()));
        }
        let known = self.known(&user.name).await?;
        let is_it = |known: &Arc<Known>| known.user.id == user.id && known.is_met_by(client);
        Ok(known.filter(is_it).map(|known| known.may.clone()))
    }

    async fn of_nobody(&self, client: &Client, version: u64) -> Result<Arc<Authority>> {
        if !self.could_be_first(client) {
            return Ok(self.unchanging.nobody.clone());
        }
        let any = self.has_any("system.users").await? || self.has_any("system.roles").await?;
        self.anybody.fetch_or(any, SeqCst);
        let Unchanging { nobody, first_user, .. } = &self.unchanging;
        let may = if any { nobody } else { first_user }.clone();
        let mut login = client.login();
        if login.user().is_none() {
            login.keep_authority(version, may.clone());
        }
        Ok(may)
    }
    async fn has_any(&self, coll: &str) -> Result<bool> {
        let mut b = DocBuilder::new();
        b.str("find", coll).i32("limit", 1).bool("singleBatch", true);
        b.doc("projection", |p| _ = p.i32("_id", 1)).str("$db", "admin");
        let reply = self.config.command(&b.finish(), Retry::Idempotent).await?;
        let batch = reply.get_path("cursor.firstBatch").and_then(|v| v.as_array());
        Ok(batch.is_some_and(|batch| !batch.is_empty()))
    }
}

/// As MongoDB's routers ask for a user.
fn users_info(name: &UserName) -> DocBuf {
    let mut b = DocBuilder::new();
    b.array("usersInfo", |a| {
        a.doc(|d| _ = d.str("user", &name.user).str("db", &name.db));
    });
    b.bool("showPrivileges", true).bool("showCredentials", true).bool("showAuthenticationRestrictions", true);
    b.bool("showCustomData", false).str("$db", "admin");
    b.finish()
}
