//! `usersInfo`. Users cannot be created yet, so a well-formed question finds none.

use super::prelude::*;
use pando_query::matcher::Matcher;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let (mut privileges, mut restrictions) = (false, false);
    let exact = is_exact(req.first().value())?;
    for arg in req.given_args(
        "usersInfo",
        &["showPrivileges", "showAuthenticationRestrictions", "showCredentials", "showCustomData", "filter"],
    ) {
        match arg.name() {
            "showPrivileges" => privileges = arg.boolish()?,
            "showAuthenticationRestrictions" => restrictions = arg.boolish()?,
            "showCredentials" | "showCustomData" => drop(arg.boolish()?),
            "filter" => {
                let query = server.crud.reads.query_ctx(ctx, None, None, None)?;
                Matcher::parse_restricted(arg.doc()?, &query).map(drop)?;
            }
            _ => return Err(arg.unknown()),
        }
    }
    if (privileges || restrictions) && !exact {
        return Err(Error::new(
            ErrorCode::IllegalOperation,
            "Privilege or restriction details require exact-match usersInfo queries",
        ));
    }
    let mut r = Reply::new();
    r.body.array("users", |_| {});
    Ok(r)
}

/// Whether users are asked for by name; a mistake is refused.
fn is_exact(v: Value<'_>) -> Result<bool> {
    match v {
        Value::Int32(1) | Value::Int64(1) => Ok(false),
        v if v.is_number() && v.as_f64() == Some(1.0) => Ok(false),
        Value::Document(d) if d.elem("forAllDBs").is_some() => Ok(false),
        Value::Array(names) if names.is_empty() => {
            Err(Error::bad_value("$and/$or/$nor must be a nonempty array"))
        }
        Value::Array(names) => {
            names.iter().try_for_each(|e| check_name("UserName", "user", e.value()))?;
            Ok(true)
        }
        v => check_name("UserName", "user", v).map(|()| true),
    }
}

/// A name, alone or with its database.
pub(super) fn check_name(what: &str, field: &str, v: Value<'_>) -> Result<()> {
    match v {
        Value::String(_) => Ok(()),
        Value::Document(d) => match [field, "db"].iter().find(|f| d.elem(f).is_none()) {
            Some(f) => Err(Error::bad_value(format!("{what} must contain a field named: {f}"))),
            None => Ok(()),
        },
        _ => Err(Error::bad_value(format!("{what} must be either a string or an object"))),
    }
}
