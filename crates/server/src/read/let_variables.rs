//! `let`: variables of a command, evaluated once before it runs.

use pando_base::{Error, Result};
use pando_bson::{Bson, RawDoc};
use pando_query::QueryCtx;
use pando_query::expr::{Expr, check_user_var_name};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Evaluates the expressions of `lets` in order; later ones may use earlier ones.
pub(crate) fn evaluate(let_vars: &RawDoc, mut q: QueryCtx) -> Result<QueryCtx> {
    for e in let_vars {
        let name = e.name();
        if matches!(name, "NOW" | "CLUSTER_TIME" | "JS_SCOPE" | "IS_MR" | "USER_ROLES" | "SEARCH_META") {
            return Err(Error::location(4738901, format!("Attempt to set internal constant: {name}")));
        }
        check_user_var_name(name).map_err(|e| e.context("Invalid 'let' parameter"))?;
        let expr = Expr::parse(e.value(), &q)?;
        let mut paths = BTreeSet::new();
        if !expr.dependencies(&mut paths) || !paths.is_empty() {
            return Err(Error::location(
                4890500,
                "Command let Expression tried to access a field, but this is not allowed because Command let \
                 Expressions run before the query examines any documents.",
            ));
        }
        let value = expr.eval_doc(RawDoc::empty(), &q)?;
        let value = value.value().map(Bson::from);
        Arc::make_mut(&mut q.vars).let_vars.set(name, value);
    }
    Ok(q)
}
