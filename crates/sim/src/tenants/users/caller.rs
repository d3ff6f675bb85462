//! How users reach their tenants: one connection each, to the set that has the tenant for all that the user knows.

use super::super::board::{Board, View};
use super::super::{Home, database};
use crate::client::Client;
use crate::executor::lock;
use crate::set::asking::primary_within;
use pando_base::Timestamp;
use pando_bson::{Binary, Bson, DocBuf, Document, RawDoc, Value, doc};
use pando_env::Env;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// After this nobody waits for a reply any more.
pub(in super::super) const PATIENCE: Duration = Duration::from_secs(9);

const CONFLICT: i64 = 320;
const COMMITTED: i64 = 321;
const ABORTED: i64 = 325;

/// What every user is given.
#[derive(Clone)]
pub(in super::super) struct Place {
    pub(in super::super) env: Env,
    /// Of the two sets.
    pub(in super::super) addrs: [Vec<String>; 2],
    pub(in super::super) user: i64,
    pub(in super::super) pause_ms: u64,
    pub(in super::super) stop: Arc<AtomicBool>,
    pub(in super::super) board: Arc<Mutex<Board>>,
}

/// What came back.
pub(in super::super) enum Answer {
    /// Nobody knows what became of the command.
    Nothing,
    Reply(View, DocBuf),
    /// It was not carried out: the tenant moves, or is elsewhere; it is to be sent again.
    Again,
}

pub(in super::super) struct Caller {
    pub(in super::super) place: Place,
    kind: u8,
    connected: Option<(String, Client)>,
    primaries: [Option<usize>; 2],
    /// Where this user was told to look for a tenant, behind how many announced moves.
    told: BTreeMap<usize, View>,
    /// The newest time that a reply told, as it told it: of both sets where they have one history.
    times: [Option<(Timestamp, DocBuf)>; 2],
}

/// The code of a reply, wherever it says it.
pub(in super::super) fn code_of(reply: &RawDoc) -> i64 {
    let code = |doc: &RawDoc| doc.get("code").and_then(|v| v.as_i64());
    let inner = || {
        let errors = reply.get("writeErrors").and_then(|v| v.as_array())?;
        errors.iter().find_map(|e| code(e.value().as_doc()?))
    };
    let concern = || code(reply.get("writeConcernError")?.as_doc()?);
    code(reply).or_else(inner).or_else(concern).unwrap_or(0)
}

impl Caller {
    /// Users' sessions of one kind have a number in common.
    pub(in super::super) fn new(place: Place, kind: u8) -> Caller {
        let (told, times) = (BTreeMap::new(), [None, None]);
        Caller { place, kind, connected: None, primaries: [None; 2], told, times }
    }
    pub(in super::super) fn below(&self, n: u64) -> u64 {
        self.place.env.rng.next_u64() % n
    }
    pub(in super::super) fn now(&self) -> Duration {
        self.place.env.clock.mono()
    }
    pub(in super::super) fn stopped(&self) -> bool {
        self.place.stop.load(Relaxed)
    }
    pub(in super::super) fn some_tenant(&self) -> usize {
        let tenants = lock(&self.place.board).tenants.len();
        self.below(tenants as u64) as usize
    }
    /// Between two commands.
    pub(in super::super) async fn pause(&mut self) {
        let ms = self.below(self.place.pause_ms * 2);
        self.place.env.clock.sleep(Duration::from_millis(ms)).await;
    }
    /// A session, by a number of this user's.
    pub(in super::super) fn session(&self, number: u8) -> Document {
        let mut bytes = vec![self.kind; 16];
        bytes[..8].copy_from_slice(&self.place.user.to_le_bytes());
        bytes[8] = number;
        let mut lsid = Document::new();
        lsid.push("id", Bson::Binary(Binary { subtype: 4, bytes }));
        lsid
    }
    /// Where a tenant is, for all that this user knows.
    pub(in super::super) fn view(&self, tenant: usize) -> View {
        self.view_on(&lock(&self.place.board), tenant)
    }
    fn view_on(&self, board: &Board, tenant: usize) -> View {
        let announced = board.announced(tenant);
        let told = self.told.get(&tenant).filter(|told| told.moves > announced.moves);
        *told.unwrap_or(&announced)
    }

