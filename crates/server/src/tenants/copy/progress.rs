//! `config.tenantMigrationProgress`: `{_id: <migration>, upto, part?: {of, told}, number}`. The donor's log is carried out up to there, and of the
//! transaction at `of`, the next that it has of the tenant, the first operations as well; what was carried out last has this number in the
//! migration's session of the log here.

use super::Copier;
use pando_access::{Change, InternalCollections, Uninterrupted};
use pando_base::{Error, ErrorCode, Namespace, Result, SessionId, Timestamp, Uuid};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};
use pando_storage::ReadAt;

pub(crate) fn collection() -> Namespace {
    Namespace::unchecked("config", "tenantMigrationProgress")
}

/// Of a transaction that is told in parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Part {
    /// Where it has committed.
    pub(super) of: Timestamp,
    /// So many operations of the tenant.
    pub(super) told: usize,
}

/// How far the donor's log is carried out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place {
    pub(super) upto: Timestamp,
    /// Behind that.
    pub(super) part: Option<Part>,
}

impl Place {
    /// Whether the next entry may be one at that time: the rest of a transaction comes before everything else.
    ///
    /// # Errors
    /// 96.
    pub(super) fn check_goes_on_with(&self, ts: Timestamp) -> Result<()> {
        match self.part {
            Some(part) if part.of != ts => {
                let text =
                    format!("the rest of the transaction at {} is missing, the donor told {ts}", part.of);
                Err(Error::new(ErrorCode::OperationFailed, text))
            }
            _ => Ok(()),
        }
    }
}

/// What a migration has noted.
pub(super) struct Progress {
    id: Uuid,
    /// As it is stored.
    was: Option<DocBuf>,
    pub(super) at: Place,
    number: i64,
}

fn upto_of(doc: &RawDoc) -> Option<Timestamp> {
    match doc.get("upto")? {
        Value::Timestamp(at) => Some(at),
        _ => None,
    }
}
fn part_of(doc: &RawDoc) -> Option<Part> {
    let part = doc.get("part")?.as_doc()?;
    let told = usize::try_from(part.get("told")?.as_i64()?).ok()?;
    match part.get("of")? {
        Value::Timestamp(of) => Some(Part { of, told }),
        _ => None,
    }
}

impl Progress {
    /// `start`: where nothing is noted, or something from before.
    pub(super) async fn read(internal: &InternalCollections, id: Uuid, start: Timestamp) -> Result<Progress> {
        internal.ensure(&collection()).await?;
        let all = internal.all(&collection(), ReadAt::Latest)?;
        let is_it =
            |doc: &DocBuf| matches!(doc.get("_id"), Some(Value::Binary { bytes, .. }) if bytes == id.0);
        let was = all.into_iter().find(is_it);
        let noted = was.as_deref().and_then(|doc| Some(Place { upto: upto_of(doc)?, part: part_of(doc) }));
        // The rest of a transaction comes first in any case.
        let noted = noted.filter(|noted| noted.upto >= start || noted.part.is_some());
        let at = noted.unwrap_or(Place { upto: start, part: None });
        let number = was.as_ref().and_then(|doc| doc.get("number")?.as_i64()).unwrap_or(0);
        Ok(Progress { id, was, at, number })
    }
    /// What is noted by now; `None` before the first note.
    pub(super) fn noted(&self) -> Option<Timestamp> {
        upto_of(self.was.as_deref()?)
    }
    /// Nobody else uses it.
    pub(super) fn session(&self) -> SessionId {
        SessionId::of(self.id.0)
    }
    pub(super) fn number(&self) -> i64 {
        self.number
    }
    /// The change that notes what comes next. `used`: a number that this session has had here before.
    pub(super) fn step(&self, at: Place, used: i64) -> (Change, Progress) {
        let number = self.number.max(used) + 1;
        let mut b = DocBuilder::new();
        b.uuid("_id", &self.id.0).timestamp("upto", at.upto);
        if let Some(part) = at.part {
            b.doc("part", |d| _ = d.timestamp("of", part.of).i64("told", part.told as i64));
        }
        b.i64("number", number);
        let now = b.finish();
        let change = match &self.was {
            None => Change::Insert(collection(), now.clone()),
            Some(was) => Change::Replace { ns: collection(), was: was.clone(), now: now.clone() },
        };
        (change, Progress { id: self.id, was: Some(now), at, number })
    }
}

/// Nothing of a migration's is to be followed any more.
pub(crate) async fn forget(internal: &InternalCollections, id: Uuid) -> Result<()> {
    let mut b = DocBuilder::new();
    b.uuid("_id", &id.0);
    internal.remove(&Uninterrupted, &collection(), &b.finish()).await.map(drop)
}

impl Copier<'_> {
    pub(super) async fn forget_progress(&self) -> Result<()> {
        forget(&self.roles.internal, self.id).await
    }
}
