//! A walk over the runs of one tree: sorted sources merged, the newest row of a key first seen.
//!
//! Sources are kept in the order of their keys. Most walks stay in one for long stretches (appended records, one
//! compacted level): the source in front is read on until its key reaches that of the next, and then takes its new
//! place among the others.

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
    sources: Vec<S>,
    /// Those that stand at a row, by its key; of equal keys the newest row is first.
    order: Vec<usize>,
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
        let mut walk =
            Walk { order: Vec::with_capacity(sources.len()), sources, ahead, given: false, failed: None };
        walk.failed = walk.begin().err();
        walk
    }

    fn begin(&mut self) -> Result<()> {
        for at in 0..self.sources.len() {
            if self.sources[at].step()? {
                self.order.insert(0, at);
                self.sink(0);
            }
        }
        self.pass_over()
    }

    /// Does the row of source `a` come before that of `b`?
    #[inline]
    fn is_before(&self, a: usize, b: usize) -> bool {
        let (a, b) = (&self.sources[a], &self.sources[b]);
        match a.key().cmp(b.key()) {
            Ordering::Equal => a.seqno() > b.seqno(),
            order => order == self.ahead,
        }
    }

    /// Moves the source at `from` behind those whose rows come before its own.
    fn sink(&mut self, from: usize) {
        let mut to = from;
        while to + 1 < self.order.len() && self.is_before(self.order[to + 1], self.order[from]) {
            to += 1;
        }
        self.order[from..=to].rotate_left(1);
    }

    /// Passes over older rows of the key in front.
    fn pass_over(&mut self) -> Result<()> {
        while let [front, next, ..] = self.order[..]
            && self.sources[front].key() == self.sources[next].key()
        {
            if self.sources[next].step()? {
                self.sink(1);
            } else {
                self.order.remove(1);
            }
        }
        Ok(())
    }

    /// Leaves the row that was given.
    #[inline]
    fn pass(&mut self) -> Result<()> {
        let front = &mut self.sources[self.order[0]];
        if !front.step()? {
            self.order.remove(0);
            return self.pass_over();
        }
        match self.order[..] {
            [front, next, ..] if self.sources[front].key().cmp(self.sources[next].key()) != self.ahead => {
                self.sink(0);
                self.pass_over()
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
            if std::mem::replace(&mut self.given, true) && !self.order.is_empty() {
                self.pass()?;
            }
            match self.order.first() {
                None => return Ok(false),
                Some(&front) if self.sources[front].value().is_some() => return Ok(true),
                Some(_) => {}
            }
        }
    }
}

impl<S: Source> KvWalk for Walk<S> {
    #[inline]
    fn step(&mut self) -> Result<bool> {
        self.step_or_fail().inspect_err(|_| self.order.clear())
    }
    #[inline]
    fn key(&self) -> &[u8] {
        self.sources[self.order[0]].key()
    }
    #[inline]
    fn value(&self) -> &[u8] {
        self.sources[self.order[0]].value().expect("a walk stands at no removed row")
    }
    fn share(&self) -> Slice {
        self.sources[self.order[0]].share()
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
