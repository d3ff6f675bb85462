//! A few hundred neighbouring chunks in parallel arrays.

use crate::chunk::Owner;
use crate::version::Placement;
use pando_base::Timestamp;
use pando_bson::RawDoc;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Chunks of a block when it is made.
pub(super) const ROWS: usize = 256;

/// One chunk on its way into a block.
#[derive(Clone)]
pub(super) struct Row<'a> {
    pub(super) key: &'a [u8],
    pub(super) min: &'a RawDoc,
    pub(super) shard: u32,
    pub(super) placement: Placement,
    /// Zero where no history is known.
    pub(super) since: Timestamp,
    pub(super) jumbo: bool,
    pub(super) former: Former,
}

/// Owners before the present one; most chunks have none.
pub(super) type Former = Option<Arc<[Owner]>>;

/// Who owns how many of a block's chunks, and the newest of these.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockOwner {
    pub(super) shard: u32,
    pub(super) chunks: u32,
    pub(super) placement: Placement,
}

#[derive(Debug)]
pub(super) struct Block {
    /// Of each chunk: key bytes, then the document.
    bytes: Box<[u8]>,
    /// Where its key begins, and where its document does.
    places: Box<[(u32, u32)]>,
    shards: Box<[u32]>,
    placements: Box<[Placement]>,
    since: Box<[Timestamp]>,
    rare: BTreeMap<u32, Rare>,
    owners: Box<[BlockOwner]>,
}

#[derive(Clone, Debug, Default)]
struct Rare {
    jumbo: bool,
    former: Former,
}

impl Block {
    pub(super) fn new(rows: &[Row<'_>]) -> Block {
        let mut bytes = Vec::with_capacity(rows.iter().map(|r| r.key.len() + r.min.byte_len()).sum());
        let mut places = Vec::with_capacity(rows.len());
        let mut rare = BTreeMap::new();
        let mut owners: BTreeMap<u32, BlockOwner> = BTreeMap::new();
        for (i, r) in rows.iter().enumerate() {
            let key_at = bytes.len() as u32;
            bytes.extend_from_slice(r.key);
            places.push((key_at, bytes.len() as u32));
            bytes.extend_from_slice(r.min.as_bytes());
            if r.jumbo || r.former.is_some() {
                rare.insert(i as u32, Rare { jumbo: r.jumbo, former: r.former.clone() });
            }
            let first = BlockOwner { shard: r.shard, chunks: 0, placement: Placement::NONE };
            let owner = owners.entry(r.shard).or_insert(first);
            owner.chunks += 1;
            owner.placement = owner.placement.max(r.placement);
        }
        Block {
            bytes: bytes.into(),
            places: places.into(),
            shards: rows.iter().map(|r| r.shard).collect(),
            placements: rows.iter().map(|r| r.placement).collect(),
            since: rows.iter().map(|r| r.since).collect(),
            rare,
            owners: owners.into_values().collect(),
        }
    }
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }
    pub(super) fn key(&self, row: usize) -> &[u8] {
        let (from, to) = self.places[row];
        &self.bytes[from as usize..to as usize]
    }
    pub(super) fn first(&self) -> &[u8] {
        self.key(0)
    }
    pub(super) fn min(&self, row: usize) -> &RawDoc {
        let end = self.places.get(row + 1).map_or(self.bytes.len(), |next| next.0 as usize);
        RawDoc::trusted(&self.bytes[self.places[row].1 as usize..end])
    }
    /// The chunk that a key lies in, if it does not lie before all.
    pub(super) fn last_at_or_below(&self, key: &[u8]) -> Option<usize> {
        self.rows_below(|k| k <= key).checked_sub(1)
    }
    pub(super) fn first_at_or_above(&self, key: &[u8]) -> usize {
        self.rows_below(|k| k < key)
    }
    fn rows_below(&self, below: impl Fn(&[u8]) -> bool) -> usize {
        self.places.partition_point(|(from, to)| below(&self.bytes[*from as usize..*to as usize]))
    }
    pub(super) fn shard(&self, row: usize) -> u32 {
        self.shards[row]
    }
    pub(super) fn placement(&self, row: usize) -> Placement {
        self.placements[row]
    }
    pub(super) fn since(&self, row: usize) -> Option<Timestamp> {
        Some(self.since[row]).filter(|t| !t.is_zero())
    }
    pub(super) fn is_jumbo(&self, row: usize) -> bool {
        self.rare.get(&(row as u32)).is_some_and(|r| r.jumbo)
    }
    pub(super) fn former_owners(&self, row: usize) -> &[Owner] {
        self.rare.get(&(row as u32)).and_then(|r| r.former.as_deref()).unwrap_or_default()
    }
    pub(super) fn owners(&self) -> &[BlockOwner] {
        &self.owners
    }
    pub(super) fn row(&self, row: usize) -> Row<'_> {
        let rare = self.rare.get(&(row as u32)).cloned().unwrap_or_default();
        Row {
            key: self.key(row),
            min: self.min(row),
            shard: self.shards[row],
            placement: self.placements[row],
            since: self.since[row],
            jumbo: rare.jumbo,
            former: rare.former,
        }
    }
    pub(super) fn heap_bytes(&self) -> usize {
        let row =
            size_of::<(u32, u32)>() + size_of::<u32>() + size_of::<Placement>() + size_of::<Timestamp>();
        let owners = self.owners.len() * size_of::<BlockOwner>();
        let rare: usize =
            self.rare.values().map(|r| 64 + r.former.as_ref().map_or(0, |f| f.len() * 32)).sum();
        size_of::<Block>() + self.bytes.len() + self.len() * row + owners + rare
    }
}
