//! `$where`: a script's value as a condition.

use super::node::{ExprNode, ExprTest, Node};
use crate::ctx::QueryCtx;
use crate::script::{FunctionId, Scripts};
use pando_base::{Error, Result};
use pando_bson::{DocBuilder, RawDoc, Value};
use std::sync::Arc;

struct Where {
    scripts: Arc<dyn Scripts>,
    function: FunctionId,
}

impl ExprTest for Where {
    fn holds(&self, doc: &RawDoc) -> Result<bool> {
        self.scripts.test(self.function, doc)
    }
    fn runs_scripts(&self) -> bool {
        true
    }
}

pub(super) fn parse(v: Value<'_>, ctx: &QueryCtx) -> Result<Node> {
    let code = match v {
        Value::String(code) | Value::JavaScript(code) => code,
        Value::JavaScriptWithScope { .. } => {
            return Err(Error::location(
                4_649_201,
                "$where no longer supports deprecated BSON type CodeWScope",
            ));
        }
        _ => return Err(Error::bad_value("$where got bad type")),
    };
    let Some(scripts) = ctx.scripts.clone() else {
        return Err(Error::location(6_108_304, "no globalScriptEngine in $where parsing"));
    };
    if code.is_empty() {
        return Err(Error::bad_value("code for $where cannot be empty"));
    }
    let function = scripts.compile(code)?;
    let mut b = DocBuilder::new();
    b.value("", Value::JavaScript(code));
    Ok(Node::Expr(ExprNode {
        keyword: "$where",
        source: b.finish(),
        eval: Arc::new(Where { scripts, function }),
    }))
}

/// The filter runs scripts, as `$where` or within an `$expr`.
pub(super) fn any(node: &Node) -> bool {
    match node {
        Node::Expr(e) => e.eval.runs_scripts(),
        other => other.children().iter().any(any),
    }
}
