//! Plans for `$text`: one scan of the text index per term, put together by record.
//!
//! ```text
//!   TextMatch (negations, phrases, letters that count) ◄─ TextOr (sums scores) ◄─ IxScan per term
//!                                                      ◄─ Fetch ◄─ Or ◄─ IxScan per term   (scores not wanted)
//! ```

use super::Query;
use super::bound_field::BoundField;
use super::candidates::{Planner, Rows};
use super::eligible::implies;
use super::interval::IntervalList;
use super::key_bounds::KeyBounds;
use super::node::{IxScan, PlanNode, TextMatch};
use super::predicates::conjuncts;
use crate::facts::{MetaField, check_nearness, no_text_score};
use crate::matcher::{Leaf, Node, Path, Pred, TextMeaning, check_beside_text, no_text_index};
use crate::source::{CollectionInfo, Direction, FieldKind, IndexInfo, IndexKind};
use pando_base::{Error, ErrorCode, Result, patience};
use pando_bson::keystring::{AFTER, Directions, KeyBuilder};
use pando_bson::{DocBuf, DocBuilder, ElementType};
use std::sync::Arc;

impl Query {
    /// Gives `$text` the meaning that the collection's text index gives it; 27 when there is none.
    pub fn resolve_text(&mut self, info: &CollectionInfo) -> Result<()> {
        if self.matcher.text_is_resolved() {
            return Ok(());
        }
        let spec = text_index(info).and_then(|i| info.indexes[i].text.clone()).ok_or_else(no_text_index)?;
        check_beside_text(self.matcher.root())?;
        self.matcher = Arc::new(self.matcher.with_text_index(&spec)?);
        if self.hint.is_some() {
            return Err(Error::bad_value("text and hint not allowed in same query"));
        }
        if self.natural.is_some() {
            return Err(Error::bad_value("text expression not allowed with $natural sort order"));
        }
        Ok(())
    }

    /// What the text index finds wrong with a `$text`, which comes before what is wrong with the rest of the query.
    pub fn check_search(&self, info: &CollectionInfo) -> Result<()> {
        match text_index(info).and_then(|i| info.indexes[i].text.clone()) {
            Some(spec) if self.matcher.has_text() => self.matcher.with_text_index(&spec).map(drop),
            _ => Ok(()),
        }
    }

    /// 27 when there is a `$text` but no collection.
    pub fn check_text_without_collection(&self) -> Result<()> {
        if !self.matcher.has_text() {
            return Ok(());
        }
        let text = format!("text index required for $text query (no such collection '{}')", self.ns);
        Err(Error::new(ErrorCode::IndexNotFound, text))
    }

    /// Rows have to carry their text score.
    pub(crate) fn wants_text_score(&self) -> bool {
        self.text_score
            || self.sort.as_ref().is_some_and(|s| s.needs_text_score())
            || self.projection.as_ref().is_some_and(|p| p.metas().contains(&MetaField::TextScore))
    }
    /// 40218 when a text score is asked for without a search.
    fn check_text_score(&self) -> Result<()> {
        match self.wants_text_score() && !self.matcher.has_text() {
            true => Err(no_text_score()),
            false => Ok(()),
        }
    }

    fn check_sort_key(&self) -> Result<()> {
        let sorted = self.sort.is_some() || self.natural.is_some();
        match !sorted && self.projected_metas().contains(&MetaField::SortKey) {
            true => Err(Error::bad_value("cannot use sortKey $meta projection without a sort")),
            false => Ok(()),
        }
    }

    fn projected_metas(&self) -> &[MetaField] {
        self.projection.as_ref().map_or(&[], |p| p.metas())
    }
    /// Rows have to tell how near they are.
    pub(crate) fn wants_nearness(&self) -> bool {
        self.nearness
            || self.sort.as_ref().is_some_and(|s| s.needs_nearness())
            || self.projected_metas().iter().any(|m| m.is_of_near())
    }
    /// 40218 when something is asked for that no row of this query has.
    pub fn check_metas(&self) -> Result<()> {
        self.check_sort_key()?;
        self.check_text_score()?;
        match self.matcher.root().near() {
            Some(_) => Ok(()),
            None => {
                check_nearness(self.projected_metas())?;
                check_nearness(&self.sort.iter().flat_map(|s| s.metas()).collect::<Vec<_>>())
            }
        }
    }
}

