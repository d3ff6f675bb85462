//! What the former primary shard of a database does for `movePrimary` (SH-DDL-11). The order of things is
//! `pando_workflows::move_primary`'s.
//!
//! ```text
//!   cloneDatabase: what is left there of earlier moves goes ─► each collection ─► made there ─► recorded ─► documents
//!                                 ─► what was written since, until it is little
//!   drainDatabase: writers are out ─► what came into being since, and capped ones, in their order ─► the rest of what was recorded
//!                                 ─► the other shard refuses whatever else comes of this move
//! ```
//! Each piece has a number of its own, above those of all before it, and the other shard takes nothing older of a collection: a piece that
//! was sent again, and whose first sending arrives late, changes nothing. Each is on a majority there before the next one is sent. What
//! sessions have done goes along, so a write that is sent again is not carried out again.

use super::{Ddl, append_majority};
use crate::commands::shardsvr::migration::{range_of, record_in};
use crate::sharding::fences;
use crate::sharding::moving_databases::{MovingCollection, Turns};
use pando_access::Collection;
use pando_base::{Error, ErrorCode, Namespace, Result, Timestamp, Uuid, limits};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value, doc};
use pando_routing::{ShardId, ShardKey};
use pando_shard::metadata::KnownDatabase;
use pando_workflows::migration::Migration;
use pando_workflows::move_primary as steps;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// Nobody else fetches anything of these donations.
const RECEIVER: i64 = 1;

/// One move, as its steps are told of it.
struct Move<'a> {
    db: &'a str,
    to: ShardId,
    at: Timestamp,
}

pub(super) async fn step(ddl: &Ddl<'_>, step: &str, db: &str, body: &RawDoc) -> Result<Option<DocBuf>> {
    let lost = || Error::internal(format!("a coordinator's state without a request: {body}"));
    let to = || {
        let to = body.get("request").and_then(|v| v.as_doc()?.get("toShard")?.as_str().map(ShardId::new));
        to.ok_or_else(lost)
    };
    let the_move = || {
        let at = match body.get("timestamp") {
            Some(Value::Timestamp(at)) => at,
            _ => return Err(lost()),
        };
        Ok(Move { db, to: to()?, at })
    };
    let done = match step {
        steps::LOOK => return ddl.look_at_primary(db, &to()?).await.map(Some),
        steps::CLONE => ddl.clone_database(&the_move()?).await,
        steps::DRAIN => ddl.drain_database(&the_move()?).await,
        steps::DROP_MOVED => ddl.drop_moved(&the_move()?).await,
        steps::LET_GO => ddl.let_go_of_database(&the_move()?).await,
        _ => return Ok(None),
    };
    done.map(|()| Some(DocBuf::default()))
}

