//! Scans over many blocks of overlapping tables, rows in memory on top, against an ordered map.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Folder, checkpoint, lsm, open_on, put, record_tables};
use pando_storage::{Dir, Ident, IdentKind, ReadAt, Storage};
use std::collections::BTreeMap;
use std::ops::Bound;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

struct Draw(u64);
impl Draw {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }
    /// Keys with a long common beginning, some of them prefixes of others.
    fn key(&mut self) -> Vec<u8> {
        let n = self.below(1200);
        let mut key = b"a common beginning/".to_vec();
        key.extend_from_slice(format!("{:03}", n / 3).as_bytes());
        key.extend(std::iter::repeat_n(b'x', (n % 3) as usize));
        key
    }
    fn bound(&mut self) -> Bound<Vec<u8>> {
        match self.below(5) {
            0 => Bound::Unbounded,
            1 | 2 => Bound::Included(self.key()),
            _ => Bound::Excluded(self.key()),
        }
    }
}

fn change(s: &Storage, i: Ident, map: &mut Map, draw: &mut Draw) {
    let (key, len) = (draw.key(), draw.below(2500) as usize);
    if draw.below(6) == 0 {
        put(s, i, &key, None);
        map.remove(&key);
    } else {
        let value = vec![draw.below(250) as u8; len];
        put(s, i, &key, Some(&value));
        map.insert(key, value);
    }
}

fn compare(s: &Storage, i: Ident, map: &Map, draw: &mut Draw) {
    let (low, high) = (draw.bound(), draw.bound());
    let within = |k: &[u8]| {
        let above = match &low {
            Bound::Included(l) => k >= &l[..],
            Bound::Excluded(l) => k > &l[..],
            Bound::Unbounded => true,
        };
        above
            && match &high {
                Bound::Included(h) => k <= &h[..],
                Bound::Excluded(h) => k < &h[..],
                Bound::Unbounded => true,
            }
    };
    let backward = draw.below(2) == 0;
    let mut want: Vec<(&[u8], &[u8])> =
        map.iter().filter(|(k, _)| within(k)).map(|(k, v)| (&k[..], &v[..])).collect();
    if backward {
        want.reverse();
    }
    let t = s.begin(ReadAt::Latest).unwrap();
    let dir = if backward { Dir::Backward } else { Dir::Forward };
    let (low, high) = (low.as_ref().map(|k| &k[..]), high.as_ref().map(|k| &k[..]));
    let mut rows = t.scan(i, low, high, dir).unwrap();
    let mut at = 0;
    let seek_after = draw.below(40);
    for n in 0.. {
        if n == seek_after {
            let key = draw.key();
            rows.seek(&key).unwrap();
            at = want.partition_point(|(k, _)| if backward { *k > &key[..] } else { *k < &key[..] });
        }
        let Some((key, value)) = want.get(at).copied() else { break };
        at += 1;
        assert!(rows.advance().unwrap(), "a row is missing: {key:?}");
        assert_eq!((rows.key(), rows.value()), (key, value));
        assert_eq!(&rows.share()[..], value);
    }
    assert!(!rows.advance().unwrap());
    assert!(!rows.advance().unwrap(), "the end stays the end");
}

#[test]
fn every_scan_gives_the_rows_of_a_map_in_order() {
    for (seed, kind) in [(3, IdentKind::Records), (4, IdentKind::Index)] {
        let folder = Folder::new(&format!("scans-{seed}"));
        let (s, _) = open_on(folder.0.clone(), lsm());
        let (before, i, after) =
            (s.create_ident(kind).unwrap(), s.create_ident(kind).unwrap(), s.create_ident(kind).unwrap());
        let (mut map, mut draw) = (Map::new(), Draw(seed));
        for round in 0..8 {
            (0..[1500, 30, 300, 5][round % 4]).for_each(|_| change(&s, i, &mut map, &mut draw));
            for other in [before, after] {
                put(&s, other, b"a common beginning/5", Some(b"of another ident"));
            }
            if round != 5 {
                checkpoint(&s);
            }
            if round == 3 {
                s.compact_all().unwrap();
            } else {
                while round % 2 == 1 && s.step().unwrap() {}
            }
            (0..150).for_each(|_| compare(&s, i, &map, &mut draw));
        }
    }
}

#[test]
fn a_damaged_block_is_an_error_of_the_scan_and_nothing_worse() {
    let folder = Folder::new("scans-damaged");
    let (s, _) = open_on(folder.0.clone(), lsm());
    let i = s.create_ident(IdentKind::Records).unwrap();
    for n in 0..200u32 {
        put(&s, i, &n.to_be_bytes(), Some(&[7; 1000]));
    }
    checkpoint(&s);
    drop(s);
    for path in record_tables(&folder) {
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[100_000] ^= 1;
        std::fs::write(&path, bytes).unwrap();
    }
    let (s, _) = open_on(folder.0.clone(), lsm());
    for dir in [Dir::Forward, Dir::Backward] {
        let t = s.begin(ReadAt::Latest).unwrap();
        let mut rows = t.scan(i, Bound::Unbounded, Bound::Unbounded, dir).unwrap();
        let mut read = 0;
        let error = loop {
            match rows.advance() {
                Ok(more) => assert!(more, "the damage was not seen"),
                Err(e) => break e,
            }
            read += 1;
        };
        assert!(read > 50 && error.message.contains("table file"), "{read} rows, {error}");
        assert!(!rows.advance().unwrap_or(false));
        rows.seek(&3u32.to_be_bytes()).unwrap();
    }
}
