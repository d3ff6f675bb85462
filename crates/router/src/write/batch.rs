//! A command of several writes, as data: which statement goes to which shard next, and what came of each (SH-RT-5).
//!
//! ```text
//!   statements ─ round() ─► groups, one a shard ─► replies ─ heard() ─► done, failed, or to be routed again
//! ```
//! In order, a group is as many of the next statements as go to one shard, and the first failure ends the command. Otherwise
//! all that is left goes out at once. A statement that several shards have to carry out is over when all have; whoever has
//! done its part is not asked again, also when others sent it back.

use super::targeting::Goes;
use crate::remote::stale::{self, Stale};
use pando_base::{Error, ErrorCode, Result, limits};
use pando_bson::{DocBuf, DocBuilder, Elem, RawDoc};
use pando_metadata_cache::Target;
use pando_routing::ShardId;
use std::collections::{BTreeMap, BTreeSet};

/// Some of the statements, for one shard.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Group {
    pub(crate) target: Target,
    /// Their places in the command.
    pub(crate) statements: Vec<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Ready,
    /// So many shards have not answered.
    Sent(usize),
    Done,
    Failed,
}

struct Statement {
    state: State,
    /// Shards that have done their part.
    done: BTreeSet<ShardId>,
    /// Somebody sent it back.
    back: bool,
    /// A shard has told what an earlier try has done, and that is counted.
    retried: bool,
}

impl Statement {
    fn new() -> Statement {
        Statement { state: State::Ready, done: BTreeSet::new(), back: false, retried: false }
    }
}

/// See the module text.
pub(crate) struct Batch {
    ordered: bool,
    /// Of each statement, where that is known.
    bytes: Vec<usize>,
    statements: Vec<Statement>,
    /// Whatever is left is not to be done.
    ended: bool,
    stale: Option<(Stale, Error)>,
    pub(crate) outcome: Outcome,
}

/// What the client is told.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) n: i64,
    pub(crate) n_modified: i64,
    /// `{index, _id}`
    pub(crate) upserted: Vec<(usize, DocBuf)>,
    /// As `writeErrors` has them.
    pub(crate) errors: Vec<(usize, DocBuf)>,
    pub(crate) write_concern: Vec<(ShardId, DocBuf)>,
    /// Statements that had been done by an earlier try.
    pub(crate) retried: Vec<i32>,
}

impl Batch {
    pub(crate) fn new(statements: usize, ordered: bool) -> Batch {
        let statements = (0..statements).map(|_| Statement::new()).collect();
        let bytes = Vec::new();
        Batch { ordered, bytes, statements, ended: false, stale: None, outcome: Outcome::default() }
    }
    /// The same, whose groups fit into messages.
    pub(crate) fn of_sizes(bytes: Vec<usize>, ordered: bool) -> Batch {
        let new = Batch::new(bytes.len(), ordered);
        Batch { bytes, ..new }
    }
    fn bytes_of(&self, i: usize) -> usize {
        self.bytes.get(i).copied().unwrap_or(0)
    }
    pub(crate) fn is_over(&self) -> bool {
        self.ended || self.statements.iter().all(|s| matches!(s.state, State::Done | State::Failed))
    }
    /// How many statements are over.
    pub(crate) fn settled(&self) -> usize {
        self.statements.iter().filter(|s| matches!(s.state, State::Done | State::Failed)).count()
    }
    /// Whether nothing has been done anywhere.
    pub(crate) fn has_done_nothing(&self) -> bool {
        self.statements.iter().all(|s| s.state == State::Ready && s.done.is_empty())
    }

