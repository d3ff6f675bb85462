//! Streams of several shards as one: in an order, or as they come. Decides which document is next and which shard must be
//! asked for more; asks nobody itself.
//!
//! Each document costs the logarithm of the number of shards: who has one stands in a row by its key, who has none in another
//! by what was promised.

use pando_base::{Error, Result};
use pando_bson::keystring::KeyBuilder;
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use pando_query::collation::Collation;
use pando_query::sort::{SortKeys, SortPattern};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// Fields in which shards send what they know of a row beside its document.
const OF_ROWS: [&str; 9] = [
    "$sortKey",
    "$textScore",
    "$randVal",
    "$dis",
    "$pt",
    "$indexKey",
    "$searchScore",
    "$searchHighlights",
    "$recordId",
];

/// What is taken off documents before they are handed on.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Strip {
    #[default]
    Nothing,
    /// What this router has asked for beside what the client wants.
    SortKey,
    /// All that shards say of rows.
    All,
}

impl Strip {
    fn takes(self, name: &str) -> bool {
        match self {
            Strip::Nothing => false,
            Strip::SortKey => name == "$sortKey",
            Strip::All => OF_ROWS.contains(&name),
        }
    }
    /// The document without that.
    pub(super) fn apply(self, doc: DocBuf) -> DocBuf {
        if !doc.iter().any(|e| self.takes(e.name())) {
            return doc;
        }
        let mut b = DocBuilder::with_capacity(doc.byte_len());
        for e in doc.iter().filter(|e| !self.takes(e.name())) {
            b.elem(e);
        }
        b.finish()
    }
}

/// What documents are merged by.
pub(crate) enum Order {
    /// `$sortKey`, which the shard has put into each; its strings are as the collation sees them.
    Carried { keys: KeyBuilder },
    /// `$sortKey` as one value: how far away each is.
    Distance { keys: KeyBuilder },
    /// Their own fields.
    Fields(SortKeys),
}

impl Order {
    pub(crate) fn carried(pattern: &SortPattern) -> Order {
        Order::Carried { keys: KeyBuilder::new(pattern.directions()) }
    }
    pub(crate) fn distance() -> Order {
        Order::Distance { keys: KeyBuilder::default() }
    }
    pub(crate) fn fields(pattern: Arc<SortPattern>, collation: Option<Arc<Collation>>) -> Order {
        Order::Fields(SortKeys::new(pattern, collation))
    }
    fn key(&mut self, doc: &RawDoc) -> Result<Vec<u8>> {
        match self {
            Order::Fields(keys) => Ok(keys.key(doc, None)?.to_vec()),
            Order::Distance { keys } => {
                keys.clear();
                keys.append(doc.get("$sortKey").unwrap_or(pando_bson::Value::Null));
                Ok(keys.bytes().to_vec())
            }
            Order::Carried { keys } => {
                let carried = doc.get("$sortKey").and_then(|v| v.as_array().or_else(|| v.as_doc()));
                let carried = carried.ok_or_else(|| Error::internal("a sorted row without its sort key"))?;
                keys.clear();
                for e in carried {
                    keys.append(e.value());
                }
                Ok(keys.bytes().to_vec())
            }
        }
    }
}

#[derive(Default)]
struct Arm {
    /// With their keys, where there is an order.
    ready: VecDeque<(Vec<u8>, DocBuf)>,
    bytes: usize,
    ended: bool,
    /// Whatever comes of it comes behind this key.
    promise: Vec<u8>,
}

/// The next document, or what has to be done first.
#[derive(Debug, PartialEq)]
pub(crate) enum Next {
    Doc(DocBuf),
    /// These shards have to be asked for more.
    Ask(Vec<usize>),
    End,
}

/// All streams of one cursor.
pub(crate) struct Merge {
    arms: Vec<Arm>,
    order: Option<Order>,
    strips: Strip,
    /// Of those that have documents: the first one's key.
    heads: BTreeSet<(Vec<u8>, usize)>,
    /// Of those that have none and may get some: what was promised.
    waiting: BTreeSet<(Vec<u8>, usize)>,
    /// How many have not ended.
    open: usize,
    bytes: usize,
    /// Where there is no order: whose turn it is.
    turn: usize,
}

