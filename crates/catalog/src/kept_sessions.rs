//! What sessions had done at the last checkpoint, in rows of the server's own. Beside the log: what the log says after
//! `upto` is not in it.

use crate::Catalog;
use pando_base::{OpTime, Result, Timestamp, limits};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};
use pando_storage::{Ident, ReadAt};

/// The head's key; the parts' begin with it.
const KEPT: &[u8] = b"sessions";

/// See the module text.
#[derive(Clone, Debug)]
pub struct KeptSessions {
    /// All entries up to this one are accounted for.
    pub upto: OpTime,
    /// No entry after this one is. What is kept is void if the log has lost it.
    pub end: OpTime,
    pub sessions: Vec<DocBuf>,
}

impl KeptSessions {
    /// The last entries of transactions that were open at `at`: whoever applies entries from there on needs all of them.
    pub fn active_at(&self, at: Timestamp) -> impl Iterator<Item = Timestamp> {
        self.sessions.iter().filter_map(move |s| match (s.get("outcome")?.as_str()?, s.get("ts")?) {
            ("committed" | "aborted", Value::Timestamp(last)) if last <= at => None,
            (_, Value::Timestamp(last)) => Some(last),
            _ => None,
        })
    }
}

fn part_key(n: i32) -> Vec<u8> {
    [KEPT, b"/", &n.to_be_bytes()].concat()
}

impl Catalog {
    /// Replaces what was kept. Durable at the next sync of such rows.
    pub fn keep_sessions(&self, kept: &KeptSessions) -> Result<()> {
        let mut parts = vec![Vec::new()];
        for doc in &kept.sessions {
            if parts.last().is_some_and(|p: &Vec<u8>| p.len() > limits::KEPT_SESSIONS_PART_BYTES) {
                parts.push(Vec::new());
            }
            if let Some(part) = parts.last_mut() {
                part.extend_from_slice(doc.as_bytes());
            }
        }
        let before = self.kept_head()?.map_or(0, |(_, _, parts)| parts);
        let mut b = DocBuilder::new();
        b.timestamp("upto", kept.upto.ts).i64("uptoTerm", kept.upto.t);
        b.timestamp("end", kept.end.ts).i64("endTerm", kept.end.t);
        b.i32("parts", parts.len() as i32);
        let mut unit = self.storage().begin_local()?;
        unit.put(Ident::META, KEPT, b.finish().as_bytes())?;
        for (n, part) in parts.iter().enumerate() {
            unit.put(Ident::META, &part_key(n as i32), part)?;
        }
        for n in parts.len() as i32..before {
            unit.delete(Ident::META, &part_key(n))?;
        }
        unit.commit().map(drop)
    }

    /// Where what is kept begins to count, and where it ends.
    pub fn kept_sessions_range(&self) -> Result<Option<(OpTime, OpTime)>> {
        Ok(self.kept_head()?.map(|(upto, end, _)| (upto, end)))
    }
    fn kept_head(&self) -> Result<Option<(OpTime, OpTime, i32)>> {
        let Some(row) = self.storage().begin(ReadAt::Applied)?.get(Ident::META, KEPT)? else {
            return Ok(None);
        };
        let head = RawDoc::trusted(&row);
        let time = |ts: &str, term: &str| match head.get(ts) {
            Some(Value::Timestamp(ts)) => {
                OpTime::new(ts, head.get(term).and_then(|v| v.as_i64()).unwrap_or(-1))
            }
            _ => OpTime::NULL,
        };
        let parts = head.get("parts").and_then(|v| v.as_i64()).unwrap_or(0) as i32;
        Ok(Some((time("upto", "uptoTerm"), time("end", "endTerm"), parts)))
    }
    /// What was kept last.
    pub fn kept_sessions(&self) -> Result<Option<KeptSessions>> {
        let Some((upto, end, parts)) = self.kept_head()? else { return Ok(None) };
        let txn = self.storage().begin(ReadAt::Applied)?;
        let mut sessions = Vec::new();
        for n in 0..parts {
            let Some(part) = txn.get(Ident::META, &part_key(n))? else { return Ok(None) };
            let mut rest = &part[..];
            while let Some(len) = rest.first_chunk::<4>().map(|l| u32::from_le_bytes(*l) as usize) {
                let Some((doc, more)) = rest.split_at_checked(len) else { return Ok(None) };
                sessions.push(RawDoc::trusted(doc).to_buf());
                rest = more;
            }
        }
        Ok(Some(KeptSessions { upto, end, sessions }))
    }
}
