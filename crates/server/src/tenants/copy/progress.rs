//! `config.tenantMigrationProgress`: `{_id: <migration>, upto, number}`. The donor's log is carried out up to there; what was carried out last
//! has this number in the migration's session of the log here.

use super::Copier;
use pando_access::{Change, InternalCollections, Uninterrupted};
use pando_base::{Namespace, Result, SessionId, Timestamp, Uuid};
use pando_bson::{DocBuf, DocBuilder, Value};
use pando_storage::ReadAt;

pub(crate) fn collection() -> Namespace {
    Namespace::unchecked("config", "tenantMigrationProgress")
}

/// What a migration has noted.
pub(super) struct Progress {
    id: Uuid,
    /// As it is stored.
    was: Option<DocBuf>,
    pub(super) upto: Timestamp,
    number: i64,
}

impl Progress {
    /// `start`: where nothing is noted, or something from before.
    pub(super) async fn read(internal: &InternalCollections, id: Uuid, start: Timestamp) -> Result<Progress> {
        internal.ensure(&collection()).await?;
        let all = internal.all(&collection(), ReadAt::Latest)?;
        let is_it =
            |doc: &DocBuf| matches!(doc.get("_id"), Some(Value::Binary { bytes, .. }) if bytes == id.0);
        let was = all.into_iter().find(is_it);
        let upto = match was.as_ref().and_then(|doc| doc.get("upto")) {
            Some(Value::Timestamp(at)) => at.max(start),
            _ => start,
        };
        let number = was.as_ref().and_then(|doc| doc.get("number")?.as_i64()).unwrap_or(0);
        Ok(Progress { id, was, upto, number })
    }
    /// What is noted by now; `None` before the first note.
    pub(super) fn noted(&self) -> Option<Timestamp> {
        match self.was.as_ref()?.get("upto")? {
            Value::Timestamp(at) => Some(at),
            _ => None,
        }
    }
    /// Nobody else uses it.
    pub(super) fn session(&self) -> SessionId {
        SessionId::of(self.id.0)
    }
    pub(super) fn number(&self) -> i64 {
        self.number
    }
    /// The change that notes what comes next. `used`: a number that this session has had here before.
    pub(super) fn step(&self, upto: Timestamp, used: i64) -> (Change, Progress) {
        let number = self.number.max(used) + 1;
        let mut b = DocBuilder::new();
        b.uuid("_id", &self.id.0).timestamp("upto", upto).i64("number", number);
        let now = b.finish();
        let change = match &self.was {
            None => Change::Insert(collection(), now.clone()),
            Some(was) => Change::Replace { ns: collection(), was: was.clone(), now: now.clone() },
        };
        (change, Progress { id: self.id, was: Some(now), upto, number })
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
