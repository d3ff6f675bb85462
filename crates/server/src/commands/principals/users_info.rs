//! `usersInfo`: who there is, and what they may do.

use super::keep;
use crate::commands::prelude::*;
use pando_auth::roles::{Resolved, RoleName};
use pando_auth::{Proof, User, UserName};
use pando_bson::{Bson, Document};
use pando_query::matcher::{Matcher, Place};
use pando_request::UsersInfoArgs;
use pando_request::settings::users_info::Users;

pub(in crate::commands) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let args = UsersInfoArgs::parse(&req)?;
    let users = Users::parse(&req)?;
    ctx.arguments_read()?;
    args.check(&users)?;
    // Users without details are looked for by a query, which has to have a name at least.
    if matches!(&users, Users::Named(names) if names.is_empty() && !args.details()) {
        return Err(Error::bad_value("$and/$or/$nor must be a nonempty array"));
    }
    let query = server.crud.reads.query_ctx(ctx, None, None, None)?;
    let filter = args.filter.map(|f| Matcher::parse_in(Place::Document, f, &query)).transpose()?;
    let mut found = match &users {
        Users::OfDatabase => server.principals.users(Some(req.db))?,
        Users::Everywhere => server.principals.users(None)?,
        Users::Named(names) => {
            let each = names.iter().map(|n| server.principals.user(&UserName::new(n.name, n.db)));
            each.filter_map(Result::transpose).collect::<Result<Vec<_>>>()?
        }
    };
    if let Some(filter) = &filter {
        let mut kept = Vec::new();
        for user in found {
            if filter.matches(&user.document().to_raw())? {
                kept.push(user);
            }
        }
        found = kept;
    }
    let roles = if args.details() { Some(server.principals.roles()?) } else { None };
    let mut r = Reply::new();
    r.body.array("users", |a| {
        for user in &found {
            let resolved = roles.as_ref().map(|roles| roles.resolve(&user.roles));
            a.value(Value::Document(&shown(user, &args, resolved.as_ref()).to_raw()));
        }
    });
    Ok(r)
}

/// A user as it is shown. With details the order of the fields is another one.
fn shown(user: &User, args: &UsersInfoArgs<'_>, resolved: Option<&Resolved>) -> Document {
    let stored = user.document();
    let mut d = Document::new();
    let mechanisms = Bson::Array(user.mechanisms().into_iter().map(Bson::from).collect());
    for name in ["_id", "userId", "user", "db"] {
        keep(&mut d, &stored, name);
    }
    if resolved.is_some() {
        d.push("mechanisms", mechanisms.clone());
    }
    if args.credentials == Some(true) && matches!(user.proof, Proof::Password(_)) {
        keep(&mut d, &stored, "credentials");
    }
    if args.restrictions == Some(true) {
        keep(&mut d, &stored, "authenticationRestrictions");
    }
    if args.custom_data != Some(false) {
        keep(&mut d, &stored, "customData");
    }
    keep(&mut d, &stored, "roles");
    match resolved {
        None => d.push("mechanisms", mechanisms),
        Some(all) => append_inherited(&mut d, all),
    }
    d
}

/// What roles come to together.
pub(super) fn append_inherited(d: &mut Document, all: &Resolved) {
    let list = |docs: Vec<Document>| Bson::Array(docs.into_iter().map(Bson::from).collect());
    d.push("inheritedRoles", list(all.roles.iter().map(RoleName::document).collect()));
    d.push("inheritedPrivileges", list(all.privileges.documents()));
    let restrictions = all.restrictions.iter().map(|r| list(r.documents()));
    d.push("inheritedAuthenticationRestrictions", Bson::Array(restrictions.collect()));
}
