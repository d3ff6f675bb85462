//! `voteCommitIndexBuild` and `voteAbortIndexBuild`, which members send to their primary, and `setIndexCommitQuorum`, which operators do.

use super::create_indexes::checked_quorum;
use super::prelude::*;
use pando_access::Named;
use pando_base::Uuid;
use pando_command::request::{missing, wrong_type};
use pando_request::SetIndexCommitQuorumArgs;

const VOTE: &str = "voteCommitIndexBuild";
const VOTE_ABORT: &str = "voteAbortIndexBuild";
const SET: &str = "setIndexCommitQuorum";

pub(super) async fn vote(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let (build, host, _) = ballot(server, ctx, &req, VOTE).await?;
    // A vote that is there already is on a majority when all before it is.
    let at = server
        .upkeep
        .index_builds
        .note_vote(build, host)
        .await?
        .unwrap_or_else(|| server.replication.last_applied());
    ctx.wrote(at);
    Ok(Reply::new())
}

pub(super) async fn vote_abort(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let (build, host, reason) = ballot(server, ctx, &req, VOTE_ABORT).await?;
    let reason = reason.ok_or_else(|| missing(VOTE_ABORT, "reason"))?;
    server.upkeep.index_builds.note_failure(build, host, reason)?;
    Ok(Reply::new())
}

/// Which build, who votes, and what it says.
async fn ballot<'r>(
    server: &Server,
    ctx: &OpCtx,
    req: &Request<'r>,
    name: &'static str,
) -> Result<(Uuid, &'r str, Option<&'r str>)> {
    let build = match req.first().value() {
        Value::Binary { bytes, .. } => Uuid::from_slice(bytes),
        v => return Err(wrong_type(name, name, &v, &["binData"])),
    };
    let (mut host, mut reason) = (None, None);
    for arg in req.args(name) {
        match arg.name() {
            "hostAndPort" => host = Some(arg.str()?),
            "reason" => reason = Some(arg.str()?),
            _ => {}
        }
    }
    let host = host.ok_or_else(|| missing(name, "hostAndPort"))?;
    super::host_and_port::check(host)?;
    server.replication.member.require_config()?;
    server.replication.admit_member(ctx, name, None).await?;
    let build =
        build.ok_or_else(|| Error::new(ErrorCode::InvalidUUID, "uuid must be a 16-byte binary field"))?;
    Ok((build, host, reason))
}

pub(super) async fn set_quorum(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = req.ns()?;
    let args = SetIndexCommitQuorumArgs::parse(&req)?;
    let (names, quorum) = (args.names(), args.commit_quorum);
    server.replication.member.require_config()?;
    let unchecked = pando_repl::topology::commit_quorum::CommitQuorum::parse(&quorum);
    let new = match unchecked {
        Some(Ok(new)) => new,
        _ => checked_quorum(server, SET, &quorum)?,
    };
    if let Some(Named::View(_)) = server.access.definitions().named(&ns) {
        let text = format!("Namespace {ns} is a view, not a collection");
        return Err(Error::new(ErrorCode::CommandNotSupportedOnView, text));
    }
    if let Some(at) = server.upkeep.index_builds.set_commit_quorum(&ns, &names, &new).await? {
        ctx.wrote(at);
    }
    Ok(Reply::new())
}
