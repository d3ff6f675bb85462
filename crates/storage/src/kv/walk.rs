//! A walk over the runs of one tree: sorted sources merged, the newest row of a key first seen.
//!
//! Most walks stay in one source for long stretches (appended records, one compacted level), so the source in
//! front is read on until its key reaches the lowest key of all the others; only then are all of them compared.

use lsm_tree::Slice;
use pando_base::Result;
use std::cmp::Ordering;

/// A row of a source; `value: None` removes the key.
pub(super) struct Entry {
    pub(super) key: Slice,
    pub(super) value: Option<Slice>,
    /// Which of several rows with one key counts: the highest.
    pub(super) seqno: u64,
}

/// Rows in walking order, at most one of each key.
pub(super) trait Source: Send {
    fn next(&mut self) -> Option<Result<Entry>>;
}

struct Head<S> {
    source: S,
    entry: Entry,
}

/// See the module text.
pub(super) struct Walk<S> {
    heads: Vec<Head<S>>,
    /// The head in front, and the lowest key of the others.
    front: usize,
    bar: Option<Slice>,
    /// `Less`: ascending keys.
    ahead: Ordering,
    failed: Option<pando_base::Error>,
}

impl<S: Source> Walk<S> {
    pub(super) fn new(sources: impl IntoIterator<Item = S>, backward: bool) -> Walk<S> {
        let ahead = if backward { Ordering::Greater } else { Ordering::Less };
        let mut walk = Walk { heads: Vec::new(), front: 0, bar: None, ahead, failed: None };
        for mut source in sources {
            match source.next() {
                None => {}
                Some(Ok(entry)) => walk.heads.push(Head { source, entry }),
                Some(Err(e)) => walk.failed = Some(e),
            }
        }
        walk.choose();
        walk
    }

    /// Finds the head in front and the bar; older rows of its key in other sources are passed over.
    fn choose(&mut self) {
        self.bar = None;
        self.front = 0;
        if self.heads.len() < 2 {
            return;
        }
        loop {
            let (mut front, mut other) = (0, None::<usize>);
            for at in 1..self.heads.len() {
                let (a, b) = (&self.heads[at].entry, &self.heads[front].entry);
                let order = a.key.cmp(&b.key);
                if order == self.ahead || (order == Ordering::Equal && a.seqno > b.seqno) {
                    other = Some(front);
                    front = at;
                } else if other.is_none_or(|o| a.key.cmp(&self.heads[o].entry.key) == self.ahead) {
                    other = Some(at);
                }
            }
            let Some(other) = other else { return };
            if self.heads[other].entry.key == self.heads[front].entry.key {
                self.advance(other);
                if self.heads.len() < 2 {
                    self.front = 0;
                    return;
                }
                continue;
            }
            self.front = front;
            self.bar = Some(self.heads[other].entry.key.clone());
            return;
        }
    }

    /// Steps one source and returns the row it stood at; a source at its end leaves.
    fn advance(&mut self, at: usize) -> Entry {
        let head = &mut self.heads[at];
        match head.source.next() {
            Some(Ok(next)) => std::mem::replace(&mut head.entry, next),
            ended => {
                if let Some(Err(e)) = ended {
                    self.failed = Some(e);
                }
                self.heads.swap_remove(at).entry
            }
        }
    }
}

impl<S: Source> Iterator for Walk<S> {
    type Item = Result<(Slice, Slice)>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(e) = self.failed.take() {
                self.heads.clear();
                return Some(Err(e));
            }
            if self.heads.is_empty() {
                return None;
            }
            let count = self.heads.len();
            let entry = self.advance(self.front);
            let gone = self.heads.len() < count;
            let passed = |bar: &Slice| self.heads[self.front].entry.key.cmp(bar) != self.ahead;
            if gone || self.bar.as_ref().is_some_and(passed) {
                self.choose();
            }
            if let Some(value) = entry.value {
                return Some(Ok((entry.key, value)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    struct List(std::vec::IntoIter<(u8, Option<u8>, u64)>);

    impl Source for List {
        fn next(&mut self) -> Option<Result<Entry>> {
            let slice = |b: u8| Slice::from(&[b][..]);
            self.0.next().map(|(k, v, seqno)| Ok(Entry { key: slice(k), value: v.map(slice), seqno }))
        }
    }

    /// Random runs against a map, both ways.
    #[test]
    fn the_newest_row_of_each_key_comes_in_order() {
        let mut seed = 7u64;
        let mut draw = move |n: u64| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) % n
        };
        for round in 0..500 {
            let mut expected: BTreeMap<u8, Option<u8>> = BTreeMap::new();
            let mut runs = Vec::new();
            for seqno in 1..=draw(6) {
                let mut run: BTreeMap<u8, Option<u8>> = BTreeMap::new();
                for _ in 0..draw(20) {
                    run.insert(draw(30) as u8, (draw(4) != 0).then(|| draw(200) as u8));
                }
                expected.extend(run.clone());
                runs.push((seqno, run));
            }
            let backward = round % 2 == 1;
            if draw(2) == 0 {
                runs.reverse();
            }
            let sources = runs.into_iter().map(|(seqno, run)| {
                let mut rows: Vec<_> = run.into_iter().map(|(k, v)| (k, v, seqno)).collect();
                if backward {
                    rows.reverse();
                }
                List(rows.into_iter())
            });
            let got: Vec<(u8, u8)> =
                Walk::new(sources, backward).map(|r| r.map(|(k, v)| (k[0], v[0])).expect("a row")).collect();
            let mut want: Vec<(u8, u8)> = expected.into_iter().filter_map(|(k, v)| Some((k, v?))).collect();
            if backward {
                want.reverse();
            }
            assert_eq!(got, want, "round {round}");
        }
    }
}
