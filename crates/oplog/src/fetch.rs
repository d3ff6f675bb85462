//! What a fetched batch must be, and what it means when it is not (R-FETCH-5..8).
//!
//! The first batch of a stream starts at the reader's own newest entry: finding it there proves that the source
//! has the reader's whole history.

use crate::meta::Meta;
use pando_base::{Error, ErrorCode, OpTime, Result};
use pando_bson::RawDoc;

/// Why a source cannot be followed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The source has nothing at or after the reader's newest entry.
    Behind,
    /// The source no longer has the reader's newest entry: the log's front has passed it.
    TooStale { oldest: OpTime },
    /// The source has another entry there: the histories parted.
    Diverged { mine: OpTime, theirs: OpTime },
}

impl Refusal {
    pub fn error(&self) -> Error {
        match self {
            Refusal::Behind => Error::new(
                ErrorCode::InvalidSyncSource,
                "the sync source's oplog has no entry at or after the last fetched one",
            ),
            Refusal::TooStale { oldest } => Error::new(
                ErrorCode::TooStaleToSyncFromSource,
                format!("the sync source's oldest oplog entry {oldest} is newer than the last fetched one"),
            ),
            Refusal::Diverged { mine, theirs } => Error::new(
                ErrorCode::OplogStartMissing,
                format!("our last optime fetched is {mine}; the sync source has {theirs} in its place"),
            ),
        }
    }
}

/// Checks the first batch of a stream that asked for everything from `mine` on. `oldest` is the source's first
/// entry. Returns how many entries at the front the reader has already.
pub fn check_first(entries: &[Meta], mine: OpTime, oldest: Option<OpTime>) -> Result<usize, Refusal> {
    let Some(first) = entries.first() else { return Err(Refusal::Behind) };
    if first.op_time == mine {
        return Ok(1);
    }
    match oldest {
        Some(oldest) if oldest.ts > mine.ts => Err(Refusal::TooStale { oldest }),
        _ => Err(Refusal::Diverged { mine, theirs: first.op_time }),
    }
}

/// Reads a batch's entries: their places, in strictly rising order after `last` (R-FETCH-7).
pub fn read_batch(array: &RawDoc, base: usize, last: OpTime, first_may_equal: bool) -> Result<Vec<Meta>> {
    let mut entries = Vec::with_capacity(array.byte_len() / TYPICAL_ENTRY_BYTES + 1);
    let mut last = last;
    for e in array {
        let Some(doc) = e.value().as_doc() else {
            return Err(Error::new(
                ErrorCode::BadValue,
                "an oplog batch holds something else than documents",
            ));
        };
        let at = base + (doc.as_bytes().as_ptr() as usize - array.as_bytes().as_ptr() as usize);
        let meta = Meta::of(doc, at)?;
        let rises = meta.op_time.ts > last.ts || (entries.is_empty() && first_may_equal);
        if !rises || meta.op_time.t < last.t && !(entries.is_empty() && first_may_equal) {
            return Err(Error::new(
                ErrorCode::OplogOutOfOrder,
                format!("Out of order entries in oplog: {} comes after {last}", meta.op_time),
            ));
        }
        last = meta.op_time;
        entries.push(meta);
    }
    Ok(entries)
}

const TYPICAL_ENTRY_BYTES: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;
    use pando_base::Timestamp;
    use pando_bson::{DocBuf, DocBuilder, doc};

    fn at(secs: u32, t: i64) -> OpTime {
        OpTime::new(Timestamp::new(secs, 1), t)
    }
    fn batch(times: &[OpTime]) -> DocBuf {
        let mut b = DocBuilder::new();
        for (i, t) in times.iter().enumerate() {
            let entry = doc! { "op": "n", "ns": "", "o": {}, "ts": t.ts, "t": t.t };
            b.raw_doc(&i.to_string(), &entry.to_raw());
        }
        b.finish()
    }
    fn read(times: &[OpTime], last: OpTime, equal: bool) -> Result<Vec<Meta>> {
        read_batch(&batch(times), 100, last, equal)
    }

    #[test]
    fn entries_must_rise_in_time_and_never_fall_in_term() {
        let found = read(&[at(2, 1), at(3, 1), at(4, 2)], at(1, 1), false).unwrap();
        assert_eq!(found.iter().map(|m| m.op_time).collect::<Vec<_>>(), [at(2, 1), at(3, 1), at(4, 2)]);
        assert!(found[0].at > 100 && found[1].at as usize >= found[0].end());
        for bad in [&[at(1, 1)][..], &[at(3, 1), at(3, 1)], &[at(3, 2), at(4, 1)]] {
            assert_eq!(read(bad, at(1, 1), false).unwrap_err().code, ErrorCode::OplogOutOfOrder);
        }
        assert!(read(&[at(1, 1), at(2, 1)], at(1, 1), true).is_ok());
    }

    #[test]
    fn the_first_entry_proves_a_common_history_or_tells_what_is_wrong() {
        let mine = at(5, 2);
        let first = |times: &[OpTime], oldest| check_first(&read(times, mine, true).unwrap(), mine, oldest);
        assert_eq!(first(&[mine, at(6, 2)], None), Ok(1));
        assert_eq!(first(&[], None), Err(Refusal::Behind));
        let parted = Refusal::Diverged { mine, theirs: at(7, 3) };
        assert_eq!(first(&[at(7, 3)], Some(at(1, 1))), Err(parted));
        assert_eq!(first(&[at(7, 3)], Some(at(6, 2))), Err(Refusal::TooStale { oldest: at(6, 2) }));
        assert_eq!(first(&[OpTime::new(mine.ts, 9)], Some(at(1, 1))).unwrap_err().error().code.0, 120);
    }
}