    /// What to send now. `goes` says where a statement goes. Beside the groups the first statement whose document has to be
    /// looked for; in order it comes when its turn is there, otherwise at last.
    pub(crate) fn round(
        &mut self,
        mut goes: impl FnMut(usize) -> Result<Goes>,
    ) -> (Vec<Group>, Option<usize>) {
        let mut groups = Groups::default();
        let mut alone = None;
        for i in 0..self.statements.len() {
            if self.ended {
                break;
            }
            if self.statements[i].state != State::Ready {
                continue;
            }
            let wanted = match goes(i) {
                Ok(Goes::To(targets)) => targets,
                Ok(Goes::Anywhere) => {
                    alone = alone.or(Some(i));
                    match self.ordered {
                        true => break,
                        false => continue,
                    }
                }
                // What comes before it is done first.
                Err(_) if self.ordered && !groups.all.is_empty() => break,
                Err(e) => {
                    self.fail(i, error_of(i, &e));
                    continue;
                }
            };
            let left: Vec<Target> =
                wanted.into_iter().filter(|t| !self.statements[i].done.contains(&t.shard)).collect();
            if left.is_empty() {
                self.statements[i].state = State::Done;
                continue;
            }
            if self.ordered && !groups.all.is_empty() {
                let same = left.len() == 1 && groups.all.len() == 1 && groups.all[0].target == left[0];
                if !same {
                    break;
                }
            }
            // A message has an envelope beside what the client has sent; the next round has room for the rest.
            let bytes = self.bytes_of(i);
            if left.iter().any(|target| groups.is_full_with(target, bytes)) {
                match self.ordered {
                    true => break,
                    false => continue,
                }
            }
            let several = left.len() > 1;
            self.statements[i].state = State::Sent(left.len());
            left.into_iter().for_each(|target| groups.add(target, (i, bytes)));
            if self.ordered && several {
                break;
            }
        }
        let alone = alone.filter(|_| groups.all.is_empty());
        (groups.all, alone)
    }

    /// A statement is on its way, to one shard.
    pub(crate) fn sent_alone(&mut self, i: usize) {
        self.statements[i].state = State::Sent(1);
    }
    /// A shard's reply to a group.
    pub(crate) fn heard(&mut self, group: &Group, reply: &RawDoc, ns: &str) {
        let number = |name: &str| reply.get(name).and_then(|v| v.as_i64()).unwrap_or(0);
        let list = |name: &str| reply.get(name).and_then(|v| v.as_array()).unwrap_or(RawDoc::empty());
        if !self.is_told_again(group, !list("retriedStmtIds").is_empty()) {
            self.outcome.n += number("n");
            self.outcome.n_modified += number("nModified");
        }
        for e in list("upserted").iter().filter_map(|e| e.value().as_doc()) {
            if let (Some(i), Some(id)) = (place(group, e), e.elem("_id")) {
                let mut b = DocBuilder::new();
                b.elem(id);
                self.outcome.upserted.push((i, b.finish()));
            }
        }
        let retried = list("retriedStmtIds");
        self.outcome.retried.extend(retried.iter().filter_map(|e| e.value().as_i64()).map(|n| n as i32));
        if let Some(e) = reply.get("writeConcernError").and_then(|v| v.as_doc()) {
            self.outcome.write_concern.push((group.target.shard.clone(), e.to_buf()));
        }
        let mut errors = Vec::new();
        for e in list("writeErrors").iter().filter_map(|e| e.value().as_doc()) {
            if let Some(i) = place(group, e) {
                errors.push((i, e));
            }
        }
        self.settle(group, &errors, ns);
    }

    /// What an earlier try has done is known to two shards where its document has moved since: it is counted once. Of several statements in
    /// one reply nobody can tell which of them that is about.
    fn is_told_again(&mut self, group: &Group, retried: bool) -> bool {
        let [i] = group.statements[..] else { return false };
        retried && std::mem::replace(&mut self.statements[i].retried, true)
    }
    fn settle(&mut self, group: &Group, errors: &[(usize, &RawDoc)], ns: &str) {
        // In order, nothing behind the first error was tried.
        let mut tried = true;
        // Of several about one statement the first counts.
        let errors: BTreeMap<usize, &RawDoc> = errors.iter().rev().copied().collect();
        for i in &group.statements {
            let error = errors.get(i).copied();
            let sent_back = error.and_then(|e| stale::what(code_of(e), e, ns).map(|s| (s, e)));
            match (error, sent_back) {
                _ if !tried => self.back(*i),
                (None, _) => self.did(*i, &group.target.shard),
                (Some(_), Some((stale, e))) => {
                    self.stale.get_or_insert_with(|| (stale, plain_error(e)));
                    self.back(*i);
                }
                (Some(e), None) => self.fail(*i, with_index(*i, e)),
            }
            tried &= error.is_none() || !self.ordered;
        }
    }
    fn did(&mut self, i: usize, shard: &ShardId) {
        let s = &mut self.statements[i];
        s.done.insert(shard.clone());
        self.answered(i);
    }
    /// To be routed again.
    fn back(&mut self, i: usize) {
        self.statements[i].back = true;
        self.answered(i);
    }
    fn answered(&mut self, i: usize) {
        let s = &mut self.statements[i];
        let State::Sent(waiting) = s.state else { return };
        s.state = match waiting {
            0 | 1 if s.back => State::Ready,
            0 | 1 => State::Done,
            _ => State::Sent(waiting - 1),
        };
        if s.state == State::Ready {
            s.back = false;
        }
    }
    /// What several shards say of one statement is told once, in the words of the first.
    fn fail(&mut self, i: usize, error: DocBuf) {
        if self.statements[i].state != State::Failed {
            self.outcome.errors.push((i, error));
        }
        self.statements[i].state = State::Failed;
        self.ended |= self.ordered;
    }

