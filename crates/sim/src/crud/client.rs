//! One simulated user: random writes to keys of its own, each followed in the model, and reads that must agree.

use super::model::{KeyName, Model, Pending, Row};
use crate::client::Client;
use crate::executor::lock;
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};
use pando_env::Env;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(super) const DB: &str = "sim";
pub(super) const COLLECTIONS: [&str; 2] = ["a", "b"];
/// Keys per client and collection: few, so that each sees many writes.
const KEYS: u64 = 12;
/// A user whose connection broke does not know what became of its last write: it goes on with other keys.
const NEXT_LIFE: i64 = 100;
/// Between two attempts to connect.
const RECONNECT: Duration = Duration::from_millis(5);

/// What all users of a run share.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) addr: String,
    pub(super) model: Arc<Mutex<Model>>,
    /// Findings: any is a failure of the run.
    pub(super) problems: Arc<Mutex<Vec<String>>>,
    pub(super) stop: Arc<AtomicBool>,
    /// Errors are expected: the disk is full or failing.
    pub(super) lenient: Arc<AtomicBool>,
    /// Number of the collection on which indexes are built.
    pub(super) big: Arc<AtomicI64>,
    /// An index is being built there.
    pub(super) building: Arc<AtomicBool>,
}

impl Shared {
    /// A reply that says something else than success, or one of the codes in `fine`, ends a connection. Only a
    /// server that goes down may give one; anything else is a finding.
    pub(super) fn judge(&self, reply: &RawDoc, body: &RawDoc, fine: &[i64]) -> Result<(), Ended> {
        let ok = reply.get("ok").and_then(|v| v.as_f64()) == Some(1.0);
        if ok && reply.get("writeErrors").is_none() && reply.get("writeConcernError").is_none() {
            return Ok(());
        }
        let code = ["code", "writeConcernError.code"]
            .iter()
            .find_map(|path| reply.get_path(path).and_then(|v| v.as_i64()));
        if code.is_some_and(|c| fine.contains(&c)) {
            return Ok(());
        }
        let going_down = matches!(code, Some(91 | 11600 | 11602 | 10107 | 189));
        if !going_down && !self.lenient.load(Relaxed) {
            lock(&self.problems).push(format!("unexpected reply {reply} to {body}"));
        }
        Err(Ended)
    }
}

pub(super) struct User {
    env: Env,
    owner: i64,
    shared: Shared,
    client: Client,
    counter: i64,
    /// Sent with `w: 0`: done once the reply to a later command has come.
    unanswered: Vec<Pending>,
}

/// No reply, or one that leaves open whether the write happened: this connection is of no more use.
pub(super) struct Ended;