impl CollectionInfo {
    /// `$text` has something to search.
    pub fn has_text_index(&self) -> bool {
        text_index(self).is_some()
    }
}

fn text_index(info: &CollectionInfo) -> Option<usize> {
    info.indexes.iter().position(|i| i.kind == IndexKind::Text && i.text.is_some() && !i.hidden)
}

fn the_text(conj: &[Node]) -> Option<(usize, &Arc<TextMeaning>)> {
    conj.iter().enumerate().find_map(|(i, n)| match n {
        Node::Text(t) => t.meaning.as_ref().map(|m| (i, m)),
        _ => None,
    })
}

/// A condition that can be checked on a key, where missing fields look like nulls.
fn on_key(pred: &Pred) -> bool {
    match pred {
        Pred::Cmp(c) => !matches!(
            c.rhs.ty(),
            ElementType::Null
                | ElementType::Undefined
                | ElementType::Array
                | ElementType::MinKey
                | ElementType::MaxKey
        ),
        Pred::In(list) => !list.has_null() && list.values().iter().all(|v| v.ty() != ElementType::Array),
        Pred::Type(set) => !set.contains(ElementType::Null) && !set.contains(ElementType::Array),
        Pred::Regex(_) | Pred::Mod(_) | Pred::Bits(_) => true,
        _ => false,
    }
}

impl Planner<'_> {
    pub(super) fn has_text(&self) -> bool {
        self.q.matcher.has_text()
    }

    /// The plans of a query with `$text`: those that have it.
    pub(super) fn text_solutions(&self) -> Result<Vec<super::Solution>> {
        let mut out = Vec::new();
        if let Some(rows) = self.text_rows(self.conj) {
            out.push(self.finish(rows));
        }
        for (i, node) in self.conj.iter().enumerate().filter(|_| out.is_empty()) {
            if let Node::Or(branches) = node
                && branches.iter().any(|b| the_text(conjuncts(b)).is_some())
            {
                if let Some(rows) = self.union(branches, i, None) {
                    return Ok(vec![self.finish(rows)]);
                }
                let unanswered = branches
                    .iter()
                    .any(|b| the_text(conjuncts(b)).is_some() && self.text_rows(conjuncts(b)).is_none());
                if !unanswered {
                    return Err(self.q.error(
                        ErrorCode::NoQueryExecutionPlans.0,
                        "Failed to produce a solution for TEXT under OR - other non-TEXT clauses under OR have to be \
                         indexed as well.",
                    ));
                }
            }
        }
        if out.is_empty() {
            return Err(self.q.error(
                ErrorCode::NoQueryExecutionPlans.0,
                "failed to use text index to satisfy $text query (if text index is compound, are equality predicates \
                 given for all prefix fields?)",
            ));
        }
        Ok(out)
    }

    /// A conjunction with `$text` by the text index; `None` without equalities for the fields before the term.
    pub(super) fn text_rows(&self, conj: &[Node]) -> Option<Rows> {
        let (at, meaning) = the_text(conj)?;
        let position = text_index(self.info)?;
        let index = &self.info.indexes[position];
        let whole = Node::And(conj.to_vec());
        if index.partial.as_ref().is_some_and(|p| !implies(&whole, p.root())) {
            return None;
        }
        let mut done = vec![false; conj.len()];
        done[at] = true;
        let prefix = self.text_prefix(conj, meaning, &mut done)?;
        let mut on_keys = Vec::new();
        for (i, node) in conj.iter().enumerate() {
            if let Node::Leaf(l) = node
                && meaning.spec.suffix.iter().any(|s| s == l.path.dotted())
                && on_key(&l.pred)
            {
                done[i] = true;
                on_keys.push(Node::Leaf(Leaf { path: Path::flat(l.path.dotted()), ..l.clone() }));
            }
        }
        let scored = self.q.wants_text_score();
        let filter = self.matcher_of(on_keys);
        let single = meaning.query.lookups.len() == 1;
        let of_scan = filter.clone().filter(|_| !scored && single);
        let scans: Vec<PlanNode> = meaning
            .query
            .lookups
            .iter()
            .take_while(|_| !patience::is_over(SCAN_STEPS))
            .map(|term| {
                let scan =
                    term_scan(position, index, &prefix, term, of_scan.clone(), scored || filter.is_some());
                PlanNode::IxScan(Arc::new(scan))
            })
            .collect();
        let input = if scored {
            PlanNode::TextOr { inputs: scans, filter, key_fields: key_fields(index) }
        } else {
            unscored(scans, filter.filter(|_| !single), key_fields(index)).fetch(None)
        };
        let left = conj.iter().zip(&done).filter(|(_, done)| !**done).map(|(n, _)| n.clone()).collect();
        let node = TextMatch { index: position, prefix, meaning: meaning.clone(), input: Box::new(input) };
        Some(Rows {
            node: PlanNode::TextMatch(node),
            filter: self.matcher_of(left),
            sorted: self.q.sort.is_none(),
            access: None,
            dir: Direction::Forward,
            signature: format!("TEXT {}", index.name),
            lone: None,
        })
    }

    /// The values of the fields before the term.
    fn text_prefix(&self, conj: &[Node], meaning: &TextMeaning, done: &mut [bool]) -> Option<DocBuf> {
        let mut prefix = DocBuilder::new();
        for name in &meaning.spec.prefix {
            let equality = conj.iter().enumerate().find_map(|(i, n)| match n {
                Node::Leaf(l) if l.path.dotted() == name => l.pred.as_eq().map(|c| (i, c)),
                _ => None,
            });
            let (i, c) = equality?;
            // A missing field is in the index as null; what it was is for the document to say.
            done[i] = c.rhs.ty() != ElementType::Null;
            prefix.raw(c.rhs.ty(), name, c.rhs.data());
        }
        Some(prefix.finish())
    }
}

