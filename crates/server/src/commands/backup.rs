//! A backup over the wire: `_openBackup` holds a checkpoint still and names its files, `_readBackup` gives a piece of one,
//! `_closeBackup` lets them go. Work goes on meanwhile.

use super::prelude::*;
use crate::config::VERSION;
use pando_base::{Timestamp, Uuid, limits};
use pando_storage::{PinnedCheckpoint, PinnedKind};

/// `_openBackup: 1, upToNow: <bool>, owner: <UUID>`. `upToNow`, of a primary: what was written before the command is in the checkpoint, and a majority
/// has all of that. What the same owner had opened before is let go.
pub(super) async fn open(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let (mut up_to_now, mut owner) = (false, None);
    for arg in req.args("_openBackup") {
        match arg.name() {
            "upToNow" => up_to_now = arg.bool()?,
            "owner" => owner = Some(Uuid(arg.uuid()?)),
            _ => return Err(arg.unknown()),
        }
    }
    if server.replication.member.is_replicated() && !server.replication.member.is_readable() {
        let text = "node is not in primary or recovering state";
        return Err(Error::new(ErrorCode::NotPrimaryOrSecondary, text));
    }
    if let Some(owner) = owner {
        server.upkeep.backups.close_of(owner);
    }
    server.upkeep.backups.check_room()?;
    let now = match up_to_now {
        true => Some(await_now(server, ctx).await?),
        false => None,
    };
    let committed = server.replication.committed();
    // What has been acknowledged is in it, also what waits for the log's next sync.
    server.upkeep.checkpoints.take_now(ctx).await?;
    let kept = server.sessions.kept()?;
    let storage = server.storage.clone();
    let pinned = server.instance.env.offload(move || storage.pin_checkpoint()).await;
    let pinned = pinned.unwrap_or_else(|| Err(Error::internal("the checkpoint failed")))?;
    if let Some(now) = now
        && (pinned.at < now || server.replication.committed() < pinned.at)
    {
        let text = format!("the checkpoint at {} is not behind {now}, or not on a majority yet", pinned.at);
        return Err(Error::new(ErrorCode::InvalidSyncSource, text));
    }
    let (id, pin) = server.upkeep.backups.add(
        pinned,
        server.instance.env.rng.next_u64(),
        server.instance.env.clock.mono(),
        owner,
    );
    let mut r = Reply::with_capacity(64 * pin.files().len());
    r.body.i64("backup", id);
    r.body.str("host", &server.config.host_port());
    r.body.str("version", VERSION);
    if server.storage.is_encrypted() {
        r.body.bool("encrypted", true);
    }
    r.body.timestamp("checkpoint", pin.at);
    r.body.timestamp("oplogEnd", pin.log_end);
    if let Some((kept, _)) = kept
        && let Ok(active) = server.sessions.oldest_active(&kept, kept.upto.ts.min(pin.at))
    {
        r.body.timestamp("sessionsUpto", kept.upto.ts.min(active));
    }
    if !committed.is_zero() {
        r.body.timestamp("committed", committed);
    }
    append_files(&mut r.body, &pin);
    Ok(r)
}

/// A time behind all that was written before, which a majority has.
async fn await_now(server: &Server, ctx: &OpCtx) -> Result<Timestamp> {
    let at = server.replication.write_noop("a backup of all that is there now is taken")?;
    ctx.interruptible(server.replication.await_majority(at)).await??;
    Ok(at.ts)
}

fn append_files(body: &mut DocBuilder, pin: &PinnedCheckpoint) {
    body.array("files", |a| {
        for f in pin.files() {
            a.doc(|d| {
                d.str("path", &f.path);
                d.i64("bytes", f.bytes as i64);
                if let PinnedKind::Oplog { last, .. } = f.kind {
                    d.timestamp("oplogUpTo", last);
                }
            });
        }
    });
}

/// What `_openBackup` told of the files, for another node than the one that has asked for the backup.
fn list(server: &Server, pin: &PinnedCheckpoint) -> Reply {
    let mut r = Reply::with_capacity(64 * pin.files().len());
    if server.storage.is_encrypted() {
        r.body.bool("encrypted", true);
    }
    r.body.timestamp("checkpoint", pin.at);
    append_files(&mut r.body, pin);
    r
}

pub(super) async fn read(server: &Server, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let (mut file, mut offset, mut files) = (0, 0, false);
    for arg in req.args("_readBackup") {
        match arg.name() {
            "file" => file = arg.i64_at_least(0)? as usize,
            "offset" => offset = arg.i64_at_least(0)? as u64,
            "files" => files = arg.bool()?,
            _ => return Err(arg.unknown()),
        }
    }
    let pin = server.upkeep.backups.find(id_of(&req)?, server.instance.env.clock.mono())?;
    if files {
        return Ok(list(server, &pin));
    }
    let piece = server.instance.env.offload(move || pin.read(file, offset, limits::BACKUP_READ_BYTES)).await;
    let piece = piece.unwrap_or_else(|| Err(Error::internal("the read failed")))?;
    let mut r = Reply::with_capacity(piece.len() + 64);
    r.body.i64("crc32c", i64::from(pando_storage::checksum(&piece)));
    r.body.binary("data", 0, &piece);
    Ok(r)
}

pub(super) async fn close(server: &Server, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    server.upkeep.backups.close(id_of(&req)?)?;
    Ok(Reply::new())
}

fn id_of(req: &Request<'_>) -> Result<i64> {
    req.first().value().as_i64().ok_or_else(|| Error::bad_value("the number of a backup is wanted"))
}