    /// At the primary of the tenant's set.
    pub(in super::super) async fn ask(&mut self, tenant: usize, body: &Document) -> Answer {
        self.ask_primary(tenant, self.view(tenant), body).await
    }
    /// At the primary of the set that would have the tenant.
    pub(in super::super) async fn ask_primary(
        &mut self,
        tenant: usize,
        view: View,
        body: &Document,
    ) -> Answer {
        let which = view.home as usize;
        let (env, addrs) = (self.place.env.clone(), self.place.addrs[which].clone());
        let at = match self.primaries[which] {
            Some(at) => at,
            None => match primary_within(&env, &addrs, PATIENCE).await {
                Some(at) => at,
                None => return Answer::Nothing,
            },
        };
        let answer = self.ask_at(tenant, view, at, body).await;
        let still = matches!(&answer, Answer::Reply(_, r) if !crate::set::users::is_not_primary(r));
        self.primaries[which] = (still || matches!(answer, Answer::Again)).then_some(at);
        answer
    }
    /// At whichever member of the tenant's set.
    pub(in super::super) async fn ask_anybody(&mut self, tenant: usize, body: &Document) -> Answer {
        let view = self.view(tenant);
        let at = self.below(self.place.addrs[view.home as usize].len() as u64) as usize;
        self.ask_at(tenant, view, at, body).await
    }
    async fn ask_at(&mut self, tenant: usize, view: View, at: usize, body: &Document) -> Answer {
        let (mut body, home) = (body.clone(), view.home);
        let one_history = lock(&self.place.board).one_history;
        let clock = if one_history { 0 } else { home as usize };
        if let Some((_, time)) = &self.times[clock] {
            body.push("$clusterTime", Document::from(&**time));
        }
        if body.get("$db").is_none() {
            body.push("$db", database(tenant));
        }
        let addr = self.place.addrs[home as usize][at].clone();
        let number = lock(&self.place.board).ask(tenant, home, self.now());
        let reply = self.send(addr, &body.to_raw()).await;
        lock(&self.place.board).end(tenant, number, reply.is_some(), self.now());
        let Some(reply) = reply else { return Answer::Nothing };
        self.note_time(clock, &reply);
        // Of a split, the new set has what it has.
        let settled = one_history && home == Home::Second;
        match code_of(&reply) {
            COMMITTED if !settled => {
                // Nobody is told where a tenant is by a set that is asked for it on purpose.
                let believes = {
                    let mut board = lock(&self.place.board);
                    board.moved += 1;
                    view == self.view_on(&board, tenant) && board.may_leave(tenant, home)
                };
                if believes {
                    self.told.insert(tenant, view.next());
                }
                Answer::Again
            }
            ABORTED if !settled => {
                lock(&self.place.board).stayed += 1;
                Answer::Again
            }
            CONFLICT | COMMITTED | ABORTED => {
                self.problem(format!("tenant {tenant}, {home:?} {at}, for {body:?}: {reply}"));
                Answer::Again
            }
            _ => Answer::Reply(view, reply),
        }
    }
    async fn send(&mut self, addr: String, body: &DocBuf) -> Option<DocBuf> {
        let kept = self.connected.take().filter(|(who, _)| *who == addr);
        let env = self.place.env.clone();
        let asking = async {
            let mut client = match kept {
                Some((_, client)) => client,
                None => Client::connect(&env, &addr).await.ok()?,
            };
            let reply = client.command(body).await.ok()?;
            Some((client, reply))
        };
        let (client, reply) = self.place.env.timeout(PATIENCE, asking).await??;
        self.connected = Some((addr, client));
        Some(reply)
    }
    fn note_time(&mut self, clock: usize, reply: &RawDoc) {
        let Some(time) = reply.get("$clusterTime").and_then(|v| v.as_doc()) else { return };
        let Some(Value::Timestamp(at)) = time.get("clusterTime") else { return };
        if self.times[clock].as_ref().is_none_or(|(known, _)| *known < at) {
            self.times[clock] = Some((at, time.to_buf()));
        }
    }
    /// What a read of that level is to ask for, so that it shows what was there when the tenant came. `None` while no time of its new set is
    /// known: members that lag would show what they had before.
    pub(in super::super) fn read_concern(&self, tenant: usize, level: &str) -> Option<Document> {
        let mut concern = doc! { "level": level };
        let board = lock(&self.place.board);
        let view = self.view_on(&board, tenant);
        if view.moves > 0 && !board.one_history {
            concern.push("afterClusterTime", board.since(tenant, view)?);
        }
        Some(concern)
    }
    /// A write on a majority, which nobody had sent before `begun`.
    pub(in super::super) fn note_write(
        &self,
        tenant: usize,
        view: View,
        begun: Duration,
        at: Option<Timestamp>,
    ) {
        let mut board = lock(&self.place.board);
        if let Some(at) = at {
            board.note_since(tenant, view, at);
        }
        if board.has_left(tenant, view.home, begun) {
            let text = format!("tenant {tenant} had left {:?}, where a write was taken", view.home);
            board.problems.push(text);
        }
    }
    /// The run ends with this.
    pub(in super::super) fn problem(&self, text: String) {
        lock(&self.place.board).problems.push(text);
    }
}

pub(in super::super) fn majority() -> Document {
    doc! { "w": "majority", "wtimeout": 8000 }
}