impl Ddl<'_> {
    /// Asking the config servers first, this node has heard of every time that they have: the number is above those of all earlier
    /// definitions of the database.
    async fn look_at_primary(&self, db: &str, to: &ShardId) -> Result<DocBuf> {
        self.check_has_not_moved(db).await?;
        let Some(KnownDatabase::Here(version)) = self.sharding.metadata.known_database(db) else {
            return Err(Error::new(ErrorCode::NamespaceNotFound, format!("database {db} not found")));
        };
        let shards = self.cluster.catalog.refresh_shards().await?;
        if !shards.iter().any(|s| s.entry.id == *to) {
            return Err(Error::new(ErrorCode::ShardNotFound, format!("Shard {to} not found")));
        }
        let mut b = DocBuilder::new();
        if to != self.own_id() {
            version.append("version", &mut b);
            b.timestamp("timestamp", self.server.replication.note("a database moves", db)?);
        }
        Ok(b.finish())
    }

    /// Those that move, and those that are sharded, of which the other shard has to know the definition.
    async fn collections_to_move(&self, db: &str) -> Result<(Vec<Arc<Collection>>, Vec<Arc<Collection>>)> {
        let sharded: BTreeSet<Namespace> =
            self.sharded_collections(db).await?.into_iter().map(|(ns, _)| ns).collect();
        let all = self.server.access.definitions().collections(db);
        // What a server has profiled is its own.
        let all = all.into_iter().filter(|coll| coll.ns.coll() != "system.profile");
        Ok(all.partition(|coll| !sharded.contains(&coll.ns)))
    }
    async fn clone_database(&self, the_move: &Move<'_>) -> Result<()> {
        self.forget_moving(the_move.db);
        self.clean_there(the_move).await?;
        let (collections, sharded) = self.collections_to_move(the_move.db).await?;
        for coll in &sharded {
            self.define_there(the_move, coll, coll.uuid).await?;
        }
        for coll in &collections {
            let moving = self.begin_moving(the_move, coll).await?;
            if moving.is_copied {
                self.copy(the_move, &moving).await?;
            }
        }
        // Clients wait for the rest of it.
        for _ in 0..limits::MOVE_PRIMARY_ROUNDS_MAX {
            if self.give_all_changes(the_move).await? <= limits::MIGRATION_LITTLE_LEFT {
                break;
            }
        }
        // What cannot be made there yet is told when nobody writes any more.
        let (collections, _) = self.collections_to_move(the_move.db).await?;
        let _ = self.define_new_indexes(the_move, &collections).await;
        Ok(())
    }
    /// Indexes that were made here since the other shard was told of their collections.
    async fn define_new_indexes(&self, the_move: &Move<'_>, collections: &[Arc<Collection>]) -> Result<()> {
        for moving in self.sharding.moving_databases.of(the_move.db) {
            let Some(coll) = collections.iter().find(|coll| coll.uuid == moving.here) else { continue };
            let now = coll.ready_indexes().len();
            if now != moving.indexes.load(Relaxed) {
                self.define_there(the_move, coll, moving.there).await?;
                moving.indexes.store(now, Relaxed);
            }
        }
        Ok(())
    }
    /// Nobody writes any more who goes by the version of the database.
    async fn drain_database(&self, the_move: &Move<'_>) -> Result<()> {
        let (collections, _) = self.collections_to_move(the_move.db).await?;
        for coll in &collections {
            self.server.upkeep.maintenance.await_writers(&coll.ns).await;
        }
        // Whoever was on the way has made what it had to make.
        let (collections, _) = self.collections_to_move(the_move.db).await?;
        if let Some(coll) = collections.iter().find(|coll| !coll.building_indexes().is_empty()) {
            let text = format!("an index of {} is being built; try again when that is done", coll.ns);
            return Err(Error::new(ErrorCode::BackgroundOperationInProgressForNamespace, text));
        }
        for coll in &collections {
            let known = self.sharding.moving_databases.of(the_move.db);
            match known.into_iter().find(|m| m.here == coll.uuid) {
                Some(moving) if moving.is_copied => {}
                Some(moving) => self.copy(the_move, &moving).await?,
                None => {
                    let moving = self.begin_moving(the_move, coll).await?;
                    self.copy(the_move, &moving).await?;
                }
            }
        }
        let there: BTreeSet<Uuid> = collections.iter().map(|coll| coll.uuid).collect();
        for moving in self.sharding.moving_databases.of(the_move.db) {
            match there.contains(&moving.here) {
                true => while self.give_changes(the_move, &moving).await? > 0 {},
                // Something else has its name, or nothing.
                false if collections.iter().any(|coll| coll.ns == moving.ns) => {}
                false => self.drop_there(the_move, &moving.ns).await?,
            }
        }
        self.define_new_indexes(the_move, &collections).await?;
        self.seal(the_move, &collections).await
    }
    /// The end of each command to the other shard.
    fn numbered(&self, mut b: DocBuilder, the_move: &Move<'_>) -> Result<DocBuf> {
        b.timestamp(
            "timestamp",
            self.server.replication.note("a piece of a database is given", the_move.db)?,
        );
        append_majority(&mut b);
        b.str("$db", the_move.db);
        Ok(b.finish())
    }
    /// What is there and not sharded goes.
    async fn clean_there(&self, the_move: &Move<'_>) -> Result<()> {
        let mut b = DocBuilder::new();
        b.i32("_shardsvrFenceDatabase", 1).bool("clean", true);
        self.on_shard(&the_move.to, &self.numbered(b, the_move)?).await.map(drop)
    }
    /// Whatever else comes of this move there comes too late. It has to be there as it was given: a former primary of this shard that does
    /// not know of it yet may have begun a move as well.
    async fn seal(&self, the_move: &Move<'_>, collections: &[Arc<Collection>]) -> Result<()> {
        let mut b = DocBuilder::new();
        b.i32("_shardsvrFenceDatabase", 1).array("given", |list| {
            let all = self.sharding.moving_databases.of(the_move.db);
            for moving in all.iter().filter(|m| collections.iter().any(|coll| coll.uuid == m.here)) {
                list.doc(|d| _ = d.str("name", moving.ns.coll()).uuid("uuid", &moving.there.0));
            }
        });
        self.on_shard(&the_move.to, &self.numbered(b, the_move)?).await.map(drop)
    }

    async fn define_there(&self, the_move: &Move<'_>, coll: &Collection, uuid: Uuid) -> Result<()> {
        let mut b = DocBuilder::new();
        b.str("_shardsvrCreateCollectionParticipant", coll.ns.coll()).uuid("collectionUUID", &uuid.0);
        b.raw_doc("options", &coll.options.to_doc());
        // The one by `_id` comes with the collection.
        let is_made = |index: &&DocBuf| index.get("name").and_then(|v| v.as_str()) != Some("_id_");
        let indexes = coll.index_docs(false);
        b.array("indexes", |list| indexes.iter().filter(is_made).for_each(|index| _ = list.raw_doc(index)));
        self.on_shard(&the_move.to, &self.numbered(b, the_move)?).await.map(drop)
    }
    async fn drop_there(&self, the_move: &Move<'_>, ns: &Namespace) -> Result<()> {
        let mut b = DocBuilder::new();
        b.str("_shardsvrDropCollectionParticipant", ns.coll());
        self.on_shard(&the_move.to, &self.numbered(b, the_move)?).await.map(drop)
    }

    /// Makes the collection there, and records what is written here from now on.
    async fn begin_moving(&self, the_move: &Move<'_>, coll: &Collection) -> Result<Arc<MovingCollection>> {
        let (there, id) =
            (self.server.upkeep.maintenance.new_uuid(), self.server.upkeep.maintenance.new_uuid());
        // Another one of the name may have been given before.
        self.drop_there(the_move, &coll.ns).await?;
        self.define_there(the_move, coll, there).await?;
        let by_id = ShardKey::parse(&doc! { "_id": 1 }.to_raw())?;
        let whole = Migration {
            id,
            ns: coll.ns.clone(),
            uuid: coll.uuid,
            donor: self.own_id().as_str().to_owned(),
            recipient: the_move.to.as_str().to_owned(),
            min: by_id.least(),
            max: by_id.greatest(),
            key: by_id.pattern().to_buf(),
        };
        for tries in 1.. {
            match record_in(self, &whole, range_of(self, &whole)?).await {
                Ok(()) => break,
                // Somebody's transaction goes on.
                Err(e) if e.code == ErrorCode::LockTimeout && tries < limits::MOVE_PRIMARY_TRIES_MAX => {
                    self.ctx.env().clock.sleep(Duration::from_millis(limits::MOVE_PRIMARY_RETRY_MS)).await;
                }
                Err(e) => {
                    // Nobody else knows of it yet.
                    self.sharding.donations.end(id);
                    return Err(e);
                }
            }
        }
        let donation = self.sharding.donations.of(id)?;
        let moving = MovingCollection {
            ns: coll.ns.clone(),
            here: coll.uuid,
            there,
            donation,
            is_copied: !coll.is_capped(),
            indexes: AtomicUsize::new(coll.ready_indexes().len()),
            turns: Turns::default(),
        };
        Ok(self.sharding.moving_databases.add(moving))
    }
    /// In the order of the collection. What is written meanwhile is recorded.
    async fn copy(&self, the_move: &Move<'_>, moving: &MovingCollection) -> Result<()> {
        let maintenance = &self.server.upkeep.maintenance;
        let (max, bytes_max) = (limits::MIGRATION_HELPING_DOCUMENTS_MAX, limits::MIGRATION_REPLY_BYTES_MAX);
        let mut after = None;
        for turn in 1.. {
            let (ns, uuid) = (&moving.ns, moving.here);
            let (docs, last) = maintenance.documents_behind(ns, uuid, after.as_ref(), max, bytes_max)?;
            if docs.is_empty() {
                break;
            }
            after = last;
            self.give(the_move, moving, Given { docs: &docs, ..Given::default() }).await?;
            // What is recorded is kept in memory.
            if turn % limits::MOVE_PRIMARY_TURNS_BETWEEN == 0 {
                self.give_all_changes(the_move).await?;
            }
        }
        Ok(())
    }
    async fn give_all_changes(&self, the_move: &Move<'_>) -> Result<usize> {
        let mut given = 0;
        for moving in self.sharding.moving_databases.of(the_move.db) {
            given += self.give_changes(the_move, &moving).await?;
        }
        Ok(given)
    }
    /// What was written since the last turn, and what sessions have done; how much that was.
    async fn give_changes(&self, the_move: &Move<'_>, moving: &MovingCollection) -> Result<usize> {
        let maintenance = &self.server.upkeep.maintenance;
        let mut given = 0;
        // Of capped ones everything goes at the end.
        if moving.is_copied {
            let changed = moving.donation.changed(maintenance, RECEIVER, moving.turns.next_changes())?;
            given = changed.gone.len() + changed.written.len();
            if given > 0 {
                let all = Given { docs: &changed.written, gone: &changed.gone, ..Given::default() };
                self.give(the_move, moving, all).await?;
            }
        }
        loop {
            let number = moving.turns.next_histories();
            let history = moving.donation.histories(&self.server.sessions, RECEIVER, number)?;
            if !history.entries.is_empty() {
                let all = Given { entries: &history.entries, ..Given::default() };
                self.give(the_move, moving, all).await?;
            }
            given += history.entries.len();
            if !history.more {
                return Ok(given);
            }
        }
    }
    async fn give(&self, the_move: &Move<'_>, moving: &MovingCollection, given: Given<'_>) -> Result<()> {
        let mut b = DocBuilder::new();
        b.str("_shardsvrTakeMovedDocuments", moving.ns.coll()).uuid("collectionUUID", &moving.there.0);
        let body = self.numbered(b, the_move)?;
        let (docs, gone, entries) = (refs(given.docs), refs(given.gone), refs(given.entries));
        let sequences = [("documents", &docs[..]), ("deleted", &gone[..]), ("oplog", &entries[..])];
        let sequences: Vec<_> = sequences.into_iter().filter(|(_, docs)| !docs.is_empty()).collect();
        self.on_shard_with(&the_move.to, &body, &sequences).await.map(drop)
    }

    fn forget_moving(&self, db: &str) {
        let moving = self.sharding.moving_databases.end(db);
        moving.iter().for_each(|moving| self.sharding.donations.end(moving.donation.id()));
    }
    /// The database is the other shard's. It may be on its way back already: then what is left here has gone before.
    async fn drop_moved(&self, the_move: &Move<'_>) -> Result<()> {
        self.forget_moving(the_move.db);
        match self.fence_database(the_move.db, the_move.at, Fenced::Cleaned).await {
            Err(e) if e.code != ErrorCode::TransactionTooOld => return Err(e),
            _ => {}
        }
        self.sharding.refresh_database_anew(the_move.db).await
    }
    /// What the other shard was given goes there, unless the shard has gone itself, or has heard of a newer move.
    async fn let_go_of_database(&self, the_move: &Move<'_>) -> Result<()> {
        self.forget_moving(the_move.db);
        match self.clean_there(the_move).await {
            Err(e) if e.code != ErrorCode::ShardNotFound && e.code != ErrorCode::TransactionTooOld => Err(e),
            _ => Ok(()),
        }
    }

    /// Takes what the former primary shard of a database has of a collection.
    ///
    /// # Errors
    /// 225 where the move is over, or another one has begun.
    pub(crate) async fn take_moved(
        &self,
        ns: &Namespace,
        uuid: Uuid,
        at: Timestamp,
        given: Given<'_>,
    ) -> Result<()> {
        let _part = self.take_part(ns, Some(at), true).await?;
        let (maintenance, stop) = (&self.server.upkeep.maintenance, &pando_access::Uninterrupted);
        maintenance.remove_moved(stop, ns, uuid, given.gone, &|_| true).await?;
        maintenance.put_moved(stop, ns, uuid, given.docs, &|_| true).await?;
        self.server.sessions.take_moved(stop, given.entries).await?;
        self.ctx.wrote(self.server.replication.last_applied());
        Ok(())
    }
    /// From now on nothing of the database is taken that has an older number.
    ///
    /// # Errors
    /// 225 where a newer number was here; 96 where something is not here that was given.
    pub(crate) async fn fence_database(&self, db: &str, at: Timestamp, fenced: Fenced<'_>) -> Result<()> {
        let internal = self.server.access.internal_collections();
        let part = self.sharding.take_part_in_database(&internal, db, Some(at)).await?;
        part.wrote.iter().for_each(|at| self.ctx.wrote(*at));
        match fenced {
            Fenced::Cleaned => {
                let (collections, _) = self.collections_to_move(db).await?;
                for coll in collections {
                    let dropped = self.server.access.drop_part(self.ctx, &coll.ns).await;
                    self.dropped(&coll.ns, dropped)?;
                }
                Ok(())
            }
            Fenced::Sealed(given) => {
                // What is sharded of it the former primary shard knows.
                self.sharding.keep_times(&internal).await?;
                let definitions = self.server.access.definitions();
                for one in given.iter().filter_map(|e| e.value().as_doc().map(RawDoc::to_buf)) {
                    let uuid = match one.get("uuid") {
                        Some(Value::Binary { bytes, .. }) => Uuid::from_slice(bytes),
                        _ => None,
                    };
                    let name =
                        one.get("name").and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default();
                    let there = definitions.collection(&Namespace::new(db, &name)?).map(|coll| coll.uuid);
                    if there.is_none() || there != uuid {
                        let text = format!("{db}.{name} is not here as it was given; try again");
                        return Err(Error::new(ErrorCode::OperationFailed, text));
                    }
                }
                let since = self.server.replication.last_applied().ts;
                self.ctx.wrote(fences::note_arrival(&internal, db, at, since).await?);
                Ok(())
            }
        }
    }
}

/// What becomes of a database here.
pub(crate) enum Fenced<'a> {
    /// What is here of it that is not sharded goes. Nobody reads that, and no change stream hears of it.
    Cleaned,
    /// It is to be this shard's, with these collections: `[{name, uuid}]`.
    Sealed(&'a RawDoc),
}

fn refs(docs: &[DocBuf]) -> Vec<&RawDoc> {
    docs.iter().map(|doc| &**doc).collect()
}

/// What goes to the other shard at once: what is gone goes first, since its `_id` may be another document's by now.
#[derive(Default)]
pub(crate) struct Given<'a> {
    pub(crate) docs: &'a [DocBuf],
    pub(crate) gone: &'a [DocBuf],
    pub(crate) entries: &'a [DocBuf],
}
