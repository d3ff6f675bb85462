//! What queries are evaluated in on a shards: collation, `let`, `$$NOW`, randomness.

use crate::remote::Shards;
use pando_base::{Error, Result};
use pando_bson::{Bson, RawDoc};
use pando_command::OpCtx;
use pando_env::Rng;
use pando_query::collation::Collation;
use pando_query::ctx::Random;
use pando_query::expr::{Expr, check_user_var_name};
use pando_query::matcher::Matcher;
use pando_query::{QueryCtx, Variables};
use pando_routing::RoutingTable;
use std::collections::BTreeSet;
use std::sync::Arc;

struct FromEnv(Arc<dyn Rng>);

impl Random for FromEnv {
    fn next_u64(&self) -> u64 {
        self.0.next_u64()
    }
}

impl Shards {
    /// The context of an operation. A given collation wins over the collection's.
    pub(crate) fn query_ctx(
        &self,
        ctx: &OpCtx,
        table: Option<&RoutingTable>,
        collation: Option<&RawDoc>,
        let_vars: Option<&RawDoc>,
    ) -> Result<QueryCtx> {
        let vars = Variables {
            now_ms: ctx.env().clock.wall_ms(),
            cluster_time: Some(self.times.cluster().0),
            db: ctx.db.clone(),
            ..Variables::default()
        };
        let own = || table.and_then(|t| t.collection.default_collation.as_deref()).map(Collation::stored);
        let q = QueryCtx {
            collation: match collation {
                Some(spec) => Collation::parse(spec)?,
                None => own().transpose()?.flatten(),
            },
            vars: Arc::new(vars),
            memory: pando_session::memory(&ctx.instance().params),
            random: Arc::new(FromEnv(ctx.env().rng.clone())),
            ..QueryCtx::default()
        };
        match let_vars.filter(|d| !d.is_empty()) {
            Some(let_vars) => evaluate(let_vars, q),
            None => Ok(q),
        }
    }
    /// A condition as far as this shards can read it: what is wrong with it is told by the shards.
    pub(crate) fn condition(
        &self,
        ctx: &OpCtx,
        table: Option<&RoutingTable>,
        filter: Option<&RawDoc>,
        collation: Option<&RawDoc>,
        let_vars: Option<&RawDoc>,
    ) -> Option<Matcher> {
        let q = self.query_ctx(ctx, table, collation, let_vars).ok()?;
        Matcher::parse(filter.unwrap_or(RawDoc::empty()), &q).ok()
    }
}

/// Variables of a command, in order; later ones may use earlier ones.
fn evaluate(let_vars: &RawDoc, mut q: QueryCtx) -> Result<QueryCtx> {
    for e in let_vars {
        check_user_var_name(e.name()).map_err(|e| e.context("Invalid 'let' parameter"))?;
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
        Arc::make_mut(&mut q.vars).let_vars.set(e.name(), value);
    }
    Ok(q)
}
