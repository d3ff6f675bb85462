//! How users reach their tenants: one connection each, to the set that has the tenant for all that the user knows.

use super::super::knowledge::Knowledge;
use super::super::shape::{RECIPIENT, TENANTS, database};
use crate::client::Client;
use crate::executor::lock;
use crate::set::asking::primary_within;
use pando_base::Timestamp;
use pando_bson::{Binary, Bson, DocBuf, Document, RawDoc, Value, doc};
use pando_env::Env;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// After this nobody waits for a reply any more.
pub(super) const PATIENCE: Duration = Duration::from_secs(9);

const CONFLICT: i64 = 320;
const COMMITTED: i64 = 321;
const ABORTED: i64 = 325;

/// What every user is given.
#[derive(Clone)]
pub(in super::super) struct Place {
    pub(in super::super) env: Env,
    /// Of the set that splits, and of the one that leaves it.
    pub(in super::super) addrs: [Vec<String>; 2],
    pub(in super::super) user: i64,
    pub(in super::super) pause_ms: u64,
    pub(in super::super) stop: Arc<AtomicBool>,
    pub(in super::super) knowledge: Arc<Mutex<Knowledge>>,
}

/// Which set has a tenant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) enum Home {
    Donor,
    Recipient,
}

/// What came back.
pub(super) enum Answer {
    /// Nobody knows what became of the command.
    Nothing,
    Reply(Home, DocBuf),
    /// It was not carried out: the tenant moves, or is elsewhere; it is to be sent again.
    Again,
}

pub(in super::super) struct Caller {
    pub(super) place: Place,
    kind: u8,
    connected: Option<(String, Client)>,
    primaries: [Option<usize>; 2],
    /// Tenants that this user was told to look for elsewhere.
    moved: [bool; TENANTS],
    /// The newest time that a reply told, as it told it.
    time: Option<(Timestamp, DocBuf)>,
}

/// The code of a reply, wherever it says it.
pub(super) fn code_of(reply: &RawDoc) -> i64 {
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
        Caller { place, kind, connected: None, primaries: [None; 2], moved: [false; TENANTS], time: None }
    }
    pub(super) fn below(&self, n: u64) -> u64 {
        self.place.env.rng.next_u64() % n
    }
    pub(super) fn now(&self) -> Duration {
        self.place.env.clock.mono()
    }
    pub(super) fn stopped(&self) -> bool {
        self.place.stop.load(Relaxed)
    }
    pub(super) fn some_tenant(&self) -> usize {
        self.below(TENANTS as u64) as usize
    }
    /// Between two commands.
    pub(super) async fn pause(&mut self) {
        let ms = self.below(self.place.pause_ms * 2);
        self.place.env.clock.sleep(Duration::from_millis(ms)).await;
    }
    /// A session, by a number of this user's.
    pub(super) fn session(&self, number: u8) -> Document {
        let mut bytes = vec![self.kind; 16];
        bytes[..8].copy_from_slice(&self.place.user.to_le_bytes());
        bytes[8] = number;
        let mut lsid = Document::new();
        lsid.push("id", Bson::Binary(Binary { subtype: 4, bytes }));
        lsid
    }
    /// Where a tenant is, for all that this user knows.
    pub(super) fn home(&self, tenant: usize) -> Home {
        let told = self.moved[tenant] || lock(&self.place.knowledge).announced[tenant];
        if told { Home::Recipient } else { Home::Donor }
    }

    /// At the primary of the tenant's set.
    pub(super) async fn ask(&mut self, tenant: usize, body: &Document) -> Answer {
        let home = self.home(tenant);
        let which = home as usize;
        let (env, addrs) = (self.place.env.clone(), self.place.addrs[which].clone());
        let at = match self.primaries[which] {
            Some(at) => at,
            None => match primary_within(&env, &addrs, PATIENCE).await {
                Some(at) => at,
                None => return Answer::Nothing,
            },
        };
        let answer = self.ask_at(tenant, home, at, body).await;
        let still = matches!(&answer, Answer::Reply(_, r) if !crate::set::users::is_not_primary(r));
        self.primaries[which] = (still || matches!(answer, Answer::Again)).then_some(at);
        answer
    }
    /// At whichever member of the tenant's set.
    pub(super) async fn ask_anybody(&mut self, tenant: usize, body: &Document) -> Answer {
        let home = self.home(tenant);
        let at = self.below(self.place.addrs[home as usize].len() as u64) as usize;
        self.ask_at(tenant, home, at, body).await
    }
    async fn ask_at(&mut self, tenant: usize, home: Home, at: usize, body: &Document) -> Answer {
        let mut body = body.clone();
        if let Some((_, time)) = &self.time {
            body.push("$clusterTime", Document::from(&**time));
        }
        if body.get("$db").is_none() {
            body.push("$db", database(tenant));
        }
        let addr = self.place.addrs[home as usize][at].clone();
        let Some(reply) = self.send(addr, &body.to_raw()).await else { return Answer::Nothing };
        self.note_time(&reply);
        match (code_of(&reply), home) {
            (COMMITTED, Home::Donor) => {
                self.moved[tenant] = true;
                lock(&self.place.knowledge).moved += 1;
                Answer::Again
            }
            (COMMITTED | ABORTED | CONFLICT, Home::Recipient) | (CONFLICT, Home::Donor) => {
                let text = format!("tenant {tenant}, {home:?} {at}, for {body:?}: {reply}");
                lock(&self.place.knowledge).problems.push(text);
                Answer::Again
            }
            (ABORTED, Home::Donor) => {
                lock(&self.place.knowledge).stayed += 1;
                Answer::Again
            }
            _ => Answer::Reply(home, reply),
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
    fn note_time(&mut self, reply: &RawDoc) {
        let Some(time) = reply.get("$clusterTime").and_then(|v| v.as_doc()) else { return };
        let Some(Value::Timestamp(at)) = time.get("clusterTime") else { return };
        if self.time.as_ref().is_none_or(|(known, _)| *known < at) {
            self.time = Some((at, time.to_buf()));
        }
    }
    /// The run ends with this.
    pub(super) fn problem(&self, text: String) {
        lock(&self.place.knowledge).problems.push(text);
    }
}

/// A problem names the set by this.
pub(super) fn named(home: Home) -> &'static str {
    match home {
        Home::Donor => "the donor",
        Home::Recipient => RECIPIENT,
    }
}

pub(super) fn majority() -> Document {
    doc! { "w": "majority", "wtimeout": 8000 }
}
