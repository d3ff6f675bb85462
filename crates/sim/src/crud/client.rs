//! One simulated user: random writes to keys of its own, each followed in the model, and reads that must agree.

use super::model::{KeyName, Model, Row};
use crate::client::Client;
use crate::executor::lock;
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};
use pando_env::Env;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(super) const DB: &str = "sim";
pub(super) const COLLECTIONS: [&str; 2] = ["a", "b"];
/// Keys per client and collection: few, so that each sees many writes.
const KEYS: u64 = 12;

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
}

pub(super) struct User {
    env: Env,
    owner: i64,
    shared: Shared,
    client: Client,
    counter: i64,
}

/// How a command ended for its sender.
enum Outcome {
    Done(DocBuf),
    /// No reply, or one that leaves open whether the write happened.
    Unknown,
}

impl User {
    /// Works until told to stop or until the connection ends.
    pub(super) async fn run(env: Env, owner: i64, shared: Shared) {
        let Ok(client) = Client::connect(&env, &shared.addr).await else { return };
        let counter = (env.clock.mono().as_micros() as i64) << 4;
        let mut user = User { env, owner, shared, client, counter };
        while !user.shared.stop.load(Relaxed) {
            let pause = Duration::from_micros(user.below(3000));
            user.env.clock.sleep(pause).await;
            if user.act().await.is_none() {
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

    /// One random step; `None` when this user cannot go on.
    async fn act(&mut self) -> Option<()> {
        match self.below(100) {
            0..=19 => self.insert().await,
            20..=44 => self.update().await,
            45..=54 => self.replace().await,
            55..=66 => self.delete().await,
            67..=74 => self.find_and_modify().await,
            75..=79 => self.update_all().await,
            80..=81 => self.index().await,
            _ => self.read().await,
        }
    }

    /// Sends a write whose outcome, if it happens, is `writes`.
    async fn write(
        &mut self,
        body: impl FnOnce(&mut DocBuilder),
        writes: Vec<(KeyName, Option<Row>)>,
    ) -> Option<DocBuf> {
        let mut b = DocBuilder::new();
        body(&mut b);
        let durable = match self.below(4) {
            0 => {
                b.doc("writeConcern", |w| {
                    w.i32("w", 1).bool("j", true);
                });
                true
            }
            1 => {
                b.doc("writeConcern", |w| {
                    w.str("w", "majority");
                });
                true
            }
            _ => {
                b.doc("writeConcern", |w| {
                    w.i32("w", 1);
                });
                false
            }
        };
        b.str("$db", DB);
        let pending = self.model().begin(writes);
        match self.send(&b.finish()).await {
            Outcome::Done(reply) => {
                self.model().acknowledge(pending, durable);
                Some(reply)
            }
            Outcome::Unknown => None,
        }
    }

    async fn send(&mut self, body: &RawDoc) -> Outcome {
        let Ok(reply) = self.client.command(body).await else { return Outcome::Unknown };
        let ok = reply.get("ok").and_then(|v| v.as_f64()) == Some(1.0);
        if ok && reply.get("writeErrors").is_none() && reply.get("writeConcernError").is_none() {
            return Outcome::Done(reply);
        }
        // A server that goes down may say so; nothing else may fail.
        let code = ["code", "writeConcernError.code"]
            .iter()
            .find_map(|path| reply.get_path(path).and_then(|v| v.as_i64()));
        let going_down = matches!(code, Some(91 | 11600 | 11602 | 10107 | 189));
        if !going_down && !self.shared.lenient.load(Relaxed) {
            self.report(format!("unexpected reply {reply} to {body}"));
        }
        Outcome::Unknown
    }

    async fn insert(&mut self) -> Option<()> {
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
            return Some(());
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
        self.expect(&reply, "n", rows.len() as i64);
        Some(())
    }

    fn expect(&self, reply: &RawDoc, field: &str, want: i64) {
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

    async fn update(&mut self) -> Option<()> {
        let (coll, id) = self.key();
        let before = self.model().get((coll, id)).cloned();
        let Some(before) = before else { return Some(()) };
        let (u, after) = self.modification(&before);
        let body = |b: &mut DocBuilder| update_command(b, coll, id, &u, false);
        let reply = self.write(body, vec![((coll, id), Some(after))]).await?;
        self.expect(&reply, "n", 1);
        Some(())
    }

    async fn replace(&mut self) -> Option<()> {
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
        self.expect(&reply, "n", 1);
        Some(())
    }

    async fn delete(&mut self) -> Option<()> {
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
        self.expect(&reply, "n", i64::from(present));
        Some(())
    }

    async fn find_and_modify(&mut self) -> Option<()> {
        let (coll, id) = self.key();
        let before = self.model().get((coll, id)).cloned();
        let Some(before) = before else { return Some(()) };
        let (u, after) = self.modification(&before);
        let body = |b: &mut DocBuilder| {
            b.str("findAndModify", coll).doc("query", |q| {
                q.i64("_id", id);
            });
            b.raw_doc("update", &u).bool("new", true);
        };
        let reply = self.write(body, vec![((coll, id), Some(after.clone()))]).await?;
        let got = reply.get("value").and_then(|v| v.as_doc()).map(Row::read);
        if got != Some(Ok((id, after))) {
            self.report(format!("findAndModify of {before:?} with {u} returned {got:?}"));
        }
        Some(())
    }

    /// Every document of this user in one command.
    async fn update_all(&mut self) -> Option<()> {
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
        self.expect(&reply, "n", count);
        Some(())
    }

    /// Builds or drops an index while others write.
    async fn index(&mut self) -> Option<()> {
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
        let reply = self.client.command(&b.finish()).await.ok()?;
        // Not there (27, 26), or somebody else is at it: fine.
        let code = reply.get("code").and_then(|v| v.as_i64());
        match code {
            None | Some(26 | 27 | 85 | 86 | 238 | 276 | 12586 | 12587) => Some(()),
            Some(91 | 11600 | 11602) => None,
            Some(_) if self.shared.lenient.load(Relaxed) => None,
            Some(_) => {
                self.report(format!("index command failed: {reply}"));
                None
            }
        }
    }

    /// Reads what only this user writes; it must be just so.
    async fn read(&mut self) -> Option<()> {
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
        let Outcome::Done(reply) = self.send(&b.finish()).await else { return None };
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
        Some(())
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
