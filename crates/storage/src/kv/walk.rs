//! A walk over the runs of one tree: sorted sources merged, the newest row of a key first seen.
//!
//! Most walks stay in one source for long stretches (appended records, one compacted level), so the source in
//! front is read on until its key reaches the lowest key of all the others; only then are all of them compared.

use super::KvWalk;
use lsm_tree::Slice;
use pando_base::Result;
use std::cmp::Ordering;

/// Rows in walking order, at most one of each key.
pub(super) trait Source: Send {
    /// Goes to the next row; false at the end.
    fn step(&mut self) -> Result<bool>;
    /// The key of the row it stands at.
    fn key(&self) -> &[u8];
    /// Which of several rows with one key counts: the highest.
    fn seqno(&self) -> u64;
    /// `None` removes the key.
    fn value(&self) -> Option<&[u8]>;
    /// The value without copying it.
    fn share(&self) -> Slice;
}

/// See the module text.
pub(super) struct Walk<S> {
    /// Each stands at a row.
    sources: Vec<S>,
    /// The source in front, and the one whose key is the lowest of the others.
    front: usize,
    next: Option<usize>,
    /// `Less`: ascending keys.
    ahead: Ordering,
    /// The row in front was given.
    given: bool,
    failed: Option<pando_base::Error>,
}

impl<S: Source> Walk<S> {
    pub(super) fn new(sources: impl IntoIterator<Item = S>, backward: bool) -> Walk<S> {
        let ahead = if backward { Ordering::Greater } else { Ordering::Less };
        let sources: Vec<S> = sources.into_iter().collect();
        let mut walk = Walk { sources, front: 0, next: None, ahead, given: false, failed: None };
        walk.failed = walk.begin().err();
        walk
    }

    fn begin(&mut self) -> Result<()> {
        let mut at = 0;
        while at < self.sources.len() {
            if self.sources[at].step()? {
                at += 1;
            } else {
                self.sources.swap_remove(at);
            }
        }
        self.choose()
    }

    /// Finds the source in front and the next one; older rows of its key in other sources are passed over.
    fn choose(&mut self) -> Result<()> {
        loop {
            let (mut front, mut next) = (0, None::<usize>);
            for (at, source) in self.sources.iter().enumerate().skip(1) {
                let best = &self.sources[front];
                let order = source.key().cmp(best.key());
                if order == self.ahead || (order == Ordering::Equal && source.seqno() > best.seqno()) {
                    next = Some(front);
                    front = at;
                } else if next.is_none_or(|n| source.key().cmp(self.sources[n].key()) == self.ahead) {
                    next = Some(at);
                }
            }
            (self.front, self.next) = (front, next);
            match next {
                Some(next) if self.sources[next].key() == self.sources[front].key() => {
                    if !self.sources[next].step()? {
                        self.sources.swap_remove(next);
                    }
                }
                _ => return Ok(()),
            }
        }
    }

    /// Leaves the row that was given.
    #[inline]
    fn pass(&mut self) -> Result<()> {
        let front = &mut self.sources[self.front];
        if !front.step()? {
            self.sources.swap_remove(self.front);
            return self.choose();
        }
        match self.next {
            Some(next) if self.sources[self.front].key().cmp(self.sources[next].key()) != self.ahead => {
                self.choose()
            }
            _ => Ok(()),
        }
    }

    #[inline]
    fn step_or_fail(&mut self) -> Result<bool> {
        loop {
            if let Some(e) = self.failed.take() {
                return Err(e);
            }
            if std::mem::replace(&mut self.given, true) && !self.sources.is_empty() {
                self.pass()?;
            }
            match self.sources.get(self.front) {
                None => return Ok(false),
                Some(front) if front.value().is_some() => return Ok(true),
                Some(_) => {}
            }
        }
    }
}

impl<S: Source> KvWalk for Walk<S> {
    #[inline]
    fn step(&mut self) -> Result<bool> {
        self.step_or_fail().inspect_err(|_| self.sources.clear())
    }
    #[inline]
    fn key(&self) -> &[u8] {
        self.sources[self.front].key()
    }
    #[inline]
    fn value(&self) -> &[u8] {
        self.sources[self.front].value().unwrap_or_default()
    }
    fn share(&self) -> Slice {
        self.sources[self.front].share()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    type Row = ([u8; 1], Option<[u8; 1]>, u64);
    struct List(std::vec::IntoIter<Row>, Row);

    impl Source for List {
        fn step(&mut self) -> Result<bool> {
            let next = self.0.next();
            self.1 = next.unwrap_or_default();
            Ok(next.is_some())
        }
        fn key(&self) -> &[u8] {
            &self.1.0
        }
        fn seqno(&self) -> u64 {
            self.1.2
        }
        fn value(&self) -> Option<&[u8]> {
            self.1.1.as_ref().map(|v| &v[..])
        }
        fn share(&self) -> Slice {
            Slice::from(self.value().unwrap_or_default())
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
                let mut rows: Vec<Row> = run.into_iter().map(|(k, v)| ([k], v.map(|v| [v]), seqno)).collect();
                if backward {
                    rows.reverse();
                }
                List(rows.into_iter(), Row::default())
            });
            let mut walk = Walk::new(sources, backward);
            let mut got: Vec<(u8, u8)> = Vec::new();
            while walk.step().expect("a row") {
                got.push((walk.key()[0], walk.value()[0]));
            }
            assert!(!walk.step().expect("an end"), "the end stays the end");
            let mut want: Vec<(u8, u8)> = expected.into_iter().filter_map(|(k, v)| Some((k, v?))).collect();
            if backward {
                want.reverse();
            }
            assert_eq!(got, want, "round {round}");
        }
    }
}
