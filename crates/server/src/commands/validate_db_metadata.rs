//! `validateDBMetadata`: which collections, indexes and views need something outside a version of the Stable API.

use super::prelude::*;
use pando_query::source::IndexKind;
use pando_request::ValidateDbMetadataArgs;

pub(super) async fn run(server: &Server, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let args = ValidateDbMetadataArgs::parse(&req)?;
    args.check_api()?;
    let (db, only, api) = (args.db, args.collection, args.api);
    for name in ["strict", "deprecationErrors"] {
        check_flag(name, api.get(name))?;
    }
    check_names(db, only, req.db)?;
    let strict = matches!(api.get("strict"), Some(Value::Boolean(true)))
        && api.get("version").and_then(|v| v.as_str()) == Some("1");
    let mut unfit = Vec::new();
    if strict {
        let definitions = server.access.definitions();
        let databases = db.map_or_else(|| definitions.databases(), |db| vec![db.to_owned()]);
        for db in databases {
            for coll in definitions.collections(&db) {
                if only.is_some_and(|only| only != coll.ns.coll()) {
                    continue;
                }
                let names =
                    coll.ready_indexes().iter().filter(|i| i.spec.sparse || i.spec.kind == IndexKind::Text);
                unfit.extend(names.map(|i| (coll.ns.clone(), i.name().to_owned())));
            }
            for view in definitions.views(&db) {
                if only.is_none_or(|only| only == view.ns.coll()) {
                    crate::aggregation::check_stable_pipeline(&view.pipeline)?;
                }
            }
        }
    }
    let mut r = Reply::new();
    r.body.array("apiVersionErrors", |a| {
        for (ns, index) in &unfit {
            a.doc(|d| {
                d.str("ns", ns.as_str());
                d.i32("code", ErrorCode::APIStrictError.0);
                d.str("codeName", &ErrorCode::APIStrictError.name());
                d.str("errmsg", &format!("The index with name {index} is not allowed in API version 1."));
            });
        }
    });
    Ok(r)
}

/// A real boolean or nothing.
fn check_flag(name: &str, v: Option<Value<'_>>) -> Result<()> {
    match v {
        None | Some(Value::Boolean(_)) => Ok(()),
        Some(v) => Err(Error::type_mismatch(format!(
            "Field '{name}' should be a boolean value, but found: {}",
            v.type_name()
        ))),
    }
}

/// The database and the collection must have names that such ones can have.
fn check_names(db: Option<&str>, only: Option<&str>, at: &str) -> Result<()> {
    if let Some(db) = db {
        let invalid = || Err(Error::location(13280, format!("invalid db name: {db}")));
        if db.contains('\0') {
            return invalid();
        }
        if db.is_empty() || db.contains('.') {
            return Err(Error::location(28539, "need a valid database name"));
        }
        // A `$` is taken.
        if pando_base::DbName::parse(&db.replace('$', "_")).is_err() {
            return invalid();
        }
    }
    match only {
        Some("") => {
            let text = format!("Namespace {}. is not a valid collection name", db.unwrap_or(at));
            Err(Error::new(ErrorCode::InvalidNamespace, text))
        }
        Some(name) if name.contains('\0') => {
            let text = "namespaces cannot have embedded null characters";
            Err(Error::new(ErrorCode::InvalidNamespace, text))
        }
        _ => Ok(()),
    }
}
