//! `_shardsvrMoveRange {<ns>, toShard, [min], [max], maxChunkSizeBytes, [forceJumbo], [secondaryThrottle]}`: a range of this shard's moves to another one
//! (SH-MIG-1). Without `max` it is as much of the chunk, from `min` on, as may move at once; without `min` as much of it below `max`.

use super::changelog::Changelog;
use super::size;
use crate::commands::prelude::*;
use crate::commands::shardsvr::ddl::Ddl;
use pando_bson::fields::{missing, safe_i64, wrong_type};
use pando_repl::services::Instance;
use pando_routing::{ForceJumbo, ShardKey};
use pando_workflows::migration::{self, Migration};
use std::sync::Arc;

/// What the command asks for.
struct Asked {
    ns: Namespace,
    to: String,
    min: Option<DocBuf>,
    max: Option<DocBuf>,
    max_bytes: u64,
    force: ForceJumbo,
    waits_for_delete: bool,
    /// The write concern that the recipient's copies wait for; empty: as it sees fit.
    throttle: Option<DocBuf>,
}

impl Asked {
    fn parse(req: &Request<'_>) -> Result<Asked> {
        let object = |name: &str| match req.body.get(name) {
            None => Ok(None),
            Some(Value::Document(doc)) => Ok(Some(doc.to_buf())),
            Some(v) => Err(wrong_type(req.name, name, &v, &["object"])),
        };
        let to = req.body.get("toShard").and_then(|v| v.as_str().map(str::to_owned));
        let bytes = "maxChunkSizeBytes";
        let max_bytes = req.body.get(bytes).ok_or_else(|| missing(req.name, bytes))?;
        let max_bytes = safe_i64(&max_bytes)
            .ok_or_else(|| wrong_type(req.name, bytes, &max_bytes, &["long", "int", "decimal", "double"]))?;
        Ok(Asked {
            ns: Namespace::parse(req.first_str(req.name)?)?,
            to: to.ok_or_else(|| missing(req.name, "toShard"))?,
            min: object("min")?,
            max: object("max")?,
            max_bytes: max_bytes.max(0).cast_unsigned(),
            force: ForceJumbo::parse(req.name, req.body)?,
            waits_for_delete: req.body.get("waitForDelete").is_some_and(|v| v.is_truthy()),
            throttle: object("secondaryThrottle")?,
        })
    }
    /// The range from its first key to where it ends. What is not said is found out.
    ///
    /// # Errors
    /// 40414 where neither is said.
    async fn range(&self, ddl: &Ddl<'_>) -> Result<(DocBuf, DocBuf)> {
        let (ns, max_bytes) = (&self.ns, self.max_bytes);
        match (self.min.clone(), self.max.clone()) {
            (Some(min), Some(max)) => Ok((min, max)),
            (Some(min), None) => size::open_end(ddl, ns, &min, max_bytes).await.map(|max| (min, max)),
            (None, Some(max)) => size::open_start(ddl, ns, &max, max_bytes).await.map(|min| (min, max)),
            (None, None) => Err(missing("_shardsvrMoveRange", "min")),
        }
    }
    /// Whether a migration is the one that is asked for. Where an end of it was left to this shard, that end need not be the same:
    /// documents may have come since.
    fn is(&self, state: &RawDoc, min: &RawDoc, max: &RawDoc) -> bool {
        let open = |end: &str| state.get_path(end).is_some_and(|v| v.is_truthy());
        Migration::parse(state).is_some_and(|m| {
            let same_start = &*m.min == min || open("request.openStart") && self.min.is_none();
            let same_end = &*m.max == max || open("request.openEnded") && self.max.is_none();
            m.ns == self.ns && m.recipient == self.to && same_start && same_end
        })
    }
    /// The state document that a migration begins with.
    fn document(&self, id: &pando_base::Uuid, donor: &str, min: &RawDoc, max: &RawDoc) -> DocBuf {
        let mut b = DocBuilder::new();
        b.uuid("_id", &id.0).str("nss", self.ns.as_str());
        b.str("donorShardId", donor).str("recipientShardId", &self.to);
        b.doc("range", |d| _ = d.raw_doc("min", min).raw_doc("max", max));
        b.doc("request", |d| {
            d.bool("waitForDelete", self.waits_for_delete);
            d.i64("maxChunkSizeBytes", self.max_bytes.cast_signed());
            d.bool("openEnded", self.max.is_none()).bool("openStart", self.min.is_none());
            self.force.append(d);
            self.throttle.iter().for_each(|concern| _ = d.raw_doc("secondaryThrottle", concern));
        });
        b.finish()
    }
}

/// Returns when the range has moved. The same that is under way already is joined.
///
/// # Errors
/// 117 while another range moves to or from this shard; 153 for a range that is too large; whatever the migration was given up for.
pub(in crate::commands) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ddl = Ddl::new(server, ctx)?;
    let asked = Asked::parse(&req)?;
    let (min, max) = asked.range(&ddl).await?;
    ShardKey::check_size(&min)?;
    ShardKey::check_size(&max)?;
    if asked.to == ddl.own_id().as_str() {
        let (ns, to) = (&asked.ns, &asked.to);
        let text = format!("the range [{min}, {max}) of {ns} is on shard {to} already");
        return Err(Error::new(ErrorCode::InvalidOptions, text));
    }
    server.upkeep.admission.before_write(ctx).await?;
    if let Some(same) = under_way(&ddl, &asked, &min, &max).await? {
        ctx.interruptible(same.result()).await??;
        return Ok(Reply::new());
    }
    let id = server.upkeep.maintenance.new_uuid();
    let document = asked.document(&id, ddl.own_id().as_str(), &min, &max);
    let instance = ctx.interruptible(ddl.host()?.start(migration::DONOR, &document)).await??;
    tell_of(&ddl, &document, &instance);
    let done = ctx.interruptible(instance.result()).await?;
    ctx.wrote(server.replication.last_applied());
    done?;
    if asked.waits_for_delete {
        ddl.await_deletion(id).await?;
    }
    Ok(Reply::new())
}

/// The changelog hears of it, whoever waits for it.
fn tell_of(ddl: &Ddl<'_>, document: &RawDoc, instance: &Arc<Instance>) {
    let Some(migration) = Migration::parse(document) else { return };
    let (changelog, instance) = (Changelog::of(ddl, migration), instance.clone());
    ddl.ctx.env().spawn("migration changelog", async move {
        changelog.begun().await;
        changelog.ended("moveChunk.from", instance.result().await.as_ref().err()).await;
    });
}
/// The migration of this shard that is the one that is asked for.
///
/// # Errors
/// 117 for any other.
async fn under_way(
    ddl: &Ddl<'_>,
    asked: &Asked,
    min: &RawDoc,
    max: &RawDoc,
) -> Result<Option<Arc<Instance>>> {
    let (host, ctx) = (ddl.host()?, ddl.ctx);
    let busy = |what: &str, state: &RawDoc| {
        let text = format!(
            "Unable to start new balancer operation because this shard is currently {what} range: {state}"
        );
        Error::new(ErrorCode::ConflictingOperationInProgress, text)
    };
    let receiving = ctx.interruptible(host.all(migration::RECIPIENT)).await??;
    if let Some(other) = receiving.first() {
        return Err(busy("receiving", &other.state()));
    }
    let giving = ctx.interruptible(host.all(migration::DONOR)).await??;
    let Some(other) = giving.into_iter().next() else { return Ok(None) };
    let state = other.state();
    if asked.is(&state, min, max) { Ok(Some(other)) } else { Err(busy("donating", &state)) }
}