fn key_fields(index: &IndexInfo) -> Vec<String> {
    index.fields.iter().map(|f| f.path.clone()).collect()
}

fn unscored(
    mut scans: Vec<PlanNode>,
    filter: Option<Arc<crate::matcher::Matcher>>,
    key_fields: Vec<String>,
) -> PlanNode {
    match (scans.len(), filter) {
        (0, _) => PlanNode::Eof,
        (1, _) => scans.remove(0),
        (_, None) => PlanNode::Or { inputs: scans },
        (_, Some(filter)) => PlanNode::KeyOr { inputs: scans, filter, key_fields },
    }
}

/// What making one scan takes.
const SCAN_STEPS: usize = 20;

/// All entries of one term, best scores first.
fn term_scan(
    position: usize,
    index: &IndexInfo,
    prefix: &DocBuf,
    term: &str,
    filter: Option<Arc<crate::matcher::Matcher>>,
    keep_key: bool,
) -> IxScan {
    let bits = index.fields.iter().enumerate();
    let directions =
        Directions(bits.fold(0, |bits, (i, f)| bits | u32::from(f.kind == FieldKind::Descending) << i));
    let mut b = KeyBuilder::new(directions);
    for e in prefix.iter() {
        b.append(e.value());
    }
    b.append(pando_bson::Value::String(term));
    let start = b.finish();
    let mut end = start.clone();
    end.push(AFTER);
    let fields = index.fields.iter().map(|f| BoundField {
        name: f.path.clone(),
        kind: f.kind,
        intervals: IntervalList::everything(),
        multikey: 0,
    });
    IxScan {
        index: position,
        dir: Direction::Backward,
        fields: fields.collect(),
        bounds: KeyBounds::range(start, end, directions),
        filter,
        dedup: true,
        keep_key,
        wild_path: None,
    }
}
