//! Users and roles of this server: documents of `admin.system.users` and `admin.system.roles`, which every member has.
//!
//! What they mean is in `pando_auth`; here they are read and written. A change is one unit of work on one document, so two commands that change the same
//! user at once both take effect. What connections may do is kept until something changes ([`authority`]).

pub(crate) mod authority;

use crate::settings::versions_ns;
use authority::PrincipalsVersion;
use pando_access::{ByCtx, InternalCollections, LogAs};
use pando_audit::{Event, Pending};
use pando_auth::login::LoggedIn;
use pando_auth::roles::{Resolved, Role, RoleName, Roles};
use pando_auth::{User, UserName};
use pando_base::{Namespace, Result};
use pando_bson::{DocBuf, DocBuilder, Document, RawDoc, doc};
use pando_command::OpCtx;
use pando_storage::ReadAt;
use std::future::Future;

/// The users and roles that are kept.
pub(crate) struct Principals {
    internal: InternalCollections,
    /// A user's document, which is read in place of one that is not there: reading takes a while, too.
    nobodys: DocBuf,
    version: PrincipalsVersion,
    authorities: authority::Authorities,
}

/// With credentials in both mechanisms, as nearly every user has.
fn nobodys_document() -> DocBuf {
    let credentials =
        |key: &str| doc! { "iterationCount": 15_000, "salt": key, "storedKey": key, "serverKey": key };
    let (short, long) = ("A".repeat(26) + "==", "A".repeat(43) + "=");
    let mut user = doc! { "_id": "admin.nobody", "user": "nobody", "db": "admin" };
    user.push(
        "credentials",
        doc! { "SCRAM-SHA-1": credentials(&short), "SCRAM-SHA-256": credentials(&long) },
    );
    user.push("roles", Vec::<pando_bson::Bson>::new());
    user.to_raw()
}

pub(crate) fn users_ns() -> Namespace {
    Namespace::unchecked("admin", "system.users")
}
pub(crate) fn roles_ns() -> Namespace {
    Namespace::unchecked("admin", "system.roles")
}

impl Principals {
    pub(crate) fn new(internal: InternalCollections, version: PrincipalsVersion) -> Principals {
        Principals { internal, nobodys: nobodys_document(), version, authorities: Default::default() }
    }

    pub(crate) fn user(&self, name: &UserName) -> Result<Option<User>> {
        let stored = self.internal.named(&users_ns(), &name.id())?;
        let is_there = stored.is_some();
        let user = User::of_document(&Document::from(&**stored.as_ref().unwrap_or(&self.nobodys)));
        Ok(std::hint::black_box(user).filter(|_| is_there))
    }
    /// The user that has logged in and what its roles come to now; `None` when it has been dropped.
    pub(crate) fn logged_in(&self, user: &LoggedIn) -> Result<Option<(User, Resolved)>> {
        let Some(known) = self.user(&user.name)?.filter(|known| known.id == user.id) else { return Ok(None) };
        let resolved = self.roles()?.resolve(&known.roles);
        Ok(Some((known, resolved)))
    }
    /// All users of a database, or of all databases, in the order of their names.
    pub(crate) fn users(&self, db: Option<&str>) -> Result<Vec<User>> {
        let stored = self.internal.all(&users_ns(), ReadAt::Latest)?;
        let users = stored.iter().filter_map(|d| User::of_document(&Document::from(&**d)));
        let mut users: Vec<User> = users.filter(|u| db.is_none_or(|db| u.name.db == db)).collect();
        users.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(users)
    }
    /// The roles that somebody defined.
    pub(crate) fn roles(&self) -> Result<Roles> {
        let mut roles = Roles::default();
        for stored in self.internal.all(&roles_ns(), ReadAt::Latest)? {
            if let Some((name, role)) = Role::of_document(&Document::from(&*stored)) {
                roles.define(name, role);
            }
        }
        Ok(roles)
    }

    /// Documents of a collection into which a tool has loaded users or roles.
    pub(crate) fn copies(&self, from: &Namespace) -> Result<Vec<DocBuf>> {
        self.internal.all(from, ReadAt::Latest)
    }

    /// Tells tools, which ask before they copy users, in which form they are kept.
    pub(crate) async fn write_schema_version(&self, ctx: &OpCtx) -> Result<()> {
        let version = doc! { "_id": "authSchema", "currentVersion": 5 }.to_raw();
        self.change(ctx, &versions_ns(), "authSchema", |old| Ok(old.is_none().then(|| version.clone()))).await
    }

