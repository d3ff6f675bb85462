//! The blocking sort.

use super::{Cx, KeyData, Next, Resources, Row, Stage, StageStats};
use crate::ctx::QueryCtx;
use crate::facts::Facts;
use crate::plan::SortKeySource;
use crate::sort::{Payload, SortKeys, SortPattern, SortedRows, Sorter};
use crate::source::RecordId;
use bytes::Bytes;
use pando_base::{Error, Result, patience};
use pando_bson::RawDoc;
use pando_bson::keystring::{Directions, KeyReader};
use std::sync::Arc;

pub(super) struct SortStage {
    input: Box<dyn Stage>,
    keys: SortKeySource,
    maker: SortKeys,
    limited: bool,
    phase: Phase,
    stats: StageStats,
}

enum Phase {
    Collecting(Box<Sorter<Row>>),
    Giving(Box<SortedRows<Row>>),
    Ended,
}

impl SortStage {
    pub(super) fn new(
        input: Box<dyn Stage>,
        pattern: Arc<SortPattern>,
        keys: SortKeySource,
        limit: u64,
        ctx: &QueryCtx,
        resources: &Resources,
    ) -> SortStage {
        let limit = usize::try_from(limit).ok().filter(|n| *n > 0);
        let sorter = Sorter::new(limit, ctx.memory.sort, resources.spill.clone());
        SortStage {
            input,
            keys,
            maker: SortKeys::new(pattern, ctx.collation.clone()),
            limited: limit.is_some(),
            phase: Phase::Collecting(Box::new(sorter)),
            stats: StageStats::default(),
        }
    }

    /// Takes one row in; the sorter's own view of it decides whether it stays.
    fn collect(&mut self, mut row: Row) -> Result<()> {
        let Phase::Collecting(sorter) = &mut self.phase else { return Ok(()) };
        let from_index;
        let key: &[u8] = match (&self.keys, &row.doc) {
            (SortKeySource::Documents, Some(doc)) => {
                self.maker.key(RawDoc::trusted(doc), row.facts.as_deref())?
            }
            _ => {
                from_index = key_from_index(&row, &self.keys)?;
                &from_index
            }
        };
        if !sorter.wants(key) {
            return patience::check();
        }
        if self.limited {
            // A few documents must not hold on to the storage blocks around them.
            row.doc = row.doc.map(|d| Bytes::copy_from_slice(&d));
        }
        sorter.add(key, row)
    }
}

/// A sort key put together from pieces of an index key.
pub(super) fn key_from_index(row: &Row, keys: &SortKeySource) -> Result<Vec<u8>> {
    let (Some(key), SortKeySource::IndexKeys(parts)) = (&row.key, keys) else {
        return Err(Error::internal("a sort by index keys without keys"));
    };
    let mut reader = KeyReader::new(&key.bytes, key.directions, &[]);
    let mut ends = Vec::new();
    while reader.skip()? {
        ends.push(reader.position());
    }
    let mut out = Vec::with_capacity(key.bytes.len());
    for (field, turned) in parts {
        let Some(end) = ends.get(*field) else {
            return Err(Error::internal("an index key is shorter than its pattern"));
        };
        let start = if *field == 0 { 0 } else { ends[field - 1] };
        let piece = &key.bytes[start..*end];
        if *turned {
            out.extend(piece.iter().map(|b| !b));
        } else {
            out.extend_from_slice(piece);
        }
    }
    Ok(out)
}

