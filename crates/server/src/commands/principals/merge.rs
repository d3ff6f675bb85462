//! `_mergeAuthzCollections`: users and roles from collections into which a tool has loaded them. Who is there already is replaced, and with `drop`
//! whoever is not among them goes. It is one change after the other; one that cannot be read ends it.

use crate::commands::prelude::*;
use pando_audit::Event;
use pando_auth::User;
use pando_auth::roles::{Role, RoleName};
use pando_base::Namespace;
use pando_bson::Document;
use pando_request::MergePrincipalsArgs;
use std::collections::BTreeSet;

pub(in crate::commands) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let args = MergePrincipalsArgs::parse(&req)?;
    let given = |name: Option<&'_ str>| name.filter(|n| !n.is_empty()).map(namespace).transpose();
    let (users, roles) = (given(args.users)?, given(args.roles)?);
    if users.is_none() && roles.is_none() {
        let text = "Must provide at least one of \"tempUsersCollection\" and \"tempRolescollection\"";
        return Err(Error::bad_value(text));
    }
    server.upkeep.admission.before_write(ctx).await?;
    let merge =
        Merge { server, ctx, db: Some(args.db).filter(|db| !db.is_empty()), drop: args.drop == Some(true) };
    if let Some(from) = users {
        merge.users(&from).await?;
    }
    if let Some(from) = roles {
        merge.roles(&from).await?;
    }
    Ok(Reply::new())
}

/// 73 for what is no `db.collection`.
fn namespace(name: &str) -> Result<Namespace> {
    let (db, coll) = name.split_once('.').unwrap_or((name, ""));
    Namespace::new(db, coll)
}

struct Merge<'a> {
    server: &'a Server,
    ctx: &'a OpCtx,
    /// Whose are merged; all where it is `None`.
    db: Option<&'a str>,
    drop: bool,
}

impl Merge<'_> {
    fn takes(&self, db: &str) -> bool {
        self.db.is_none_or(|wanted| wanted == db)
    }

    async fn users(&self, from: &Namespace) -> Result<()> {
        let principals = &self.server.principals;
        let mut merged = BTreeSet::new();
        for stored in principals.copies(from)? {
            let stored = Document::from(&*stored);
            let user = User::of_document(&stored).filter(|_| stored.get("credentials").is_some());
            let user =
                user.ok_or_else(|| Error::location(10065, "invalid parameter: expected an object ()"))?;
            if !self.takes(&user.name.db) {
                continue;
            }
            let name = user.name.clone();
            let event = || Event::create_user(&name, None, &user.roles);
            principals.change_user(self.ctx, &name, event, |_| Ok(Some(user.clone()))).await?;
            merged.insert(name);
        }
        let others = principals.users(self.db)?.into_iter().map(|u| u.name);
        for name in others.filter(|name| self.drop && !merged.contains(name)) {
            principals.drop_user(self.ctx, &name).await?;
        }
        Ok(())
    }

    async fn roles(&self, from: &Namespace) -> Result<()> {
        let principals = &self.server.principals;
        let mut merged: BTreeSet<RoleName> = BTreeSet::new();
        for stored in principals.copies(from)? {
            let unreadable = || Error::new(ErrorCode::FailedToParse, format!("This is no role: {stored}"));
            let (name, role) = Role::of_document(&Document::from(&*stored)).ok_or_else(unreadable)?;
            if !self.takes(&name.db) {
                continue;
            }
            let event = || Event::create_role(&name, &role.roles, &role.privileges);
            principals.change_role(self.ctx, &name, event, |_| Ok(Some(role.clone()))).await?;
            merged.insert(name);
        }
        let roles = principals.roles()?;
        let others = roles.iter().map(|(name, _)| name).filter(|name| self.takes(&name.db));
        for name in others.filter(|name| self.drop && !merged.contains(name)) {
            principals.drop_role(self.ctx, name).await?;
        }
        Ok(())
    }
}