    /// A group came to nothing as a whole.
    pub(crate) fn failed(&mut self, group: &Group, e: &Error, ns: &str) {
        if let Some(stale) = stale::of_error(e, ns) {
            self.stale.get_or_insert((stale, e.clone()));
            group.statements.iter().for_each(|i| self.back(*i));
            return;
        }
        for i in &group.statements {
            if self.ended {
                self.back(*i);
            } else {
                self.fail(*i, error_of(*i, e));
            }
        }
    }
    /// Why some statements came back.
    pub(crate) fn take_stale(&mut self) -> Option<(Stale, Error)> {
        self.stale.take()
    }
    /// It has been routed often enough.
    pub(crate) fn give_up(&mut self, e: &Error) {
        for i in 0..self.statements.len() {
            if self.statements[i].state == State::Ready && !self.ended {
                self.fail(i, error_of(i, e));
            }
        }
    }
}

/// Groups of one round, found by their shards: with as many of those as statements, a walk over all for each would be felt.
#[derive(Default)]
struct Groups {
    all: Vec<Group>,
    /// The bytes of each.
    used: Vec<usize>,
    /// Places of a shard's groups; one, unless it is addressed by different versions.
    by_shard: BTreeMap<ShardId, Vec<usize>>,
}

impl Groups {
    fn of(&self, target: &Target) -> Option<usize> {
        let places = self.by_shard.get(&target.shard)?;
        places.iter().copied().find(|at| self.all[*at].target == *target)
    }
    fn is_full_with(&self, target: &Target, bytes: usize) -> bool {
        self.of(target).is_some_and(|at| self.used[at] + bytes > limits::ROUTER_WRITE_GROUP_BYTES_MAX)
    }
    /// Puts a statement of so many bytes with others for the same shard.
    fn add(&mut self, target: Target, (i, bytes): (usize, usize)) {
        match self.of(&target) {
            Some(at) => {
                self.all[at].statements.push(i);
                self.used[at] += bytes;
            }
            None => {
                self.by_shard.entry(target.shard.clone()).or_default().push(self.all.len());
                self.all.push(Group { target, statements: vec![i] });
                self.used.push(bytes);
            }
        }
    }
}

/// Which statement of the command a part of a reply is about.
fn place(group: &Group, e: &RawDoc) -> Option<usize> {
    let at = e.get("index").and_then(|v| v.as_i64()).and_then(|n| usize::try_from(n).ok())?;
    group.statements.get(at).copied()
}

fn code_of(e: &RawDoc) -> ErrorCode {
    ErrorCode(e.get("code").and_then(|v| v.as_i64()).unwrap_or(0) as i32)
}

fn plain_error(e: &RawDoc) -> Error {
    let text = e.get("errmsg").and_then(|v| v.as_str()).unwrap_or_default().to_owned();
    Error::new(code_of(e), text)
}

fn with_index(i: usize, e: &RawDoc) -> DocBuf {
    let mut b = DocBuilder::new();
    b.i32("index", i as i32);
    let rest = |e: &Elem<'_>| e.name() != "index";
    e.iter().filter(rest).for_each(|e| _ = b.elem(e));
    b.finish()
}