impl Stage for SortStage {
    fn next(&mut self, cx: &mut Cx<'_>) -> Result<Next> {
        loop {
            match &mut self.phase {
                Phase::Collecting(_) => {
                    self.stats.works += 1;
                    match self.input.next(cx)? {
                        Next::Row(row) => self.collect(row)?,
                        Next::Yield => {
                            return Ok(Next::Yield);
                        }
                        Next::Eof => {
                            if let Phase::Collecting(sorter) =
                                std::mem::replace(&mut self.phase, Phase::Ended)
                            {
                                let rows = sorter.finish()?;
                                self.stats.sorted_bytes = rows.stats.total_bytes;
                                self.stats.spills = rows.stats.spills;
                                self.stats.spilled_bytes = rows.stats.spilled_bytes;
                                self.phase = Phase::Giving(Box::new(rows));
                            }
                        }
                    }
                }
                Phase::Giving(rows) => {
                    if !cx.quota.tick() {
                        return Ok(Next::Yield);
                    }
                    self.stats.works += 1;
                    match rows.next_row()? {
                        Some((_, row)) => {
                            self.stats.advanced += 1;
                            return Ok(Next::Row(row));
                        }
                        None => self.phase = Phase::Ended,
                    }
                }
                Phase::Ended => {
                    self.stats.eof = true;
                    return Ok(Next::Eof);
                }
            }
        }
    }
    fn save(&mut self) {
        self.stats.saves += 1;
        self.input.save();
    }
    fn stats(&self) -> StageStats {
        let held_bytes = match &self.phase {
            Phase::Collecting(sorter) => sorter.held_bytes(),
            Phase::Giving(rows) => rows.held_bytes(),
            Phase::Ended => 0,
        } as u64;
        StageStats { inputs: vec![self.input.stats()], held_bytes, ..self.stats.clone() }
    }
}

fn put(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    out.extend_from_slice(&bytes.map_or(u32::MAX, |b| b.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes.unwrap_or_default());
}

fn take<'a>(bytes: &mut &'a [u8]) -> Result<Option<&'a [u8]>> {
    let short = || Error::internal("a sort run on disk is damaged");
    let (head, rest) = bytes.split_first_chunk::<4>().ok_or_else(short)?;
    let len = u32::from_le_bytes(*head);
    *bytes = rest;
    if len == u32::MAX {
        return Ok(None);
    }
    let (body, rest) = rest.split_at_checked(len as usize).ok_or_else(short)?;
    *bytes = rest;
    Ok(Some(body))
}

impl Payload for Row {
    fn byte_len(&self) -> usize {
        self.doc.as_ref().map_or(0, Bytes::len)
            + self.key.as_ref().map_or(0, |k| k.bytes.len())
            + self.facts.as_ref().map_or(0, |f| f.byte_len())
    }
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.generation.to_le_bytes());
        Facts::encode(self.facts.as_deref(), out);
        put(out, self.doc.as_deref());
        match &self.rid {
            None => put(out, None),
            Some(RecordId::Long(n)) => {
                put(out, Some(&n.to_le_bytes()));
                out.push(0);
            }
            Some(RecordId::Key(k)) => {
                put(out, Some(k));
                out.push(1);
            }
        }
        put(out, self.key.as_ref().map(|k| &*k.bytes));
        if let Some(k) = &self.key {
            put(out, Some(&k.type_bits));
            out.extend_from_slice(&k.directions.0.to_le_bytes());
        }
    }
    fn decode(mut bytes: &[u8]) -> Result<Row> {
        let short = || Error::internal("a sort run on disk is damaged");
        let word = |bytes: &mut &[u8]| -> Result<u32> {
            let (head, rest) = bytes.split_first_chunk::<4>().ok_or_else(short)?;
            *bytes = rest;
            Ok(u32::from_le_bytes(*head))
        };
        let generation = word(&mut bytes)?;
        let facts = Facts::decode(&mut bytes)?;
        let doc = take(&mut bytes)?.map(Bytes::copy_from_slice);
        let rid = match take(&mut bytes)? {
            None => None,
            Some(body) => {
                let (form, rest) = bytes.split_first().ok_or_else(short)?;
                bytes = rest;
                Some(match form {
                    0 => RecordId::Long(i64::from_le_bytes(*body.first_chunk().ok_or_else(short)?)),
                    _ => RecordId::Key(Bytes::copy_from_slice(body)),
                })
            }
        };
        let key = match take(&mut bytes)? {
            None => None,
            Some(key) => {
                let type_bits = take(&mut bytes)?.unwrap_or_default();
                let directions = Directions(word(&mut bytes)?);
                Some(Box::new(KeyData { bytes: key.into(), type_bits: type_bits.into(), directions }))
            }
        };
        Ok(Row { rid, doc, key, generation, facts })
    }
}