impl User {
    /// Works until told to stop, over as many connections as it takes.
    pub(super) async fn run(env: Env, mut owner: i64, shared: Shared) {
        while !shared.stop.load(Relaxed) {
            if let Ok(client) = Client::connect(&env, &shared.addr).await {
                let counter = (env.clock.mono().as_micros() as i64) << 4;
                let (env, shared, unanswered) = (env.clone(), shared.clone(), Vec::new());
                User { env, owner, shared, client, counter, unanswered }.work().await;
                owner += NEXT_LIFE;
            }
            env.clock.sleep(RECONNECT).await;
        }
    }
    /// Until told to stop or until the connection ends.
    async fn work(mut self) {
        while !self.shared.stop.load(Relaxed) {
            let pause = Duration::from_micros(self.below(3000));
            self.env.clock.sleep(pause).await;
            if self.act().await.is_err() {
                return;
            }
        }
    }
    fn below(&self, n: u64) -> u64 {
        self.env.rng.next_u64() % n
    }
    fn model(&self) -> std::sync::MutexGuard<'_, Model> {
        lock(&self.shared.model)
    }
    fn report(&self, text: String) {
        lock(&self.shared.problems).push(format!("user {}: {text}", self.owner));
    }
    fn key(&self) -> KeyName {
        let coll = COLLECTIONS[self.below(2) as usize];
        (coll, self.owner * 1000 + self.below(KEYS) as i64)
    }
    fn fresh_row(&mut self) -> Row {
        self.counter += 1;
        let tags = (0..self.below(4)).map(|_| self.below(5) as i64).collect();
        let s = (self.below(3) > 0).then(|| "x".repeat(self.below(300) as usize));
        Row { owner: self.owner, c: 0, v: self.counter, tags, s }
    }

    /// One random step.
    async fn act(&mut self) -> Result<(), Ended> {
        match self.below(100) {
            0..=19 => self.insert().await,
            20..=44 => self.update().await,
            45..=54 => self.replace().await,
            55..=66 => self.delete().await,
            67..=74 => self.find_and_modify().await,
            75..=79 => self.update_all().await,
            80..=81 => self.index().await,
            82..=83 => self.touch_big().await,
            _ => self.read().await,
        }
    }

    /// Sends a write whose outcome, if it happens, is `writes`; `None` when there will be no reply.
    async fn write(
        &mut self,
        body: impl FnOnce(&mut DocBuilder),
        writes: Vec<(KeyName, Option<Row>)>,
    ) -> Result<Option<DocBuf>, Ended> {
        let mut b = DocBuilder::new();
        body(&mut b);
        let concern = Concern::any(self.below(9));
        concern.append(&mut b);
        b.str("$db", DB);
        let pending = self.model().begin(writes);
        if concern == Concern::None {
            self.unanswered.push(pending);
            let sent = self.client.send_only(&b.finish()).await;
            return sent.map(|()| None).map_err(|_| Ended);
        }
        let reply = self.send(&b.finish()).await?;
        self.model().acknowledge(pending, concern.is_durable());
        Ok(Some(reply))
    }

    async fn send(&mut self, body: &RawDoc) -> Result<DocBuf, Ended> {
        let reply = self.client.command(body).await.map_err(|_| Ended)?;
        self.shared.judge(&reply, body, &[])?;
        // One connection's commands are carried out in order. Where errors are expected, one may have met these.
        if !self.unanswered.is_empty() && self.shared.lenient.load(Relaxed) {
            return Err(Ended);
        }
        for pending in std::mem::take(&mut self.unanswered) {
            self.model().acknowledge(pending, false);
        }
        Ok(reply)
    }

    async fn insert(&mut self) -> Result<(), Ended> {
        let (coll, _) = self.key();
        let mut rows: Vec<(i64, Row)> = Vec::new();
        for _ in 0..1 + self.below(3) {
            let id = self.key().1;
            let absent = self.model().get((coll, id)).is_none();
            if absent && rows.iter().all(|(i, _)| *i != id) {
                let row = self.fresh_row();
                rows.push((id, row));
            }
        }
        if rows.is_empty() {
            return Ok(());
        }
        let writes = rows.iter().map(|(id, row)| ((coll, *id), Some(row.clone()))).collect();
        let body = |b: &mut DocBuilder| {
            b.str("insert", coll).array("documents", |a| {
                for (id, row) in &rows {
                    a.raw_doc(&row.to_doc(*id));
                }
            });
        };
        let reply = self.write(body, writes).await?;
        self.expect(reply.as_deref(), "n", rows.len() as i64);
        Ok(())
    }

    fn expect(&self, reply: Option<&RawDoc>, field: &str, want: i64) {
        let Some(reply) = reply else { return };
        if reply.get(field).and_then(|v| v.as_i64()) != Some(want) {
            self.report(format!("{field} should be {want} in {reply}"));
        }
    }

    /// A modification in MongoDB's words and in the model's.
    fn modification(&mut self, row: &Row) -> (DocBuf, Row) {
        let mut row = row.clone();
        self.counter += 1;
        let n = self.counter;
        let mut b = DocBuilder::new();
        match self.below(4) {
            0 => {
                row.v = n;
                b.doc("$set", |s| {
                    s.i64("v", n);
                });
            }
            1 => {
                row.c += n % 7 + 1;
                row.s = Some(format!("s{n}"));
                b.doc("$inc", |s| {
                    s.i64("c", n % 7 + 1);
                });
                b.doc("$set", |s| {
                    s.str("s", &format!("s{n}"));
                });
            }
            2 => {
                row.tags.push(n);
                b.doc("$push", |s| {
                    s.i64("tags", n);
                });
            }
            _ => {
                row.s = None;
                row.tags.retain(|t| *t >= 3);
                row.v = n;
                b.doc("$unset", |s| {
                    s.str("s", "");
                });
                b.doc("$pull", |s| {
                    s.doc("tags", |t| {
                        t.i64("$lt", 3);
                    });
                });
                b.doc("$set", |s| {
                    s.i64("v", n);
                });
            }
        }
        (b.finish(), row)
    }

    async fn update(&mut self) -> Result<(), Ended> {
        let (coll, id) = self.key();
        let before = self.model().get((coll, id)).cloned();
        let Some(before) = before else { return Ok(()) };
        let (u, after) = self.modification(&before);
        let body = |b: &mut DocBuilder| update_command(b, coll, id, &u, false);
        let reply = self.write(body, vec![((coll, id), Some(after))]).await?;
        self.expect(reply.as_deref(), "n", 1);
        Ok(())
    }

    async fn replace(&mut self) -> Result<(), Ended> {
        let (coll, id) = self.key();
        let row = self.fresh_row();
        // The id comes from the query.
        let mut u = DocBuilder::new();
        for e in row.to_doc(id).iter().filter(|e| e.name() != "_id") {
            u.elem(e);
        }
        let u = u.finish();
        let body = |b: &mut DocBuilder| update_command(b, coll, id, &u, true);
        let reply = self.write(body, vec![((coll, id), Some(row))]).await?;
        self.expect(reply.as_deref(), "n", 1);
        Ok(())
    }

    async fn delete(&mut self) -> Result<(), Ended> {
        let (coll, id) = self.key();
        let present = self.model().get((coll, id)).is_some();
        let body = |b: &mut DocBuilder| {
            b.str("delete", coll).array("deletes", |a| {
                a.doc(|d| {
                    d.doc("q", |q| {
                        q.i64("_id", id);
                    });
                    d.i32("limit", 1);
                });
            });
        };
        let reply = self.write(body, vec![((coll, id), None)]).await?;
        self.expect(reply.as_deref(), "n", i64::from(present));
        Ok(())
    }

    async fn find_and_modify(&mut self) -> Result<(), Ended> {
        let (coll, id) = self.key();
        let before = self.model().get((coll, id)).cloned();
        let Some(before) = before else { return Ok(()) };
        let (u, after) = self.modification(&before);
        let body = |b: &mut DocBuilder| {
            b.str("findAndModify", coll).doc("query", |q| {
                q.i64("_id", id);
            });
            b.raw_doc("update", &u).bool("new", true);
        };
        let Some(reply) = self.write(body, vec![((coll, id), Some(after.clone()))]).await? else {
            return Ok(());
        };
        let got = reply.get("value").and_then(|v| v.as_doc()).map(Row::read);
        if got != Some(Ok((id, after))) {
            self.report(format!("findAndModify of {before:?} with {u} returned {got:?}"));
        }
        Ok(())
    }

    /// Every document of this user in one command.
    async fn update_all(&mut self) -> Result<(), Ended> {
        let coll = self.key().0;
        let rows = self.model().of_owner(coll, self.owner);
        let delta = 1 + self.below(5) as i64;
        let count = rows.len() as i64;
        let writes =
            rows.into_iter().map(|(id, row)| ((coll, id), Some(Row { c: row.c + delta, ..row }))).collect();
        let owner = self.owner;
        let body = |b: &mut DocBuilder| {
            b.str("update", coll).array("updates", |a| {
                a.doc(|d| {
                    d.doc("q", |q| {
                        q.i64("owner", owner);
                    });
                    d.doc("u", |u| {
                        u.doc("$inc", |i| {
                            i.i64("c", delta);
                        });
                    });
                    d.bool("multi", true);
                });
            });
        };
        let reply = self.write(body, writes).await?;
        self.expect(reply.as_deref(), "n", count);
        Ok(())
    }

    /// Builds or drops an index while others write.
    async fn index(&mut self) -> Result<(), Ended> {
        let coll = self.key().0;
        let (name, key) = match self.below(3) {
            0 => ("by_v", pando_bson::doc! { "v": 1 }),
            1 => ("by_owner_c", pando_bson::doc! { "owner": 1, "c": -1 }),
            _ => ("by_tags", pando_bson::doc! { "tags": 1 }),
        };
        let mut b = DocBuilder::new();
        if self.below(3) > 0 {
            b.str("createIndexes", coll).array("indexes", |a| {
                a.doc(|i| {
                    i.raw_doc("key", &key.to_raw()).str("name", name);
                });
            });
        } else {
            b.str("dropIndexes", coll).str("index", name);
        }
        b.str("$db", DB);
        let body = b.finish();
        let reply = self.client.command(&body).await.map_err(|_| Ended)?;
        // Not there, or stopped by somebody who drops it: fine.
        const NAMESPACE_NOT_FOUND: i64 = 26;
        const INDEX_NOT_FOUND: i64 = 27;
        const INDEX_BUILD_ABORTED: i64 = 276;
        self.shared.judge(&reply, &body, &[NAMESPACE_NOT_FOUND, INDEX_NOT_FOUND, INDEX_BUILD_ABORTED])
    }

    /// Changes documents on which the builder builds indexes; nobody follows their contents.
    async fn touch_big(&mut self) -> Result<(), Ended> {
        let coll = super::builder::name(self.shared.big.load(Relaxed));
        let mut u = DocBuilder::new();
        let n = self.below(5) as i64;
        match self.below(3) {
            0 => u.doc("$push", |p| {
                p.i64("tags", n);
            }),
            1 => u.doc("$set", |p| {
                p.raw_doc("v", &pando_bson::doc! { "x": n }.to_raw());
            }),
            _ => u.doc("$inc", |p| {
                p.i64("c", n);
            }),
        };
        let mut b = DocBuilder::new();
        update_command(&mut b, &coll, self.below(super::builder::DOCS) as i64, &u.finish(), false);
        b.str("$db", DB);
        self.send(&b.finish()).await.map(drop)
    }

    /// Reads what only this user writes; it must be just so.
    async fn read(&mut self) -> Result<(), Ended> {
        let (coll, id) = self.key();
        let mut b = DocBuilder::new();
        b.str("find", coll);
        let all = self.below(3) == 0;
        let owner = self.owner;
        b.doc("filter", |f| {
            if all {
                f.i64("owner", owner);
            } else {
                f.i64("_id", id);
            }
        });
        b.i32("batchSize", 1000).str("$db", DB);
        let reply = self.send(&b.finish()).await?;
        let batch = reply.get_path("cursor.firstBatch").and_then(|v| v.as_array());
        let got: Result<Vec<(i64, Row)>, String> =
            batch.into_iter().flatten().filter_map(|e| e.value().as_doc()).map(Row::read).collect();
        let got = got.map(|mut rows| {
            rows.sort_by_key(|(id, _)| *id);
            rows
        });
        let want = if all {
            self.model().of_owner(coll, owner)
        } else {
            self.model().get((coll, id)).map(|row| (id, row.clone())).into_iter().collect()
        };
        if got != Ok(want.clone()) {
            self.report(format!("read of {coll} {id} (all: {all}) gave {got:?}, not {want:?}"));
        }
        Ok(())
    }
}

/// Write concerns that the users draw from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Concern {
    /// `w: 0`: no reply.
    None,
    One,
    Journaled,
    Majority,
}

impl Concern {
    fn any(random: u64) -> Concern {
        match random {
            0 => Concern::None,
            1..=4 => Concern::One,
            5 | 6 => Concern::Journaled,
            _ => Concern::Majority,
        }
    }
    fn append(self, b: &mut DocBuilder) {
        b.doc("writeConcern", |w| match self {
            Concern::None => drop(w.i32("w", 0)),
            Concern::One => drop(w.i32("w", 1)),
            Concern::Journaled => drop(w.i32("w", 1).bool("j", true)),
            Concern::Majority => drop(w.str("w", "majority")),
        });
    }
    fn is_durable(self) -> bool {
        matches!(self, Concern::Journaled | Concern::Majority)
    }
}

fn update_command(b: &mut DocBuilder, coll: &str, id: i64, u: &RawDoc, upsert: bool) {
    b.str("update", coll).array("updates", |a| {
        a.doc(|d| {
            d.doc("q", |q| {
                q.value("_id", Value::Int64(id));
            });
            d.raw_doc("u", u).bool("upsert", upsert);
        });
    });
}