impl Merge {
    pub(crate) fn new(arms: usize, order: Option<Order>, strips: Strip) -> Merge {
        Merge {
            arms: (0..arms).map(|_| Arm::default()).collect(),
            order,
            strips,
            heads: BTreeSet::new(),
            waiting: (0..arms).map(|arm| (Vec::new(), arm)).collect(),
            open: arms,
            bytes: 0,
            turn: 0,
        }
    }
    /// A shard has sent these.
    pub(crate) fn push(&mut self, arm: usize, docs: Vec<DocBuf>) -> Result<()> {
        let Some(to) = self.arms.get_mut(arm) else { return Ok(()) };
        let had_none = to.ready.is_empty();
        for doc in docs {
            let key = self.order.as_mut().map_or(Ok(Vec::new()), |order| order.key(&doc))?;
            to.bytes += doc.byte_len();
            self.bytes += doc.byte_len();
            to.ready.push_back((key, doc));
        }
        if let (true, Some((key, _))) = (had_none, to.ready.front()) {
            self.heads.insert((key.clone(), arm));
            self.waiting.remove(&(to.promise.clone(), arm));
        }
        Ok(())
    }
    /// Nothing more will come of it.
    pub(crate) fn end(&mut self, at: usize) {
        let Some(arm) = self.arms.get_mut(at) else { return };
        if !std::mem::replace(&mut arm.ended, true) {
            self.open -= 1;
            self.waiting.remove(&(arm.promise.clone(), at));
        }
    }
    /// A shard has sent everything up to what sorts like `doc`.
    pub(crate) fn promise(&mut self, at: usize, doc: &RawDoc) -> Result<()> {
        if let (Some(order), Some(arm)) = (self.order.as_mut(), self.arms.get_mut(at)) {
            let waits = self.waiting.remove(&(arm.promise.clone(), at));
            arm.promise = order.key(doc)?;
            if waits {
                self.waiting.insert((arm.promise.clone(), at));
            }
        }
        Ok(())
    }
    /// Bytes that wait to be taken.
    pub(crate) fn held_bytes(&self) -> usize {
        self.bytes
    }
    /// Whether somebody has sent what has not been taken.
    pub(crate) fn has_documents(&self) -> bool {
        !self.heads.is_empty()
    }
    /// What comes last of all that was sent, in the order.
    pub(crate) fn last(&self) -> Option<&DocBuf> {
        let lasts = self.heads.iter().filter_map(|(_, arm)| self.arms[*arm].ready.back());
        lasts.max_by(|a, b| a.0.cmp(&b.0)).map(|(_, doc)| doc)
    }
    /// Who may yet send what comes before the last of all that was sent, and holds no more than so many bytes.
    pub(crate) fn behind(&self, bytes_max: usize) -> Vec<usize> {
        let lasts = self.heads.iter().filter_map(|(_, arm)| self.arms[*arm].ready.back());
        let Some(last) = lasts.map(|(key, _)| key).max() else {
            return self.waiting.iter().map(|(_, arm)| *arm).collect();
        };
        let is_behind = |arm: &Arm| !arm.ended && arm.bytes <= bytes_max && arm.promise <= *last;
        self.arms.iter().enumerate().filter(|(_, arm)| is_behind(arm)).map(|(at, _)| at).collect()
    }
    /// Whether everything has been taken and nothing will come.
    pub(crate) fn is_over(&self) -> bool {
        self.open == 0 && self.heads.is_empty()
    }

