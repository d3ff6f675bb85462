//! What sessions had done at the last checkpoint, in rows of the server's own. Beside the log: what the log says after
//! `upto` is not in it.
//!
//! ```text
//!   sessions            upto: all entries up to here are accounted for in the rows
//!   sessions.<id>       one row for each session
//! ```
//! Only rows of sessions that have changed are written, in units of a bounded size, and the head after all of them. A row
//! may so be newer than the head says; what it tells of entries after `upto` does not count.

use crate::Catalog;
use pando_base::{Error, OpTime, Result, SessionId, Timestamp, limits};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};
use pando_storage::{Dir, Ident, ReadAt};
use std::ops::Bound;

/// The head's key.
const KEPT: &[u8] = b"sessions";
/// Rows of one session each begin with it.
const ROW: &[u8] = b"sessions.";
/// Earlier versions kept all sessions in parts, whole each time.
const PART: &[u8] = b"sessions/";

/// See the module text.
#[derive(Clone, Debug)]
pub struct SessionRecords {
    /// All entries up to this one are accounted for.
    pub upto: OpTime,
    /// Of an earlier version: what is kept is void if the log has lost this entry, and all of it counts if not.
    pub end: Option<OpTime>,
    pub sessions: Vec<DocBuf>,
}

impl SessionRecords {
    /// The last entries of transactions that were open at `at`: whoever applies entries from there on needs all of them.
    pub fn active_at(&self, at: Timestamp) -> impl Iterator<Item = Timestamp> {
        self.sessions.iter().filter_map(move |s| match (s.get("outcome")?.as_str()?, s.get("ts")?) {
            ("committed" | "aborted", Value::Timestamp(last)) if last <= at => None,
            (_, Value::Timestamp(last)) => Some(last),
            _ => None,
        })
    }
    /// The newest entry that any of them knows.
    pub fn newest(&self) -> Timestamp {
        let known = self.sessions.iter().filter_map(|s| match s.get("ts") {
            Some(Value::Timestamp(ts)) => Some(ts),
            _ => None,
        });
        known.max().unwrap_or(self.upto.ts).max(self.upto.ts)
    }
}

struct Head {
    upto: OpTime,
    /// Of an earlier version.
    parts: Option<(OpTime, i32)>,
}

fn damaged() -> Error {
    Error::internal("what is kept of sessions is damaged")
}
fn row_key(id: &SessionId) -> Vec<u8> {
    [ROW, &id.key()].concat()
}
/// The first key after all that begin with `prefix`.
fn after(prefix: &[u8]) -> Vec<u8> {
    let mut key = prefix.to_vec();
    if let Some(last) = key.last_mut() {
        *last += 1;
    }
    key
}

impl Catalog {
    /// Keeps what these sessions have done, and forgets others. Counts from [`Catalog::set_sessions_upto`] on.
    pub fn store_session_records(
        &self,
        changed: impl Iterator<Item = (SessionId, DocBuf)>,
        gone: impl Iterator<Item = SessionId>,
    ) -> Result<()> {
        let mut unit = self.storage().begin_local()?;
        let mut bytes = 0;
        let rows = changed.map(|(id, doc)| (id, Some(doc))).chain(gone.map(|id| (id, None)));
        for (id, doc) in rows {
            match &doc {
                Some(doc) => unit.put(Ident::META, &row_key(&id), doc.as_bytes())?,
                None => unit.delete(Ident::META, &row_key(&id))?,
            }
            bytes += ROW.len() + id.key().len() + doc.map_or(0, |d| d.byte_len());
            if bytes > limits::SESSION_RECORDS_PART_BYTES {
                unit.commit()?;
                unit = self.storage().begin_local()?;
                bytes = 0;
            }
        }
        unit.commit().map(drop)
    }
    /// The rows account for all entries up to this one. Durable at the next sync of such rows, and so are they.
    pub fn set_sessions_upto(&self, upto: OpTime) -> Result<()> {
        let mut b = DocBuilder::new();
        b.timestamp("upto", upto.ts).i64("uptoTerm", upto.t);
        let mut unit = self.storage().begin_local()?;
        unit.put(Ident::META, KEPT, b.finish().as_bytes())?;
        for (key, _) in self.rows_below(PART)? {
            unit.delete(Ident::META, &key)?;
        }
        unit.commit().map(drop)
    }

    /// Up to where what is kept counts.
    pub fn sessions_upto(&self) -> Result<Option<OpTime>> {
        Ok(self.kept_head()?.map(|head| head.upto))
    }
    /// The sessions that have rows.
    pub fn sessions_with_rows(&self) -> Result<Vec<SessionId>> {
        let rows = self.rows_below(ROW)?;
        let session =
            |(key, _): &(Vec<u8>, Vec<u8>)| SessionId::from_key(&key[ROW.len()..]).ok_or_else(damaged);
        rows.iter().map(session).collect()
    }
    fn kept_head(&self) -> Result<Option<Head>> {
        let Some(row) = self.storage().begin(ReadAt::Applied)?.get(Ident::META, KEPT)? else {
            return Ok(None);
        };
        let head = RawDoc::trusted(&row);
        let number = |name: &str| head.get(name).and_then(|v| v.as_i64());
        let time = |ts: &str, term: &str| match (head.get(ts), number(term)) {
            (Some(Value::Timestamp(ts)), Some(term)) => Ok(OpTime::new(ts, term)),
            _ => Err(damaged()),
        };
        let parts = match number("parts") {
            Some(n) => Some((time("end", "endTerm")?, n as i32)),
            None => None,
        };
        Ok(Some(Head { upto: time("upto", "uptoTerm")?, parts }))
    }
    fn rows_below(&self, prefix: &[u8]) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let txn = self.storage().begin(ReadAt::Applied)?;
        let end = after(prefix);
        let mut found =
            txn.scan(Ident::META, Bound::Included(prefix), Bound::Excluded(&end), Dir::Forward)?;
        let mut rows = Vec::new();
        while let Some((key, row)) = found.next()? {
            rows.push((key.to_vec(), row.to_vec()));
        }
        Ok(rows)
    }
    /// What was kept last.
    pub fn session_records(&self) -> Result<Option<SessionRecords>> {
        let Some(Head { upto, parts }) = self.kept_head()? else { return Ok(None) };
        let Some((end, parts)) = parts else {
            let rows = self.rows_below(ROW)?;
            let sessions = rows.into_iter().map(|(_, row)| RawDoc::trusted(&row).to_buf()).collect();
            return Ok(Some(SessionRecords { upto, end: None, sessions }));
        };
        let txn = self.storage().begin(ReadAt::Applied)?;
        let mut sessions = Vec::new();
        for n in 0..parts {
            let Some(part) = txn.get(Ident::META, &[PART, &n.to_be_bytes()].concat())? else {
                return Ok(None);
            };
            let mut rest = &part[..];
            while let Some(len) = rest.first_chunk::<4>().map(|l| u32::from_le_bytes(*l) as usize) {
                let Some((doc, more)) = rest.split_at_checked(len) else { return Ok(None) };
                sessions.push(RawDoc::trusted(doc).to_buf());
                rest = more;
            }
        }
        Ok(Some(SessionRecords { upto, end: Some(end), sessions }))
    }
}
