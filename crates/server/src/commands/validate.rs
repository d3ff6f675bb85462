//! `validate`: are a collection and its indexes what they claim to be?

use super::prelude::*;
use crate::by_ctx::ByCtx;
use pando_base::Term;
use pando_catalog::Extent;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = match req.first().value() {
        Value::Binary { subtype: 4, .. } => {
            let text = "Collection name must be provided. UUID is not valid in this context";
            return Err(Error::new(ErrorCode::InvalidNamespace, text));
        }
        _ => req.ns_of_ddl()?,
    };
    let flag = |name: &str| req.body.get(name).is_some_and(|v| v.is_truthy());
    let refuse = |text: String| Err(Error::new(ErrorCode::InvalidOptions, text));
    let (full, background, repair) = (flag("full"), flag("background"), flag("repair"));
    let (metadata, counted) = (flag("metadata"), flag("enforceFastCount"));
    for (on, other) in [(full, "full"), (counted, "enforceFastCount"), (repair, "repair")] {
        if background && on {
            return refuse(format!(
                "Running the validate command with both {{ background: true }} and {{ {other}: true }} is not \
                 supported."
            ));
        }
    }
    if repair && server.replication.member.is_replicated() {
        return refuse(
            "Running the validate command with { repair: true } can only be performed in standalone mode."
                .to_owned(),
        );
    }
    if metadata && (background || full || counted || repair) {
        return refuse(
            "Running the validate command with { metadata: true } is not supported with any other options"
                .to_owned(),
        );
    }
    if repair {
        return Err(Error::new(ErrorCode::CommandNotSupported, "this server does not repair collections"));
    }
    let how = match (metadata, background) {
        (true, _) => Extent::Definitions,
        (_, true) => Extent::At(server.storage.log().visible()),
        _ if counted => Extent::Counted,
        _ => Extent::Latest,
    };
    let office = takes_writes(server);
    let report = server.catalog.validate(&ns, how, &ByCtx(ctx)).await?;
    // Where entries of another member were applied meanwhile the two counts are not of one moment.
    if how == Extent::Latest && office.is_some() && takes_writes(server) == office {
        server.catalog.mend_count(&report);
    }
    let mut r = Reply::with_capacity(1024);
    report.append_to(&mut r.body, &ns);
    Ok(r)
}

/// Since when this node takes writes itself, if it does.
fn takes_writes(server: &Server) -> Option<Term> {
    server.replication.member.accepts_writes().then(|| server.replication.member.term())
}