    /// Makes of a user, or of nobody, what `change` says; nothing when that is `None`. `event` is what the audit log has of it.
    pub(crate) async fn change_user(
        &self,
        ctx: &OpCtx,
        name: &UserName,
        event: impl FnOnce() -> Event,
        change: impl FnMut(Option<User>) -> Result<Option<User>> + Send,
    ) -> Result<()> {
        self.ensure(&users_ns(), "user").await?;
        recorded(ctx, event, self.write_user(ctx, name, change)).await
    }
    /// The same of a role.
    pub(crate) async fn change_role(
        &self,
        ctx: &OpCtx,
        name: &RoleName,
        event: impl FnOnce() -> Event,
        change: impl FnMut(Option<Role>) -> Result<Option<Role>> + Send,
    ) -> Result<()> {
        self.ensure(&roles_ns(), "role").await?;
        recorded(ctx, event, self.write_role(ctx, name, change)).await
    }
    /// Whether there was one.
    pub(crate) async fn drop_user(&self, ctx: &OpCtx, name: &UserName) -> Result<bool> {
        recorded(ctx, || Event::drop_user(name), self.remove(ctx, &users_ns(), &name.id())).await
    }
    /// Those of a database; how many there were.
    pub(crate) async fn drop_all_users(&self, ctx: &OpCtx, db: &str) -> Result<i32> {
        let all = async {
            let mut n = 0;
            for user in self.users(Some(db))? {
                n += i32::from(self.remove(ctx, &users_ns(), &user.name.id()).await?);
            }
            Ok(n)
        };
        let n = recorded(ctx, || Event::drop_all_users(db), all).await?;
        if n == 0 {
            // It was asked for all the same.
            ctx.client.audit(|| Event::drop_all_users(db));
        }
        Ok(n)
    }
    /// Whether there was one. It is taken from everybody who has it first.
    pub(crate) async fn drop_role(&self, ctx: &OpCtx, name: &RoleName) -> Result<bool> {
        recorded(ctx, || Event::drop_role(name), self.take_away(ctx, name)).await
    }
    /// Those of a database; how many there were.
    pub(crate) async fn drop_all_roles(&self, ctx: &OpCtx, db: &str) -> Result<i32> {
        let all = async {
            let mut n = 0;
            let roles = self.roles()?;
            for (name, _) in roles.iter().filter(|(name, _)| name.db == db) {
                n += i32::from(self.take_away(ctx, name).await?);
            }
            Ok(n)
        };
        let n = recorded(ctx, || Event::drop_all_roles(db), all).await?;
        if n == 0 {
            // It was asked for all the same.
            ctx.client.audit(|| Event::drop_all_roles(db));
        }
        Ok(n)
    }

    async fn take_away(&self, ctx: &OpCtx, name: &RoleName) -> Result<bool> {
        for user in self.users(None)?.iter().filter(|u| u.roles.contains(name)) {
            self.write_user(ctx, &user.name, |user| {
                Ok(user.map(|mut user| {
                    user.roles.remove(name);
                    user
                }))
            })
            .await?;
        }
        let roles = self.roles()?;
        for (other, _) in roles.iter().filter(|(_, role)| role.roles.contains(name)) {
            self.write_role(ctx, other, |role| {
                Ok(role.map(|mut role| {
                    role.roles.remove(name);
                    role
                }))
            })
            .await?;
        }
        self.remove(ctx, &roles_ns(), &name.id()).await
    }

    async fn write_user(
        &self,
        ctx: &OpCtx,
        name: &UserName,
        mut change: impl FnMut(Option<User>) -> Result<Option<User>> + Send,
    ) -> Result<()> {
        self.change(ctx, &users_ns(), &name.id(), |old| {
            let old = old.and_then(|d| User::of_document(&Document::from(d)));
            Ok(change(old)?.map(|user| user.document().to_raw()))
        })
        .await
    }
    async fn write_role(
        &self,
        ctx: &OpCtx,
        name: &RoleName,
        mut change: impl FnMut(Option<Role>) -> Result<Option<Role>> + Send,
    ) -> Result<()> {
        self.change(ctx, &roles_ns(), &name.id(), |old| {
            let old = old.and_then(|d| Role::of_document(&Document::from(d)));
            Ok(change(old.map(|(_, role)| role))?.map(|role| role.document(name).to_raw()))
        })
        .await
    }
    async fn change(
        &self,
        ctx: &OpCtx,
        ns: &Namespace,
        id: &str,
        change: impl FnMut(Option<&RawDoc>) -> Result<Option<DocBuf>> + Send,
    ) -> Result<()> {
        let interrupt = ByCtx(ctx);
        let done = self.internal.change(&interrupt, ns, &key(id), LogAs::Difference, change).await?;
        done.into_iter().for_each(|last| ctx.wrote(last));
        Ok(())
    }
    async fn remove(&self, ctx: &OpCtx, ns: &Namespace, id: &str) -> Result<bool> {
        let removed = self.internal.remove(&ByCtx(ctx), ns, &key(id)).await?;
        removed.into_iter().for_each(|last| ctx.wrote(last));
        Ok(removed.is_some())
    }
    /// The collection, with the index that keeps names unique whatever the `_id`s are.
    async fn ensure(&self, ns: &Namespace, field: &str) -> Result<()> {
        let mut of_names = doc! {};
        of_names.push(field, 1);
        of_names.push("db", 1);
        let index = doc! { "v": 2, "key": of_names, "name": format!("{field}_1_db_1"), "unique": true };
        self.internal.ensure_index(ns, &index.to_raw()).await
    }
}

/// Does a change whose event is recorded when it is certain, by the observer of its writes. Nothing is recorded of one that writes nothing.
async fn recorded<T>(
    ctx: &OpCtx,
    event: impl FnOnce() -> Event,
    work: impl Future<Output = Result<T>>,
) -> Result<T> {
    match ctx.instance().audit() {
        None => work.await,
        Some(_) => Pending::new(event()).during(work).await,
    }
}

fn key(id: &str) -> DocBuf {
    let mut key = DocBuilder::new();
    key.str("_id", id);
    key.finish()
}