    /// Whose document is next.
    fn next_arm(&self) -> Option<usize> {
        let (key, first) = self.heads.first()?;
        if self.order.is_none() {
            // Whoever has begun goes on.
            let on = self.heads.range((Vec::new(), self.turn)..).next();
            return Some(on.map_or(*first, |(_, arm)| *arm));
        }
        // Who has sent nothing may have what comes first, unless it has said that it has not.
        self.waiting.first().is_none_or(|(promise, _)| promise > key).then_some(*first)
    }
    /// Who has to be asked: of those without a document the ones that may have what comes before the first one.
    fn to_ask(&self) -> Vec<usize> {
        let first = self.heads.first().map(|(key, _)| key);
        let may = |promise: &Vec<u8>| first.is_none_or(|key| promise <= key);
        let mut ask: Vec<usize> =
            self.waiting.iter().take_while(|(promise, _)| may(promise)).map(|(_, arm)| *arm).collect();
        ask.sort_unstable();
        ask
    }
    pub(crate) fn next(&mut self) -> Next {
        let Some(from) = self.next_arm() else {
            let ask = self.to_ask();
            return if ask.is_empty() { Next::End } else { Next::Ask(ask) };
        };
        self.turn = from;
        let arm = &mut self.arms[from];
        let Some((key, doc)) = arm.ready.pop_front() else { return Next::End };
        self.heads.remove(&(key, from));
        match arm.ready.front() {
            Some((next, _)) => _ = self.heads.insert((next.clone(), from)),
            None if !arm.ended => _ = self.waiting.insert((arm.promise.clone(), from)),
            None => {}
        }
        arm.bytes -= doc.byte_len();
        self.bytes -= doc.byte_len();
        Next::Doc(self.strips.apply(doc))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_metadata_cache::testing::doc;

    fn row(text: &str) -> DocBuf {
        doc(text)
    }
    fn order(spec: &str) -> Order {
        Order::carried(&SortPattern::parse(&doc(spec)).unwrap())
    }

    #[test]
    fn in_order_nobody_goes_before_all_have_spoken() {
        let mut m = Merge::new(2, Some(order(r#"{"a": 1, "b": -1}"#)), Strip::All);
        assert_eq!(m.next(), Next::Ask(vec![0, 1]));
        m.push(0, vec![row(r#"{"n": 1, "$sortKey": [1, 5]}"#), row(r#"{"n": 4, "$sortKey": [2, 1]}"#)])
            .unwrap();
        m.end(0);
        assert_eq!(m.next(), Next::Ask(vec![1]));
        m.push(1, vec![row(r#"{"n": 2, "$sortKey": [1, 4]}"#)]).unwrap();
        assert_eq!(m.next(), Next::Doc(row(r#"{"n": 1}"#)));
        assert_eq!(m.next(), Next::Doc(row(r#"{"n": 2}"#)));
        assert_eq!(m.next(), Next::Ask(vec![1]), "it may have what comes before 4");
        m.push(1, vec![row(r#"{"n": 3, "$sortKey": [2, 9]}"#)]).unwrap();
        m.end(1);
        assert_eq!(m.next(), Next::Doc(row(r#"{"n": 3}"#)));
        assert_eq!(m.next(), Next::Doc(row(r#"{"n": 4}"#)));
        assert!(m.is_over() && m.next() == Next::End && m.held_bytes() == 0);
    }

    #[test]
    fn who_promises_to_send_nothing_before_is_not_waited_for() {
        let mut m = Merge::new(2, Some(order(r#"{"a": 1}"#)), Strip::SortKey);
        m.push(0, vec![row(r#"{"n": 1, "$sortKey": [1]}"#), row(r#"{"n": 2, "$sortKey": [7]}"#)]).unwrap();
        m.promise(1, &row(r#"{"$sortKey": [5]}"#)).unwrap();
        assert_eq!(m.next(), Next::Doc(row(r#"{"n": 1}"#)));
        assert_eq!(m.next(), Next::Ask(vec![1]), "it may have what comes before 7");
    }

    #[test]
    fn who_has_promised_enough_is_not_asked_with_the_others() {
        let mut m = Merge::new(3, Some(order(r#"{"a": 1}"#)), Strip::SortKey);
        m.push(0, vec![row(r#"{"n": 1, "$sortKey": [5]}"#), row(r#"{"n": 2, "$sortKey": [8]}"#)]).unwrap();
        m.promise(0, &row(r#"{"$sortKey": [8]}"#)).unwrap();
        m.promise(1, &row(r#"{"$sortKey": [6]}"#)).unwrap();
        assert_eq!(m.next(), Next::Ask(vec![2]), "the second has nothing before 5");
        assert_eq!(m.behind(1000), vec![0, 1, 2], "all have to pass 8");
        assert_eq!(m.behind(10), vec![1, 2], "the first has enough to give");
        m.promise(2, &row(r#"{"$sortKey": [9]}"#)).unwrap();
        assert_eq!((m.next(), m.next()), (Next::Doc(row(r#"{"n": 1}"#)), Next::Ask(vec![1])));
        m.end(1);
        assert_eq!((m.next(), m.next()), (Next::Doc(row(r#"{"n": 2}"#)), Next::Ask(vec![0, 2])));
    }

    /// What a document costs, in comparisons of keys, cannot be seen from outside; that many shards are merged in an instant can.
    #[test]
    fn ten_thousand_shards_with_a_document_each_come_in_order() {
        const SHARDS: i32 = 10_000;
        let mut m = Merge::new(SHARDS as usize, Some(order(r#"{"a": 1}"#)), Strip::All);
        for arm in 0..SHARDS {
            let key = (arm * 7919) % SHARDS;
            m.push(arm as usize, vec![row(&format!(r#"{{"n": {key}, "$sortKey": [{key}]}}"#))]).unwrap();
            m.end(arm as usize);
        }
        for n in 0..SHARDS {
            assert_eq!(m.next(), Next::Doc(row(&format!(r#"{{"n": {n}}}"#))));
        }
        assert!(m.is_over() && m.held_bytes() == 0 && !m.has_documents());
    }

    #[test]
    fn without_an_order_what_is_there_goes_first() {
        let mut m = Merge::new(2, None, Strip::Nothing);
        m.push(1, vec![row(r#"{"n": 1}"#)]).unwrap();
        assert_eq!(m.next(), Next::Doc(row(r#"{"n": 1}"#)));
        assert_eq!(m.next(), Next::Ask(vec![0, 1]));
        m.end(0);
        m.end(1);
        assert_eq!(m.next(), Next::End);
    }

    #[test]
    fn equal_rows_come_in_the_order_of_shards() {
        let pattern = Arc::new(SortPattern::parse(&doc(r#"{"a": 1}"#)).unwrap());
        let mut m = Merge::new(2, Some(Order::fields(pattern, None)), Strip::Nothing);
        for arm in [1, 0] {
            m.push(arm, vec![row(&format!(r#"{{"a": 1, "of": {arm}}}"#))]).unwrap();
            m.end(arm);
        }
        assert_eq!(m.next(), Next::Doc(row(r#"{"a": 1, "of": 0}"#)));
        assert_eq!(m.next(), Next::Doc(row(r#"{"a": 1, "of": 1}"#)));
    }
    #[test]
    fn only_what_was_asked_for_besides_is_taken_off() {
        let doc = || row(r#"{"$recordId": 5, "a": 1, "$sortKey": [1]}"#);
        assert_eq!(Strip::SortKey.apply(doc()), row(r#"{"$recordId": 5, "a": 1}"#));
        assert_eq!(Strip::All.apply(doc()), row(r#"{"a": 1}"#));
        assert_eq!(Strip::Nothing.apply(doc()), doc());
    }
}