/// An element of `writeErrors`.
pub(crate) fn error_of(i: usize, e: &Error) -> DocBuf {
    let mut b = DocBuilder::new();
    b.i32("index", i as i32).i32("code", e.code.0);
    if let Ok(extra) = RawDoc::validate(&e.extra) {
        b.elems_of(extra);
    }
    b.str("errmsg", &e.message);
    b.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_metadata_cache::testing::doc;

    fn to(shard: &str) -> Target {
        Target::unversioned(ShardId::new(shard))
    }
    /// Statements by where they go.
    fn go<'a>(plan: &'a [&'a [&'a str]]) -> impl Fn(usize) -> Result<Goes> + 'a {
        |i| match plan[i] {
            ["?"] => Err(Error::bad_value("nowhere")),
            ["*"] => Ok(Goes::Anywhere),
            shards => Ok(Goes::To(shards.iter().map(|s| to(s)).collect())),
        }
    }
    fn next(b: &mut Batch, plan: &[&[&str]]) -> Vec<Group> {
        b.round(go(plan)).0
    }
    fn shape(groups: &[Group]) -> String {
        let one = |g: &Group| format!("{}{:?}", g.target.shard, g.statements);
        groups.iter().map(one).collect::<Vec<_>>().join(" ")
    }
    fn errors(b: &Batch) -> Vec<usize> {
        b.outcome.errors.iter().map(|(i, _)| *i).collect()
    }

    #[test]
    fn in_order_what_goes_to_one_shard_goes_together() {
        let mut b = Batch::new(4, true);
        let plan: &[&[&str]] = &[&["a"], &["a"], &["b"], &["a"]];
        let mut seen = Vec::new();
        while !b.is_over() {
            let groups = next(&mut b, plan);
            seen.push(shape(&groups));
            for g in &groups {
                b.heard(g, &doc(&format!(r#"{{"n": {}}}"#, g.statements.len())), "d.c");
            }
        }
        assert_eq!(seen, ["a[0, 1]", "b[2]", "a[3]"]);
        assert_eq!((b.outcome.n, b.settled()), (4, 4));
    }

    #[test]
    fn without_an_order_everything_goes_at_once_and_errors_get_the_clients_places() {
        let mut b = Batch::new(4, false);
        let groups = next(&mut b, &[&["a"], &["b"], &["?"], &["b"]]);
        assert_eq!(shape(&groups), "a[0] b[1, 3]");
        b.heard(&groups[0], &doc(r#"{"n": 1}"#), "d.c");
        let reply = r#"{"n": 1, "writeErrors": [{"index": 1, "code": 11000, "errmsg": "twice"}]}"#;
        b.heard(&groups[1], &doc(reply), "d.c");
        assert!(b.is_over());
        assert_eq!(errors(&b), [2, 3]);
        assert_eq!(b.outcome.errors[1].1, doc(r#"{"index": 3, "code": 11000, "errmsg": "twice"}"#));
    }

    #[test]
    fn as_many_statements_as_shards_make_a_group_for_each() {
        const SHARDS: usize = 3000;
        let mut b = Batch::new(2 * SHARDS, false);
        let goes = |i: usize| Ok(Goes::To(vec![to(&format!("s{}", i % SHARDS))]));
        let (groups, alone) = b.round(goes);
        assert!(groups.len() == SHARDS && alone.is_none());
        assert!(groups.iter().enumerate().all(|(i, g)| g.statements == [i, i + SHARDS]));
    }

    #[test]
    fn in_order_the_first_error_ends_it_wherever_it_comes_from() {
        let mut b = Batch::new(3, true);
        let plan: &[&[&str]] = &[&["a"], &["?"], &["a"]];
        let groups = next(&mut b, plan);
        assert_eq!(shape(&groups), "a[0]");
        b.heard(&groups[0], &doc(r#"{"n": 1}"#), "d.c");
        assert!(next(&mut b, plan).is_empty() && b.is_over());
        assert_eq!(errors(&b), [1]);

        let mut b = Batch::new(3, true);
        let groups = next(&mut b, &[&["a"], &["a"], &["a"]]);
        b.heard(
            &groups[0],
            &doc(r#"{"n": 1, "writeErrors": [{"index": 1, "code": 2, "errmsg": "no"}]}"#),
            "d.c",
        );
        assert!(b.is_over() && errors(&b) == [1]);
    }

    #[test]
    fn what_was_done_before_a_shard_sent_the_rest_back_is_not_done_again() {
        let stale = r#"{"index": 1, "code": 13388, "errmsg": "stale"}"#;
        let mut b = Batch::new(3, true);
        let groups = next(&mut b, &[&["a"], &["a"], &["a"]]);
        b.heard(&groups[0], &doc(&format!(r#"{{"n": 1, "writeErrors": [{stale}]}}"#)), "d.c");
        assert!(b.take_stale().is_some() && !b.is_over() && b.settled() == 1);
        assert_eq!(shape(&next(&mut b, &[&["a"], &["b"], &["b"]])), "b[1, 2]");
    }

    #[test]
    fn a_statement_of_several_shards_is_asked_for_once_of_each() {
        let mut b = Batch::new(2, true);
        let groups = next(&mut b, &[&["a", "b"], &["a"]]);
        assert_eq!(shape(&groups), "a[0] b[0]");
        b.heard(&groups[0], &doc(r#"{"n": 5, "nModified": 4}"#), "d.c");
        b.failed(&groups[1], &Error::new(ErrorCode::StaleConfig, "stale"), "d.c");
        assert!(b.take_stale().is_some() && b.settled() == 0 && !b.has_done_nothing());
        let groups = next(&mut b, &[&["a", "c"], &["a"]]);
        assert_eq!(shape(&groups), "c[0]");
        b.heard(&groups[0], &doc(r#"{"n": 2, "nModified": 2}"#), "d.c");
        assert_eq!((b.outcome.n, b.outcome.n_modified, b.settled()), (7, 6, 1));
        assert_eq!(shape(&next(&mut b, &[&["a"], &["a"]])), "a[1]");
    }

    #[test]
    fn what_an_earlier_try_has_done_is_counted_once_though_two_shards_know_of_it() {
        let mut b = Batch::new(1, true);
        let (groups, _) = b.round(|_| Ok(Goes::To(vec![to("a"), to("b"), to("c")])));
        let again = doc(r#"{"n": 1, "nModified": 1, "retriedStmtIds": [0]}"#);
        for (g, reply) in groups.iter().zip([&again, &doc(r#"{"n": 0, "nModified": 0}"#), &again]) {
            b.heard(g, reply, "d.c");
        }
        assert_eq!((b.outcome.n, b.outcome.n_modified, b.is_over()), (1, 1, true));
    }

    #[test]
    fn what_has_to_be_looked_for_waits_for_its_turn() {
        let plan: &[&[&str]] = &[&["a"], &["*"], &["a"]];
        let mut b = Batch::new(3, true);
        let (sent, alone) = b.round(go(plan));
        assert_eq!((shape(&sent).as_str(), alone), ("a[0]", None));
        b.heard(&sent[0], &doc(r#"{"n": 1}"#), "d.c");
        assert_eq!(b.round(go(plan)), (vec![], Some(1)));
        let mut b = Batch::new(3, false);
        assert_eq!(shape(&next(&mut b, plan)), "a[0, 2]");
    }

    #[test]
    fn what_does_not_fit_into_one_message_goes_in_several() {
        let third = limits::ROUTER_WRITE_GROUP_BYTES_MAX / 3;
        let plan: &[&[&str]] = &[&["a"], &["a"], &["b"], &["a"], &["a"]];
        for (ordered, expected) in
            [(true, ["a[0, 1]", "b[2]", "a[3, 4]"]), (false, ["a[0, 1, 3] b[2]", "a[4]", ""])]
        {
            let mut b = Batch::of_sizes(vec![third; 5], ordered);
            let mut seen = Vec::new();
            while !b.is_over() {
                let groups = next(&mut b, plan);
                seen.push(shape(&groups));
                groups.iter().for_each(|g| b.heard(g, &doc(r#"{"n": 1}"#), "d.c"));
            }
            seen.resize(3, String::new());
            assert_eq!(seen, expected);
        }
        let mut b = Batch::of_sizes(vec![3 * third + 100; 2], true);
        assert_eq!(shape(&next(&mut b, &[&["a"], &["a"]])), "a[0]");
    }

    #[test]
    fn upserts_are_told_by_the_clients_places() {
        let mut b = Batch::new(2, false);
        let groups = next(&mut b, &[&["a"], &["b"]]);
        b.heard(&groups[1], &doc(r#"{"n": 1, "upserted": [{"index": 0, "_id": 7}]}"#), "d.c");
        assert_eq!(b.outcome.upserted, [(1, doc(r#"{"_id": 7}"#))]);
    }
}
