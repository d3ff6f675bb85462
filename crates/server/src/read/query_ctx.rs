//! The evaluation context of one operation: collation, `let`, `$$NOW`, randomness.

use super::{Reads, let_variables, scripts};
use pando_access::{Collection, View};
use pando_base::Result;
use pando_bson::{ElementType, RawDoc};
use pando_command::OpCtx;
use pando_env::Rng;
use pando_query::collation::Collation;
use pando_query::ctx::{Random, TextIndex};
use pando_query::named::Counting;
use pando_query::{QueryCtx, Variables};
use std::sync::Arc;

/// The environment's randomness under the name queries know.
struct FromEnv(Arc<dyn Rng>);

impl Random for FromEnv {
    fn next_u64(&self) -> u64 {
        self.0.next_u64()
    }
}

impl Reads {
    /// The context of an operation on `coll`. A given collation wins over the collection's default.
    pub(crate) fn query_ctx(
        &self,
        ctx: &OpCtx,
        coll: Option<&Collection>,
        collation: Option<&RawDoc>,
        let_vars: Option<&RawDoc>,
    ) -> Result<QueryCtx> {
        let replicated = self.replication.member.is_replicated();
        let vars = Variables {
            now_ms: ctx.env().clock.wall_ms(),
            cluster_time: replicated.then(|| self.storage.log().clock()),
            ..Variables::default()
        };
        let random: Arc<dyn Random> = Arc::new(FromEnv(ctx.env().rng.clone()));
        let mut q = QueryCtx {
            collation: match collation {
                Some(spec) => Collation::parse(spec)?,
                None => coll.and_then(|c| c.collation().cloned()),
            },
            vars: Arc::new(vars),
            scripts: scripts::engine(ctx, &self.instance.params, &random),
            random,
            folded: Arc::default(),
            joined: Arc::default(),
            named: Some(Arc::new(Counting::new(self.named.clone()))),
            memory: pando_session::memory(&self.instance.params),
            text_index: coll.map_or(TextIndex::Unknown, text_index),
        };
        if let Some(let_vars) = let_vars.filter(|d| !d.is_empty()) {
            q = let_variables::evaluate(let_vars, q)?;
        }
        Ok(q)
    }
    /// The context of a query on a view: the view's collation, or none.
    pub(crate) fn view_query_ctx(&self, ctx: &OpCtx, view: &View) -> Result<QueryCtx> {
        let collation = view.collation.as_deref().map(Collation::stored).transpose()?.flatten();
        Ok(self.query_ctx(ctx, None, None, None)?.with_collation(collation))
    }
}

fn text_index(coll: &Collection) -> TextIndex {
    match coll.info.has_text_index() {
        true => TextIndex::Unknown,
        false => TextIndex::Missing,
    }
}

/// A filter of the form `{_id: <value>}` that an `_id` lookup answers alone.
pub(crate) fn simple_id<'a>(filter: &'a RawDoc) -> Option<pando_bson::Elem<'a>> {
    let mut elems = filter.iter();
    let id = elems.next().filter(|e| e.name_bytes() == b"_id")?;
    if elems.next().is_some() {
        return None;
    }
    match id.ty {
        ElementType::Array | ElementType::Regex | ElementType::Undefined | ElementType::Null => None,
        ElementType::Document => {
            let d = id.value().as_doc()?;
            let operator = d.first().is_some_and(|e| e.name_bytes().first() == Some(&b'$'));
            (!operator).then_some(id)
        }
        _ => Some(id),
    }
}
